"""Proteins as sequences: a letter for each residue, of varying length."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import torch

from data.space import Categorical, Space, State
from domains.base import DesignError, Violation
from domains.protein import baselines, corpus, fasta, letter_block, metrics, residues, rules
from domains.protein.corpus import SHORTEST
from domains.protein.residues import LETTERS, Protein


class Sequences:
    """Sequences of at most `length` of the 20 letters, without structure."""

    def __init__(self, length: int, shortest: int = SHORTEST) -> None:
        self.length = length
        self.space = Space(length, {"residue": Categorical(len(LETTERS))}, shortest)
        self.suffixes: tuple[str, ...] = (".fasta",)
        self.metric_names = metrics.SEQUENCE_NAMES

    def corpus(self, split: str) -> list[Protein]:
        """Sequences of `shortest` to `length` letters of the split, `train` or `val`."""
        return corpus.shipped(split).proteins(self.length, structure=False, shortest=self.space.shortest)

    def reference(self, path: Path) -> list[Protein]:
        """The sequences of `shortest` to `length` letters in a file of the corpus's format."""
        return corpus.foreign(path, self.length, structure=False, shortest=self.space.shortest)

    def encode(self, designs: Sequence[Protein]) -> State:
        """One-hot letters (n, length, 20), the first sites in use; `DesignError` on other letters or a longer one."""
        letters = torch.zeros(len(designs), self.length, len(LETTERS))
        mask = torch.zeros(len(designs), self.length, dtype=torch.bool)
        for i, design in enumerate(designs):
            found = self._codes(design, f"design {i}")
            letters[i, torch.arange(len(found)), torch.from_numpy(found.astype(np.int64))] = 1
            mask[i, : len(found)] = True
        return {"residue": letters, "mask": mask}

    def decode(self, state: State) -> list[Protein]:
        """The likeliest letter of each site in use."""
        self.space.check(state)
        likeliest = state["residue"].argmax(-1).cpu().numpy()
        mask = state["mask"].cpu().numpy()
        return [Protein(residues.text(row[used])) for row, used in zip(likeliest, mask, strict=True)]

    def violations(self, design: Protein) -> list[Violation]:
        """Letters outside the 20; no letters, or more than `length`."""
        return rules.sequence_violations(design, self.length)

    def metrics(self, designs: Sequence[Protein], reference: Sequence[Protein]) -> dict[str, float]:
        """Distances of the composition to `reference`, and copies of the corpus's train split; see `metrics.py`."""
        return metrics.of_sequences(designs, reference, self.corpus("train"))

    def baselines(self, train: Sequence[Protein], n: int, seed: int) -> Mapping[str, list[Protein]]:
        """`n` sequences each of independent letters and of a first-order Markov chain, with lengths as in `train`."""
        known = [self._codes(design, f"design {i} of train") for i, design in enumerate(train)]
        models = {"independent": baselines.independent_letters, "markov1": baselines.markov_letters}
        return {
            name: [Protein(residues.text(row)) for row in make(known, n, np.random.default_rng(seed))]
            for name, make in models.items()
        }

    def read(self, path: Path) -> Protein:
        """The sequence in a FASTA file of one record."""
        return fasta.read(path)

    def write(self, design: Protein, path: Path, provenance: Mapping[str, str]) -> None:
        """Write FASTA (.fasta .fa)."""
        fasta.write(design, path, provenance)

    def provenance(self, path: Path) -> Mapping[str, str]:
        """What `write` was told about the design in a file."""
        return fasta.provenance(path)

    def draw(self, design: Protein) -> bytes:
        """Rows of letters as SVG, coloured by the kind of side chain."""
        return letter_block.draw(design)

    def _codes(self, design: Protein, what: str) -> np.ndarray:
        found = residues.codes(design.letters)
        if len(found) > self.length:
            raise DesignError(f"{what} has {len(found)} residues; this domain has at most {self.length}; cut it")
        unknown = np.flatnonzero(found == residues.OTHER)
        if len(unknown):
            site = int(unknown[0])
            raise DesignError(
                f"{what} has {design.letters[site]!r} at residue {design.numbers[site]}; "
                f"only {LETTERS} can be encoded; choose one of them"
            )
        return found
