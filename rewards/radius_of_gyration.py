"""How close the radius of gyration of a backbone's CA atoms is to a wanted one."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from data.space import State
from domains.protein import Frames, Protein, metrics
from domains.protein.frames import ca_trace
from rewards.base import RewardError, RewardResult, check_form

SMALLEST, LARGEST = 1.0, 1000.0
_TINY = 1e-12


class RadiusOfGyration:
    """1 at the wanted radius, the ratio of the smaller radius to the larger elsewhere: 1/2 at half of it or twice.

    Where none is wanted, it is that of a compact chain of as many residues, see `metrics.typical_radius`.
    """

    domains: tuple[str, ...] = ("protein",)

    def __init__(self, target: float | None) -> None:
        self.target = target

    def __call__(self, designs: Sequence[Protein]) -> RewardResult:
        """Score backbones; `parts` has the radius in angstrom. A design without residues is not valid and scores 0."""
        state = ca_trace(designs)
        return RewardResult(self.relaxed(state), state["mask"].any(-1), {"radius": _radius(state)})

    def relaxed(self, state: State) -> Tensor:
        """The value (B,) of `position` (B, length, 3) in angstrom, over the sites in use."""
        radius, count = _radius(state), state["mask"].sum(-1)
        if self.target is None:
            wanted = metrics.RADIUS_FACTOR * count.clamp(min=1).to(radius) ** metrics.RADIUS_EXPONENT
        else:
            wanted = torch.full_like(radius, self.target)
        return torch.minimum(radius / wanted, wanted / radius) * (count > 0)


def _radius(state: State) -> Tensor:
    """Root mean square distance (B,) of the sites in use from their mean."""
    used = state["mask"][..., None].to(state["position"])
    count = used.sum(1).clamp(min=1)
    middle = (state["position"] * used).sum(1) / count
    squares = ((state["position"] - middle[:, None]) ** 2 * used).sum((1, 2)) / count[:, 0]
    return squares.clamp(min=_TINY).sqrt()


def build(domain: Frames, target: float | None = None) -> RadiusOfGyration:
    """The reward of a radius close to `target` angstrom, or to that of a compact chain."""
    check_form(domain, Frames, "radius_of_gyration", "frames")
    if target is not None and not SMALLEST <= target <= LARGEST:
        raise RewardError(f"target={target}; a radius is from {SMALLEST:g} to {LARGEST:g} angstrom; choose e.g. 12")
    return RadiusOfGyration(target)
