"""Proteins as frames: a place and a rotation for each residue."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import torch

from data.space import Factor, Real, Rotation, Space, State
from domains.base import DesignError
from domains.protein import geometry, motif, relaxation
from domains.protein.backbones import Backbones
from domains.protein.corpus import SHORTEST
from domains.protein.residues import CA, UNKNOWN, Protein

_FARTHEST = 900.0
"""No CA is decoded further out than this on any axis, in angstrom, so that every design fits into a PDB file."""
_NOT_RELAXED = ("length", "ramachandran", "handedness")
"""Rules that bonds and clashes have no part in."""
_BODY = tuple((float(x), float(y), float(z)) for x, y, z in geometry.IDEAL.round(4))


class Frames(Backbones):
    """Backbones of at most `length` residues; bonds within a residue are ideal, those between residues are not."""

    def __init__(self, length: int, shortest: int = SHORTEST) -> None:
        factors: dict[str, Factor] = {"position": Real(3, scale=10.0, centred=True), "rotation": Rotation(_BODY)}
        super().__init__(Space(length, factors, shortest))

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

    def repaired(self, design: Protein, held: Sequence[int]) -> Protein:
        """Freed of clashes, strained bonds and angles, see `relaxation.py`, if that leaves fewer broken rules.

        The residues in `held` keep their place, all keep letters and numbers.
        """
        broken = self.violations(design)
        if all(violation.rule in _NOT_RELAXED for violation in broken):
            return design
        atoms = relaxation.relaxed(design.atoms(), np.isin(np.arange(len(design)), held))
        made = replace(design, backbone=atoms)
        return made if len(self.violations(made)) < len(broken) else design

    def locked(self, file: str = "", residues: str = "", at: Sequence[int] = ()) -> State:
        """A motif: the `residues` of a `file`, as A10-A24,A40-A48, from the sites `at` on; see `motif.motif`."""
        return motif.motif(file, residues, at, self.length).state(self.length)


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
