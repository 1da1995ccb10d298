"""The network says a point x1(x, s, t): where the geodesic from x to X_{s,t}(x) is at time 1.

It stays on the manifold and of the size of the data at all times, and at t = 1 it is the design itself. At t = s it is
Exp_x of the mean of Log_x(x_1) over the designs that x may become.
"""

from __future__ import annotations

from torch import Tensor

from generators.manifolds.product import Points
from generators.rmf.geometry import Geometry

EARLIEST_END = 1e-6


def x1(geometry: Geometry, raw: Points, x: Points, mask: Tensor, s: Tensor, t: Tensor) -> Points:
    """Log_x(x1) / (1 - s)."""
    left = (1 - s).clamp_min(EARLIEST_END)[:, None, None]
    return {name: chart.toward(raw[name], x[name], mask) / left for name, chart in geometry.charts.items()}
