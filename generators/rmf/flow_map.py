"""The flow map of Riemannian MeanFlow, by x1-prediction (Woo et al., arXiv 2602.07744).

The network predicts a point x1(x, s, t); the average velocity is u = Log_x(x1) / (1 - s) and the flow map
X_{s,t}(x) = Exp_x((t - s) u), the point at the fraction (t - s) / (1 - s) of the geodesic from x to x1.
"""

from __future__ import annotations

from typing import Any

import torch
from diffusers import ConfigMixin, ModelMixin
from diffusers.configuration_utils import register_to_config
from torch import Tensor

from data.space import Real, Rotation, Space
from generators.base import GeneratorError
from generators.networks.dilated_convolutions import DilatedConvolutions
from generators.networks.frame_attention import FrameAttention
from generators.rmf.geometry import Geometry, Points

SHORTEST = 1 / 32
NEVER = 2.0
"""As `shortest`, it makes every step one along the velocity: plain flow matching."""
CHANNELS, DEPTHS, KERNELS = (4, 1024), (1, 64), (3, 5, 7, 9, 11)


class FlowMap(ModelMixin, ConfigMixin):  # type: ignore[misc]
    """A network with the geometry of a space around it; its `config.json` holds both."""

    @register_to_config  # type: ignore[untyped-decorator]
    def __init__(
        self,
        space: dict[str, Any],
        channels: int = 128,
        depth: int = 10,
        kernel: int = 5,
        shortest: float = SHORTEST,
        lengths: list[int] | None = None,
    ) -> None:
        super().__init__()
        if not 0 < shortest <= NEVER:
            raise GeneratorError(f"shortest is {shortest}; it must be above 0 and at most {NEVER:g}")
        self.shortest = shortest
        for name, value, (least, most) in (("channels", channels, CHANNELS), ("depth", depth, DEPTHS)):
            if not least <= value <= most:
                raise GeneratorError(f"{name} is {value}; it must be from {least} to {most}")
        if kernel not in KERNELS:
            raise GeneratorError(f"kernel is {kernel}; it must be one of {', '.join(map(str, KERNELS))}")
        self.space = Space.from_dict(space)
        self.geometry = Geometry(self.space)
        check_lengths(lengths, self.space.length)
        self.network = network(self.space, channels, depth, kernel)

    def endpoint(self, x: Points, mask: Tensor, s: Tensor, t: Tensor) -> Points:
        """The predicted x1(x, s, t) for times s <= t of shape (B,).

        A jump that is shorter than `shortest`, or that starts less than that before the end is decided, is a step along
        the velocity, x1(x, s, s): there the recursion of the semigroup identity ends on what flow matching has learned.
        """
        t = torch.where((t - s < self.shortest) | (s > self.geometry.decided - self.shortest), s, t)
        return self.geometry.heads(self._raw(x, mask, s, t), mask)

    def jump(self, x: Points, mask: Tensor, s: Tensor, t: Tensor) -> Points:
        """X_{s,t}(x), one network call; s must be below 1."""
        return self.geometry.along(x, self.endpoint(x, mask, s, t), (t - s) / (1 - s))

    def _raw(self, x: Points, mask: Tensor, s: Tensor, t: Tensor) -> Points:
        """What the network says, factor by factor (B, L, width)."""
        if isinstance(self.network, FrameAttention):
            place, turn = frames(self.space)
            value = self.geometry.charts[turn].value(x[turn])
            return dict(zip((place, turn), self.network(x[place], value, mask, s, t), strict=True))
        names, widths = zip(*self.geometry.widths.items(), strict=True)
        raw = self.network(torch.cat([x[name] for name in names], dim=-1), mask, s, t)
        return dict(zip(names, torch.split(raw, list(widths), dim=-1), strict=True))


def network(space: Space, channels: int, depth: int, kernel: int) -> torch.nn.Module:
    """The network that suits a space: one for frames where each site is a place and a rotation, else convolutions."""
    if frames(space):
        return FrameAttention(channels, depth, kernel)
    width = sum(factor.width for factor in space.factors.values())
    return DilatedConvolutions(space.length, width, width, channels, depth, kernel)


def frames(space: Space) -> tuple[str, ...]:
    """The names of place and rotation, where a space has one of each and nothing else; empty for any other."""
    places = [name for name, factor in space.factors.items() if isinstance(factor, Real) and factor.centred]
    turns = [name for name, factor in space.factors.items() if isinstance(factor, Rotation)]
    whole = len(places) == len(turns) == 1 and len(space.factors) == 2 and space.factors[places[0]].width == 3
    return (*places, *turns) if whole else ()


def check_lengths(lengths: list[int] | None, longest: int) -> None:
    """Raise `GeneratorError` unless `lengths` is None or counts designs of 1, 2, ... `longest` sites."""
    if lengths is None:
        return
    whole = all(isinstance(count, int) and 0 <= count < 2**40 for count in lengths)
    if not whole or len(lengths) != longest or not sum(lengths):
        raise GeneratorError(f"lengths is {lengths!r:.100}; it must be {longest} counts, one of them above 0")
