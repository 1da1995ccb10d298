"""All pairs of substitutions in protein G domain B1 that were measured (Olson et al. 2014, Curr. Biol. 24, 2643)."""

from __future__ import annotations

import torch
from torch import Tensor

from app.benchmarks.ideas.landscapes.base import INFEASIBLE, RESIDUES, Landscape
from data import corpora
from data.noise import StepNoise
from data.space import Categorical, Space


def build() -> Landscape:
    """A design is two substitutions, in any order: a place and a residue each; its value is log2 enrichment.

    Pairs that were not measured are infeasible, as are two of one place, and the residue that is there anyway. Starts
    are measured pairs of the worse half.
    """
    arrays = corpora.load("gb1_pairs.npz")
    places, kinds = len(arrays["wild_type"]), len(RESIDUES)
    table = torch.full((places, kinds, places, kinds), torch.nan)
    first, second = torch.triu_indices(places, places, 1)
    table[first, :, second, :] = torch.from_numpy(arrays["pairs"]).float()
    table = table.nan_to_num(nan=INFEASIBLE)
    measured = table.isfinite().nonzero()
    values = table[tuple(measured.T)]
    worse = measured[values < values.median()]

    def evaluate(letters: Tensor) -> Tensor:
        """Values (N,)."""
        one, two = letters[:, 0], letters[:, 1]
        forth = table[one[:, 0], one[:, 1], two[:, 0], two[:, 1]]
        return torch.maximum(forth, table[two[:, 0], two[:, 1], one[:, 0], one[:, 1]])

    def start(n: int, rng: StepNoise) -> Tensor:
        """Designs (n, L, F)."""
        return worse[rng.integers(len(worse), n)].view(n, 2, 2)

    space = Space(2, {"place": Categorical(places), "residue": Categorical(kinds)})
    return Landscape("gb1_pairs", space, evaluate, start, measured[values.argmax()].view(2, 2), True, False)
