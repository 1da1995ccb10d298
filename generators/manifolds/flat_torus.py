"""Angles: the flat torus T^d, with the uniform distribution as prior."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from data.noise import Noise
from generators.manifolds.euclidean import Euclidean


class FlatTorus(Euclidean):
    """d angles in [-pi, pi), in radians; the distance is the root of the sum of the squared angles between them.

    Tangents are displacements of the covering space R^d and may be longer than pi: they then go round more than once,
    and `exp` forgets how often. `log` gives the shortest; of an angle of exactly pi it gives -pi.
    """

    def exp(self, x: Tensor, v: Tensor) -> Tensor:
        """x + v, wrapped, `[..., d]`."""
        return wrap(x + v)

    def log(self, x: Tensor, y: Tensor) -> Tensor:
        """y - x, wrapped, `[..., d]`."""
        return wrap(y.double() - x.double()).to(y.dtype)

    def project(self, x: Tensor, mask: Tensor | None = None) -> Tensor:
        """The same angles in [-pi, pi)."""
        return wrap(x)

    def random(self, like: Tensor, rng: Noise, mask: Tensor | None = None) -> Tensor:
        """Uniform angles with the shape of `like`."""
        return wrap(math.pi * (2 * rng.uniform(*like.shape).to(like) - 1))


def wrap(angle: Tensor) -> Tensor:
    """The same angle in [-pi, pi), with derivative 1; one that is there already keeps every digit."""
    # In float64, because float32 has no digits left for what remains of an angle near a full turn.
    exact = angle.double()
    within = (exact - 2 * math.pi * torch.floor((exact + math.pi) / (2 * math.pi))).to(angle.dtype)
    # Just below pi it may have been rounded to pi.
    return torch.where(within >= math.pi, within - 2 * math.pi, within)
