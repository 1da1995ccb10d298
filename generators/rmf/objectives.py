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
from generators.rmf.geometry import squared_error

LATEST = 0.99
"""Training times stay below this, because the velocity of x1-prediction is divided by 1 - s."""


def flow_matching_loss(flow_map: FlowMap, batch: State, rng: Noise) -> Tensor:
    """Mean of |Log_x(x1 predicted) - Log_x(x1)|^2 / max(1 - s, 0.1)^2 at times s = sigmoid(N(-0.4, 1))."""
    geometry, mask = flow_map.geometry, batch["mask"]
    ones = geometry.points(batch)
    s = torch.sigmoid(rng.normal(len(mask)).to(mask.device) - 0.4).clamp_max(LATEST)
    x = geometry.along(geometry.random(ones, rng), ones, s)
    predicted = geometry.log(x, flow_map.endpoint(x, mask, s, s))
    error = squared_error(predicted, geometry.log(x, ones), mask)
    return (error / (1 - s).clamp_min(0.1).square()).mean()


def semigroup_loss(flow_map: FlowMap, teacher: FlowMap, batch: State, rng: Noise) -> Tensor:
    """Mean of d(X_{s,t}(x), X_{r,t}(X_{s,r}(x)))^2 / max(t - s, 0.01)^2, at most 5 a sequence, r the midpoint.

    The two short jumps are the teacher's and carry no gradient. The loss fades out for s > 0.9 as (1 - s)^2 does.
    """
    geometry, mask = flow_map.geometry, batch["mask"]
    ones = geometry.points(batch)
    s, t = interval(len(mask), rng)
    s, t = s.to(mask.device), t.to(mask.device)
    r = (s + t) / 2
    x = geometry.along(geometry.random(ones, rng), ones, s)
    with torch.no_grad():
        target = teacher.jump(teacher.jump(x, mask, s, r), mask, r, t)
    reached = flow_map.jump(x, mask, s, t)
    error = squared_error(geometry.log(target, reached), {name: torch.zeros_like(y) for name, y in x.items()}, mask)
    fade = ((1 - s) / 0.1).clamp_max(1).square()
    return (fade * error / (t - s).clamp_min(0.01).square()).clamp_max(5).mean()


def interval(n: int, rng: Noise) -> tuple[Tensor, Tensor]:
    """Times s < t (n,): two sorted uniforms, of which a quarter starts at 0 and a quarter ends at 1.

    Few-step sampling starts at 0 and ends at 1 every time, which sorted uniforms never do.
    """
    draws = rng.uniform(n, 4)
    s, t = draws[:, :2].sort(dim=-1).values.unbind(-1)
    s = torch.where(draws[:, 2] < 0.25, 0.0, s).clamp_max(LATEST - 0.01)
    t = torch.where(draws[:, 3] < 0.25, 1.0, t)
    return s, torch.maximum(t, s + 0.01)
