"""How designs are varied by an explanation: guided mutation, grafting of motifs, recombination."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional
from torch.nn.functional import one_hot

from data.noise import Noise
from generators.ideas.alphabet import UNUSED, Alphabet
from generators.ideas.explanation import Explanation, Motif
from generators.ideas.operators import choose

GUIDED = 0.7
"""Share of the surrogate's wish in a mutation at full trust; the rest is equal chances."""


def protected(alphabet: Alphabet, explanation: Explanation, trust: float) -> Tensor:
    """Weights (N, L, W) of cells: the surrogate's wish mixed with equal chances, less at critical positions.

    Both are in proportion to `trust`, between 0 and 1.
    """
    free = alphabet.free(explanation.letters)[..., alphabet.factor_of_cell]
    legal = free & (alphabet.one_hot(explanation.letters) == 0)
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
        free = (alphabet.free(why.letters[host]) & ~why.critical[host])[:, motif.factor]
        start = _best_place(alphabet, why.effects[host], motif, free) if moved[row] else motif.start
        window = (slice(start, start + len(motif.letters)), motif.factor)
        written = free[window[0]] & (motif.letters != UNUSED)
        made[row][window] = torch.where(written, motif.letters, made[row][window])
    return made


def _best_place(alphabet: Alphabet, effects: Tensor, motif: Motif, free: Tensor) -> int:
    """The first site at which writing a motif adds most, where `effects` (L, W) of positions that are `free` add up."""
    gains = alphabet.split(effects)[motif.factor] * free[:, None]
    written = one_hot(motif.letters + 1, alphabet.sizes[motif.factor] + 1)[:, 1:].float()
    return int(functional.conv1d(gains.T[None], written.T[None]).argmax())


def recombine(explanation: Explanation, parents: Tensor, donors: Tensor, rng: Noise) -> Tensor:
    """Designs (N, L, F) of parents and donors: of two letters the more critical one, either where neither is.

    Sites that are not in use in both keep the parent's.
    """
    weight = explanation.criticality * explanation.critical
    mine, theirs = explanation.letters[parents], explanation.letters[donors]
    tied = (weight[parents] == weight[donors]) & (rng.uniform(*mine.shape) < 0.5)
    keep = (weight[parents] > weight[donors]) | tied | (mine == UNUSED) | (theirs == UNUSED)
    return torch.where(keep, mine, theirs)
