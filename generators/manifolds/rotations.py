"""The rotations of space, SO(3), with the uniform (Haar) distribution as prior.

A point is a rotation matrix R, row by row, divided by sqrt(2): so the ambient length of a tangent R [w]x / sqrt(2) is
the length of the rotation vector w, an angle in radians. (The Frobenius metric of R itself would double its square.)
"""

from __future__ import annotations

import torch
from torch import Tensor

from data.noise import Noise
from generators.manifolds.angles import angle

ROOT = 2**0.5


class Rotations:
    """SO(3) with the bi-invariant metric; the distance of two points is the angle between them, pi at most."""

    curvature = 0.25

    def exp(self, x: Tensor, v: Tensor) -> Tensor:
        """R exp([w]x), `[..., 9]`, for the tangent v of the rotation vector w in the frame of R."""
        return product(_grid(x), rotation(_inside(x, v))).flatten(-2)

    def log(self, x: Tensor, y: Tensor) -> Tensor:
        """The tangent `[..., 9]` at x of length angle(x, y); one of the two shortest at an angle of pi."""
        between = 2 * product(_grid(x).mT, _grid(y))
        # The skew part of R^T Q from Q - R keeps the digits that its entries have lost where R and Q are near.
        return _outside(x, _vector(_quaternion(between, 2 * _inside(x, y - x))))

    def square(self, x: Tensor, v: Tensor, mask: Tensor | None = None) -> Tensor:
        """|v|^2, `[...]`, in radians^2."""
        return v.square().sum(-1)

    def project(self, x: Tensor, mask: Tensor | None = None) -> Tensor:
        """The nearest rotation, `[..., 9]`, by singular values (the gradient is not finite at a rotation)."""
        u, _, vt = torch.linalg.svd(_grid(x))
        sign = torch.det(u @ vt)[..., None]
        return points(torch.cat([u[..., :2], u[..., 2:] * sign[..., None]], dim=-1) @ vt)

    def tangent(self, x: Tensor, v: Tensor, mask: Tensor | None = None) -> Tensor:
        """R times the skew part of R^T v, `[..., 9]`."""
        return _outside(x, _inside(x, v))

    def random(self, like: Tensor, rng: Noise, mask: Tensor | None = None) -> Tensor:
        """Uniform rotations with the shape of `like`, from uniform unit quaternions."""
        return points(from_quaternion(rng.normal(*like.shape[:-1], 4).to(like)))

    def transport(self, x: Tensor, w: Tensor, v: Tensor) -> Tensor:
        """v carried along R exp(tau [w]x), `[..., 9]`: in the frame it turns back by half the angle, exp(-[w]x / 2).

        That is R E [v]x E with E = exp([w]x / 2), because the connection is half the commutator.
        """
        half = rotation(_inside(x, w) / 2)
        carried = product(half, product(skew(_inside(x, v)), half))
        return product(_grid(x), carried).flatten(-2)

    def covariant(self, x: Tensor, v: Tensor, u: Tensor, du: Tensor) -> Tensor:
        """The tangent part of the coordinates' derivative, as on every submanifold of flat space."""
        return self.tangent(x, du)


def matrices(x: Tensor) -> Tensor:
    """The rotation matrices `[..., 3, 3]` of points `[..., 9]`."""
    return ROOT * _grid(x)


def points(r: Tensor) -> Tensor:
    """The points `[..., 9]` of rotation matrices `[..., 3, 3]`."""
    return r.flatten(-2) / ROOT


def product(a: Tensor, b: Tensor) -> Tensor:
    """a b, `[..., 3, 3]`, which autocast would round to bfloat16 were it not told to keep out."""
    with torch.autocast(a.device.type, enabled=False):
        return a @ b


def skew(w: Tensor) -> Tensor:
    """[w]x, `[..., 3, 3]`, with [w]x a = w x a, for w `[..., 3]`."""
    a, b, c = w.unbind(-1)
    zero = torch.zeros_like(a)
    return _grid(torch.stack([zero, -c, b, c, zero, -a, -b, a, zero], dim=-1))


