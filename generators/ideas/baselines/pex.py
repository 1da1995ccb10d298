"""Proximal exploration (Ren et al. 2022, PMLR 162): good designs that differ little from where it began."""

from __future__ import annotations

import torch
from torch import Tensor

from data.noise import StepNoise
from generators.ideas import surrogate
from generators.ideas.alphabet import UNUSED, Alphabet
from generators.ideas.meter import Meter
from generators.ideas.protocol import CANDIDATES, MEMBERS

WIDTH = 5
"""Designs of each distance that are parents."""
MUTATIONS = 2.0
"""Of a candidate, on average."""


class PEX:
    """Chooses along the frontier of predicted value against distance to the best design of the start."""

    def __init__(self, alphabet: Alphabet) -> None:
        self.alphabet = alphabet
        self.origin: Tensor | None = None

    def propose(self, meter: Meter, n: int, rng: StepNoise) -> Tensor:
        """`n` mutants of the frontier of what was measured, frontier by frontier of what is predicted of them."""
        if self.origin is None:
            self.origin = meter.designs[meter.ranking()[0]]
        model = surrogate.fit(self.alphabet, meter.designs, meter.values, MEMBERS, rng.fork(0))
        apart = (meter.designs != self.origin).sum((1, 2))
        parents = meter.designs[_leaders(apart, meter.values)]
        chosen = parents[rng.integers(len(parents), CANDIDATES)]
        here = (rng.uniform(*chosen.shape) < MUTATIONS / self.alphabet.positions) & (chosen != UNUSED)
        mutants = meter.fresh(torch.where(here, self.alphabet.random(chosen, rng), chosen))
        if not len(mutants):
            return mutants
        distance = (mutants != self.origin).sum((1, 2))
        return mutants[_frontiers(distance, model.predict(mutants)[0], n)]


def _leaders(distance: Tensor, values: Tensor) -> list[int]:
    """Rows of the `WIDTH` best of each distance, where they beat all that are nearer."""
    kept: list[int] = []
    record = -torch.inf
    for d in sorted(set(distance.tolist())):
        rows = (distance == d).nonzero().flatten()
        best = rows[values[rows].argsort(descending=True, stable=True)[:WIDTH]]
        kept += [int(row) for row in best if values[row] > record]
        record = max(record, float(values[rows].max()))
    return kept or [int(values.argmax())]


def _frontiers(distance: Tensor, values: Tensor, n: int) -> list[int]:
    """`n` rows, taken hull by hull: the upper left convex hull of value over distance, then that of what is left."""
    left = values.argsort(descending=True, stable=True).tolist()
    chosen: list[int] = []
    while left and len(chosen) < n:
        hull = _hull([(int(distance[row]), float(values[row]), row) for row in left])
        chosen += hull
        left = [row for row in left if row not in set(hull)]
    return chosen[:n]


def _hull(points: list[tuple[int, float, int]]) -> list[int]:
    """Rows of the increasing part of the upper convex hull (Andrew's monotone chain), the farthest first."""
    kept: list[tuple[int, float, int]] = []
    for x, y, row in sorted(points, key=lambda point: (point[0], -point[1])):
        if kept and y <= kept[-1][1]:
            continue
        while len(kept) > 1 and _turns_left(kept[-2], kept[-1], x, y):
            kept.pop()
        kept.append((x, y, row))
    return [row for _, _, row in reversed(kept)]


def _turns_left(a: tuple[int, float, int], b: tuple[int, float, int], x: int, y: float) -> bool:
    return (b[0] - a[0]) * (y - a[1]) - (b[1] - a[1]) * (x - a[0]) >= 0
