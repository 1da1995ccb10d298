"""What all ways to see a protein's backbone have in common: corpus, rules, metrics, files, sequences, pictures."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path

import numpy as np

from data.noise import DesignNoise
from data.space import Space
from domains.base import Violation
from domains.protein import (
    baselines,
    cartoon,
    corpus,
    metrics,
    rules,
    sequence_design,
    sequence_files,
    structures,
    torsion_plot,
)
from domains.protein.residues import UNKNOWN, Protein


class Backbones:
    """Backbones of at most `length` residues; what a state lacks, the letters, is X."""

    metric_names = metrics.BACKBONE_NAMES
    sequence_suffix = sequence_files.SUFFIX

    def __init__(self, space: Space) -> None:
        self.space, self.length = space, space.length
        self.suffixes: tuple[str, ...] = structures.SUFFIXES

    def corpus(self, split: str) -> list[Protein]:
        """Chains of `shortest` to `length` residues of the split, `train` or `val`, whose letters are known."""
        return corpus.shipped(split).proteins(self.length, structure=True, shortest=self.space.shortest)

    def reference(self, path: Path) -> list[Protein]:
        """The chains of `shortest` to `length` residues in a file of the corpus's format."""
        return corpus.foreign(path, self.length, structure=True, shortest=self.space.shortest)

    def violations(self, design: Protein) -> list[Violation]:
        """Strained bonds, angles and peptides, breaks, clashes, Ramachandran outliers, left-handed helices, length."""
        return rules.backbone_violations(design, self.length)

    def metrics(self, designs: Sequence[Protein], reference: Sequence[Protein]) -> dict[str, float]:
        """Geometry of the designs, and distances of size and secondary structure to `reference`; see `metrics.py`."""
        return metrics.of_backbones(designs, reference)

    def baselines(self, train: Sequence[Protein], n: int, seed: int) -> Mapping[str, list[Protein]]:
        """`n` ideal chains each with uniform torsions, and with those of real residues, each drawn on its own.

        And `n` real chains with noise: what is no better than they are has no sound geometry.
        """
        rng = np.random.default_rng(seed)
        lengths = baselines.drawn_lengths([len(design) for design in train], n, rng)
        chains = {
            "random_coil": baselines.random_coil(lengths, np.random.default_rng(seed)),
            "independent": baselines.independent_torsions(lengths, np.random.default_rng(seed)),
            "native_noised": baselines.native_noised([x.atoms() for x in train], n, np.random.default_rng(seed)),
        }
        return {name: [Protein(UNKNOWN * len(chain), chain) for chain in some] for name, some in chains.items()}

    def read(self, path: Path) -> Protein:
        """The protein chain in a PDB or mmCIF file of one; see `structures.py` for what of it is kept."""
        return structures.read(path)

    def write(self, design: Protein, path: Path, provenance: Mapping[str, str]) -> None:
        """Write PDB (.pdb) or mmCIF (.cif); residues of unknown letter are UNK."""
        structures.write(design, path, provenance)

    def provenance(self, path: Path) -> Mapping[str, str]:
        """What `write` was told about the design in a file; a file of its sequences will do as well."""
        if path.suffix.lower() == self.sequence_suffix:
            return sequence_files.provenance(path)
        return structures.provenance(path)

    def sequenced(
        self, designs: Sequence[Protein], n: int, rng: DesignNoise
    ) -> list[tuple[Protein, Callable[[Path, Mapping[str, str]], None]]]:
        """Each backbone with the letters of the likeliest of `n` sequences, and what writes all as FASTA (.fasta)."""
        found = sequence_design.designed(designs, n, rng)
        return [(sequence_design.best(some).protein, partial(sequence_files.write, some)) for some in found]

    def draw(self, design: Protein) -> bytes:
        """A cartoon of the backbone as SVG."""
        return cartoon.draw(design)

    def overview(self, designs: Sequence[Protein]) -> Mapping[str, bytes]:
        """The torsions of all designs together."""
        return {"Ramachandran plot": torsion_plot.plot(designs)}
