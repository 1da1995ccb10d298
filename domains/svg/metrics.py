"""How far a set of icons is from real ones, and how much of it was copied."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import avg_pool2d

from domains.statistics import divergence, wasserstein
from domains.svg.icon import COORDINATES, Icon

NAMES: tuple[str, ...] = (
    "renders", "frechet", "length_w1", "command_js", "ink_error", "copies", "exact_copies", "nearest_similarity",
)  # fmt: skip
SAME = 0.95
"""A design is a copy when its picture is at least as similar as this to one in training."""
_POOL = 3
"""Pixels on a side of one cell of the ink map: 8 x 8 cells."""
_RARE = 0.05
"""Standard deviations below this share of the largest of their kind count as it, so that no feature explodes."""


def closeness(designs: Sequence[Icon], inks: Tensor, reference: Sequence[Icon], known: Tensor) -> dict[str, float]:
    """Distances of the statistics of two sets, best at 0, and the share of designs that leave any ink.

    `inks` (n, size, size) are the pictures of the designs, `known` those of the reference.
    """
    lengths = [np.array([len(icon.segments) for icon in icons]) for icons in (designs, reference)]
    return {
        "renders": float((inks.sum((1, 2)) >= 1).float().mean()),
        "frechet": frechet(features(designs, inks), features(reference, known)),
        "length_w1": wasserstein(*lengths) / float(lengths[1].mean()),
        "command_js": divergence(*_frequencies(bigrams(designs), bigrams(reference))),
        "ink_error": abs(float(inks.mean()) - float(known.mean())),
    }


def copying(designs: Sequence[Icon], inks: Tensor, train: Sequence[Icon], known: Tensor) -> dict[str, float]:
    """Shares of designs that look like one of `train`, or are one of them; the median similarity to the nearest."""
    nearest, own = nearest_similarity(inks, known), set(train)
    return {
        "copies": float((nearest >= SAME).float().mean()),
        "exact_copies": sum(design in own for design in designs) / len(designs),
        "nearest_similarity": float(nearest.median()),
    }


def nearest_similarity(inks: Tensor, known: Tensor) -> Tensor:
    """(n,) the highest 2 a b / (a a + b b) of each picture with any known one: 1 for the same, 0 for ink apart."""
    a, b = inks.flatten(1), known.flatten(1)
    total = a.square().sum(1)[:, None] + b.square().sum(1)
    return (2 * (a @ b.T) / total.clamp(min=1e-6)).amax(1)


def features(icons: Sequence[Icon], inks: Tensor) -> np.ndarray:
    """What `frechet` compares, (n, 69): ink in 8 x 8 cells of 3 x 3 units; how many M, L, C and Z; ink in all."""
    cells = avg_pool2d(inks[:, None], _POOL).flatten(1)
    counts = torch.tensor([[_count(icon, command) for command in COORDINATES] for icon in icons])
    return torch.cat([cells, counts, inks.mean((1, 2))[:, None]], 1).double().numpy()


def frechet(made: np.ndarray, real: np.ndarray) -> float:
    """Squared Frechet distance of two Gaussians fitted to features (n, k), in standard deviations of `real`.

    The formula is that of Heusel et al. 2017 (arXiv 1706.08500); the features are simple ones, not a network's. It is
    divided by the number of features. A sample of n real icons is not at 0, but at a floor that falls with n.
    """
    scale = np.maximum(real.std(0), _RARE * real.std(0).max())
    a, b = made / scale, real / scale
    spreads = [np.atleast_2d(np.cov(x, rowvar=False, bias=True)) for x in (a, b)]
    root = _root(spreads[1])
    shared = np.linalg.eigvalsh(root @ spreads[0] @ root).clip(min=0)
    moved = np.square(a.mean(0) - b.mean(0)).sum()
    distance = moved + np.trace(spreads[0]) + np.trace(spreads[1]) - 2 * np.sqrt(shared).sum()
    return float(max(distance, 0.0) / a.shape[1])


def bigrams(icons: Sequence[Icon]) -> Counter[str]:
    """How often each command follows each other one; ^ is before the first and $ after the last."""
    words = ("".join(["^", *(segment.command for segment in icon.segments), "$"]) for icon in icons)
    return Counter(word[i : i + 2] for word in words for i in range(len(word) - 1))


def _frequencies(*counts: Counter[str]) -> list[np.ndarray]:
    """Of the same words, in the same order."""
    words = sorted(set().union(*counts))
    return [np.array([found[word] / found.total() for word in words]) for found in counts]


def _count(icon: Icon, command: str) -> float:
    return float(sum(segment.command == command for segment in icon.segments))


def _root(spread: np.ndarray) -> np.ndarray:
    values, vectors = np.linalg.eigh(spread)
    root: np.ndarray = (vectors * np.sqrt(values.clip(min=0))) @ vectors.T
    return root
