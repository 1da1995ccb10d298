"""Proteins as frames: a place and a rotation for each residue."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path

import numpy as np
import torch

from data.noise import DesignNoise
from data.space import Real, Rotation, Space, State
from domains.base import DesignError, Violation
from domains.protein import (
    baselines,
    cartoon,
    corpus,
    geometry,
    metrics,
    motif,
    rules,
    sequence_design,
    sequence_files,
    structures,
    torsion_plot,
)
from domains.protein.residues import CA, UNKNOWN, Protein

_FARTHEST = 900.0
"""No CA is decoded further out than this on any axis, in angstrom, so that every design fits into a PDB file."""


class Frames:
    """Backbones of at most `length` residues; what a state lacks, the letters, is X."""

    def __init__(self, length: int) -> None:
        self.length = length
        self.space = Space(length, {"position": Real(3, scale=10.0, centred=True), "rotation": Rotation()})
        self.suffixes: tuple[str, ...] = structures.SUFFIXES
        self.metric_names = metrics.BACKBONE_NAMES
        self.sequence_suffix = sequence_files.SUFFIX

    def corpus(self, split: str) -> list[Protein]:
        """Chains of 40 to `length` residues of the split, `train` or `val`, whose letters are known."""
        return corpus.shipped(split).proteins(self.length, structure=True)

    def reference(self, path: Path) -> list[Protein]:
        """The chains of at most `length` residues in a file of the corpus's format."""
        return corpus.foreign(path, self.length, structure=True)

    def encode(self, designs: Sequence[Protein]) -> State:
        """Position of CA in angstrom, with mean zero over the residues, and rotation of the residue's frame.

        The rotation is a row-major matrix; its columns are the frame's axes as `geometry.frames` has them.
        """
        state: State = {
            "position": torch.zeros(len(designs), self.length, 3),
            "rotation": torch.eye(3).flatten().repeat(len(designs), self.length, 1),
            "mask": torch.zeros(len(designs), self.length, dtype=torch.bool),
        }
        for i, design in enumerate(designs):
            n, atoms = len(design), design.atoms().astype(np.float64)
            if n > self.length:
                raise DesignError(f"design {i} has {n} residues; this domain has at most {self.length}; cut it")
            if n:
                state["position"][i, :n] = torch.from_numpy(atoms[:, CA] - atoms[:, CA].mean(0))
                state["rotation"][i, :n] = torch.from_numpy(geometry.frames(atoms).reshape(n, 9))
                state["mask"][i, :n] = True
        return state

    def decode(self, state: State) -> list[Protein]:
        """Ideal residues at the frames, O in the peptide plane, every letter X; the nearest rotation of any matrix."""
        self.space.check(state)
        position, rotation, mask = (state[key].detach().cpu().numpy() for key in ("position", "rotation", "mask"))
        return [_design(p[used], r[used]) for p, r, used in zip(position, rotation, mask, strict=True)]

    def locked(self, file: str = "", residues: str = "", at: Sequence[int] = ()) -> State:
        """A motif: the `residues` of a `file`, as A10-A24,A40-A48, from the sites `at` on; see `motif.motif`."""
        return motif.motif(file, residues, at, self.length).state(self.length)

    def violations(self, design: Protein) -> list[Violation]:
        """Strained bonds, angles and peptides, breaks, clashes, Ramachandran outliers, left-handed helices, length."""
        return rules.backbone_violations(design, self.length)

    def metrics(self, designs: Sequence[Protein], reference: Sequence[Protein]) -> dict[str, float]:
        """Geometry of the designs, and distances of size and secondary structure to `reference`; see `metrics.py`."""
        return metrics.of_backbones(designs, reference)

    def baselines(self, train: Sequence[Protein], n: int, seed: int) -> Mapping[str, list[Protein]]:
        """`n` ideal chains each with uniform torsions, and with those of real residues, each drawn on its own."""
        rng = np.random.default_rng(seed)
        lengths = baselines.drawn_lengths([len(design) for design in train], n, rng)
        models = {"random_coil": baselines.random_coil, "independent": baselines.independent_torsions}
        return {
            name: [Protein(UNKNOWN * len(chain), chain) for chain in make(lengths, np.random.default_rng(seed))]
            for name, make in models.items()
        }

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


def ca_trace(designs: Sequence[Protein]) -> State:
    """CA `position` (n, longest, 3) in angstrom and `mask` of designs of any length, the first sites in use."""
    longest = max(map(len, designs), default=0)
    position = torch.zeros(len(designs), longest, 3)
    for row, design in zip(position, designs, strict=True):
        row[: len(design)] = torch.from_numpy(design.atoms()[:, CA].copy())
    lengths = torch.tensor([len(design) for design in designs])
    return {"position": position, "mask": torch.arange(longest) < lengths[:, None]}


def _design(position: np.ndarray, rotation: np.ndarray) -> Protein:
    where = np.clip(position.astype(np.float64), -_FARTHEST, _FARTHEST)
    rotations = geometry.nearest_rotations(rotation.astype(np.float64).reshape(-1, 3, 3))
    return Protein(UNKNOWN * len(where), geometry.ideal_backbone(where, rotations))
