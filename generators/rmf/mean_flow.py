"""The average velocity u_{s,t} of Riemannian MeanFlow and its flow map (Woo et al., arXiv 2602.07744).

(t - s) u_{s,t}(x) = Log_x(X_{s,t}(x)): the constant velocity whose geodesic leads from x at time s to where the flow is
at time t. Time 0 is noise, time 1 is data, and u_{s,s} is the velocity of the flow itself.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

import torch
from torch import Tensor

from generators.manifolds.product import Points
from generators.rmf.geometry import Geometry, scaled
from generators.rmf.parameterisations import Parameterisation

T = TypeVar("T")


@dataclass(frozen=True)
class MeanFlow:
    """What a network says, read as an average velocity on the manifolds of a geometry. Times are of shape (B,)."""

    geometry: Geometry
    raw: Callable[[Points, Tensor, Tensor, Tensor], Points]
    """`raw(x, mask, s, t)`: the network's numbers, factor by factor (B, L, width)."""
    parameterisation: Parameterisation
    shortest: float = 0.0
    """Jumps that are shorter, or start less than this before the end is decided, are steps along the velocity u_{s,s}.

    There the recursion of the semigroup identity ends on what flow matching has learned.
    """

    def velocity(self, x: Points, mask: Tensor, s: Tensor, t: Tensor) -> Points:
        """u_{s,t}(x), tangents at x; s must be below 1."""
        plain = ((t - s).abs() < self.shortest) | (s > self.geometry.decided - self.shortest)
        t = torch.where(plain, s, t)
        return self.parameterisation(self.geometry, self.raw(x, mask, s, t), x, mask, s, t)

    def displacement(self, x: Points, mask: Tensor, s: Tensor, t: Tensor) -> Points:
        """(t - s) u_{s,t}(x), tangents at x."""
        return scaled(self.velocity(x, mask, s, t), t - s)

    def jump(self, x: Points, mask: Tensor, s: Tensor, t: Tensor) -> Points:
        """X_{s,t}(x), one network call."""
        return self.geometry.manifold.exp(x, self.displacement(x, mask, s, t))


def differentiated(f: Callable[..., T], at: tuple[Any, ...], velocity: tuple[Any, ...]) -> tuple[T, T]:
    """f there, and how it changes when its arguments move with a velocity: a Jacobian-vector product."""
    value, change = torch.func.jvp(f, at, velocity)[:2]
    return value, change


def plus(a: Points, b: Points) -> Points:
    """a + b, factor by factor."""
    return {name: value + b[name] for name, value in a.items()}


def minus(a: Points, b: Points) -> Points:
    """a - b, factor by factor."""
    return {name: value - b[name] for name, value in a.items()}


def detached(v: Points) -> Points:
    """The same numbers, without a gradient and without a tangent."""
    return {name: value.detach() for name, value in v.items()}
