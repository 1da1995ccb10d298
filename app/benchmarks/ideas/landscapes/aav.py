"""An additive landscape: residues 451-540 of AAV2 capsids, by enrichment in liver (Ogden et al. 2019)."""

from __future__ import annotations

import torch
from torch import Tensor

from app.benchmarks.ideas.landscapes.base import RESIDUES, Landscape, sequences
from data import corpora
from data.noise import StepNoise

MUTATIONS = 3
"""Of the wild type, in a design to start from."""


def build() -> Landscape:
    """The sum of the effects of substitutions, scaled so that the wild type has 0.5 and the best design 1."""
    arrays = corpora.load("aav_liver_90.npz")
    effects, wild = torch.from_numpy(arrays["effects"]), torch.from_numpy(arrays["wild_type"]).long()
    most = effects.max(-1).values.sum()
    sites = torch.arange(len(wild))

    def evaluate(letters: Tensor) -> Tensor:
        """Values (N,)."""
        return (0.5 + effects[sites, letters[..., 0]].sum(-1) / (2 * most)).clamp(min=0)

    def start(n: int, rng: StepNoise) -> Tensor:
        """Designs (n, L, F)."""
        order = rng.uniform(n, len(wild)).argsort(-1).argsort(-1)
        drawn = rng.integers(len(RESIDUES), n * len(wild)).view(n, -1)
        return torch.where(order < MUTATIONS, drawn, wild)[..., None]

    best = effects.argmax(-1)[:, None]
    return Landscape("aav_90", sequences(len(wild), RESIDUES), evaluate, start, best, True, False)
