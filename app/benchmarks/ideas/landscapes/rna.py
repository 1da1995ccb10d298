"""Binding of an RNA to a hidden target: the energy of the duplex by ViennaRNA (Lorenz et al. 2011)."""

from __future__ import annotations

import torch
from torch import Tensor

from app.benchmarks.ideas.landscapes.base import Landscape, codes, sequences, text
from data.errors import InputError
from data.noise import StepNoise

BASES = "ACGU"
TARGET = "GAACGAGGCACAUUCCGGCUCGCCCGGCCCAUGUGAGCAU"
"""Of 40 bases: the beginning of the first target of Sinai et al. 2020, arXiv 2010.02141."""
PAIRED = str.maketrans(BASES, "UGCA")


def build(length: int) -> Landscape:
    """The energy, as a share of that of the best piece of the target's reverse complement, of `length` bases.

    What is longer than the target is filled up with A. Raises `InputError` without ViennaRNA.
    """
    try:
        import RNA
    except ImportError as error:
        raise InputError("rna landscapes need ViennaRNA; `pip install ViennaRNA`") from error

    def energies(designs: list[str]) -> Tensor:
        """Of the duplexes with the target (N,), in kcal/mol, higher where they bind better."""
        return torch.tensor([-float(RNA.duplexfold(TARGET, design).energy) for design in designs])

    complement = TARGET.translate(PAIRED)[::-1]
    pieces = [complement[i : i + length].ljust(length, "A") for i in range(max(1, len(complement) - length + 1))]
    known = energies(pieces)

    def evaluate(letters: Tensor) -> Tensor:
        """Values (N,)."""
        return energies([text(design, BASES) for design in letters]) / known.max()

    def start(n: int, rng: StepNoise) -> Tensor:
        """Designs (n, L, F)."""
        return rng.integers(len(BASES), n * length).view(n, length, 1)

    best = codes([pieces[int(known.argmax())]], BASES)[0]
    return Landscape(f"rna_{length}", sequences(length, BASES), evaluate, start, best, False, True)
