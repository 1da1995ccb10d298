"""How far a flow map is from the identities that an exact one keeps: why few steps are worse than many."""

from __future__ import annotations

import torch
from torch import Tensor

from data.noise import Noise
from generators.manifolds.product import Points
from generators.rmf.mean_flow import MeanFlow
from generators.rmf.objectives import eulerian, jacobi, lagrangian, semigroup
from generators.rmf.objectives.flow_matching import on_path
from generators.rmf.times import intervals

SHORTEST = 1 / 32
EARLY = 0.9
"""Derivatives are looked at before this time, because velocities grow like 1 / (1 - t)."""


def identity_residuals(flow: MeanFlow, ones: Points, mask: Tensor, rng: Noise) -> dict[str, float]:
    """Root mean square of each identity's residual by that of the average velocity, on paths to designs `ones`.

    The velocity in them is the flow's own, u_{s,s}. 0 is exact; a map that does not move has a semigroup residual of 0
    too, so that it says something beside the others or beside a loss of flow matching.
    """
    draws = intervals(len(mask), flow.geometry.decided, SHORTEST, rng)
    s, r, t = (time.to(mask.device, next(iter(ones.values())).dtype) for time in draws)
    with torch.no_grad():
        found = _of_derivatives(flow, ones, mask, EARLY * s, EARLY * t, rng)
        x, _ = on_path(flow, ones, mask, s, rng)
        end, beyond = semigroup.residual(flow, flow, x, mask, s, r, t)
        gap = flow.geometry.square(end, beyond, mask) / (t - s).square()
        size = flow.geometry.square(x, flow.velocity(x, mask, s, t), mask)
    return found | {"semigroup": _ratio(gap, size)}


def _of_derivatives(flow: MeanFlow, ones: Points, mask: Tensor, s: Tensor, t: Tensor, rng: Noise) -> dict[str, float]:
    x, _ = on_path(flow, ones, mask, s, rng)
    square = flow.geometry.square
    v = flow.velocity(x, mask, s, s)
    u, missed = eulerian.residual(flow, x, mask, s, t, v, float("inf"))
    _, end, moved = jacobi.residual(flow, x, mask, s, t, v)
    reached, apart = lagrangian.push_residual(flow, x, mask, s, t)
    back = lagrangian.pull_residual(flow, x, mask, s, t)
    size = square(x, u, mask)
    return {
        "eulerian": _ratio(square(x, missed, mask), size),
        "jacobi": _ratio(square(end, moved, mask), size),
        "lagrangian_push": _ratio(square(reached, apart, mask), size),
        "lagrangian_pull": _ratio(square(x, back, mask), size),
    }


def _ratio(square: Tensor, size: Tensor) -> float:
    return (square.mean() / size.mean()).sqrt().item()
