"""A grammar of binding sites: four motifs of JASPAR anywhere on either strand of 100 bases."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn.functional import one_hot

from app.benchmarks.ideas.landscapes.base import BASES, Landscape, sequences
from data.noise import StepNoise
from domains.dna import motifs

LENGTH = 100
MOTIFS = ("TATA-Box", "Trl", "Dref", "M1BP")


def build() -> Landscape:
    """The geometric mean over motifs of the best site's score, from 0 for the worst word to 1 for the best."""
    wanted = [motifs.find(name) for name in MOTIFS]
    odds = [torch.from_numpy(motif.log_odds).float() for motif in wanted]

    def evaluate(letters: Tensor) -> Tensor:
        """Values (N,)."""
        bases = one_hot(letters[..., 0], len(BASES)).float()
        found = [motifs.scan(bases, matrix).amax((1, 2)) for matrix in odds]
        shares = [(x - motif.least) / (motif.most - motif.least) for x, motif in zip(found, wanted, strict=True)]
        return torch.stack(shares, -1).clamp(min=1e-6).log().mean(-1).exp()

    def start(n: int, rng: StepNoise) -> Tensor:
        """Designs (n, L, F)."""
        return rng.integers(len(BASES), n * LENGTH).view(n, LENGTH, 1)

    best = torch.zeros(LENGTH, 1, dtype=torch.long)
    best[: sum(map(len, odds)), 0] = torch.cat([matrix.argmax(-1) for matrix in odds])
    return Landscape("jaspar_100", sequences(LENGTH, BASES), evaluate, start, best, True, True, True)
