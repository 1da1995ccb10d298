"""How close the share of helix, or of strand, is to a wanted one, by the shape of the CA trace.

The shape is that of P-SEA (Labesse et al. 1997, CABIOS 13, 291): distances of CA atoms two and three residues apart,
and the torsion of four in a row. Here a window counts in full inside P-SEA's tolerances, and less and less outside, so
that the share has a gradient everywhere.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor

from data.space import State
from domains.protein import Frames, Protein, secondary
from domains.protein.frames import ca_trace
from rewards.base import RewardError, RewardResult, check_form

WINDOW = 4
_TINY = 1e-8


@dataclass(frozen=True)
class Shape:
    """Ideal and tolerance of the distances i to i + 2 and i to i + 3, in angstrom, and of the torsion, in degrees."""

    letter: str
    second: tuple[float, float]
    third: tuple[float, float]
    torsion: tuple[float, float]


Kind = Literal["helix", "strand"]
KINDS: dict[Kind, Shape] = {
    "helix": Shape(secondary.HELIX, (5.5, 0.5), (5.3, 0.5), (50, 20)),
    "strand": Shape(secondary.STRAND, (6.7, 0.6), (9.9, 0.9), (-170, 45)),
}


class SecondaryStructure:
    """1 where the share of windows of this shape is the wanted one, falling evenly to 0 at the share furthest off."""

    domains: tuple[str, ...] = ("protein",)

    def __init__(self, kind: Kind, target: float) -> None:
        self.shape = KINDS[kind]
        self.target = target

    def __call__(self, designs: Sequence[Protein]) -> RewardResult:
        """Score backbones; fewer than four residues are not valid.

        `parts` has the share, and beside it that of residues by hydrogen bonds; see `secondary.assign`.
        """
        state = ca_trace(designs)
        assigned = [secondary.assign(design.atoms(), design.letters) for design in designs]
        bonded = [found.count(self.shape.letter) / max(len(found), 1) for found in assigned]
        parts = {"share": self._share(state), "by_hydrogen_bonds": torch.tensor(bonded)}
        return RewardResult(self.relaxed(state), state["mask"].sum(-1) >= WINDOW, parts)

    def relaxed(self, state: State) -> Tensor:
        """The value (B,) of `position` (B, length, 3) in angstrom, over the windows of four sites in use."""
        return 1 - (self._share(state) - self.target).abs() / max(self.target, 1 - self.target)

    def _share(self, state: State) -> Tensor:
        if state["mask"].shape[1] < WINDOW:
            return state["position"].new_zeros(len(state["mask"]))
        used = state["mask"].unfold(1, WINDOW, 1).all(-1)
        places = state["position"].unfold(1, WINDOW, 1).movedim(-1, 2)  # (B, windows, 4, 3)
        return (_likeness(places, self.shape) * used).sum(-1) / used.sum(-1).clamp(min=1)


def _likeness(places: Tensor, shape: Shape) -> Tensor:
    """1 / (1 + squared excess over the tolerances) of windows (..., 4, 3)."""
    a, b, c, d = places.unbind(-2)
    excess = [
        _excess(_distance(a, c), *shape.second),
        _excess(_distance(b, d), *shape.second),
        _excess(_distance(a, d), *shape.third),
        _excess(_turned(a, b, c, d, math.radians(shape.torsion[0])), 0, math.radians(shape.torsion[1])),
    ]
    return 1 / (1 + torch.stack(excess).square().sum(0))


def _excess(value: Tensor, ideal: float, tolerance: float) -> Tensor:
    return ((value - ideal).abs() / tolerance - 1).clamp(min=0)


def _distance(a: Tensor, b: Tensor) -> Tensor:
    return (a - b).square().sum(-1).clamp(min=_TINY).sqrt()


def _turned(a: Tensor, b: Tensor, c: Tensor, d: Tensor, ideal: float) -> Tensor:
    """Torsion of four places less the ideal one, in radians from -pi to pi; pi, without gradient, on a line."""
    first, second = torch.linalg.cross(b - a, c - b), torch.linalg.cross(c - b, d - c)
    x, y = (first * second).sum(-1), _distance(b, c) * ((b - a) * second).sum(-1)
    straight = x.square() + y.square() < _TINY
    along = torch.where(straight, -1.0, math.cos(ideal) * x + math.sin(ideal) * y)
    across = torch.where(straight, 0.0, math.cos(ideal) * y - math.sin(ideal) * x)
    return torch.atan2(across, along)


def build(domain: Frames, kind: Kind = "helix", target: float = 1.0) -> SecondaryStructure:
    """The reward of a share of `kind` close to `target`, between 0 and 1."""
    check_form(domain, Frames, "secondary_structure", "frames")
    if kind not in KINDS:
        raise RewardError(f"kind={kind!r}; there are {', '.join(KINDS)}; choose one")
    if not 0 <= target <= 1:
        raise RewardError(f"target={target}; a share is between 0 and 1; choose e.g. 0.5")
    return SecondaryStructure(kind, target)
