"""The simple models of a protein that any generator has to beat. Lengths are drawn from those of real chains."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from domains.protein import geometry, ramachandran
from domains.protein.ramachandran import BINS
from domains.protein.residues import OTHER

NOISE = 0.5
"""Standard deviation, in angstrom on each axis, of what is added to native chains."""
_PSEUDO_COUNT = 0.1


def random_coil(lengths: np.ndarray, rng: np.random.Generator) -> list[np.ndarray]:
    """Backbones (n, 4, 3) with ideal bonds and angles, trans peptides, and phi and psi uniform."""
    return _chains(lengths, rng.uniform(-np.pi, np.pi, (len(lengths), lengths.max(), 2)))


def independent_torsions(lengths: np.ndarray, rng: np.random.Generator) -> list[np.ndarray]:
    """The same with phi and psi of each residue drawn from the histogram of the corpus's train split."""
    shape = (len(lengths), int(lengths.max()))
    chances = ramachandran.density()[ramachandran.ANY].ravel()
    cells = rng.choice(BINS**2, size=shape, p=chances)
    corners = np.stack([cells // BINS, cells % BINS], axis=-1)
    return _chains(lengths, (corners + rng.random((*shape, 2))) * 2 * np.pi / BINS - np.pi)


def native_noised(known: Sequence[np.ndarray], n: int, rng: np.random.Generator) -> list[np.ndarray]:
    """Backbones (n, 4, 3): known ones, in random order, with Gaussian noise of `NOISE` on N, CA and C, and new O.

    Each once before any comes again.
    """
    order = rng.permutation(len(known))
    return [with_noise(known[order[i % len(known)]], rng) for i in range(n)]


def with_noise(backbone: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """The same backbone (n, 4, 3) with Gaussian noise of `NOISE` on N, CA and C, and new O."""
    atoms = np.asarray(backbone[:, :3], np.float64)
    return geometry.with_oxygens(atoms + rng.normal(size=atoms.shape) * NOISE)


def independent_letters(train: Sequence[np.ndarray], n: int, rng: np.random.Generator) -> list[np.ndarray]:
    """Codes of letters drawn from their frequencies in `train`."""
    frequencies = np.bincount(np.concatenate(train), minlength=OTHER).astype(np.float64)
    lengths = drawn_lengths([len(codes) for codes in train], n, rng)
    return [rng.choice(OTHER, size=length, p=frequencies / frequencies.sum()) for length in lengths]


def markov_letters(train: Sequence[np.ndarray], n: int, rng: np.random.Generator) -> list[np.ndarray]:
    """Codes of a first-order Markov chain; each begins as some sequence of `train`."""
    counts = np.full((OTHER, OTHER), _PSEUDO_COUNT)
    for codes in train:
        np.add.at(counts, (codes[:-1], codes[1:]), 1)
    limits = (counts / counts.sum(1, keepdims=True)).cumsum(1)
    lengths = drawn_lengths([len(codes) for codes in train], n, rng)
    made = np.empty((n, lengths.max()), dtype=np.int64)
    made[:, 0] = np.array([codes[0] for codes in train])[rng.integers(len(train), size=n)]
    for site in range(1, made.shape[1]):
        made[:, site] = (rng.random((n, 1)) > limits[made[:, site - 1]]).sum(1).clip(max=OTHER - 1)
    return [row[:length] for row, length in zip(made, lengths, strict=True)]


def drawn_lengths(known: Sequence[int], n: int, rng: np.random.Generator) -> np.ndarray:
    """Lengths (n,) drawn from known ones."""
    return np.array(known)[rng.integers(len(known), size=n)]


def _chains(lengths: np.ndarray, torsions: np.ndarray) -> list[np.ndarray]:
    """Chains with phi and psi (n, longest, 2), each cut to its length."""
    atoms = from_torsions(torsions)
    return [geometry.with_oxygens(chain[:length]) for chain, length in zip(atoms, lengths, strict=True)]


def from_torsions(torsions: np.ndarray) -> np.ndarray:
    """Atoms N, CA, C (b, n, 3, 3) of ideal trans chains with phi and psi (b, n, 2)."""
    return geometry.chains(np.concatenate([torsions, np.full_like(torsions[..., :1], np.pi)], axis=-1))
