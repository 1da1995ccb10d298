"""Bayesian optimisation: of a pool of mutants, those with the highest upper bound (Srinivas et al. 2010)."""

from __future__ import annotations

from torch import Tensor

from data.noise import StepNoise
from generators.ideas import operators, surrogate
from generators.ideas.alphabet import Alphabet
from generators.ideas.meter import Meter
from generators.ideas.protocol import CANDIDATES, MEMBERS

PARENTS = 20
CROSSED = 0.3
CURIOSITY = 1.0
"""Standard deviations added to the mean."""


class BayesianOptimisation:
    """The ensemble's upper confidence bound on mutants."""

    def __init__(self, alphabet: Alphabet) -> None:
        self.alphabet = alphabet

    def propose(self, meter: Meter, n: int, rng: StepNoise) -> Tensor:
        """The `n` mutants of the highest bound."""
        model = surrogate.fit(self.alphabet, meter.designs, meter.values, MEMBERS, rng.fork(0))
        children = operators.children(meter.designs[meter.ranking()[:PARENTS]], CANDIDATES, CROSSED, rng)
        mutants = meter.fresh(operators.mutate(self.alphabet, children, self.alphabet.uniform(children), rng))
        if not len(mutants):
            return mutants
        mean, spread = model.predict(mutants)
        return mutants[(mean + CURIOSITY * spread).argsort(descending=True, stable=True)[:n]]
