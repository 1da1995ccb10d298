"""Riemannian flow matching (Chen and Lipman, arXiv 2302.03660): u_{s,s} from geodesics to single designs."""

from __future__ import annotations

import torch
from torch import Tensor

from data.noise import Noise
from generators.manifolds.product import Points
from generators.rmf.geometry import mean_of_sites, scaled
from generators.rmf.mean_flow import MeanFlow
from generators.rmf.parameterisations import x1
from generators.rmf.stabilisers import NEAR_END, down_scale
from generators.rmf.times import Sampler, moments


def flow_matching(
    flow: MeanFlow, ones: Points, mask: Tensor, rng: Noise, sampler: Sampler, near_end: float = NEAR_END
) -> Tensor:
    """(B,): |u_{s,s}(x) - Log_x(x1) / (1 - s)|^2 at random times, scaled down near 1; or the charts' own misfit."""
    s = moments(len(mask), flow.geometry.decided, sampler, rng).to(mask.device)
    x, v = on_path(flow, ones, mask, s, rng)
    raw = flow.raw(x, mask, s, s)
    u = flow.parameterisation(flow.geometry, raw, x, mask, s, s)
    total = torch.zeros_like(mask, dtype=s.dtype)
    for name, chart in flow.geometry.charts.items():
        if chart.misfit is not None and flow.parameterisation is x1:
            total = total + chart.misfit(raw[name], ones[name])
        else:
            error = chart.manifold.square(x[name], u[name] - v[name], mask)
            total = total + error * down_scale(s, near_end)[:, None]
    return mean_of_sites(total, mask)


def on_path(flow: MeanFlow, ones: Points, mask: Tensor, s: Tensor, rng: Noise) -> tuple[Points, Points]:
    """The points at times s (B,) of geodesics from noise to designs, and their velocities there."""
    geometry = flow.geometry
    x = geometry.along(geometry.manifold.random(ones, rng, mask), ones, s)
    return x, scaled(geometry.manifold.log(x, ones), 1 / (1 - s))
