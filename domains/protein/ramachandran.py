"""Which torsions phi and psi real residues have (Ramachandran et al. 1963, J. Mol. Biol. 7, 95)."""

from __future__ import annotations

from functools import cache

import numpy as np

from domains.protein import corpus, geometry, residues
from domains.protein.residues import CA, C, N

KINDS = ("any", "general", "glycine", "proline")
"""Kinds of residues by their letter; `any` where it is unknown."""
ANY, GENERAL, GLYCINE, PROLINE = range(4)
ALLOWED = 0.998
"""Share of the train split's residues of a kind that lie in the region that counts as allowed."""
BINS = 72
_SMOOTH = 1.5
"""Standard deviation, in bins, of the Gaussian that the counts are smoothed with."""


def torsions(atoms: np.ndarray) -> np.ndarray:
    """phi and psi (n, 2) in radians of a chain (n, 3 or 4, 3); nan for the first phi and the last psi."""
    found = np.full((len(atoms), 2), np.nan)
    here, after = np.asarray(atoms[:-1], np.float64), np.asarray(atoms[1:], np.float64)
    found[1:, 0] = geometry.dihedral(here[:, C], after[:, N], after[:, CA], after[:, C])
    found[:-1, 1] = geometry.dihedral(here[:, N], here[:, CA], here[:, C], after[:, N])
    return found


def kinds(codes: np.ndarray) -> np.ndarray:
    """Index (n,) into `KINDS` of letter codes."""
    of_code = np.full(residues.OTHER + 1, GENERAL)
    of_code[residues.OTHER] = ANY
    of_code[residues.LETTERS.index("G")], of_code[residues.LETTERS.index("P")] = GLYCINE, PROLINE
    found: np.ndarray = of_code[codes]
    return found


def outliers(angles: np.ndarray, codes: np.ndarray) -> np.ndarray:
    """Bool (n,), true where phi and psi (n, 2) lie outside the allowed region of the residue's kind; never at nan."""
    known = ~np.isnan(angles).any(-1)
    outside = np.zeros(len(angles), dtype=bool)
    phi, psi = cells(angles[known]).T
    outside[known] = ~region()[kinds(codes[known]), phi, psi]
    return outside


def cells(angles: np.ndarray) -> np.ndarray:
    """Bins (n, 2), each below `BINS`, of torsions (n, 2); bin 0 begins at -180 degrees."""
    found: np.ndarray = np.floor((angles + np.pi) / (2 * np.pi) * BINS).astype(np.int64) % BINS
    return found


@cache
def observed() -> tuple[np.ndarray, np.ndarray]:
    """phi and psi (n, 2) of every residue of the train split that has both, and their letter codes (n,)."""
    train = corpus.shipped("train")
    angles = torsions(train.atoms)
    ends = train.lengths.cumsum()
    inner = np.ones(len(angles), dtype=bool)
    inner[ends - 1] = inner[ends - train.lengths] = False
    return angles[inner], train.codes[inner]


@cache
def density() -> np.ndarray:
    """Smoothed shares (kinds, phi, psi) of the train split's residues in each bin; those of a kind add up to 1."""
    angles, codes = observed()
    own = kinds(codes)
    counts = np.stack([_counts(angles[(own == kind) | (kind == ANY)]) for kind in range(len(KINDS))])
    away = np.minimum(np.arange(BINS), BINS - np.arange(BINS))
    kernel = np.exp(-(away**2) / (2 * _SMOOTH**2))
    both = np.fft.fft2(np.outer(kernel, kernel) / kernel.sum() ** 2)
    smooth = np.fft.ifft2(np.fft.fft2(counts) * both).real.clip(min=0)
    shares: np.ndarray = smooth / smooth.sum((1, 2), keepdims=True)
    return shares


@cache
def region(share: float = ALLOWED) -> np.ndarray:
    """Bool (kinds, phi, psi): the densest bins that together hold this share of the train split's residues."""
    angles, codes = observed()
    phi, psi = cells(angles).T
    own = kinds(codes)
    found = []
    for kind, shares in enumerate(density()):
        mine = (own == kind) | (kind == ANY)
        found.append(shares >= np.quantile(shares[phi[mine], psi[mine]], 1 - share))
    return np.stack(found)


def _counts(angles: np.ndarray) -> np.ndarray:
    phi, psi = cells(angles).T
    return np.bincount(phi * BINS + psi, minlength=BINS**2).reshape(BINS, BINS).astype(np.float64)
