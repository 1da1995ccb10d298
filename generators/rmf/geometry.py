"""Which manifold each factor of a space becomes, and the passage between states and points."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import torch
from torch import Tensor

from data.noise import Noise
from data.space import Categorical, Factor, Real, Rotation, Space, State
from generators.base import GeneratorError
from generators.manifolds import rotations
from generators.manifolds.base import Manifold
from generators.manifolds.centred_chains import CentredChains
from generators.manifolds.euclidean import Euclidean
from generators.manifolds.positive_orthant import PositiveOrthant
from generators.manifolds.rotations import Rotations

Points = dict[str, Tensor]
"""Factor -> point `(batch, length, width)` on its manifold."""


@dataclass(frozen=True)
class Chart:
    """How the values of one factor are points of a manifold, and how a network's raw output becomes a point."""

    manifold: Manifold
    point: Callable[[Tensor], Tensor]
    value: Callable[[Tensor], Tensor]
    head: Callable[[Tensor, Tensor], Tensor]
    """`head(raw, mask)`: the point, for the sites (batch, length) in use."""
    decided: float
    """The time after which a path's end is fixed up to rounding: what is left is a straight run to it."""


def chart(factor: Factor) -> Chart:
    """The chart of a factor; raises `GeneratorError` for a kind that has none."""
    if isinstance(factor, Categorical):
        return Chart(
            PositiveOrthant(),
            point=torch.sqrt,
            value=torch.square,
            head=lambda raw, mask: (0.5 * torch.log_softmax(raw, dim=-1)).exp(),
            # Half-way to vertex i a point is x0 + e_i, normalised: coordinate i is the largest whatever x0 was.
            decided=0.5,
        )
    if isinstance(factor, Real):
        scale = factor.scale
        flat: Manifold = CentredChains() if factor.centred else Euclidean()
        return Chart(
            flat,
            point=lambda x: x / scale,
            value=lambda x: x * scale,
            head=lambda raw, mask: flat.project(raw, mask),
            decided=1.0,
        )
    if isinstance(factor, Rotation):
        root = rotations.ROOT
        return Chart(
            Rotations(),
            point=lambda x: x / root,
            value=lambda x: x * root,
            head=lambda raw, mask: rotations.points(rotations.orthonormal(raw.reshape(*raw.shape[:-1], 3, 3))),
            decided=1.0,
        )
    raise GeneratorError(
        f"Riemannian MeanFlow has no manifold for {factor}; it has one for Categorical, Real and Rotation"
    )


class Geometry:
    """The product of the manifolds of a space's factors."""

    def __init__(self, space: Space) -> None:
        self.charts: Mapping[str, Chart] = {name: chart(factor) for name, factor in space.factors.items()}
        self.widths = {name: factor.width for name, factor in space.factors.items()}
        self.decided = max(chart.decided for chart in self.charts.values())

    def points(self, state: State) -> Points:
        """The points a state stands for."""
        return {name: chart.point(state[name]) for name, chart in self.charts.items()}

    def state(self, points: Points, mask: Tensor) -> State:
        """The state that points stand for."""
        return {name: chart.value(points[name]) for name, chart in self.charts.items()} | {"mask": mask}

    def heads(self, raw: Points, mask: Tensor) -> Points:
        """A network's output, factor by factor (B, L, width), as points."""
        return {name: chart.head(raw[name], mask) for name, chart in self.charts.items()}

    def random(self, like: Points, rng: Noise, mask: Tensor) -> Points:
        """Points of the prior."""
        return {name: chart.manifold.random(like[name], rng, mask) for name, chart in self.charts.items()}

    def log(self, x: Points, y: Points) -> Points:
        """Factor by factor, the tangent at x that points to y."""
        return {name: chart.manifold.log(x[name], y[name]) for name, chart in self.charts.items()}

    def along(self, x: Points, y: Points, fraction: Tensor) -> Points:
        """The point at `fraction` (B,) of the geodesic from x to y."""
        part = fraction[:, None, None]
        return {
            name: chart.manifold.exp(x[name], part * chart.manifold.log(x[name], y[name]))
            for name, chart in self.charts.items()
        }

    def move(self, x: Points, v: Points, mask: Tensor) -> Points:
        """x moved along the geodesic with velocity P_x(v), for ambient vectors v."""
        moved = {}
        for name, chart in self.charts.items():
            manifold = chart.manifold
            moved[name] = manifold.exp(x[name], manifold.tangent(x[name], v[name], mask))
        return moved

    def squared_error(self, a: Points, b: Points, mask: Tensor) -> Tensor:
        """(B,), the squared distance of tangents (or flat points), a mean over sites in use and a sum over factors."""
        parts = [chart.manifold.square(a[name] - b[name], mask) for name, chart in self.charts.items()]
        total: Tensor = (torch.stack(parts).sum(0) * mask).sum(-1)
        return total / mask.sum(-1).clamp_min(1)
