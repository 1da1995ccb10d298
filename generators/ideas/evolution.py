"""One evolution: the designs it starts from, then rounds of proposals, each measured, until the budget is spent."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import islice

import torch
from torch import Tensor

from data.noise import StepNoise
from generators.ideas import operators
from generators.ideas.meter import Meter
from generators.ideas.protocol import Strategy

TRIES = 8
"""Times that a batch is filled up by chance, before the space is searched for what is left of it."""


def evolve(
    meter: Meter,
    pool: Tensor,
    start: int,
    rounds: int,
    strategy: Strategy,
    rng: StepNoise,
    on_round: Callable[[int], None],
) -> None:
    """Spend the budget: on `start` designs of the pool (N, L, F), then on `rounds` batches as equal as can be.

    Less is spent only where the space has no more designs with the sites in use of those in the pool.
    """
    shuffled = pool[rng.fork(0).uniform(len(pool)).argsort(stable=True)]
    meter.measure(filled(meter, shuffled, pool, start, rng.fork(1)))
    for k in range(rounds):
        n, noise = meter.left // (rounds - k), rng.fork(2 + k)
        proposed = strategy.propose(meter, n, noise.fork(0))
        meter.measure(filled(meter, proposed, pool, n, noise.fork(1)))
        on_round(k + 1)


def filled(meter: Meter, proposed: Tensor, pool: Tensor, n: int, rng: StepNoise) -> Tensor:
    """`n` distinct designs that were not measured: those proposed, then mutants of the pool, then any that are left."""
    found = meter.fresh(proposed)[:n]
    for _ in range(TRIES):
        if len(found) == n:
            return found
        parents = pool[(rng.uniform(n) * len(pool)).long()]
        mutants = operators.mutate(meter.alphabet, parents, meter.alphabet.uniform(parents), rng)
        found = meter.fresh(torch.cat([found, mutants]))[:n]
    taken = {row.numpy().tobytes() for row in found}
    left = (design for design in unmeasured(meter, pool) if design.numpy().tobytes() not in taken)
    return torch.cat([found, *(design[None] for design in islice(left, n - len(found)))])


def unmeasured(meter: Meter, pool: Tensor) -> Iterator[Tensor]:
    """Every design (L, F) with the sites in use and the locked letters of one in the pool that was not measured."""
    for like in torch.unique(pool.masked_fill(meter.alphabet.free(pool), 0), dim=0):
        for design in meter.alphabet.every(like):
            if len(meter.fresh(design[None])):
                yield design
