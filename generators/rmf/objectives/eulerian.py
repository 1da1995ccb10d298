"""The Eulerian identity: u = (t - s) D_s u + H v, from moving the start of a jump along the flow while its end stays.

D_s u is the covariant derivative of u_{s,t}(x) along the flow, v its velocity, and H the Hessian of half the squared
distance to the end of the jump: the identity matrix on flat ground alone.
"""

from __future__ import annotations

import torch
from torch import Tensor

from data.noise import Noise
from generators.manifolds.product import Points
from generators.rmf.geometry import scaled
from generators.rmf.mean_flow import MeanFlow, detached, differentiated, minus, plus
from generators.rmf.objectives.flow_matching import on_path
from generators.rmf.stabilisers import clipped, down_scale
from generators.rmf.times import ordered


def loss(flow: MeanFlow, teacher: MeanFlow, ones: Points, mask: Tensor, rng: Noise, clip: float) -> Tensor:
    """(B,): the squared residual in the tangent space at the start.

    The identity is affine in v, so the velocity towards a single design serves in the place of the flow's own.
    """
    del teacher
    s, t = (time.to(mask.device) for time in ordered(len(mask), flow.geometry.decided, rng))
    x, v = on_path(flow, ones, mask, s, rng)
    u, missed = residual(flow, x, mask, s, t, v, clip)
    target = detached(plus(u, missed))
    return flow.geometry.square(x, minus(u, target), mask) * down_scale(s)


def residual(
    flow: MeanFlow, x: Points, mask: Tensor, s: Tensor, t: Tensor, v: Points, clip: float
) -> tuple[Points, Points]:
    """u and (t - s) D_s u + H v - u, tangents at x, for the velocity v there; D_s u is clipped at a length a site."""
    manifold = flow.geometry.manifold
    u, change = differentiated(lambda x, s: flow.velocity(x, mask, s, t), (x, s), (v, torch.ones_like(s)))
    along = clipped(manifold.covariant(x, v, u, change), clip)
    bent = manifold.hessian(x, scaled(detached(u), t - s), v)
    return u, minus(plus(scaled(along, t - s), bent), u)
