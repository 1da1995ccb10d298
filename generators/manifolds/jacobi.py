"""How geodesics change with their ends: the derivatives of Exp and Log that the identities of flow maps need.

With y = Exp_x(w). On a manifold of constant curvature k, a Jacobi field keeps its part along w, and its part across w
has the factors cos a and sin a / a with a = sqrt(k) |w| (cosh and sinh where k < 0); see do Carmo (1992), "Riemannian
Geometry", chapter 5. On any other manifold the derivatives are taken by forward-mode differentiation of exp and log.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from generators.manifolds.base import Connected, Manifold, SpaceForm

CLOSEST = 1e-4
"""|sin a| / a is taken to be this at least, so that no factor is above 1e4 near a conjugate point (the antipode)."""


def hessian(manifold: Manifold, x: Tensor, w: Tensor, v: Tensor) -> Tensor:
    """Hess_x(d^2(., y) / 2)[v] = -nabla_v Log_(.)(y), `[..., d]`, a tangent at x."""
    if isinstance(manifold, SpaceForm):
        cosine, sine = _factors(manifold, x, w)
        return _across(w, v, cosine / _capped(sine))
    y = manifold.exp(x, w)
    log, change = _derived(lambda p: manifold.log(p, y), x, v)
    if isinstance(manifold, Connected):
        return -manifold.covariant(x, v, log, change)
    return -manifold.tangent(x, change)


def push(manifold: Manifold, x: Tensor, w: Tensor, xi: Tensor) -> Tensor:
    """dExp_x at w of xi, `[..., d]`, a tangent at y."""
    if isinstance(manifold, SpaceForm):
        return manifold.transport(x, w, _across(w, xi, _factors(manifold, x, w)[1]))
    return _derived(lambda a: manifold.exp(x, a), w, xi)[1]


def pull(manifold: Manifold, x: Tensor, w: Tensor, eta: Tensor) -> Tensor:
    """dLog_x at y of eta, a tangent at y: the tangent `[..., d]` at x whose `push` it is."""
    if isinstance(manifold, SpaceForm):
        back = manifold.transport(manifold.exp(x, w), -manifold.transport(x, w, w), eta)
        return _across(w, back, 1 / _capped(_factors(manifold, x, w)[1]))
    return manifold.tangent(x, _derived(lambda p: manifold.log(x, p), manifold.exp(x, w), eta)[1])


def compose(manifold: Manifold, x: Tensor, w1: Tensor, w2: Tensor) -> Tensor:
    """The displacement at x, `[..., d]`, that leads to where w1 and then w2 (at Exp_x(w1)) lead.

    It is their sum where the manifold is flat, so that windings on a torus are kept, and the shortest one elsewhere.
    """
    if isinstance(manifold, SpaceForm) and manifold.curvature == 0:
        return w1 + w2
    return manifold.log(x, manifold.exp(manifold.exp(x, w1), w2))


def _derived(function: Callable[[Tensor], Tensor], x: Tensor, v: Tensor) -> tuple[Tensor, Tensor]:
    """The value at x and the derivative along v."""
    value, change, *_ = torch.func.jvp(function, (x,), (v,))
    return value, change


def _factors(manifold: SpaceForm, x: Tensor, w: Tensor) -> tuple[Tensor, Tensor]:
    """cos a and sin a / a, `[..., 1]`, smooth at w = 0."""
    if manifold.curvature == 0:
        one = torch.ones_like(w[..., :1])
        return one, one
    square = manifold.curvature * manifold.square(x, w)[..., None]
    small = square.abs() < 1e-4
    a = torch.where(small, 1.0, square.abs()).sqrt()
    cos, sin = (torch.cos, torch.sin) if manifold.curvature > 0 else (torch.cosh, torch.sinh)
    cosine = torch.where(small, 1 - square / 2 + square.square() / 24, cos(a))
    return cosine, torch.where(small, 1 - square / 6 + square.square() / 120, sin(a) / a)


def _capped(sine: Tensor) -> Tensor:
    return torch.where(sine < 0, sine.clamp(max=-CLOSEST), sine.clamp(min=CLOSEST))


def _across(w: Tensor, v: Tensor, factor: Tensor) -> Tensor:
    """v with its part across w multiplied by a factor `[..., 1]`."""
    square = w.square().sum(-1, keepdim=True)
    along = (w * v).sum(-1, keepdim=True) / torch.where(square == 0, 1.0, square) * w
    return along + factor * (v - along)
