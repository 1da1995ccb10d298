"""Binding of a transcription factor to all 65,536 words of 8 bases (Barrera et al. 2016, Science 351, 1450)."""

from __future__ import annotations

import torch
from torch import Tensor

from app.benchmarks.ideas.landscapes.base import BASES, Landscape, sequences
from data import corpora
from data.noise import StepNoise

LENGTH = 8


def build(factor: str) -> Landscape:
    """E-scores of `six6` or `pax4`, from 0 to 1. Starts are drawn from the worse half."""
    scores = torch.from_numpy(corpora.load("tfbind8.npz")[factor])
    table = (scores - scores.min()) / (scores.max() - scores.min())
    worse = (table < table.median()).nonzero().flatten()

    def start(n: int, rng: StepNoise) -> Tensor:
        """Designs (n, L, F)."""
        return _words(worse[rng.integers(len(worse), n)])

    best = _words(table.argmax()[None])[0]
    space = sequences(LENGTH, BASES)
    return Landscape(f"tfbind8_{factor}", space, lambda x: table[_index(x)], start, best, True, True, True)


def _index(words: Tensor) -> Tensor:
    return (words[..., 0] * 4 ** torch.arange(LENGTH).flip(0)).sum(-1)


def _words(index: Tensor) -> Tensor:
    return (index[:, None] // 4 ** torch.arange(LENGTH).flip(0) % 4)[..., None]
