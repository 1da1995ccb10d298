"""The Eulerian identity at the end of the jump: dX_{s,t}(x_s)/ds = 0 along the flow.

That derivative is the value at the end of the Jacobi field which starts as v. It is the residual of `eulerian` without
the division by what vanishes at a conjugate point, so that nothing grows without bounds near the cut locus.
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
    """(B,): the squared residual in the tangent space at the end, with a gradient by way of the push-forward of u."""
    del teacher
    s, t = (time.to(mask.device) for time in ordered(len(mask), flow.geometry.decided, rng))
    x, v = on_path(flow, ones, mask, s, rng)
    u, end, missed = residual(flow, x, mask, s, t, v)
    pushed = flow.geometry.manifold.push(x, scaled(detached(u), t - s), u)
    target = detached(plus(pushed, clipped(missed, clip)))
    return flow.geometry.square(detached(end), minus(pushed, target), mask) * down_scale(s)


def residual(flow: MeanFlow, x: Points, mask: Tensor, s: Tensor, t: Tensor, v: Points) -> tuple[Points, Points, Points]:
    """u at x, X_{s,t}(x), and the velocity there with which the end moves as the start does with velocity v."""

    def jump(x: Points, s: Tensor) -> tuple[Points, Points]:
        """u and the end."""
        u = flow.velocity(x, mask, s, t)
        return u, flow.geometry.manifold.exp(x, scaled(u, t - s))

    (u, end), (_, moved) = differentiated(jump, (x, s), (v, torch.ones_like(s)))
    return u, end, moved
