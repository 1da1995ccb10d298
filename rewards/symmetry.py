"""How well an icon's left half mirrors its right half."""

from __future__ import annotations

from collections.abc import Sequence

from torch import Tensor

from data.space import State
from domains.svg import Svg, raster, units
from domains.svg.icon import Icon
from rewards.base import RewardResult


class Symmetry:
    """The share of the ink that lies on ink of the mirror image: 1 for a symmetric icon, 0 where nothing meets."""

    domains: tuple[str, ...] = ("svg",)

    def __call__(self, designs: Sequence[Icon]) -> RewardResult:
        """Score icons; one that leaves no ink is not valid. `parts` has the ink off its mirror image, in pixels."""
        picture = raster.ink(designs)
        ink = picture.sum((1, 2))
        return RewardResult(_value(picture), ink > 0, {"unmatched": _unmatched(picture)})

    def relaxed(self, state: State) -> Tensor:
        """The value (B,) of a state, by the likeliest commands; its gradient is with respect to `arguments`."""
        return _value(raster.coverage(units.strokes(state)))


def _unmatched(picture: Tensor) -> Tensor:
    """Ink (B,) that its mirror image lacks, in pixels of one unit."""
    return (picture - picture.flip(-1)).abs().sum((1, 2)) / 2


def _value(picture: Tensor) -> Tensor:
    ink = picture.sum((1, 2))
    return ((ink - _unmatched(picture)) / ink.clamp(min=1e-9)).clamp(0, 1)


def build(domain: Svg) -> Symmetry:
    """The reward of mirror symmetry about the upright line through the middle of the canvas."""
    return Symmetry()
