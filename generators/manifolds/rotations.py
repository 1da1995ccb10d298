"""The rotations of space, SO(3), with the uniform (Haar) distribution as prior.

A point is a rotation matrix R, row by row, divided by sqrt(2): so the ambient length of a tangent R [w]x / sqrt(2) is
the length of the rotation vector w, an angle in radians. (The Frobenius metric of R itself would double its square.)
"""

from __future__ import annotations

import torch
from torch import Tensor

from data.noise import Noise

ROOT = 2**0.5


class Rotations:
    """SO(3) with the bi-invariant metric; the distance of two points is the angle between them, pi at most."""

    def exp(self, x: Tensor, v: Tensor) -> Tensor:
        """R exp([w]x), `[..., 9]`, for the tangent v of the rotation vector w in the frame of R."""
        r = matrices(x)
        return points(product(r, rotation(ROOT * _vee(product(r.mT, _grid(v))))))

    def log(self, x: Tensor, y: Tensor) -> Tensor:
        """The tangent `[..., 9]` at x of length angle(x, y); one of the two shortest at an angle of pi."""
        r = matrices(x)
        return points(product(r, skew(rotation_vector(product(r.mT, matrices(y))))))

    def square(self, v: Tensor, mask: Tensor | None = None) -> Tensor:
        """|v|^2, `[...]`, in radians^2."""
        return v.square().sum(-1)

    def project(self, x: Tensor, mask: Tensor | None = None) -> Tensor:
        """The nearest rotation, `[..., 9]`, by singular values (the gradient is not finite at a rotation)."""
        u, _, vt = torch.linalg.svd(_grid(x))
        sign = torch.det(u @ vt)[..., None]
        return points(torch.cat([u[..., :2], u[..., 2:] * sign[..., None]], dim=-1) @ vt)

    def tangent(self, x: Tensor, v: Tensor, mask: Tensor | None = None) -> Tensor:
        """R times the skew part of R^T v, `[..., 9]`."""
        r = matrices(x)
        inside = product(r.mT, _grid(v))
        return product(r, (inside - inside.mT) / 2).flatten(-2)

    def random(self, like: Tensor, rng: Noise, mask: Tensor | None = None) -> Tensor:
        """Uniform rotations with the shape of `like`, from uniform unit quaternions."""
        return points(from_quaternion(rng.normal(*like.shape[:-1], 4).to(like)))


def matrices(x: Tensor) -> Tensor:
    """The rotation matrices `[..., 3, 3]` of points `[..., 9]`."""
    return ROOT * _grid(x)


def points(r: Tensor) -> Tensor:
    """The points `[..., 9]` of rotation matrices `[..., 3, 3]`."""
    return r.flatten(-2) / ROOT


def product(a: Tensor, b: Tensor) -> Tensor:
    """a b, `[..., 3, 3]`; not by `@`, which autocast would round to bfloat16."""
    return (a[..., None] * b[..., None, :, :]).sum(-2)


def skew(w: Tensor) -> Tensor:
    """[w]x, `[..., 3, 3]`, with [w]x a = w x a, for w `[..., 3]`."""
    a, b, c = w.unbind(-1)
    zero = torch.zeros_like(a)
    return _grid(torch.stack([zero, -c, b, c, zero, -a, -b, a, zero], dim=-1))


def rotation(w: Tensor) -> Tensor:
    """exp([w]x), `[..., 3, 3]`, by Rodrigues' formula; exact at and near w = 0."""
    square = w.square().sum(-1, keepdim=True)[..., None]
    small = square < 1e-4
    angle = torch.where(small, 1.0, square).sqrt()
    first = torch.where(small, 1 - square / 6 + square.square() / 120, angle.sin() / angle)
    second = torch.where(small, 0.5 - square / 24 + square.square() / 720, 2 * ((angle / 2).sin() / angle).square())
    cross = skew(w)
    return torch.eye(3, dtype=w.dtype, device=w.device) + first * cross + second * product(cross, cross)


def rotation_vector(r: Tensor) -> Tensor:
    """The w `[..., 3]` with exp([w]x) = r `[..., 3, 3]` and |w| <= pi.

    It is twice the logarithm of the unit quaternion, whose angle atan2(|imaginary|, real) keeps its digits at 0, where
    acos of the trace loses half of them, and at pi, where r - r^T vanishes.
    """
    q = quaternion(r)
    real, imaginary = q[..., :1], q[..., 1:]
    square = imaginary.square().sum(-1, keepdim=True)
    small = square < 1e-8
    sine = torch.where(small, 1.0, square).sqrt()
    near = torch.where(small, real, 1.0)
    ratio = torch.where(small, (1 - square / (3 * near.square())) / near, torch.atan2(sine, real) / sine)
    return 2 * ratio * imaginary


def quaternion(r: Tensor) -> Tensor:
    """The unit quaternion `[..., 4]`, real part first and not negative, of rotation matrices `[..., 3, 3]`.

    Each row of 4 q q^T is a multiple of q; the longest one has the most digits (Shepperd 1978).
    """
    a, b, c, d, e, f, g, h, i = r.flatten(-2).unbind(-1)
    rows = [
        torch.stack([1 + a + e + i, h - f, c - g, d - b], dim=-1),
        torch.stack([h - f, 1 + a - e - i, d + b, c + g], dim=-1),
        torch.stack([c - g, d + b, 1 - a + e - i, h + f], dim=-1),
        torch.stack([d - b, c + g, h + f, 1 - a - e + i], dim=-1),
    ]
    outer = torch.stack(rows, dim=-2)
    longest = outer.diagonal(dim1=-2, dim2=-1).argmax(-1)[..., None, None]
    row = outer.gather(-2, longest.expand(*longest.shape[:-1], 4)).squeeze(-2)
    return torch.nn.functional.normalize(torch.where(row[..., :1] < 0, -row, row), dim=-1)


def from_quaternion(q: Tensor) -> Tensor:
    """The rotation matrices `[..., 3, 3]` of quaternions `[..., 4]`, real part first, of any length but 0."""
    unit = torch.nn.functional.normalize(q, dim=-1)
    cross = skew(unit[..., 1:])
    return torch.eye(3, dtype=q.dtype, device=q.device) + 2 * (unit[..., :1, None] * cross + product(cross, cross))


def orthonormal(m: Tensor) -> Tensor:
    """Rotation matrices from any `[..., 3, 3]`, by Gram-Schmidt on the first two columns, with a finite gradient."""
    first = torch.nn.functional.normalize(m[..., 0], dim=-1)
    across = m[..., 1] - (first * m[..., 1]).sum(-1, keepdim=True) * first
    second = torch.nn.functional.normalize(across, dim=-1)
    return torch.stack([first, second, torch.linalg.cross(first, second)], dim=-1)


def _grid(x: Tensor) -> Tensor:
    """`[..., 9]` as `[..., 3, 3]`."""
    return x.reshape(*x.shape[:-1], 3, 3)


def _vee(m: Tensor) -> Tensor:
    """The w `[..., 3]` of the skew part [w]x of matrices `[..., 3, 3]`."""
    return torch.stack([m[..., 2, 1] - m[..., 1, 2], m[..., 0, 2] - m[..., 2, 0], m[..., 1, 0] - m[..., 0, 1]], -1) / 2
