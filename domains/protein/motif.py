"""Residues and atoms picked from a file of any number of chains: motifs to hold or to rebuild, targets to bind.

Residues are named as their authors did, A10 or A:10, with an insertion code as in A:52B; the colon is needed where the
chain is not named by letters alone. A stretch is A10-A24 or A10-24.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch

from data.space import State
from domains.base import DesignError, placed
from domains.protein import geometry, structures
from domains.protein.residues import ATOMS, CA, C, N

Key = tuple[str, str]
"""Chain and the author's number."""
Residues = Mapping[Key, Mapping[str, np.ndarray]]
"""Residue -> name of each heavy atom -> place (3,) in angstrom, in the file's order."""
MOST_SEGMENTS = 100
_NAMED = r"(?:([A-Za-z0-9]{1,4}):|([A-Za-z]{1,4}))(-?\d{1,6}[A-Za-z]?)"
_STRETCH = re.compile(rf"{_NAMED}(?:-(?:{_NAMED}|(\d{{1,6}}[A-Za-z]?)))?")
_PEPTIDE = 2.0
"""C and the next N of a stretch without gaps are closer than this, in angstrom."""


@dataclass(frozen=True, eq=False)
class Motif:
    """Residues that a design shall have at given sites, up to one rigid motion of them all."""

    backbone: np.ndarray
    """N, CA, C (n, 3, 3) in angstrom, float64."""
    sites: np.ndarray
    """(n,) 0-based, rising."""

    def state(self, length: int) -> State:
        """One design as `Frames` encodes it, of which the motif's sites alone are in use."""
        places = self.backbone[:, CA] - self.backbone[:, CA].mean(0)
        state: State = {
            "position": torch.zeros(1, length, 3),
            "rotation": torch.eye(3).flatten().repeat(1, length, 1),
            "mask": torch.zeros(1, length, dtype=torch.bool),
        }
        state["position"][0, self.sites] = torch.from_numpy(places).float()
        state["rotation"][0, self.sites] = torch.from_numpy(geometry.frames(self.backbone).reshape(-1, 9)).float()
        state["mask"][0, self.sites] = True
        return state


def motif(file: str, residues: str, at: Sequence[int], length: int) -> Motif:
    """The stretches of `residues`, such as A10-A24,A40-A48, at sites of a chain of at most `length` residues.

    `at` has the site of each one's first residue, from 1; without it they are spread evenly over `length`. Raises
    `DesignError` for a file, a residue or a site that does not do.
    """
    if not file or not residues:
        raise DesignError(f"file={file!r:.100} residues={residues!r:.100}; give both, as motif.pdb and A10-A24,A40-A48")
    path = Path(file)
    there = read(path)
    segments = [_backbone(there, first, last, path) for first, last in stretches(residues)]
    sites = [site for piece in placed([len(segment) for segment in segments], at, length) for site in piece]
    return Motif(np.concatenate(segments), np.array(sites))


def stretches(text: str) -> list[tuple[Key, Key]]:
    """First and last residue of each stretch in a text such as `A10-A24,A40`; commas, slashes or spaces part them."""
    words = re.split(r"[,/\s]+", text.strip(",/ \n\t"))
    if len(words) > MOST_SEGMENTS:
        raise DesignError(f"{len(words)} stretches of residues; at most {MOST_SEGMENTS} are read; give fewer")
    return [_stretch(word) for word in words]


def read(path: Path) -> Residues:
    """All heavy atoms of the first model of a PDB or mmCIF file, but for water; `DesignError` for any other file.

    Of alternate locations the one with the highest occupancy counts. A blank chain id is read as A.
    """
    found: dict[Key, dict[str, np.ndarray]] = {}
    for chain in structures.model(path):
        for residue in chain:
            atoms = {atom.id: atom.coord.astype(np.float64) for atom in residue if atom.element not in ("H", "D")}
            if residue.id[0] != "W" and atoms:
                found.setdefault((chain.id.strip() or "A", f"{residue.id[1]}{residue.id[2].strip()}"), atoms)
    if not found:
        raise DesignError(f"{path} has no atoms; give a file of one structure")
    if not all(np.isfinite(place).all() for atoms in found.values() for place in atoms.values()):
        raise DesignError(f"{path} has coordinates that are not finite; export it again")
    return found


def between(there: Residues, first: Key, last: Key, path: Path) -> list[Key]:
    """The residues of a stretch; `DesignError` where an end of it is not there or they are not in this order."""
    chain = [key for key in there if key[0] == first[0]]
    for key in (first, last):
        if key not in there:
            known = ", ".join(dict.fromkeys(name for name, _ in there))
            numbers = f"; chain {chain[0][0]} has {chain[0][1]} to {chain[-1][1]}" if chain else ""
            raise DesignError(f"{path} has no residue {name(key)}; its chains are {known:.60}{numbers}; name others")
    start, end = chain.index(first), chain.index(last) if last in chain else -1
    if end < start:
        raise DesignError(f"{name(first)}-{name(last)} runs backwards, or from chain to chain; give first and last")
    return chain[start : end + 1]


def name(key: Key) -> str:
    """A residue as people write it."""
    return ":".join(key)


def _backbone(there: Residues, first: Key, last: Key, path: Path) -> np.ndarray:
    """N, CA, C (n, 3, 3) of a stretch without gaps."""
    keys = between(there, first, last, path)
    for key in keys:
        missing = [atom for atom in ATOMS[:3] if atom not in there[key]]
        if missing:
            raise DesignError(f"{path}: residue {name(key)} lacks {', '.join(missing)}; choose residues that have them")
    atoms = np.array([[there[key][atom] for atom in ATOMS[:3]] for key in keys])
    apart = np.linalg.norm(atoms[1:, N] - atoms[:-1, C], axis=-1)
    if (apart >= _PEPTIDE).any():
        gap = int((apart >= _PEPTIDE).argmax())
        raise DesignError(
            f"{path}: {name(keys[gap])} and {name(keys[gap + 1])} are not bonded ({apart[gap]:.1f} angstrom); "
            f"a stretch has no gaps; give two of them"
        )
    return atoms


def _stretch(word: str) -> tuple[Key, Key]:
    match = _STRETCH.fullmatch(word)
    if not match:
        raise DesignError(f"{word!r:.40} names no residues; give them as A10-A24 or A:10, with commas between")
    chain, number = match[1] or match[2], match[3]
    last = (match[4] or match[5], match[6]) if match[6] else (chain, match[7] or number)
    return (chain, number), last
