"""Hyperbolic space as the Poincare ball: the open unit ball with the metric (2 / (1 - |x|^2))^2 dx^2.

The gyrovector formulas are those of Ungar (2008), "A Gyrovector Space Approach to Hyperbolic Geometry", rearranged so
that no difference of nearly equal numbers remains where two points are near each other or the boundary.
"""

from __future__ import annotations

import torch
from torch import Tensor

from data.noise import Noise
from generators.manifolds.sphere import norm


class PoincareBall:
    """Points `[..., d]` with |x| < 1, of curvature -1; `exp` and `project` stay 100 ulp inside of the boundary.

    In float32 a point is then at most 12 from the centre, in float64 at most 32. A longer way stops there.
    """

    curvature = -1.0

    def exp(self, x: Tensor, v: Tensor) -> Tensor:
        """x (+) tanh(|v| / (1 - |x|^2)) v / |v|, `[..., d]`, with Mobius addition (+)."""
        gap = _gap(x)
        step = _tanhc(norm(v) / gap) * v / gap
        dot, far = 2 * (x * step).sum(-1, keepdim=True), step.square().sum(-1, keepdim=True)
        y = ((1 + dot + far) * x + gap * step) / (1 + dot + (1 - gap) * far)
        return self.project(y)

    def log(self, x: Tensor, y: Tensor) -> Tensor:
        """The tangent `[..., d]` along -x (+) y, of length 2 asinh(|y - x| / sqrt((1 - |x|^2) (1 - |y|^2)))."""
        step, gap = y - x, _gap(x)
        square, both = step.square().sum(-1, keepdim=True), gap * _gap(y)
        along = gap * step - square * x
        return gap * _asinhc(square / both) * along / (both * (square + both)).sqrt()

    def square(self, x: Tensor, v: Tensor, mask: Tensor | None = None) -> Tensor:
        """(2 |v| / (1 - |x|^2))^2, `[...]`."""
        return 4 * v.square().sum(-1) / _gap(x)[..., 0].square()

    def project(self, x: Tensor, mask: Tensor | None = None) -> Tensor:
        """x, moved just inside of the boundary where it is not, `[..., d]`."""
        most = 1 - 100 * torch.finfo(x.dtype).eps
        length = norm(x)
        outside = length > most
        return torch.where(outside, most / torch.where(outside, length, 1.0) * x, x)

    def tangent(self, x: Tensor, v: Tensor, mask: Tensor | None = None) -> Tensor:
        """Every vector is tangent."""
        return v

    def random(self, like: Tensor, rng: Noise, mask: Tensor | None = None) -> Tensor:
        """Exp_0 of tangents that are standard normal in units of the metric, with the shape of `like`."""
        # At the centre the metric doubles lengths.
        v = rng.normal(*like.shape).to(like) / 2
        return self.exp(torch.zeros_like(v), v)

    def transport(self, x: Tensor, w: Tensor, v: Tensor) -> Tensor:
        """v turned by the gyration of y and -x and scaled by the ratio of the metrics, `[..., d]`; y = Exp_x(w)."""
        y = self.exp(x, w)
        return _gyrated(y, -x, v) * (_gap(y) / _gap(x))

    def covariant(self, x: Tensor, v: Tensor, u: Tensor, du: Tensor) -> Tensor:
        """du + <f, v> u + <f, u> v - <u, v> f, `[..., d]`, with f the gradient of the metric's log factor."""
        f = 2 * x / _gap(x)
        fv, fu, uv = ((a * b).sum(-1, keepdim=True) for a, b in ((f, v), (f, u), (u, v)))
        return du + fv * u + fu * v - uv * f


def _gap(x: Tensor) -> Tensor:
    """1 - |x|^2, `[..., 1]`."""
    length = norm(x)
    return (1 - length) * (1 + length)


def _gyrated(a: Tensor, b: Tensor, v: Tensor) -> Tensor:
    """gyr[a, b] v, `[..., d]`: the rotation by which Mobius addition fails to be associative."""
    aa, bb, ab, av, bv = ((p * q).sum(-1, keepdim=True) for p, q in ((a, a), (b, b), (a, b), (a, v), (b, v)))
    turned = (bv * (1 + 2 * ab) - av * bb) * a - (bv * aa + av) * b
    return v + 2 * turned / (1 + 2 * ab + aa * bb)


def _tanhc(a: Tensor) -> Tensor:
    """tanh(a) / a for a >= 0, with a finite derivative at 0."""
    small = a < 1e-4
    return torch.where(small, 1 - a.square() / 3, torch.tanh(a) / torch.where(small, 1.0, a))


def _asinhc(square: Tensor) -> Tensor:
    """asinh(a) / a as a function of a^2, smooth at 0."""
    small = square < 1e-5
    a = torch.where(small, 1.0, square).sqrt()
    return torch.where(small, 1 - square / 6 + 3 * square.square() / 40, torch.asinh(a) / a)
