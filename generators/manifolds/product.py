"""Products of manifolds: a point has one part on each factor, and everything is done part by part."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import torch
from torch import Tensor

from data.noise import Noise
from generators.base import GeneratorError
from generators.manifolds import jacobi
from generators.manifolds.base import Connected, Manifold, SpaceForm

Points = dict[str, Tensor]
"""Factor -> points, or tangents, `[..., width]` of its manifold."""


class Product:
    """The product metric on named factors: squared lengths add up, a geodesic is one in every factor."""

    def __init__(self, factors: Mapping[str, Manifold]) -> None:
        self.factors = dict(factors)

    def exp(self, x: Points, v: Points) -> Points:
        """The points reached from x along the geodesics with velocity v."""
        return self._each(lambda m, *a: m.exp(*a), x, v)

    def log(self, x: Points, y: Points) -> Points:
        """The tangents at x that lead to y."""
        return self._each(lambda m, *a: m.log(*a), x, y)

    def square(self, x: Points, v: Points, mask: Tensor | None = None) -> Tensor:
        """The squared lengths of tangents, `[...]`, summed over factors."""
        return torch.stack([m.square(x[name], v[name], mask) for name, m in self.factors.items()]).sum(0)

    def project(self, x: Points, mask: Tensor | None = None) -> Points:
        """The nearest points."""
        return self._each(lambda m, a: m.project(a, mask), x)

    def tangent(self, x: Points, v: Points, mask: Tensor | None = None) -> Points:
        """The tangent parts of ambient vectors at x."""
        return self._each(lambda m, *a: m.tangent(*a, mask), x, v)

    def random(self, like: Points, rng: Noise, mask: Tensor | None = None) -> Points:
        """Points of the priors; the factors draw from `rng` in their order."""
        return self._each(lambda m, a: m.random(a, rng, mask), like)

    def transport(self, x: Points, w: Points, v: Points) -> Points:
        """v at x carried in parallel to Exp_x(w); `GeneratorError` where a factor has no transport."""
        return {name: self._form(name).transport(x[name], w[name], v[name]) for name in self.factors}

    def covariant(self, x: Points, v: Points, u: Points, du: Points) -> Points:
        """nabla_v u at x of a field that is u there and whose coordinates change by du."""
        return self._each(_covariant, x, v, u, du)

    def hessian(self, x: Points, w: Points, v: Points) -> Points:
        """The Hessian at x of half the squared distance to Exp_x(w), applied to v."""
        return self._each(jacobi.hessian, x, w, v)

    def push(self, x: Points, w: Points, xi: Points) -> Points:
        """dExp_x at w of xi."""
        return self._each(jacobi.push, x, w, xi)

    def pull(self, x: Points, w: Points, eta: Points) -> Points:
        """dLog_x at Exp_x(w) of eta."""
        return self._each(jacobi.pull, x, w, eta)

    def compose(self, x: Points, w1: Points, w2: Points) -> Points:
        """The displacement at x that leads to where w1 and then w2 lead."""
        return self._each(jacobi.compose, x, w1, w2)

    def _each(self, operation: Callable[..., Tensor], *parts: Points) -> Points:
        return {name: operation(m, *(part[name] for part in parts)) for name, m in self.factors.items()}

    def _form(self, name: str) -> SpaceForm:
        manifold = self.factors[name]
        if not isinstance(manifold, SpaceForm):
            raise GeneratorError(f"factor {name}, {type(manifold).__name__}, has no parallel transport in closed form")
        return manifold


def _covariant(manifold: Manifold, x: Tensor, v: Tensor, u: Tensor, du: Tensor) -> Tensor:
    return manifold.covariant(x, v, u, du) if isinstance(manifold, Connected) else manifold.tangent(x, du)
