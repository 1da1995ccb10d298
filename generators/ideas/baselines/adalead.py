"""AdaLead (Sinai et al. 2020, arXiv 2010.02141): rollouts of mutations, on as long as the model likes them."""

from __future__ import annotations

import torch
from torch import Tensor

from data.noise import StepNoise
from generators.ideas import operators, surrogate
from generators.ideas.alphabet import UNUSED, Alphabet
from generators.ideas.meter import Meter
from generators.ideas.protocol import CANDIDATES, MEMBERS

GREED = 0.05
"""Parents are as good as the best, less this share of its lead on the median: the paper's share of the best itself
has no meaning for scores below zero."""
CROSSED = 0.2
MUTATIONS = 1.0
"""Of a design and step, on average."""
ROOTS = 8
"""Candidates for each root of a rollout."""


class AdaLead:
    """Greedy by the mean prediction."""

    def __init__(self, alphabet: Alphabet) -> None:
        self.alphabet = alphabet

    def propose(self, meter: Meter, n: int, rng: StepNoise) -> Tensor:
        """The `n` best predicted of all rollouts."""
        model = surrogate.fit(self.alphabet, meter.designs, meter.values, MEMBERS, rng.fork(0))
        roots = operators.children(self._parents(meter), max(n, CANDIDATES // ROOTS), CROSSED, rng)
        asked, floor = len(roots), model.predict(roots)[0]
        nodes, made, worth = roots, [roots], [floor]
        while asked < CANDIDATES:
            nodes = nodes[: CANDIDATES - asked]
            children = _mutated(self.alphabet, nodes, rng)
            value = model.predict(children)[0]
            made.append(children)
            worth.append(value)
            asked += len(children)
            on = value >= floor[: len(value)]
            nodes, floor = (children[on], floor[: len(value)][on]) if on.any() else (roots, worth[0])
        found, values = torch.cat(made), torch.cat(worth)
        return meter.fresh(found[values.argsort(descending=True, stable=True)])[:n]

    def _parents(self, meter: Meter) -> Tensor:
        values = meter.values[meter.values.isfinite()]
        if not len(values):
            return meter.designs
        least = values.max() - GREED * (values.max() - values.median())
        return meter.designs[meter.values >= least]


def _mutated(alphabet: Alphabet, letters: Tensor, rng: StepNoise) -> Tensor:
    """Each position another letter with the same small chance."""
    here = (rng.uniform(*letters.shape) < MUTATIONS / alphabet.positions) & (letters != UNUSED)
    return torch.where(here, alphabet.random(letters, rng), letters)
