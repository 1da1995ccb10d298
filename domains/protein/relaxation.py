"""Backbones freed of clashes and strained bonds, moved no further than that takes.

Position-based dynamics by shape matching (Müller et al. 2005, ACM Trans. Graph. 24, 471): in each sweep every residue
and every peptide plane asks for the nearest place of its ideal shape, every few residues in a row for that of the shape
that they came with, and atoms that are too close for more distance; each atom goes to the mean of what is asked of it.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from domains.protein import geometry
from domains.protein.residues import CA

SWEEPS = 200
STRETCH = 4
"""So many residues in a row ask for their own shape, which counts as much as an ideal one at first, nothing at last."""
PUSH = 3.0
"""How much a distance counts that is too short."""
CA_APART, APART = 3.9, 3.1
"""Two CA atoms, and any other two of N, CA and C, are further apart, in angstrom, unless `SEPARATION` is less."""
SEPARATION = 3
"""Residues from one atom's to the other's."""
_LOOK_EVERY, _MARGIN = 10, 1.0
"""Sweeps between two looks for atoms that may come too close, and how far away they are at most, in angstrom."""


@dataclass(frozen=True)
class Shapes:
    """Groups of atoms (g, k) that ask for shapes (g or 1, k, 3), each with its mean at zero."""

    atoms: np.ndarray
    shapes: np.ndarray

    def asked(self, places: np.ndarray) -> np.ndarray:
        """How far each atom of each group is to move (g, k, 3)."""
        there = places[self.atoms]
        centre = there.mean(1, keepdims=True)
        rotations = geometry.nearest_rotations((there - centre).transpose(0, 2, 1) @ self.shapes)
        moves: np.ndarray = centre + self.shapes @ rotations.transpose(0, 2, 1) - there
        return moves


def relaxed(backbone: np.ndarray, held: np.ndarray) -> np.ndarray:
    """The same backbone (n, 3 or 4, 3) with few clashes, ideal residues and nearly ideal peptides, and new O (n, 4, 3).

    Residues in `held` (n,) keep their place. A peptide that is cis stays cis. The chain must not have gaps.
    """
    n = len(backbone)
    places = np.asarray(backbone[:, :3], np.float64).reshape(-1, 3)
    ideal, own = [_residues(n), *_peptides(places)], _stretches(places)
    loose = ~np.repeat(held, 3)[:, None]
    pairs = _close(places)
    for sweep in range(SWEEPS):
        if sweep % _LOOK_EVERY == 0:
            pairs = _close(places)
        sums, counts = np.zeros_like(places), np.zeros((len(places), 1))
        for shapes, weight in [*((some, 1.0) for some in ideal), (own, 1 - sweep / SWEEPS)]:
            np.add.at(sums, shapes.atoms, weight * shapes.asked(places))
            np.add.at(counts, shapes.atoms, weight)
        _push(places, pairs, sums, counts)
        places = places + np.where(loose, sums / np.maximum(counts, 1), 0)
    atoms = places.reshape(n, 3, 3)
    made = geometry.ideal_backbone(atoms[:, CA], geometry.frames(atoms))[:, :3]
    return geometry.with_oxygens(np.where(held[:, None, None], atoms, made))


def _residues(n: int) -> Shapes:
    return Shapes(np.arange(3 * n).reshape(n, 3), _centred(geometry.IDEAL[None]))


def _peptides(places: np.ndarray) -> list[Shapes]:
    """CA, C, N, CA of the peptides that are trans, and of those that are cis."""
    atoms = 3 * np.arange(len(places) // 3 - 1)[:, None] + [1, 2, 3, 4]
    trans = np.abs(geometry.dihedral(*places[atoms].swapaxes(0, 1))) > math.pi / 2
    return [Shapes(atoms[trans], _peptide(math.pi)), Shapes(atoms[~trans], _peptide(0.0))]


def _peptide(omega: float) -> np.ndarray:
    chain = geometry.chains(np.array([[[0, 0, omega], [0, 0, 0]]]))
    return _centred(chain.reshape(1, 6, 3)[:, 1:5])


def _stretches(places: np.ndarray) -> Shapes:
    """The runs of `STRETCH` residues, or the whole chain where it is shorter."""
    k = min(3 * STRETCH, len(places))
    atoms = 3 * np.arange((len(places) - k) // 3 + 1)[:, None] + np.arange(k)
    return Shapes(atoms, _centred(places[atoms]))


def _close(places: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Pairs of atoms (m,), (m,) that are, or soon may be, too close, and what their distances should be (m,)."""
    index = np.arange(len(places))
    residue, ca = index // 3, index % 3 == CA
    least = np.where(ca[:, None] & ca, CA_APART, APART)
    apart = np.linalg.norm(places[:, None] - places, axis=-1)
    first, second = np.nonzero((apart < least + _MARGIN) & (residue - residue[:, None] >= SEPARATION))
    return first, second, least[first, second]


def _push(
    places: np.ndarray, pairs: tuple[np.ndarray, np.ndarray, np.ndarray], sums: np.ndarray, counts: np.ndarray
) -> None:
    """Add what pairs that are too close ask for: each atom goes half of what is missing."""
    first, second, least = pairs
    apart = places[first] - places[second]
    missing = np.maximum(least - np.linalg.norm(apart, axis=-1), 0)[:, None]
    half = PUSH * missing / 2 * geometry.unit(apart)
    for atoms, way in ((first, half), (second, -half)):
        np.add.at(sums, atoms, way)
        np.add.at(counts, atoms, PUSH * (missing > 0))


def _centred(shapes: np.ndarray) -> np.ndarray:
    moved: np.ndarray = shapes - shapes.mean(-2, keepdims=True)
    return moved