def rotation(w: Tensor) -> Tensor:
    """exp([w]x), `[..., 3, 3]`, by Rodrigues' formula; exact at and near w = 0."""
    square = w.square().sum(-1)
    small = square < 1e-4
    angle = torch.where(small, 1.0, square).sqrt()
    first = torch.where(small, 1 - square / 6 + square.square() / 120, angle.sin() / angle)
    second = torch.where(small, 0.5 - square / 24 + square.square() / 720, 2 * ((angle / 2).sin() / angle).square())
    x, y, z = w.unbind(-1)
    u, v, t = second * x, second * y, second * z
    xx, yy, zz, xy, xz, yz = u * x, v * y, t * z, u * y, u * z, v * z
    x, y, z = first * x, first * y, first * z
    entries = [1 - yy - zz, xy - z, xz + y, xy + z, 1 - xx - zz, yz - x, xz - y, yz + x, 1 - xx - yy]
    return _grid(torch.stack(entries, dim=-1))


def rotation_vector(r: Tensor) -> Tensor:
    """The w `[..., 3]` with exp([w]x) = r `[..., 3, 3]` and |w| <= pi."""
    return _vector(quaternion(r))


def quaternion(r: Tensor) -> Tensor:
    """The unit quaternion `[..., 4]`, real part first and not negative, of rotation matrices `[..., 3, 3]`."""
    row = _quaternion(r, 2 * _vee(r))
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


def _quaternion(r: Tensor, skewed: Tensor) -> Tensor:
    """A multiple of the quaternion `[..., 4]`, real part first, of r `[..., 3, 3]` with r - r^T = [skewed]x.

    Each row of 4 q q^T is a multiple of q. The first has digits enough where its real part is 1/4 at least; elsewhere
    the longest of the others has (Shepperd 1978).
    """
    a, b, c, d, e, f, g, h, i = r.flatten(-2).unbind(-1)
    x, y, z = skewed.unbind(-1)
    bd, cg, fh, trace = b + d, c + g, f + h, a + e + i
    first = torch.stack([1 + trace, x, y, z], dim=-1)
    second = torch.stack([x, 1 + a - e - i, bd, cg], dim=-1)
    third = torch.stack([y, bd, 1 - a + e - i, fh], dim=-1)
    fourth = torch.stack([z, cg, fh, 1 - a - e + i], dim=-1)
    longest = torch.where((e > i)[..., None], third, fourth)
    longest = torch.where(((a > e) & (a > i))[..., None], second, longest)
    return torch.where((trace > 0)[..., None], first, longest)


def _vector(q: Tensor) -> Tensor:
    """The rotation vector `[..., 3]`, of length pi at most, of quaternions `[..., 4]`, real part first, of any length.

    It is twice the logarithm of q, whose angle, of |imaginary| and real, keeps its digits at 0, where acos of a trace
    loses half of them, and at pi, where r - r^T vanishes.
    """
    real, imaginary = q[..., :1], q[..., 1:]
    size, square = real.abs(), imaginary.square().sum(-1, keepdim=True)
    small = square < 1e-8 * size.square()
    sine = torch.where(small, 1.0, square).sqrt()
    near = torch.where(small, size, 1.0)
    ratio = torch.where(small, (1 - square / (3 * near.square())) / near, angle(sine, size) / sine)
    return torch.where(real < 0, -2 * ratio, 2 * ratio) * imaginary


def _inside(x: Tensor, v: Tensor) -> Tensor:
    """The rotation vector `[..., 3]`, in the frame of the point x, of the tangent part of v: both `[..., 9]`."""
    inside: Tensor = torch.linalg.cross(_grid(v), _grid(x)).sum(-2)
    return inside


def _outside(x: Tensor, w: Tensor) -> Tensor:
    """The tangent `[..., 9]` at the point x of a rotation vector `[..., 3]` in its frame."""
    outside: Tensor = torch.linalg.cross(_grid(x), w[..., None, :]).flatten(-2)
    return outside


def _grid(x: Tensor) -> Tensor:
    """`[..., 9]` as `[..., 3, 3]`."""
    return x.reshape(*x.shape[:-1], 3, 3)


def _vee(m: Tensor) -> Tensor:
    """The w `[..., 3]` of the skew part [w]x of matrices `[..., 3, 3]`."""
    return torch.stack([m[..., 2, 1] - m[..., 1, 2], m[..., 0, 2] - m[..., 2, 0], m[..., 1, 0] - m[..., 0, 1]], -1) / 2
