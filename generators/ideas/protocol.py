"""What one evolution is driven by."""

from __future__ import annotations

from typing import Protocol

from torch import Tensor

from data.noise import StepNoise
from generators.ideas.meter import Meter

CANDIDATES = 1024
"""Designs of a round whose value is predicted, from which the batch is chosen; the same for all that have a model."""
MEMBERS = 3
"""Of the ensemble of surrogates."""


class Strategy(Protocol):
    """Decides what one evolution measures next."""

    def propose(self, meter: Meter, n: int, rng: StepNoise) -> Tensor:
        """At most `n` designs (n, L, F); those that were measured before are passed over."""
