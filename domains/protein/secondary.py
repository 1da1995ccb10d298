"""Helix, strand and coil from hydrogen bonds of the backbone (Kabsch and Sander 1983, Biopolymers 22, 2577).

Beside it, helices of either hand from the CA atoms alone.
"""

from __future__ import annotations

import numpy as np

from domains.protein import geometry, rules
from domains.protein.residues import CA, C, N, O

HELIX, STRAND, COIL = "H", "E", "C"
_N_H = 1.01
_COULOMB = 27.9
"""Charges of the C=O and N-H dipoles times 332, in kcal/mol times angstrom."""
_BOND = -0.5
"""A hydrogen bond has a lower energy than this, in kcal/mol."""
_NEAREST = 0.5
"""Shorter distances, in angstrom, count as this long."""

TURN = np.radians([30, 75])
"""Torsion of four CA atoms in a row of a right-handed helix, from and to; the other hand has the negative."""
RISE = 6.0
"""The first and the last of them are closer than this, in angstrom."""
_TURNS = 4
"""So many such fours in a row are a helix."""


def assign(backbone: np.ndarray, letters: str = "") -> str:
    """One of H (any helix), E (in a ladder or a bridge) and C a residue, of a backbone (n, 4, 3) in angstrom.

    The 8 states of DSSP as three, with its priorities: alpha helix, then strand, then the other helices. Proline
    gives no hydrogen; residues whose `letters` are not given are taken for others.
    """
    bonds = hydrogen_bonds(np.asarray(backbone, np.float64), letters)
    alpha = _helix(bonds, 4)
    others = _helix(bonds, 3, alpha) | _helix(bonds, 5, alpha)
    found = np.where(alpha, HELIX, np.where(_bridged(bonds), STRAND, np.where(others, HELIX, COIL)))
    return "".join(found.tolist())


def hands(atoms: np.ndarray) -> np.ndarray:
    """One number (k,) for each helix that the CA atoms of a chain (n, 3 or 4, 3) make: 1 right-handed, -1 left-handed.

    A helix is a run of residues with the turn and the rise of one, whatever their hydrogen bonds.
    """
    places = np.asarray(atoms[:, CA], np.float64)
    fours = [places[i : len(places) - 3 + i] for i in range(4)] if len(places) > 3 else [np.zeros((0, 3))] * 4
    turn = geometry.dihedral(*fours)
    close = np.linalg.norm(fours[3] - fours[0], axis=-1) < RISE
    found = []
    for hand in (1, -1):
        inside = close & (hand * turn > TURN[0]) & (hand * turn < TURN[1])
        found += [hand] * sum(end - start >= _TURNS for start, end in rules.runs(inside))
    return np.array(found, dtype=np.int64)


def hydrogen_bonds(backbone: np.ndarray, letters: str = "") -> np.ndarray:
    """Bool (n, n), true where the C=O of the first residue is bonded to the N-H of the second."""
    n = len(backbone)
    found = np.zeros((n, n), dtype=bool)
    if n < 2:
        return found
    nitrogen, carbon, oxygen = backbone[1:, N], backbone[:, C], backbone[:, O]
    hydrogen = nitrogen + _N_H * geometry.unit(carbon - oxygen)[:-1]
    inverse = 1 / _distances(oxygen, nitrogen) + 1 / _distances(carbon, hydrogen)
    inverse -= 1 / _distances(oxygen, hydrogen) + 1 / _distances(carbon, nitrogen)
    found[:, 1:] = _COULOMB * inverse < _BOND
    acceptor, donor = np.indices((n, n))
    found[(donor == acceptor) | (donor == acceptor + 1)] = False
    found[:, [i for i, letter in enumerate(letters) if letter == "P"]] = False
    return found


def _distances(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    found: np.ndarray = np.maximum(np.linalg.norm(a[:, None] - b[None], axis=-1), _NEAREST)
    return found


def _helix(bonds: np.ndarray, turn: int, taken: np.ndarray | None = None) -> np.ndarray:
    """Bool (n,): residues inside two turns in a row, i to i + `turn` and the next; none that touches a `taken` one."""
    n = len(bonds)
    inside = np.zeros(n, dtype=bool)
    turns = np.diagonal(bonds, turn)
    for start in np.flatnonzero(turns[:-1] & turns[1:]) + 1:
        if taken is None or not taken[start : start + turn].any():
            inside[start : start + turn] = True
    return inside


def _bridged(bonds: np.ndarray) -> np.ndarray:
    """Bool (n,): residues with a parallel or antiparallel bridge to another, three or more away."""
    n = len(bonds)
    padded = np.pad(bonds, 1)

    def co_nh(first: int, second: int) -> np.ndarray:
        """[i, j] -> whether the C=O of i + first is bonded to the N-H of j + second."""
        return padded[1 + first : 1 + first + n, 1 + second : 1 + second + n]

    parallel = co_nh(-1, 0) & co_nh(0, 1).T
    antiparallel = (co_nh(0, 0) & co_nh(0, 0).T) | (co_nh(-1, 1) & co_nh(-1, 1).T)
    apart = np.abs(np.subtract.outer(np.arange(n), np.arange(n))) >= 3
    bridges = (parallel | parallel.T | antiparallel) & apart
    found: np.ndarray = bridges.any(1)
    return found
