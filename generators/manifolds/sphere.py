"""The unit sphere S^n in R^(n+1), with the uniform distribution as prior."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from data.noise import Noise


class Sphere:
    """Unit vectors `[..., n + 1]`; the angle between two points is their distance, in radians, pi at most."""

    curvature = 1.0

    def exp(self, x: Tensor, v: Tensor) -> Tensor:
        """cos|v| x + sin|v| v / |v|, `[..., d]`: along the great circle.

        Normalised, because many steps one after the other would carry the rounding of each away from the sphere.
        """
        length = norm(v)
        reached = torch.cos(length) * x + sinc(length) * v
        return torch.where(length == 0, x + v, reached / norm(reached))

    def log(self, x: Tensor, y: Tensor) -> Tensor:
        """The tangent at x, `[..., d]`, whose length is the angle to y.

        All directions lead to the antipode -x; given that to within rounding, the log is pi times a fixed one, see
        `aside`.
        """
        tangent, opposite = arc(x, y)
        if bool(opposite.any()):  # the direction costs as much as all the rest
            tangent = torch.where(opposite, math.pi * aside(x), tangent)
        return tangent

    def square(self, x: Tensor, v: Tensor, mask: Tensor | None = None) -> Tensor:
        """|v|^2, `[...]`, in radians^2."""
        return v.square().sum(-1)

    def project(self, x: Tensor, mask: Tensor | None = None) -> Tensor:
        """x / |x|, `[..., d]`."""
        return torch.nn.functional.normalize(x, dim=-1)

    def tangent(self, x: Tensor, v: Tensor, mask: Tensor | None = None) -> Tensor:
        """v without its part along x, `[..., d]`."""
        return v - (x * v).sum(-1, keepdim=True) * x

    def random(self, like: Tensor, rng: Noise, mask: Tensor | None = None) -> Tensor:
        """Uniform points with the shape of `like`."""
        return self.project(rng.normal(*like.shape).to(like))

    def transport(self, x: Tensor, w: Tensor, v: Tensor) -> Tensor:
        """v turned with the plane of x and w, `[..., d]`: v - <w, v> (sinc|w| x + (1 - cos|w|) / |w|^2 w)."""
        length = norm(w)
        return v - (w * v).sum(-1, keepdim=True) * (sinc(length) * x + sinc(length / 2).square() / 2 * w)

    def covariant(self, x: Tensor, v: Tensor, u: Tensor, du: Tensor) -> Tensor:
        """The tangent part of the coordinates' derivative, as on every submanifold of flat space."""
        return self.tangent(x, du)


def arc(x: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
    """The log `[..., d]`, except where y is -x to within rounding, and whether it is, `[..., 1]` bool.

    With the chord y - x for acute angles and y + x for obtuse ones, which are exact where they are short; q is the
    square of its length, 4 - q that of the other.
    """
    side = torch.copysign(x.new_ones(()), -_dot(x, y))
    chord = torch.addcmul(y, side, x)
    q = _dot(chord, chord)
    short = q < (64 * torch.finfo(x.dtype).eps) ** 2
    within = torch.where(short, 1.0, q)
    other = 4 - within
    half = torch.atan(torch.where(side < 0, within / other, other / within).sqrt())
    ratio = 4 * half * (within * other).rsqrt()
    across = torch.addcmul(chord, _dot(x, chord), x, value=-1)
    return torch.where(short, 1.0, ratio) * across, short & (side > 0)


def _dot(a: Tensor, b: Tensor) -> Tensor:
    """<a, b>, `[..., 1]`."""
    dot: Tensor = torch.linalg.vecdot(a, b)
    return dot[..., None]


def norm(v: Tensor) -> Tensor:
    """The length `[..., 1]`, with gradient zero where v = 0."""
    square = v.square().sum(-1, keepdim=True)
    zero = square == 0
    return torch.where(zero, 0.0, torch.where(zero, 1.0, square).sqrt())


def sinc(angle: Tensor) -> Tensor:
    """sin(a) / a, with a finite derivative at 0."""
    small = angle < 1e-4
    return torch.where(small, 1 - angle.square() / 6, torch.sin(angle) / torch.where(small, 1.0, angle))


def aside(x: Tensor) -> Tensor:
    """A unit tangent at x, `[..., d]`: where the second axis goes in the reflection of the first one to x or -x."""
    first, second = x[..., :1], x[..., 1:2]
    scale = second / (1 + first.abs())
    plane = torch.cat([torch.copysign(scale.abs(), first * second), -torch.ones_like(second)], dim=-1)
    return -(scale * x + torch.nn.functional.pad(plane, (0, x.shape[-1] - 2)))
