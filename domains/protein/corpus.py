"""Real chains: of the shipped corpus, and of other files in its format."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np

from data import corpora
from domains.base import DesignError
from domains.protein import geometry, residues
from domains.protein.residues import Protein

FILE = "protein_40_128.npz"
SHORTEST, LONGEST = 40, 128
_FORMAT = {"dcoords": ("i", 3), "seq": ("iu", 1), "length": ("iu", 1)}
_GRID = 0.01


@dataclass(frozen=True, eq=False)
class Chains:
    """Chains one after the other: atoms N, CA, C (residues, 3, 3) in angstrom, letter codes, lengths."""

    atoms: np.ndarray
    codes: np.ndarray
    lengths: np.ndarray

    def proteins(self, longest: int, structure: bool, shortest: int = 1) -> list[Protein]:
        """The chains of `shortest` to `longest` residues, with backbones (O is put in) or as sequences."""
        backbones = geometry.with_oxygens(self.atoms, self.lengths) if structure else self.atoms
        ends = self.lengths.cumsum()
        chosen = [slice(end - n, end) for end, n in zip(ends, self.lengths, strict=True) if shortest <= n <= longest]
        return [Protein(residues.text(self.codes[rows]), backbones[rows] if structure else None) for rows in chosen]

    def apart(self) -> list[np.ndarray]:
        """The atoms (n, 3, 3) of each chain."""
        return np.split(self.atoms, self.lengths.cumsum()[:-1])


@cache
def shipped(split: str) -> Chains:
    """The corpus's chains of one split, `train` or `val`, which share no family of 30 % identity."""
    if split not in ("train", "val"):
        raise DesignError(f"no split {split!r}; there are train and val; choose one")
    arrays = corpora.load(FILE)
    return _chains(arrays, arrays["split"] == split)


def foreign(path: Path, longest: int, structure: bool, shortest: int = 1) -> list[Protein]:
    """Chains of `shortest` to `longest` residues of a file in the corpus's format; `DesignError` where it has none."""
    try:
        arrays = corpora.read_npz(path, _FORMAT)
    except corpora.CorpusError as error:
        raise DesignError(str(error)) from error
    _check(arrays, path)
    found = _chains(arrays, np.ones(len(arrays["length"]), dtype=bool)).proteins(longest, structure, shortest)
    if not found:
        raise DesignError(f"{path} has no chain of {shortest} to {longest} residues; choose other lengths")
    return found


def _chains(arrays: Mapping[str, np.ndarray], chosen: np.ndarray) -> Chains:
    """Undo the running differences, atom by atom along each chain, on a grid of 0.01 A."""
    lengths = arrays["length"].astype(np.int64)
    rows = np.repeat(chosen, lengths)
    steps = arrays["dcoords"][rows].reshape(-1, 3).astype(np.int64)
    lengths = lengths[chosen]
    running = np.concatenate([np.zeros((1, 3), np.int64), steps.cumsum(0)])
    starts = 3 * (lengths.cumsum() - lengths)
    coordinates = running[1:] - np.repeat(running[starts], 3 * lengths, axis=0)
    return Chains(coordinates.reshape(-1, 3, 3) * _GRID, arrays["seq"][rows].astype(np.uint8), lengths)


def _check(arrays: Mapping[str, np.ndarray], path: Path) -> None:
    steps, codes, lengths = (arrays[key] for key in _FORMAT)
    if not len(lengths) or lengths.min() < 1:
        raise DesignError(f"{path} has no chain, or one without residues; give chains of one residue or more")
    count = int(lengths.sum(dtype=np.int64))
    if steps.shape != (count, 3, 3) or codes.shape != (count,):
        raise DesignError(
            f"{path}: dcoords {steps.shape} and seq {codes.shape} for lengths that add up to {count}; "
            f"they must be ({count}, 3, 3) and ({count},)"
        )
    if codes.min() < 0 or codes.max() >= residues.OTHER:
        raise DesignError(f"{path}: seq is from {codes.min()} to {codes.max()}; it is an index into {residues.LETTERS}")
