"""How designs are varied: mutation by weights of cells, grafting of motifs, recombination."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional
from torch.nn.functional import one_hot

from data.noise import Noise
from generators.ideas.alphabet import UNUSED, Alphabet
from generators.ideas.explanation import Explanation, Motif

POWER = 1.5
"""The number k of mutations has probability proportional to k ** -POWER (Doerr et al. 2017, arXiv 1703.03334)."""
GUIDED = 0.7
"""Share of the surrogate's wish in a mutation at full trust; the rest is equal chances."""


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
    other = weights * (1 - alphabet.one_hot(letters)) * (letters != UNUSED)[..., alphabet.factor_of_cell]
    keys, drawn = alphabet.best(other.log() + gumbel)
    flat = keys.flatten(1)
    k = counts(len(letters), max(1, alphabet.positions // 2), rng)
    rank = flat.argsort(dim=-1, descending=True, stable=True).argsort(dim=-1, stable=True)
    changed = ((rank < k[:, None]) & flat.isfinite()).view_as(keys)
    return torch.where(changed, drawn, letters)


def protected(alphabet: Alphabet, explanation: Explanation, trust: float) -> Tensor:
    """Weights (N, L, W) of cells: the surrogate's wish mixed with equal chances, less at critical positions.

    Both are in proportion to `trust`, between 0 and 1.
    """
    used = (explanation.letters != UNUSED)[..., alphabet.factor_of_cell]
    legal = used & (alphabet.one_hot(explanation.letters) == 0)
    spread = explanation.effects[legal].std().clamp(min=1e-9) if legal.any() else torch.ones(())
    wish = (explanation.effects / spread).masked_fill(~legal, -torch.inf).flatten(1).softmax(-1).view_as(legal.float())
    equal = legal / legal.sum((1, 2), keepdim=True).clamp(min=1)
    spared = trust * explanation.critical[..., alphabet.factor_of_cell]
    share = GUIDED * trust
    return (share * wish.nan_to_num() + (1 - share) * equal) * (1 - spared)


def graft(alphabet: Alphabet, why: Explanation, motifs: list[Motif], hosts: Tensor, rng: Noise) -> Tensor:
    """Designs (N, L, F): rows `hosts` (N,), each with one motif, drawn by its worth, written over what is not critical.

    The place is that where the motif came from or that of the best predicted gain, with equal chances.
    """
    made = why.letters[hosts]
    if not motifs or not len(hosts):
        return made
    drawn = choose(torch.tensor([motif.worth for motif in motifs]), len(hosts), rng)
    moved = rng.uniform(len(hosts)) < 0.5
    for row, (host, k) in enumerate(zip(hosts.tolist(), drawn.tolist(), strict=True)):
        motif = motifs[k]
        free = ((why.letters[host] != UNUSED) & ~why.critical[host])[:, motif.factor]
        start = _best_place(alphabet, why.effects[host], motif, free) if moved[row] else motif.start
        window = (slice(start, start + len(motif.letters)), motif.factor)
        made[row][window] = torch.where(free[window[0]], motif.letters, made[row][window])
    return made


def _best_place(alphabet: Alphabet, effects: Tensor, motif: Motif, free: Tensor) -> int:
    """The first site at which writing a motif adds most, where `effects` (L, W) of positions that are `free` add up."""
    gains = alphabet.split(effects)[motif.factor] * free[:, None]
    written = one_hot(motif.letters, alphabet.sizes[motif.factor]).float()
    return int(functional.conv1d(gains.T[None], written.T[None]).argmax())


def recombine(explanation: Explanation, parents: Tensor, donors: Tensor) -> Tensor:
    """Designs (N, L, F): donors with the critical letters of the parents; of two critical ones the more critical.

    Sites that are not in use in both keep the parent's.
    """
    weight = explanation.criticality * explanation.critical
    mine, theirs = explanation.letters[parents], explanation.letters[donors]
    keep = (weight[parents] > weight[donors]) | (mine == UNUSED) | (theirs == UNUSED)
    return torch.where(keep, mine, theirs)
