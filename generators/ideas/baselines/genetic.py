"""A genetic algorithm: truncation selection, uniform crossover, mutation (Goldberg 1989)."""

from __future__ import annotations

from torch import Tensor

from data.noise import StepNoise
from generators.ideas import operators
from generators.ideas.alphabet import Alphabet
from generators.ideas.meter import Meter

SHARE, FEWEST = 0.1, 10
"""Of all that was measured, the best are parents."""
CROSSED = 0.5
"""Share of the children that have two parents."""
OVERSAMPLING = 4


class GeneticAlgorithm:
    """Children of the best measured designs, without a model."""

    def __init__(self, alphabet: Alphabet) -> None:
        self.alphabet = alphabet

    def propose(self, meter: Meter, n: int, rng: StepNoise) -> Tensor:
        """`n` children."""
        best = meter.designs[meter.ranking()[: max(FEWEST, int(SHARE * len(meter.values)))]]
        children = operators.children(best, OVERSAMPLING * n, CROSSED, rng)
        return operators.mutate(self.alphabet, children, self.alphabet.uniform(children), rng)
