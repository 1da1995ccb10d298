"""The positive orthant of the unit sphere: probabilities p as points z = sqrt(p), with the Fisher-Rao metric / 4.

The orthant is geodesically convex and no two of its points are more than pi/2 apart, so log has no singular pair.
"""

from __future__ import annotations

import torch
from torch import Tensor

from data.noise import Noise


class PositiveOrthant:
    """Unit vectors with no negative coordinate; the angle between two points is their distance, in radians."""

    def exp(self, x: Tensor, v: Tensor) -> Tensor:
        """Along the great circle, `[..., d]`; a path that leaves the orthant is reflected at its faces."""
        angle = _norm(v)
        return (torch.cos(angle) * x + _sinc(angle) * v).abs()

    def log(self, x: Tensor, y: Tensor) -> Tensor:
        """The tangent at x, `[..., d]`, whose length is the angle to y; exact for nearly equal points.

        The angle is atan2(|y - <x,y> x|, <x,y>), because acos loses half the digits near 1.
        """
        cosine = (x * y).sum(-1, keepdim=True)
        across = y - cosine * x
        sine = _norm(across)
        small = sine < 1e-12
        ratio = torch.atan2(sine, cosine) / torch.where(small, 1.0, sine)
        return torch.where(small, 1.0, ratio) * across

    def square(self, v: Tensor, mask: Tensor | None = None) -> Tensor:
        """|v|^2, `[...]`, in radians^2."""
        return v.square().sum(-1)

    def project(self, x: Tensor, mask: Tensor | None = None) -> Tensor:
        """|x| / norm, `[..., d]`."""
        return torch.nn.functional.normalize(x.abs(), dim=-1)

    def tangent(self, x: Tensor, v: Tensor, mask: Tensor | None = None) -> Tensor:
        """v without its part along x, `[..., d]`."""
        return v - (x * v).sum(-1, keepdim=True) * x

    def random(self, like: Tensor, rng: Noise, mask: Tensor | None = None) -> Tensor:
        """Uniform on the orthant (Dirichlet(1/2, ..., 1/2) as probabilities), with the shape of `like`."""
        return self.project(rng.normal(*like.shape)).to(like)


def _norm(v: Tensor) -> Tensor:
    """The length `[..., 1]`, with gradient zero where v = 0."""
    square = v.square().sum(-1, keepdim=True)
    zero = square == 0
    return torch.where(zero, 0.0, torch.where(zero, 1.0, square).sqrt())


def _sinc(angle: Tensor) -> Tensor:
    """sin(a) / a, with a finite derivative at 0."""
    small = angle < 1e-4
    return torch.where(small, 1 - angle.square() / 6, torch.sin(angle) / torch.where(small, 1.0, angle))
