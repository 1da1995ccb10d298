"""What a manifold is to a generator: points and tangents on the last axis, any leading batch."""

from __future__ import annotations

from typing import Protocol, runtime_checkable

from torch import Tensor

from data.noise import Noise


class Manifold(Protocol):
    """A complete Riemannian manifold in ambient coordinates, with closed-form geodesics.

    Most are manifolds of one site. Where sites depend on each other they are on the last axis but one, and
    `mask`, `[..., sites]`, says which of them are in use; all are where it is None.
    """

    def exp(self, x: Tensor, v: Tensor) -> Tensor:
        """The point `[..., d]` reached from x after unit time along the geodesic with velocity v."""

    def log(self, x: Tensor, y: Tensor) -> Tensor:
        """The velocity `[..., d]` at x of the shortest geodesic that is at y after unit time."""

    def square(self, x: Tensor, v: Tensor, mask: Tensor | None = None) -> Tensor:
        """The squared length of tangents, `[...]`; where sites depend on each other, each one's part in it."""

    def project(self, x: Tensor, mask: Tensor | None = None) -> Tensor:
        """The point of the manifold nearest to ambient coordinates `[..., d]`."""

    def tangent(self, x: Tensor, v: Tensor, mask: Tensor | None = None) -> Tensor:
        """The orthogonal projection of ambient vectors `[..., d]` onto the tangent space at x."""

    def random(self, like: Tensor, rng: Noise, mask: Tensor | None = None) -> Tensor:
        """Points of the prior, with the shape, dtype and device of `like`."""


@runtime_checkable
class Connected(Manifold, Protocol):
    """A manifold that knows the Levi-Civita connection of its metric."""

    def covariant(self, x: Tensor, v: Tensor, u: Tensor, du: Tensor) -> Tensor:
        """nabla_v u at x, `[..., d]`, of a tangent field that is u there and whose coordinates change by du along v."""


@runtime_checkable
class SpaceForm(Connected, Protocol):
    """A manifold of constant sectional curvature, on which Jacobi fields have a closed form.

    Where the curvature is not 0, the metric is at each point a multiple of the dot product of the coordinates.
    """

    curvature: float

    def transport(self, x: Tensor, w: Tensor, v: Tensor) -> Tensor:
        """v at x, `[..., d]`, carried in parallel along tau -> Exp_x(tau w) to tau = 1."""
