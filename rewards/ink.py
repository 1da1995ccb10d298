"""How close the share of an icon's canvas that is inked is to a wanted one."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from data.space import State
from domains.svg import Svg, raster, units
from domains.svg.icon import Icon
from rewards.base import RewardError, RewardResult

USUAL = 0.25
"""The median of the icons in training."""


class Ink:
    """The smaller of share and target over the larger: 1 at the target, and a slope wherever some ink is."""

    domains: tuple[str, ...] = ("svg",)

    def __init__(self, target: float) -> None:
        self.target = target

    def __call__(self, designs: Sequence[Icon]) -> RewardResult:
        """Score icons; one that leaves no ink on the canvas is not valid. `parts` has the share that is inked."""
        share = raster.ink(designs).mean((1, 2))
        return RewardResult(self._value(share), share > 0, {"share": share})

    def relaxed(self, state: State) -> Tensor:
        """The value (B,) of a state, by the likeliest commands; its gradient is with respect to `arguments`."""
        return self._value(raster.coverage(units.strokes(state)).mean((1, 2)))

    def _value(self, share: Tensor) -> Tensor:
        return torch.minimum(share / self.target, self.target / share.clamp(min=1e-9)).clamp(max=1)


def build(domain: Svg, target: float = USUAL) -> Ink:
    """The reward of a share of the canvas, above 0 and below 1; real icons have 0.14 to 0.35."""
    if not 0 < target < 1:
        raise RewardError(f"target={target}; a share of the canvas is above 0 and below 1; choose e.g. {USUAL}")
    return Ink(target)
