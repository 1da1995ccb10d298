"""The baselines: the same start, rounds and budget, without a model."""

from __future__ import annotations

from torch import Tensor

from data.noise import StepNoise
from data.space import Space
from generators.ideas import operators
from generators.ideas.alphabet import Alphabet
from generators.ideas.generator import Evolution
from generators.ideas.meter import Meter

PARENTS = 10
"""The best designs so far, of which all mutants are."""
OVERSAMPLING = 4
"""Mutants drawn for each that is wanted, since some were measured before."""


class RandomMutation:
    """Uniformly random mutation of the best measured designs: a (mu + lambda) evolution strategy."""

    def __init__(self, alphabet: Alphabet) -> None:
        self.alphabet = alphabet

    def propose(self, meter: Meter, n: int, rng: StepNoise) -> Tensor:
        """`n` mutants."""
        best = meter.designs[meter.ranking()[:PARENTS]]
        parents = best[(rng.uniform(OVERSAMPLING * n) * len(best)).long()]
        return operators.mutate(self.alphabet, parents, self.alphabet.uniform(parents), rng)


class RandomDesigns:
    """Uniformly random letters at the sites in use of a measured design: no selection at all."""

    def __init__(self, alphabet: Alphabet) -> None:
        self.alphabet = alphabet

    def propose(self, meter: Meter, n: int, rng: StepNoise) -> Tensor:
        """`n` random designs."""
        like = meter.designs[(rng.uniform(OVERSAMPLING * n) * len(meter.designs)).long()]
        return self.alphabet.random(like, rng)


def mutation(space: Space, budget: int = 256, start: int = 32) -> Evolution:
    """A generator that mutates the best designs at random."""
    return Evolution(space, budget, start, RandomMutation)


def designs(space: Space, budget: int = 256, start: int = 32) -> Evolution:
    """A generator that draws designs at random."""
    return Evolution(space, budget, start, RandomDesigns)
