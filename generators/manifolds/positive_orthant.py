"""The positive orthant of the unit sphere: probabilities p as points z = sqrt(p), with the Fisher-Rao metric / 4.

The orthant is geodesically convex and no two of its points are more than pi/2 apart, so log has no singular pair.
"""

from __future__ import annotations

import torch
from torch import Tensor

from generators.manifolds.sphere import Sphere, arc


class PositiveOrthant(Sphere):
    """Unit vectors with no negative coordinate; the angle between two points is their distance, in radians.

    The prior is uniform on the orthant: Dirichlet(1/2, ..., 1/2) as probabilities.
    """

    def exp(self, x: Tensor, v: Tensor) -> Tensor:
        """Along the great circle, `[..., d]`; a path that leaves the orthant is reflected at its faces."""
        return super().exp(x, v).abs()

    def log(self, x: Tensor, y: Tensor) -> Tensor:
        """The tangent at x, `[..., d]`, whose length is the angle to y."""
        return arc(x, y)[0]

    def project(self, x: Tensor, mask: Tensor | None = None) -> Tensor:
        """|x| / norm, `[..., d]`."""
        return super().project(x.abs())

    def transport(self, x: Tensor, w: Tensor, v: Tensor) -> Tensor:
        """v carried along the great circle, `[..., d]`, and reflected with it."""
        outside = super().exp(x, w) < 0
        carried = super().transport(x, w, v)
        return torch.where(outside, -carried, carried)
