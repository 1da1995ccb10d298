"""What keeps the training of a flow map steady, beside stopped gradients and the average of the weights."""

from __future__ import annotations

from torch import Tensor

from generators.manifolds.product import Points

NEAR_END = 0.1
FLOOR = 1e-3


def down_scale(s: Tensor, near_end: float = NEAR_END) -> Tensor:
    """min(1, (1 - s) / near_end)^2: takes back the growth of velocities, which are divided by 1 - s, near the end."""
    return ((1 - s) / near_end).clamp_max(1).square()


def clipped(v: Points, longest: float) -> Points:
    """Tangents of at most a length at each site, factor by factor."""
    if longest == float("inf"):
        return v
    found = {}
    for name, value in v.items():
        length = value.detach().square().sum(-1, keepdim=True).sqrt()
        found[name] = value * (longest / length.clamp_min(longest))
    return found


def adaptive(loss: Tensor, power: float) -> Tensor:
    """Losses (B,), each divided by its own (value + 0.001)^power, which gets no gradient (Geng et al. 2505.13447).

    A power above 0 is biased: the weight knows the target of the same design, so that what is learned moves from the
    mean of the targets towards their mode. The bias is gone where a loss is a sum over many independent sites.
    """
    if power == 0:
        return loss
    return loss / (loss.detach() + FLOOR).pow(power)
