"""How designs are varied without an explanation: mutation by weights of cells, and crossover."""

from __future__ import annotations

import torch
from torch import Tensor

from data.noise import Noise, StepNoise
from generators.ideas.alphabet import UNUSED, Alphabet

POWER = 1.5
"""The number k of mutations has probability proportional to k ** -POWER (Doerr et al. 2017, arXiv 1703.03334)."""


def choose(weights: Tensor, n: int, rng: Noise) -> Tensor:
    """`n` indices (n,) drawn with probability proportional to `weights` (K,)."""
    total = weights.double().cumsum(0)
    return torch.searchsorted(total, rng.uniform(n).double() * total[-1], right=True).clamp(max=len(weights) - 1)


def counts(n: int, most: int, rng: Noise) -> Tensor:
    """`n` numbers of mutations (n,), from 1 to `most`, heavy-tailed."""
    return 1 + choose(torch.arange(1, most + 1) ** -POWER, n, rng)


def mutate(alphabet: Alphabet, letters: Tensor, weights: Tensor, rng: Noise) -> Tensor:
    """Designs (N, L, F) with some letters changed, drawn without replacement by the `weights` (N, L, W) of cells.

    At least one letter changes where a weight is positive. Gumbel's noise makes the largest key of a position a draw
    of its letter, and the largest keys of a design a draw of its positions.
    """
    gumbel = -(-rng.uniform(*weights.shape).log()).log()
    other = weights * (1 - alphabet.one_hot(letters)) * alphabet.free(letters)[..., alphabet.factor_of_cell]
    keys, drawn = alphabet.best(other.log() + gumbel)
    flat = keys.flatten(1)
    k = counts(len(letters), max(1, alphabet.positions // 2), rng)
    rank = flat.argsort(dim=-1, descending=True, stable=True).argsort(dim=-1, stable=True)
    changed = ((rank < k[:, None]) & flat.isfinite()).view_as(keys)
    return torch.where(changed, drawn, letters)


def children(parents: Tensor, n: int, crossed: float, rng: StepNoise) -> Tensor:
    """`n` designs (n, L, F): copies of parents (N, L, F), a share of them crossed uniformly with another one.

    Sites that are not in use in both parents keep the first one's.
    """
    mine, theirs = parents[rng.integers(len(parents), n)], parents[rng.integers(len(parents), n)]
    swap = (rng.uniform(*mine.shape) < 0.5) & (rng.uniform(n) < crossed)[:, None, None]
    return torch.where(swap & (mine != UNUSED) & (theirs != UNUSED), theirs, mine)
