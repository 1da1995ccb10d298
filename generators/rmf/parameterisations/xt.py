"""The network says where the flow is at time t, as a point near x from which it is carried back to the manifold.

x_t = near(x + (t - s) P_x(raw)), so that x_t = x where t = s, whatever the network says, and u_{s,s} = P_x(raw).
"""

from __future__ import annotations

import torch
from torch import Tensor

from generators.manifolds.product import Points
from generators.rmf.geometry import Geometry

CLOSE = 1e-5


def xt(geometry: Geometry, raw: Points, x: Points, mask: Tensor, s: Tensor, t: Tensor) -> Points:
    """Log_x(x_t) / (t - s), with its limit where t = s."""
    gap = (t - s)[:, None, None]
    close = gap.abs() < CLOSE
    found = {}
    for name, chart in geometry.charts.items():
        along = chart.manifold.tangent(x[name], raw[name], mask)
        reached = chart.near(x[name] + gap * along, mask)
        found[name] = torch.where(close, along, chart.manifold.log(x[name], reached) / torch.where(close, 1.0, gap))
    return found
