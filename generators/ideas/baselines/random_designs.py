"""No selection at all."""

from __future__ import annotations

from torch import Tensor

from data.noise import StepNoise
from generators.ideas.alphabet import Alphabet
from generators.ideas.meter import Meter

OVERSAMPLING = 4
"""Designs drawn for each that is wanted, since some were measured before."""


class RandomDesigns:
    """Uniformly random letters at the sites in use of a measured design."""

    def __init__(self, alphabet: Alphabet) -> None:
        self.alphabet = alphabet

    def propose(self, meter: Meter, n: int, rng: StepNoise) -> Tensor:
        """`n` random designs."""
        like = meter.designs[rng.integers(len(meter.designs), OVERSAMPLING * n)]
        return self.alphabet.random(like, rng)
