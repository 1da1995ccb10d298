"""Which designs are parents, and which candidates are measured."""

from __future__ import annotations

import torch
from torch import Tensor

from generators.ideas.alphabet import Alphabet
from generators.ideas.meter import Meter
from generators.ideas.surrogate import NOISE

NEAREST = 2
"""Positions in which two elites differ at least."""
CURIOSITY = 2.0
"""Standard deviations of a prediction that are added to its mean."""


def elites(meter: Meter, most: int) -> Tensor:
    """Rows of the best measured designs, the best first: at most `most`, any two of them `NEAREST` apart.

    Designs that cannot be made are no elites, unless there are no others.
    """
    kept: list[int] = []
    feasible = int(meter.values.isfinite().sum()) or len(meter.values)
    for row in meter.ranking()[:feasible].tolist():
        if len(kept) == most:
            break
        if not kept or int(distances(meter.designs[kept], meter.designs[row]).min()) >= NEAREST:
            kept.append(row)
    return torch.tensor(kept)


def bound(mean: Tensor, spread: Tensor) -> Tensor:
    """The upper confidence bound (N,) of predictions."""
    return mean + CURIOSITY * spread


def batch(mean: Tensor, covariance: Tensor, n: int) -> Tensor:
    """Indices of at most `n` candidates of predicted mean (N,) and covariance (N, N), one by one the best upper bound.

    Each is taken for measured when the next is chosen, so that what it would tell of its like is not asked twice
    (Desautels et al. 2014, JMLR 15, 4053).
    """
    mean, left = mean.clone(), covariance.clone()
    chosen: list[int] = []
    for _ in range(min(n, len(mean))):
        best = int(bound(mean, left.diagonal().clamp(min=0).sqrt()).argmax())
        chosen.append(best)
        told = left[:, best].clone()
        left -= told[:, None] * told / (told[best].clamp(min=0) + NOISE)
        mean[best] = -torch.inf
    return torch.tensor(chosen, dtype=torch.long)


def sound(meter: Meter, letters: Tensor) -> Tensor:
    """Indices of designs (N, L, F) without two neighbouring letters that only designs had that cannot be made.

    All, where that leaves none.
    """
    pairs, known = _pairs(meter.alphabet, letters), _pairs(meter.alphabet, meter.designs)
    feasible = meter.values.isfinite()
    broken = torch.isin(pairs, known[~feasible]) & ~torch.isin(pairs, known[feasible])
    rows = (~broken.any(-1)).nonzero().flatten()
    return rows if len(rows) else torch.arange(len(letters))


def _pairs(alphabet: Alphabet, letters: Tensor) -> Tensor:
    """A number (N, (L - 1) * F) for each letter of a factor and the next."""
    cells = alphabet.cell(letters)
    return (cells[:, :-1] * len(alphabet.factor_of_cell) + cells[:, 1:]).flatten(1)


def distances(letters: Tensor, other: Tensor) -> Tensor:
    """Hamming distances (N,) of designs (N, L, F) to one (L, F)."""
    return (letters != other).sum((1, 2))
