"""The network says the average velocity itself, up to what is not tangent."""

from __future__ import annotations

from torch import Tensor

from generators.manifolds.product import Points
from generators.rmf.geometry import Geometry


def average_velocity(geometry: Geometry, raw: Points, x: Points, mask: Tensor, s: Tensor, t: Tensor) -> Points:
    """P_x(raw)."""
    return geometry.manifold.tangent(x, raw, mask)
