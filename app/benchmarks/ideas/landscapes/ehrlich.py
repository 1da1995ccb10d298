"""Ehrlich functions: spaced motifs anywhere in a sequence in which some letters must not follow some others.

Stanton et al. 2024, arXiv 2407.00236. The rules and motifs are drawn here, and not as holo-bench draws them.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import torch
from torch import Tensor

from app.benchmarks.ideas.landscapes.base import INFEASIBLE, RESIDUES, Landscape, sequences
from data.errors import InputError
from data.noise import StepNoise, stable_seed

BANNED = 0.3
"""Share of the pairs of letters of which the second must not follow the first."""
LETTERS = len(RESIDUES)


@dataclass(frozen=True, eq=False)
class Ehrlich:
    """The product over motifs of the best share of its letters that is found at any place."""

    allowed: Tensor
    """(V, V) bool: whether the second letter may follow the first."""
    motifs: Tensor
    """(C, K) letters."""
    offsets: Tensor
    """(C, K): their places from that of the first."""

    def __call__(self, letters: Tensor) -> Tensor:
        """Values (N,) of letters (N, L, 1), from 0 to 1; `INFEASIBLE` where a rule is broken."""
        found = torch.stack([self._share(letters[..., 0], c) for c in range(len(self.motifs))]).prod(0)
        return torch.where(self.feasible(letters), found, INFEASIBLE)

    def feasible(self, letters: Tensor) -> Tensor:
        """Bool (N,): whether every letter may follow the one before it."""
        return self.allowed[letters[:, :-1, 0], letters[:, 1:, 0]].all(-1)

    def solution(self, length: int) -> Tensor:
        """A design (length, 1) of value 1: the motifs one after the other, each letter repeated up to the next."""
        letters: list[int] = []
        for motif, offsets in zip(self.motifs.tolist(), self.offsets.tolist(), strict=True):
            gaps = [b - a for a, b in zip(offsets, [*offsets[1:], offsets[-1] + 1], strict=True)]
            letters += [letter for letter, gap in zip(motif, gaps, strict=True) for _ in range(gap)]
        return torch.tensor(letters + letters[-1:] * (length - len(letters)))[:, None]

    def walk(self, n: int, length: int, rng: StepNoise) -> Tensor:
        """`n` feasible designs (n, length, 1), every allowed letter as likely as any other."""
        steps = [rng.integers(len(self.allowed), n)]
        for _ in range(length - 1):
            keys = rng.uniform(n, len(self.allowed)) + self.allowed[steps[-1]]
            steps.append(keys.argmax(-1))
        return torch.stack(steps, -1)[..., None]

    @cached_property
    def span(self) -> int:
        """Sites that all motifs take, one after the other."""
        return int(self.offsets[:, -1].sum()) + len(self.offsets)

    def _share(self, letters: Tensor, c: int) -> Tensor:
        windows = letters.unfold(1, int(self.offsets[c, -1]) + 1, 1)[..., self.offsets[c]]
        return (windows == self.motifs[c]).float().mean(-1).amax(-1)


def drawn(length: int, count: int, size: int, rng: StepNoise) -> Ehrlich:
    """A function of `count` motifs of `size` letters that has a solution of `length` sites.

    The motifs, one after the other, are one walk that the rules allow and that visits no letter twice.
    """
    if count * size > min(length, LETTERS):
        raise InputError(f"{count} motifs of {size} letters do not fit {length} sites, {LETTERS} letters; ask for less")
    order = rng.uniform(LETTERS).argsort()[: count * size]
    allowed = rng.uniform(LETTERS, LETTERS) >= BANNED
    allowed.fill_diagonal_(True)
    allowed[order[:-1], order[1:]] = True
    slack = length // count - size
    cuts = (rng.uniform(count, size - 1).sort(-1).values * (slack + 1)).long()
    offsets = torch.cat([torch.zeros(count, 1, dtype=torch.long), cuts + torch.arange(1, size)], -1)
    return Ehrlich(allowed, order.view(count, size), offsets)


def build(length: int, count: int, size: int = 4) -> Landscape:
    """20 letters, `length` sites, `count` motifs of `size` letters. Starts are feasible and at random."""
    function = drawn(length, count, size, StepNoise(stable_seed("ehrlich", length, count, size)))

    def start(n: int, rng: StepNoise) -> Tensor:
        """Designs (n, L, F)."""
        return function.walk(n, length, rng)

    space = sequences(length, RESIDUES)
    return Landscape(f"ehrlich_{length}", space, function, start, function.solution(length), True, True)
