"""The times at which a flow map is trained. All draws depend on `rng` alone; times are of shape (n,)."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import torch
from torch import Tensor

from data.noise import Noise

LATEST = 0.99
"""Training times stay below this, because velocities are divided by 1 - s."""
Sampler = Callable[[int, Noise], Tensor]


def uniform(n: int, rng: Noise) -> Tensor:
    """Uniform on [0, 1)."""
    return rng.uniform(n)


def logit_normal(n: int, rng: Noise) -> Tensor:
    """The logistic function of N(-0.4, 1): early times more often than late ones (Geng et al., arXiv 2505.13447)."""
    return torch.sigmoid(rng.normal(n) - 0.4)


SAMPLERS: Mapping[str, Sampler] = {"uniform": uniform, "logit_normal": logit_normal}


def moments(n: int, decided: float, sampler: Sampler, rng: Noise) -> Tensor:
    """Times s of flow matching: nine in ten on [0, decided], where designs are made, the others on [0, 1]."""
    whole = rng.uniform(n) < 0.1
    return torch.where(whole, 1.0, decided) * sampler(n, rng).clamp_max(LATEST)


def intervals(n: int, decided: float, shortest: float, rng: Noise) -> tuple[Tensor, Tensor, Tensor]:
    """Times s < r < t, s and t at least `shortest` apart on [0, decided] and r between them.

    A quarter starts at 0, because every sampling does. Half of them are the jumps with which sampling and look-ahead
    end, s to 1 by way of r = decided: from there the end is known, so the velocity, which flow matching has learned,
    leads straight to it. Any other r would tie such jumps to each other and to nothing that is known.
    """
    draws = rng.uniform(4, n)
    early, late = draws[:2].sort(dim=0).values
    s = torch.where(draws[2] < 0.25, 0.0, early) * min(decided - shortest, LATEST)
    last = draws[3] < 0.5
    t = torch.where(last, 1.0, torch.maximum(decided * late, s + shortest))
    return s, ((s + t) / 2).clamp_max(decided), t


def pairs(n: int, decided: float, rng: Noise) -> tuple[Tensor, Tensor]:
    """Times (s, t) in either order, both at most `LATEST`, half of them on [0, decided] and half on [0, 1]."""
    draws = rng.uniform(3, n)
    span = torch.where(draws[2] < 0.5, decided, 1.0)
    return (span * draws[0]).clamp_max(LATEST), (span * draws[1]).clamp_max(LATEST)


def ordered(n: int, decided: float, rng: Noise) -> tuple[Tensor, Tensor]:
    """Times s < t for the identities that know a flow map by its derivatives: `pairs`, put in order.

    What such an identity says at (s, t) comes from s = t by way of all times between, so none of them may be rare. With
    half of the jumps ending at 1, as in `intervals`, a map of everything to one point fulfils it nearly everywhere.
    """
    first, second = pairs(n, decided, rng)
    return torch.minimum(first, second), torch.maximum(first, second)
