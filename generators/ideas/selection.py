"""Which designs are parents, and which candidates are measured."""

from __future__ import annotations

import torch
from torch import Tensor

from generators.ideas.meter import Meter

NEAREST = 2
"""Positions in which two elites differ at least."""
CURIOSITY = 3.0
"""Standard deviations of a prediction that are added to its mean."""
REPULSION = 3.0
"""Taken off a candidate that differs in one position from one already chosen, half of it for two, and so on."""


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


def batch(candidates: Tensor, mean: Tensor, spread: Tensor, n: int) -> Tensor:
    """Indices of at most `n` candidates (N, L, F): one by one the best upper bound, apart from the others."""
    worth, chosen = bound(mean, spread), []
    crowded = torch.zeros(len(candidates))
    for _ in range(min(n, len(candidates))):
        best = int((worth - REPULSION * crowded).argmax())
        chosen.append(best)
        worth[best] = -torch.inf
        crowded = torch.maximum(crowded, 1 / distances(candidates, candidates[best]).clamp(min=1))
    return torch.tensor(chosen, dtype=torch.long)


def distances(letters: Tensor, other: Tensor) -> Tensor:
    """Hamming distances (N,) of designs (N, L, F) to one (L, F)."""
    return (letters != other).sum((1, 2))
