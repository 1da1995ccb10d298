"""Backbone geometry: frames of residues, ideal atoms, torsions. Arrays are float64, lengths angstrom, angles radians.

Ideal lengths and angles are the means of the corpus's train split; they agree with those of small molecules
(Engh and Huber 1991, Acta Cryst. A47, 392) within 0.01 A and 0.6 degrees. The corpus has no O: its C-O length and
angle are Engh and Huber's.
"""

from __future__ import annotations

import math

import numpy as np

from domains.protein.residues import CA, C, N

N_CA, CA_C, C_N, C_O = 1.460, 1.525, 1.330, 1.231
N_CA_C, CA_C_N, C_N_CA, CA_C_O = np.radians([111.1, 116.6, 121.5, 120.1]).tolist()
_LAST_PSI = math.radians(140)
_TINY = 1e-9
IDEAL = np.array([[N_CA * math.cos(N_CA_C), N_CA * math.sin(N_CA_C), 0], [0, 0, 0], [CA_C, 0, 0]])
"""N, CA, C of a residue in its own frame."""


def frames(backbone: np.ndarray) -> np.ndarray:
    """Rotations (n, 3, 3) of residues (n, 3 or 4, 3), whose columns are the axes of the residue's own frame.

    The first axis goes from CA to C, the second lies in the plane of N, CA, C on the side of N, the third is their
    cross product: Gram-Schmidt as in AlphaFold 2 (Jumper et al. 2021, supplement, algorithm 21).
    """
    found = np.asarray(backbone, dtype=np.float64)
    first = unit(found[:, C] - found[:, CA])
    towards_n = found[:, N] - found[:, CA]
    second = unit(towards_n - (towards_n * first).sum(-1, keepdims=True) * first)
    return nearest_rotations(np.stack([first, second, np.cross(first, second)], axis=-1))


def nearest_rotations(matrices: np.ndarray) -> np.ndarray:
    """The rotations (n, 3, 3) closest to any matrices, by singular values (Kabsch 1976, Acta Cryst. A32, 922)."""
    left, _, right = np.linalg.svd(matrices)
    left[..., -1] *= np.linalg.det(left @ right)[..., None]
    rotations: np.ndarray = left @ right
    return rotations


def ideal_backbone(positions: np.ndarray, rotations: np.ndarray) -> np.ndarray:
    """Backbone (n, 4, 3) of ideal residues with CA at `positions` (n, 3) and frames `rotations` (n, 3, 3)."""
    return with_oxygens(positions[:, None] + IDEAL @ rotations.transpose(0, 2, 1))


def with_oxygens(atoms: np.ndarray, lengths: np.ndarray | None = None) -> np.ndarray:
    """Backbone (n, 4, 3) of N, CA, C (n, 3, 3), with O in the plane of CA, C and the next N, on the other side of it.

    `lengths` are those of the chains, where it is not one. The last residue of each has no next N: one is assumed
    with the psi of the residue before, or an extended one.
    """
    if not len(atoms):
        return np.zeros((0, 4, 3))
    lengths = np.array([len(atoms)]) if lengths is None else lengths
    last = lengths.cumsum() - 1
    before = atoms[last - np.minimum(lengths - 1, 1)]
    psi = dihedral(before[:, N], before[:, CA], before[:, C], atoms[last, N])
    following = np.roll(atoms[:, N], -1, axis=0)
    following[last] = place(atoms[last], C_N, CA_C_N, np.where(lengths > 1, psi, _LAST_PSI))
    oxygens = place(np.stack([following, atoms[:, CA], atoms[:, C]], axis=1), C_O, CA_C_O, math.pi)
    return np.concatenate([atoms, oxygens[:, None]], axis=1)


def chains(torsions: np.ndarray) -> np.ndarray:
    """Atoms N, CA, C (b, n, 3, 3) of ideal chains with phi, psi and omega (b, n, 3), omega that of the bond behind.

    Atom by atom from the three before (Parsons et al. 2005, J. Comput. Chem. 26, 1063).
    """
    batch, n, _ = torsions.shape
    first = np.broadcast_to(IDEAL, (batch, 3, 3))
    atoms = [first[:, i] for i in range(3)]
    for site in range(1, n):
        (_, psi, omega), phi = torsions[:, site - 1].T, torsions[:, site, 0]
        for length, angle, torsion in ((C_N, CA_C_N, psi), (N_CA, C_N_CA, omega), (CA_C, N_CA_C, phi)):
            atoms.append(place(np.stack(atoms[-3:], axis=1), length, angle, torsion))
    return np.stack(atoms, axis=1).reshape(batch, n, 3, 3)


def place(before: np.ndarray, length: float, angle: float, torsion: np.ndarray | float) -> np.ndarray:
    """The point d (..., 3) after a, b, c in `before` (..., 3, 3): at `length` from c, angle b-c-d, torsion a-b-c-d.

    In any direction across c-b where a, b, c are on a line.
    """
    a, b, c = (before[..., i, :] for i in range(3))
    along = unit(c - b)
    across = np.cross(b - a, along)
    flat = (across**2).sum(-1, keepdims=True) < _TINY
    across = unit(np.where(flat, np.cross(np.eye(3)[np.abs(along).argmin(-1)], along), across))
    torsion = np.asarray(torsion)[..., None]
    turned = np.cos(torsion) * np.cross(across, along) + np.sin(torsion) * across
    placed: np.ndarray = c + length * (math.sin(angle) * turned - math.cos(angle) * along)
    return placed


def dihedral(a: np.ndarray, b: np.ndarray, c: np.ndarray, d: np.ndarray) -> np.ndarray:
    """Torsion angles (...,) of points (..., 3), positive clockwise when seen from b to c (IUPAC)."""
    along = unit(c - b)
    first, second = np.cross(b - a, along), np.cross(c - b, d - c)
    found: np.ndarray = np.arctan2((np.cross(first, second) * along).sum(-1), (first * second).sum(-1))
    return found


def unit(vectors: np.ndarray) -> np.ndarray:
    """Vectors (..., 3) of length 1; zero stays zero."""
    found: np.ndarray = vectors / np.maximum(np.linalg.norm(vectors, axis=-1, keepdims=True), _TINY)
    return found
