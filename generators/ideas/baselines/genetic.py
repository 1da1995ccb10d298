"""A genetic algorithm on a model: truncation selection, uniform crossover, mutation (Goldberg 1989)."""

from __future__ import annotations

import torch
from torch import Tensor

from data.noise import StepNoise
from generators.ideas import operators, surrogate
from generators.ideas.alphabet import Alphabet
from generators.ideas.meter import Meter
from generators.ideas.protocol import CANDIDATES, MEMBERS

PARENTS = 20
"""Of a generation: the best by the model, of the first the best measured."""
CROSSED = 0.2
"""Share of the children that have two parents."""
GENERATIONS = 16


class GeneticAlgorithm:
    """Generations that the model judges, as in FLEXS (Sinai et al. 2020, arXiv 2010.02141)."""

    def __init__(self, alphabet: Alphabet) -> None:
        self.alphabet = alphabet

    def propose(self, meter: Meter, n: int, rng: StepNoise) -> Tensor:
        """The `n` best predicted of all generations."""
        model = surrogate.fit(self.alphabet, meter.designs, meter.values, MEMBERS, rng.fork(0))
        parents = meter.designs[meter.ranking()[:PARENTS]]
        made, worth = parents[:0], torch.empty(0)
        for _ in range(GENERATIONS):
            children = operators.children(parents, CANDIDATES // GENERATIONS, CROSSED, rng)
            mutants = operators.mutate(self.alphabet, children, self.alphabet.uniform(children), rng)
            made = meter.fresh(torch.cat([made, mutants]))
            if not len(made):
                return made
            worth = torch.cat([worth, model.predict(made[len(worth) :])[0]]) if len(made) > len(worth) else worth
            parents = made[worth.argsort(descending=True, stable=True)[:PARENTS]]
        return made[worth.argsort(descending=True, stable=True)[:n]]
