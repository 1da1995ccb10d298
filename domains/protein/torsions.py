"""Proteins as torsions: the three angles by which the backbone turns, with ideal bonds and angles between them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch

from data.space import Angle, Space, State
from domains.base import DesignError
from domains.protein import geometry, ramachandran, rules
from domains.protein.backbones import Backbones
from domains.protein.corpus import SHORTEST
from domains.protein.residues import CA, UNKNOWN, C, N, Protein


class Torsions(Backbones):
    """Backbones of at most `length` residues whose bonds are all ideal.

    A chain that is encoded and decoded again keeps its torsions, not its shape: bond angles that are a few degrees from
    ideal add up along it.
    """

    def __init__(self, length: int, shortest: int = SHORTEST) -> None:
        super().__init__(Space(length, {"torsion": Angle(3)}, shortest))

    def encode(self, designs: Sequence[Protein]) -> State:
        """phi, psi and omega of each residue in radians; omega is that of the bond to the next one.

        What a chain's ends lack, the first phi and the last psi and omega, is 0. Raises `DesignError` for a chain that
        is too long, and for one with a gap, over which there is no torsion.
        """
        state: State = {
            "torsion": torch.zeros(len(designs), self.length, 3),
            "mask": torch.zeros(len(designs), self.length, dtype=torch.bool),
        }
        for i, design in enumerate(designs):
            n, atoms = len(design), design.atoms().astype(np.float64)
            if n > self.length:
                raise DesignError(f"design {i} has {n} residues; this domain has at most {self.length}; cut it")
            gaps = np.flatnonzero(rules.ca_steps(atoms) > rules.BREAK)
            if len(gaps):
                number = design.numbers[gaps[0]]
                raise DesignError(f"design {i} has a gap behind residue {number}; use form=frames, or mend it")
            if n:
                state["torsion"][i, : n - 1, 2] = torch.from_numpy(_omega(atoms))
                state["torsion"][i, :n, :2] = torch.from_numpy(np.nan_to_num(ramachandran.torsions(atoms)))
            state["mask"][i, :n] = True
        return state

    def decode(self, state: State) -> list[Protein]:
        """Ideal chains with these torsions, O in the peptide plane, every letter X."""
        self.space.check(state)
        angles, mask = state["torsion"].detach().cpu().double().numpy(), state["mask"].cpu().numpy()
        first = np.argsort(~mask, axis=1, kind="stable")  # the sites in use
        chains = geometry.chains(np.take_along_axis(angles, first[..., None], axis=1))
        lengths = mask.sum(1).tolist()
        return [_design(chain[:length]) for chain, length in zip(chains, lengths, strict=True)]


def _omega(atoms: np.ndarray) -> np.ndarray:
    """(n - 1,) how each peptide bond is turned, pi where it is trans."""
    here, after = atoms[:-1], atoms[1:]
    return geometry.dihedral(here[:, CA], here[:, C], after[:, N], after[:, CA])


def _design(atoms: np.ndarray) -> Protein:
    centred = atoms - atoms[:, CA].mean(0) if len(atoms) else atoms
    return Protein(UNKNOWN * len(atoms), geometry.with_oxygens(centred))
