"""The semigroup identity: X_{r,t} after X_{s,r} is X_{s,t} for s < r < t. No derivative of the network is needed."""

from __future__ import annotations

import torch
from torch import Tensor

from data.noise import Noise
from generators.manifolds.base import Manifold, SpaceForm
from generators.manifolds.product import Points
from generators.rmf.mean_flow import MeanFlow
from generators.rmf.objectives.flow_matching import on_path
from generators.rmf.times import intervals

MOST = 5.0
"""A design's loss above this has no gradient."""


def loss(flow: MeanFlow, teacher: MeanFlow, ones: Points, mask: Tensor, rng: Noise, clip: float) -> Tensor:
    """(B,): the squared distance of one jump from the teacher's two, in units of velocity."""
    del clip
    s, r, t = (time.to(mask.device) for time in intervals(len(mask), flow.geometry.decided, flow.shortest, rng))
    x, _ = on_path(flow, ones, mask, s, rng)
    end, missed = residual(flow, teacher, x, mask, s, r, t)
    return (flow.geometry.square(end, missed, mask) / (t - s).square()).clamp_max(MOST)


def residual(
    flow: MeanFlow, teacher: MeanFlow, x: Points, mask: Tensor, s: Tensor, r: Tensor, t: Tensor
) -> tuple[Points, Points]:
    """Where the teacher's two jumps lead, and the tangent there that leads on to where one jump does."""
    manifold = flow.geometry.manifold
    with torch.no_grad():
        first = teacher.displacement(x, mask, s, r)
        middle = manifold.exp(x, first)
        second = teacher.displacement(middle, mask, r, t)
        end = manifold.exp(middle, second)
    whole = flow.displacement(x, mask, s, t)
    missed = {
        name: beyond(factor, x[name], whole[name], first[name] + second[name], end[name])
        for name, factor in manifold.factors.items()
    }
    return end, missed


def beyond(manifold: Manifold, x: Tensor, whole: Tensor, legs: Tensor, end: Tensor) -> Tensor:
    """The tangent at `end` that leads to Exp_x(whole).

    On flat ground it is the difference of the displacements, so that turns round a torus are counted and not lost.
    """
    if isinstance(manifold, SpaceForm) and manifold.curvature == 0:
        return whole - legs
    return manifold.log(end, manifold.exp(x, whole))
