"""Flat space, with the standard normal as prior."""

from __future__ import annotations

from torch import Tensor

from data.noise import Noise


class Euclidean:
    """R^d with the usual metric."""

    curvature = 0.0

    def exp(self, x: Tensor, v: Tensor) -> Tensor:
        """x + v, `[..., d]`."""
        return x + v

    def log(self, x: Tensor, y: Tensor) -> Tensor:
        """y - x, `[..., d]`."""
        return y - x

    def square(self, x: Tensor, v: Tensor, mask: Tensor | None = None) -> Tensor:
        """|v|^2, `[...]`."""
        return v.square().sum(-1)

    def project(self, x: Tensor, mask: Tensor | None = None) -> Tensor:
        """Every point is in the space."""
        return x

    def tangent(self, x: Tensor, v: Tensor, mask: Tensor | None = None) -> Tensor:
        """Every vector is tangent."""
        return v

    def random(self, like: Tensor, rng: Noise, mask: Tensor | None = None) -> Tensor:
        """Standard normal points with the shape of `like`."""
        return rng.normal(*like.shape).to(like)

    def transport(self, x: Tensor, w: Tensor, v: Tensor) -> Tensor:
        """A vector is the same everywhere."""
        return v

    def covariant(self, x: Tensor, v: Tensor, u: Tensor, du: Tensor) -> Tensor:
        """The coordinates' own derivative."""
        return du
