"""A manifold that refuses points and tangents that are not on it, and says which and by how much."""

from __future__ import annotations

import torch
from torch import Tensor

from data.noise import Noise
from generators.base import GeneratorError
from generators.manifolds.base import Manifold, SpaceForm

TOLERANCE = {torch.float64: 1e-9, torch.float32: 1e-5}
"""How far off the manifold a point may be by rounding, in its coordinates; in other dtypes 1e-2."""


def checked(manifold: Manifold) -> Checked:
    """`Checked`, and of constant curvature where the manifold is."""
    return CheckedSpaceForm(manifold) if isinstance(manifold, SpaceForm) else Checked(manifold)


class Checked:
    """The same manifold; everything raises `GeneratorError` for what is not legal.

    Not legal are: points off the manifold, vectors that are not tangent, numbers that are not finite, and mixed dtypes,
    devices or widths. Empty batches are, and so are antipodal points, for which `log` says what it gives.
    """

    def __init__(self, manifold: Manifold) -> None:
        self.manifold = manifold

    def exp(self, x: Tensor, v: Tensor) -> Tensor:
        """The point reached from x, `[..., d]`."""
        self._tangents(x, v=v)
        return _finite("exp", self.manifold.exp(x, v))

    def log(self, x: Tensor, y: Tensor) -> Tensor:
        """The tangent at x, `[..., d]`, that leads to y."""
        _alike(x=x, y=y)
        self._points(x=x, y=y)
        return _finite("log", self.manifold.log(x, y))

    def square(self, x: Tensor, v: Tensor, mask: Tensor | None = None) -> Tensor:
        """The squared length, `[...]`, of tangents."""
        self._tangents(x, mask, v=v)
        return _finite("square", self.manifold.square(x, v, mask))

    def project(self, x: Tensor, mask: Tensor | None = None) -> Tensor:
        """The nearest point, `[..., d]`, to any finite coordinates."""
        return self._nearest("x", _finite("x", x), mask)

    def tangent(self, x: Tensor, v: Tensor, mask: Tensor | None = None) -> Tensor:
        """The tangent part, `[..., d]`, of any finite vectors."""
        _alike(x=x, v=v)
        self._points(mask, x=x)
        return _finite("tangent", self.manifold.tangent(x, _finite("v", v), mask))

    def random(self, like: Tensor, rng: Noise, mask: Tensor | None = None) -> Tensor:
        """Points of the prior."""
        return self.manifold.random(like, rng, mask)

    def _points(self, mask: Tensor | None = None, **named: Tensor) -> None:
        for name, x in named.items():
            off = (_finite(name, x) - self._nearest(name, x, mask)).norm(dim=-1)
            _within(off, x.dtype, f"point {{}} of {name} is {{:.3g}} off the manifold", "project it")

    def _tangents(self, x: Tensor, mask: Tensor | None = None, **named: Tensor) -> None:
        _alike(x=x, **named)
        self._points(mask, x=x)
        for name, v in named.items():
            _finite(name, v)
            length = v.norm(dim=-1).clamp_min(1)
            off = (v - self.manifold.tangent(x, v, mask)).norm(dim=-1) / length
            _within(
                off, v.dtype, f"vector {{}} of {name} is {{:.3g}} of its length off tangent", "take its tangent part"
            )

    def _nearest(self, name: str, x: Tensor, mask: Tensor | None) -> Tensor:
        try:
            return self.manifold.project(x, mask)
        except (RuntimeError, IndexError) as error:
            kind = type(self.manifold).__name__
            raise GeneratorError(f"{name} has shape {tuple(x.shape)}, which {kind} does not take: {error}") from error


class CheckedSpaceForm(Checked):
    """The same for a manifold of constant curvature."""

    manifold: SpaceForm

    def __init__(self, manifold: SpaceForm) -> None:
        super().__init__(manifold)
        self.curvature = manifold.curvature

    def transport(self, x: Tensor, w: Tensor, v: Tensor) -> Tensor:
        """v at x, `[..., d]`, carried in parallel along w."""
        self._tangents(x, w=w, v=v)
        return _finite("transport", self.manifold.transport(x, w, v))

    def covariant(self, x: Tensor, v: Tensor, u: Tensor, du: Tensor) -> Tensor:
        """nabla_v u, `[..., d]`, where du is any finite change of coordinates."""
        self._tangents(x, v=v, u=u)
        _alike(x=x, du=du)
        return _finite("covariant", self.manifold.covariant(x, v, u, _finite("du", du)))


def _alike(**named: Tensor) -> None:
    """All have the same dtype, device and width, and shapes that fit each other."""
    for what, kinds in (
        ("dtype", {name: a.dtype for name, a in named.items()}),
        ("device", {name: a.device for name, a in named.items()}),
        ("width", {name: a.shape[-1] if a.dim() else 0 for name, a in named.items()}),
    ):
        if len(set(kinds.values())) > 1:
            told = ", ".join(f"{name} has {kind}" for name, kind in kinds.items())
            raise GeneratorError(f"mixed {what}s: {told}; they must be the same")


def _finite(name: str, x: Tensor) -> Tensor:
    if not x.isfinite().all():
        index = tuple((~x.isfinite()).nonzero()[0].tolist())
        raise GeneratorError(f"{name} has {x[index].item()} at {index}; all numbers must be finite")
    return x


def _within(off: Tensor, dtype: torch.dtype, message: str, remedy: str) -> None:
    """Raise with the index of the worst one unless all of `off` are within the tolerance."""
    most = TOLERANCE.get(dtype, 1e-2)
    if off.numel() and off.max() > most:
        flat = int(off.argmax())
        index = tuple(int(i) for i in torch.unravel_index(torch.tensor(flat), off.shape))
        raise GeneratorError(f"{message.format(index, off.flatten()[flat])}; at most {most:g}: {remedy} first")
