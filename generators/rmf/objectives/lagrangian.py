"""The Lagrangian identity: the end of a jump moves with the flow as t grows, v_t(x_t) = dExp_x|_w [u + (t - s) du/dt].

w = (t - s) u. Pushed forward to the end, or pulled back to the start by dLog_x. Only a derivative in t is needed.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from data.noise import Noise
from generators.manifolds.product import Points
from generators.rmf.geometry import scaled
from generators.rmf.mean_flow import MeanFlow, detached, differentiated, minus, plus
from generators.rmf.objectives.flow_matching import on_path
from generators.rmf.stabilisers import clipped, down_scale
from generators.rmf.times import pairs


@dataclass(frozen=True)
class Jump:
    """A jump from x at time s by w, with u there and the change (t - s) du/dt."""

    x: Points
    w: Points
    u: Points
    change: Points


def push_loss(flow: MeanFlow, teacher: MeanFlow, ones: Points, mask: Tensor, rng: Noise, clip: float) -> Tensor:
    """(B,): the squared residual in the tangent space at the end."""
    del teacher
    end, v, jump, s = _onto_path(flow, ones, mask, rng, clip)
    reached = flow.geometry.manifold.push(jump.x, jump.w, plus(jump.u, detached(jump.change)))
    return flow.geometry.square(end, minus(reached, v), mask) * down_scale(s)


def pull_loss(flow: MeanFlow, teacher: MeanFlow, ones: Points, mask: Tensor, rng: Noise, clip: float) -> Tensor:
    """(B,): the squared residual in the tangent space at the start."""
    del teacher
    _, v, jump, s = _onto_path(flow, ones, mask, rng, clip)
    target = detached(minus(flow.geometry.manifold.pull(jump.x, jump.w, v), jump.change))
    return flow.geometry.square(jump.x, minus(jump.u, target), mask) * down_scale(s)


def derivative(flow: MeanFlow, x: Points, mask: Tensor, s: Tensor, t: Tensor, clip: float) -> tuple[Points, Points]:
    """u_{s,t}(x) and (t - s) du/dt, in which du/dt is clipped at a length a site."""
    u, change = differentiated(lambda t: flow.velocity(x, mask, s, t), (t,), (torch.ones_like(t),))
    return u, scaled(clipped(change, clip), t - s)


def push_residual(flow: MeanFlow, x: Points, mask: Tensor, s: Tensor, t: Tensor) -> tuple[Points, Points]:
    """The end of a jump from x, and how its velocity there differs from the flow's own."""
    manifold = flow.geometry.manifold
    u, change = derivative(flow, x, mask, s, t, float("inf"))
    w = scaled(u, t - s)
    end = manifold.exp(x, w)
    return end, minus(manifold.push(x, w, plus(u, change)), flow.velocity(end, mask, t, t))


def pull_residual(flow: MeanFlow, x: Points, mask: Tensor, s: Tensor, t: Tensor) -> Points:
    """The same difference, pulled back to x."""
    manifold = flow.geometry.manifold
    u, change = derivative(flow, x, mask, s, t, float("inf"))
    w = scaled(u, t - s)
    end = manifold.exp(x, w)
    return minus(plus(u, change), manifold.pull(x, w, flow.velocity(end, mask, t, t)))


def _onto_path(
    flow: MeanFlow, ones: Points, mask: Tensor, rng: Noise, clip: float
) -> tuple[Points, Points, Jump, Tensor]:
    """A point x_t on a path with its velocity, and the jump to it from where the flow map itself, backwards, begins.

    So the end of the jump has the law of the paths, and the velocity towards a single design serves for the flow's own.
    """
    s, t = (time.to(mask.device) for time in pairs(len(mask), flow.geometry.decided, rng))
    end, v = on_path(flow, ones, mask, t, rng)
    with torch.no_grad():
        x = flow.jump(end, mask, t, s)
        w = flow.geometry.manifold.log(x, end)
    u, change = derivative(flow, x, mask, s, t, clip)
    return end, v, Jump(x, w, u, change), s
