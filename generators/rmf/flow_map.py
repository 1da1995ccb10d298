"""The network of a flow map for the designs of a space, as a checkpoint holds it."""

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
from generators.rmf.mean_flow import MeanFlow
from generators.rmf.parameterisations import PARAMETERISATIONS

NEVER = 2.0
"""As `shortest`, it makes every step one along the velocity: plain flow matching."""
CHANNELS, DEPTHS, KERNELS = (4, 1024), (1, 64), (3, 5, 7, 9, 11)


class FlowMap(ModelMixin, ConfigMixin):  # type: ignore[misc]
    """A network and what its numbers mean: the geometry of a space and a parameterisation, all in `config.json`."""

    @register_to_config  # type: ignore[untyped-decorator]
    def __init__(
        self,
        space: dict[str, Any],
        channels: int = 128,
        depth: int = 10,
        kernel: int = 5,
        shortest: float = 0.0,
        lengths: list[int] | None = None,
        parameterisation: str = "x1",
    ) -> None:
        super().__init__()
        if not 0 <= shortest <= NEVER:
            raise GeneratorError(f"shortest is {shortest}; it must be from 0 to {NEVER:g}")
        if parameterisation not in PARAMETERISATIONS:
            known = ", ".join(PARAMETERISATIONS)
            raise GeneratorError(f"parameterisation is {parameterisation!r:.50}; it must be one of {known}")
        for name, value, (least, most) in (("channels", channels, CHANNELS), ("depth", depth, DEPTHS)):
            if not least <= value <= most:
                raise GeneratorError(f"{name} is {value}; it must be from {least} to {most}")
        if kernel not in KERNELS:
            raise GeneratorError(f"kernel is {kernel}; it must be one of {', '.join(map(str, KERNELS))}")
        self.space = Space.from_dict(space)
        self.geometry = Geometry.of(self.space)
        check_lengths(lengths, self.space.length)
        charts = self.geometry.charts.values()
        self.told = sum(chart.told_width for chart in charts)
        self.says = [chart.end_width if parameterisation == "x1" else chart.width for chart in charts]
        self.network = self._network(channels, depth, kernel)

    @property
    def flow(self) -> MeanFlow:
        """The average velocity that the network tells."""
        parameterisation = PARAMETERISATIONS[self.config.parameterisation]
        return MeanFlow(self.geometry, self._raw, parameterisation, self.config.shortest)

    def resize(self, space: Space) -> None:
        """Designs of other lengths from here on; raises `GeneratorError` for longer ones than it is made for."""
        if space.length > self.space.length:
            raise GeneratorError(f"this network is for {self.space}, not {space}; give at most that length")
        self.space = space

    def _network(self, channels: int, depth: int, kernel: int) -> torch.nn.Module:
        """The network that suits the space: one for frames where each site is a place and a rotation."""
        if frames(self.space):
            return FrameAttention(channels, depth, kernel, body(self.space))
        return DilatedConvolutions(self.space.length, self.told, sum(self.says), channels, depth, kernel)

    def _raw(self, x: Points, mask: Tensor, s: Tensor, t: Tensor) -> Points:
        """What the network says, factor by factor (B, L, width)."""
        charts = self.geometry.charts
        if isinstance(self.network, FrameAttention):
            place, turn = frames(self.space)
            moved, turned = self.network(x[place], charts[turn].value(x[turn]), mask, s, t)
            return {place: moved, turn: turned}
        raw = self.network(torch.cat([chart.told(x[name]) for name, chart in charts.items()], dim=-1), mask, s, t)
        return dict(zip(charts, torch.split(raw, self.says, dim=-1), strict=True))


def frames(space: Space) -> tuple[str, ...]:
    """The names of place and rotation, where a space has one of each and nothing else; empty for any other."""
    places = [name for name, factor in space.factors.items() if isinstance(factor, Real) and factor.centred]
    turns = [name for name, factor in space.factors.items() if isinstance(factor, Rotation)]
    whole = len(places) == len(turns) == 1 and len(space.factors) == 2 and space.factors[places[0]].width == 3
    return (*places, *turns) if whole else ()


def body(space: Space) -> list[list[float]]:
    """The points that turn with each frame of a space of frames, in units of its places' scale."""
    place, turn = (space.factors[name] for name in frames(space))
    scale = place.scale if isinstance(place, Real) else 1.0
    return [[x / scale for x in point] for point in turn.body] if isinstance(turn, Rotation) else []


def check_lengths(lengths: list[int] | None, longest: int) -> None:
    """Raise `GeneratorError` unless `lengths` is None or counts designs of 1, 2, ... `longest` sites."""
    if lengths is None:
        return
    whole = all(isinstance(count, int) and 0 <= count < 2**40 for count in lengths)
    if not whole or len(lengths) != longest or not sum(lengths):
        raise GeneratorError(f"lengths is {lengths!r:.100}; it must be {longest} counts, one of them above 0")
