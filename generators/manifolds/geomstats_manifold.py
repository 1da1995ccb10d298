"""Any space of geomstats (Miolane et al. 2020, JMLR 21:223) whose metric has exp and log, as a manifold here."""

from __future__ import annotations

import math
import os
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import torch
from torch import Tensor

from data.noise import Noise
from generators.base import GeneratorError

STEP = 1e-2
"""Of the differences that give the connection, in units of the metric."""


def use_torch() -> None:
    """Have geomstats compute with torch. To be called before anything of geomstats is imported.

    Raises `GeneratorError` where geomstats was imported with another backend. The import would leave float64 as the
    default of torch; it is put back.
    """
    os.environ.setdefault("GEOMSTATS_BACKEND", "pytorch")
    with _default_dtype(torch.get_default_dtype()), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # about how its backend is imported
        import geomstats.backend as backend
    if backend.__name__ != "geomstats.pytorch":
        raise GeneratorError(
            f"geomstats computes with {backend.__name__.split('.')[-1]}; it must compute with pytorch: "
            "set GEOMSTATS_BACKEND=pytorch, or call use_torch() before the first import of geomstats"
        )


class GeomstatsManifold:
    """A space of geomstats that has torch inside (see `use_torch`); points of any shape are flattened, `[..., d]`.

    It can be differentiated as far as the space can: spaces that call scipy (the logarithm of a matrix) cannot.
    While geomstats works, torch's default dtype is that of the points, for all threads of the process.
    `transport` and closed forms are not used, so that `jacobi` differentiates exp and log.
    """

    def __init__(self, space: Any) -> None:
        use_torch()
        if not all(callable(getattr(getattr(space, "metric", None), name, None)) for name in ("exp", "log")):
            raise GeneratorError(f"{type(space).__name__} has no metric with exp and log; geomstats spaces mostly do")
        self.space = space
        self.shape = tuple(space.shape)
        self.width = math.prod(self.shape)

    def exp(self, x: Tensor, v: Tensor) -> Tensor:
        """The metric's exp, `[..., d]`; x + v where v is below the root of a rounding error."""
        near = _tiny(v)
        reached = self._vectors(self.space.metric.exp, torch.where(near, self._way_out(x), v), x)
        return torch.where(near, x + v, reached)

    def log(self, x: Tensor, y: Tensor) -> Tensor:
        """The metric's log, `[..., d]`; the tangent part of y - x where that is near the root of a rounding error.

        There the cosines of geomstats are 1, and the derivative of its arc cosine is infinite.
        """
        near = _tiny((y - x) / 8)
        away = self._vectors(self.space.metric.exp, self._way_out(x), x)
        found = self._vectors(self.space.metric.log, torch.where(near, away, y), x)
        return torch.where(near, self.tangent(x, y - x), found)

    def square(self, x: Tensor, v: Tensor, mask: Tensor | None = None) -> Tensor:
        """The metric's squared norm, `[...]`."""
        return self._call(self.space.metric.squared_norm, v, x).reshape(_batch((v, x)))

    def project(self, x: Tensor, mask: Tensor | None = None) -> Tensor:
        """The space's projection, `[..., d]`; x where it has none."""
        return self._vectors(self.space.projection, x) if hasattr(self.space, "projection") else x

    def tangent(self, x: Tensor, v: Tensor, mask: Tensor | None = None) -> Tensor:
        """The space's tangent part of ambient vectors, `[..., d]`."""
        return self._vectors(self.space.to_tangent, v, x)

    def random(self, like: Tensor, rng: Noise, mask: Tensor | None = None) -> Tensor:
        """The space's own `random_point`, with the shape of `like`; each row of the batch has its own seed of `rng`."""
        per_row = math.prod(like.shape[1:-1])
        seeds = (rng.uniform(len(like)).double() * 2**24).long().tolist()
        rows = [self._sample(seed, per_row).to(like) for seed in seeds]
        return torch.stack(rows).reshape(like.shape) if rows else torch.empty_like(like)

    def covariant(self, x: Tensor, v: Tensor, u: Tensor, du: Tensor) -> Tensor:
        """nabla_v u, `[..., d]`: du and the connection's part, from how geodesics bend in the coordinates.

        The bend B(v) = d^2/dt^2 Exp_x(t v) at t = 0 is quadratic, and nabla_v u = du - (B(v + u) - B(v - u)) / 4.
        """
        sizes = [self.square(x, a)[..., None].sqrt() for a in (v, u)]
        one, two = (a / torch.where(size == 0, 1.0, size) for a, size in zip((v, u), sizes, strict=True))
        bend = (self._bend(x, one + two) - self._bend(x, one - two)) / 4
        return self.tangent(x, du - sizes[0] * sizes[1] * bend)

    def _bend(self, x: Tensor, v: Tensor) -> Tensor:
        """By differences of fourth order in float64, `[..., d]`."""
        at, step = x.double(), STEP * v.double()
        one, two = (self.exp(at, k * step) + self.exp(at, -k * step) - 2 * at for k in (1, 2))
        return ((16 * one - two) / (12 * STEP**2)).to(x)

    def _way_out(self, x: Tensor) -> Tensor:
        """Some tangent at x that is not zero, to put in the place of one at which the metric cannot be derived."""
        some = torch.cos(torch.arange(1, self.width + 1, dtype=x.dtype, device=x.device))
        tangent = self.tangent(x.detach(), some.expand_as(x))
        size: Tensor = tangent.norm(dim=-1, keepdim=True)
        return tangent / (10 * size.clamp_min(0.1))

    def _sample(self, seed: int, n: int) -> Tensor:
        with torch.random.fork_rng(devices=[]), _default_dtype(torch.float64):
            torch.default_generator.manual_seed(seed)
            points: Tensor = self.space.random_point(n).reshape(n, self.width)
        return points

    def _vectors(self, operation: Callable[..., Tensor], *given: Tensor) -> Tensor:
        """An operation of geomstats whose result is of the shape of a point, `[..., d]`."""
        vectors: Tensor = self._call(operation, *given).reshape(*_batch(given), self.width)
        return vectors

    def _call(self, operation: Callable[..., Tensor], *given: Tensor) -> Tensor:
        """An operation of geomstats on vectors `[..., d]`, as it wants them: one batch axis, torch's default dtype."""
        batch = _batch(given)
        if 0 in batch:
            return given[0].new_empty(0)
        rows = (a.expand(*batch, self.width).reshape(-1, *self.shape) for a in given)
        with _default_dtype(given[0].dtype):
            result: Tensor = operation(*rows)
        return result


def _batch(given: tuple[Tensor, ...]) -> tuple[int, ...]:
    """The common leading shape of vectors `[..., d]`."""
    return np.broadcast_shapes(*(tuple(a.shape[:-1]) for a in given))


def _tiny(v: Tensor) -> Tensor:
    """Whether |v|, `[..., 1]`, is below the root of a rounding error."""
    return v.square().sum(-1, keepdim=True) < torch.finfo(v.dtype).eps


@contextmanager
def _default_dtype(dtype: torch.dtype) -> Iterator[None]:
    """What geomstats creates has torch's default dtype, whatever it is given."""
    before = torch.get_default_dtype()
    torch.set_default_dtype(dtype)
    try:
        yield
    finally:
        torch.set_default_dtype(before)
