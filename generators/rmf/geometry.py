"""Which manifold each factor of a space becomes, and the passage between states and points."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import torch
from torch import Tensor

from data.space import Angle, Categorical, Factor, Real, Rotation, Space, State
from generators.manifolds import rotations
from generators.manifolds.angles import angle
from generators.manifolds.base import Manifold
from generators.manifolds.centred_chains import CentredChains
from generators.manifolds.euclidean import Euclidean
from generators.manifolds.flat_torus import FlatTorus
from generators.manifolds.positive_orthant import PositiveOrthant
from generators.manifolds.product import Points, Product
from generators.manifolds.rotations import Rotations

__all__ = ["Chart", "Geometry", "Points", "chart"]


@dataclass(frozen=True)
class Chart:
    """How the values of one factor are points of a manifold, and how a network is told of points and tells them."""

    manifold: Manifold
    width: int
    """Numbers of a point."""
    toward: Callable[[Tensor, Tensor, Tensor], Tensor]
    """`toward(raw, x, mask)`: the tangent Log_x(x1) for what a network says of x1 in `end_width` numbers."""
    near: Callable[[Tensor, Tensor], Tensor]
    """`near(y, mask)`: the point of the manifold for ambient numbers near it; points stay, and it has a gradient."""
    end_width: int = 0
    point: Callable[[Tensor], Tensor] = lambda value: value
    value: Callable[[Tensor], Tensor] = lambda point: point
    told: Callable[[Tensor], Tensor] = lambda point: point
    """What a network is told of a point, in `told_width` numbers."""
    told_width: int = 0
    decided: float = 1.0
    """The time after which a path's end is fixed up to rounding: what is left is a straight run to it."""
    misfit: Callable[[Tensor, Tensor], Tensor] | None = None
    """`misfit(raw, one)` (B, L): what is minimised in the place of the velocity's error by those who predict x1."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "end_width", self.end_width or self.width)
        object.__setattr__(self, "told_width", self.told_width or self.width)


def chart(factor: Factor) -> Chart:
    """The chart of a factor of a space."""
    return _CHARTS[type(factor)](factor)


def _of_categorical(factor: Categorical) -> Chart:
    manifold = PositiveOrthant()
    return Chart(
        manifold,
        factor.width,
        toward=lambda raw, x, mask: manifold.log(x, (0.5 * torch.log_softmax(raw, dim=-1)).exp()),
        near=manifold.project,
        point=torch.sqrt,
        value=torch.square,
        # Half-way to vertex i a point is x0 + e_i, normalised: coordinate i is the largest whatever x0 was.
        decided=0.5,
    )


def _of_real(factor: Real) -> Chart:
    manifold: Manifold = CentredChains() if factor.centred else Euclidean()
    return Chart(
        manifold,
        factor.width,
        toward=lambda raw, x, mask: manifold.project(raw, mask) - x,
        near=manifold.project,
        point=lambda value: value / factor.scale,
        value=lambda point: point * factor.scale,
    )


def _of_angle(factor: Angle) -> Chart:
    manifold = FlatTorus()

    def toward(raw: Tensor, x: Tensor, mask: Tensor) -> Tensor:
        """By a cosine and a sine for each angle, because no continuous number goes round a circle."""
        cosine, sine = raw.chunk(2, dim=-1)
        return manifold.log(x, torch.copysign(angle(sine.abs(), cosine), sine))

    return Chart(
        manifold,
        factor.width,
        toward,
        near=manifold.project,
        end_width=2 * factor.width,
        told=lambda point: torch.cat([point.cos(), point.sin()], dim=-1),
        told_width=2 * factor.width,
    )


def _of_rotation(factor: Rotation) -> Chart:
    manifold = Rotations()

    def near(y: Tensor, mask: Tensor) -> Tensor:
        """By Gram-Schmidt, which has a gradient everywhere."""
        return rotations.points(rotations.orthonormal(y.reshape(*y.shape[:-1], 3, 3)))

    return Chart(
        manifold,
        factor.width,
        toward=lambda raw, x, mask: manifold.log(x, near(raw, mask)),
        near=near,
        point=lambda value: value / rotations.ROOT,
        value=lambda point: point * rotations.ROOT,
    )


_CHARTS: Mapping[type[Factor], Callable[..., Chart]] = {
    Categorical: _of_categorical,
    Real: _of_real,
    Angle: _of_angle,
    Rotation: _of_rotation,
}


class Geometry:
    """The product of the manifolds of named factors, with the charts in which a network sees them."""

    def __init__(self, charts: Mapping[str, Chart]) -> None:
        self.charts = charts
        self.manifold = Product({name: chart.manifold for name, chart in charts.items()})
        self.widths = {name: chart.width for name, chart in charts.items()}
        self.decided = max(chart.decided for chart in charts.values())

    @staticmethod
    def of(space: Space) -> Geometry:
        """The geometry of a space's factors."""
        return Geometry({name: chart(factor) for name, factor in space.factors.items()})

    def points(self, state: State) -> Points:
        """The points a state stands for."""
        return {name: chart.point(state[name]) for name, chart in self.charts.items()}

    def state(self, points: Points, mask: Tensor) -> State:
        """The state that points stand for."""
        return {name: chart.value(points[name]) for name, chart in self.charts.items()} | {"mask": mask}

    def along(self, x: Points, y: Points, fraction: Tensor) -> Points:
        """The point at `fraction` (B,) of the geodesic from x to y."""
        return self.manifold.exp(x, scaled(self.manifold.log(x, y), fraction))

    def move(self, x: Points, v: Points, mask: Tensor) -> Points:
        """x moved along the geodesic with velocity P_x(v), for ambient vectors v."""
        return self.manifold.exp(x, self.manifold.tangent(x, v, mask))

    def square(self, x: Points, v: Points, mask: Tensor) -> Tensor:
        """(B,), the squared length of tangents at x, a mean over sites in use and a sum over factors."""
        return mean_of_sites(self.manifold.square(x, v, mask), mask)


def mean_of_sites(value: Tensor, mask: Tensor) -> Tensor:
    """The mean (B,) of values (B, L) over the sites in use."""
    return torch.where(mask, value, 0.0).sum(-1) / mask.sum(-1).clamp_min(1)


def scaled(v: Points, factor: Tensor) -> Points:
    """Tangents (B, L, width), each design's multiplied by its `factor` (B,)."""
    return {name: factor[:, None, None] * value for name, value in v.items()}
