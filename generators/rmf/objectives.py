"""What a flow map is trained on: flow matching at s = t, and the semigroup identity between times.

Riemannian MeanFlow's recommended recipe (Woo et al., arXiv 2602.07744): X_{r,t} after X_{s,r} must equal X_{s,t}
for s < r < t, anchored by the conditional velocity where s = t. Neither needs a Jacobian-vector product.
"""

from __future__ import annotations

import torch
from torch import Tensor

from data.noise import Noise
from data.space import State
from generators.rmf.flow_map import FlowMap

LATEST = 0.99
"""Training times stay below this, because the velocity of x1-prediction is divided by 1 - s."""


def flow_matching_loss(flow_map: FlowMap, batch: State, rng: Noise) -> Tensor:
    """Mean of |Log_x(x1 predicted) - Log_x(x1)|^2 / max(1 - s, 0.1)^2 at random times."""
    geometry, mask = flow_map.geometry, batch["mask"]
    ones = geometry.points(batch)
    s = times(len(mask), geometry.decided, rng).to(mask.device)
    x = geometry.along(geometry.random(ones, rng, mask), ones, s)
    predicted = geometry.log(x, flow_map.endpoint(x, mask, s, s))
    error = geometry.squared_error(predicted, geometry.log(x, ones), mask)
    return (error / (1 - s).clamp_min(0.1).square()).mean()


def semigroup_loss(flow_map: FlowMap, teacher: FlowMap, batch: State, rng: Noise) -> Tensor:
    """Mean of d(X_{s,t}(x), X_{r,t}(X_{s,r}(x)))^2 / (t - s)^2, at most 5 a sequence; no gradient to the teacher."""
    geometry, mask = flow_map.geometry, batch["mask"]
    ones = geometry.points(batch)
    s, r, t = (time.to(mask.device) for time in intervals(len(mask), geometry.decided, flow_map.shortest, rng))
    x = geometry.along(geometry.random(ones, rng, mask), ones, s)
    with torch.no_grad():
        target = teacher.jump(teacher.jump(x, mask, s, r), mask, r, t)
    reached = flow_map.jump(x, mask, s, t)
    error = geometry.squared_error(
        geometry.log(target, reached), {name: torch.zeros_like(y) for name, y in x.items()}, mask
    )
    return (error / (t - s).square()).clamp_max(5).mean()


def times(n: int, decided: float, rng: Noise) -> Tensor:
    """Times (n,) for flow matching: nine in ten on [0, decided], where designs are made, the others on [0, 1]."""
    draws = rng.uniform(2, n)
    span = torch.where(draws[0] < 0.1, 1.0, decided)
    return span * draws[1].clamp_max(LATEST)


def intervals(n: int, decided: float, shortest: float, rng: Noise) -> tuple[Tensor, Tensor, Tensor]:
    """Times s < r < t (n,) for the semigroup, s and t at least `shortest` apart on [0, decided] and r between them.

    A quarter starts at 0, because every sampling does. Half of them are the jumps with which sampling and look-ahead
    end, s to 1 by way of r = decided: from there the end is known, so the velocity, which flow matching has learned,
    leads straight to it. Any other r would tie such jumps to each other and to nothing that is known.
    """
    draws = rng.uniform(4, n)
    early, late = draws[:2].sort(dim=0).values
    s = torch.where(draws[2] < 0.25, 0.0, early) * (decided - shortest)
    last = draws[3] < 0.5
    t = torch.where(last, 1.0, torch.maximum(decided * late, s + shortest))
    return s, ((s + t) / 2).clamp_max(decided), t
