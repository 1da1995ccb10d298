"""The simple models of a promoter that any generator has to beat."""

from __future__ import annotations

import numpy as np

_PSEUDO_COUNT = 0.1


def uniform(train: np.ndarray, n: int, rng: np.random.Generator) -> np.ndarray:
    """Codes (n, length) with every base equally likely at every site."""
    return rng.integers(4, size=(n, train.shape[1]), dtype=np.uint8)


def independent(train: np.ndarray, n: int, rng: np.random.Generator) -> np.ndarray:
    """Codes (n, length) drawn site by site from the frequencies that site has in `train` (m, length)."""
    frequencies = np.stack([(train == base).mean(0) for base in range(4)], axis=-1)
    return _draw(np.broadcast_to(frequencies, (n, *frequencies.shape)), rng)


def markov(train: np.ndarray, n: int, rng: np.random.Generator, order: int = 3) -> np.ndarray:
    """Codes (n, length) of a Markov chain of this order, the same at every site; it starts as some row of `train`."""
    length = train.shape[1]
    context = 4 ** np.arange(order)[::-1]
    counts = np.full((4**order, 4), _PSEUDO_COUNT)
    for site in range(order, length):
        np.add.at(counts, (train[:, site - order : site] @ context, train[:, site]), 1)
    chances = counts / counts.sum(1, keepdims=True)
    made = np.empty((n, length), dtype=np.uint8)
    made[:, :order] = train[rng.integers(len(train), size=n), :order]
    for site in range(order, length):
        made[:, site] = _draw(chances[made[:, site - order : site] @ context], rng)
    return made


def _draw(chances: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """One category per row of `chances` (..., 4)."""
    drawn: np.ndarray = (rng.random((*chances.shape[:-1], 1)) > chances.cumsum(-1)).sum(-1, dtype=np.uint8)
    return drawn.clip(max=3)  # the sum of four chances may fall just short of 1
