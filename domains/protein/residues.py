"""A protein chain as a value: letters, backbone, chain id and the numbers its author gave to the residues."""

from __future__ import annotations

import re
from dataclasses import dataclass

import numpy as np

from domains.base import DesignError

LETTERS = "ACDEFGHIKLMNPQRSTVWY"
UNKNOWN = "X"
NAMES = {
    "A": "ALA", "C": "CYS", "D": "ASP", "E": "GLU", "F": "PHE", "G": "GLY", "H": "HIS", "I": "ILE", "K": "LYS",
    "L": "LEU", "M": "MET", "N": "ASN", "P": "PRO", "Q": "GLN", "R": "ARG", "S": "SER", "T": "THR", "V": "VAL",
    "W": "TRP", "Y": "TYR", "X": "UNK",
}  # fmt: skip
"""Letter -> name of the residue in PDB and mmCIF files."""
ATOMS = ("N", "CA", "C", "O")
N, CA, C, O = range(4)  # noqa: E741
OTHER = 20
"""The code of every letter that is not one of `LETTERS`."""
NUMBER = re.compile(r"(-?\d{1,6})([A-Za-z]?)")
MOST_BYTES = 1 << 24
"""No file of one chain is larger, even with its side chains, water and several models."""
_DECIMALS = 3
_CODE_OF_BYTE = np.full(256, OTHER, dtype=np.uint8)
_CODE_OF_BYTE[np.frombuffer(LETTERS.encode(), dtype=np.uint8)] = range(OTHER)


@dataclass(frozen=True, eq=False)
class Protein:
    """One chain. Two are equal when letters, backbone, chain and numbers are.

    `letters` are the 20 standard ones, X where unknown. `backbone` is float32 (n, 4, 3) in angstrom, the atoms N, CA,
    C, O of each residue to 0.001 A as files keep them, or None for a sequence without structure. `numbers` are the
    author's, each with its insertion code as in 52A; 1 to n where none are given. `DesignError` where they do not fit.
    """

    letters: str
    backbone: np.ndarray | None = None
    chain: str = "A"
    numbers: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        numbers = tuple(self.numbers) or tuple(map(str, range(1, len(self.letters) + 1)))
        object.__setattr__(self, "numbers", numbers)
        if len(numbers) != len(self.letters):
            raise DesignError(f"{len(numbers)} numbers for {len(self.letters)} residues; give one each, or none")
        strange = [number for number in numbers if not NUMBER.fullmatch(number)]
        if strange:
            raise DesignError(f"residue number {strange[0]!r:.40}; it is a whole number and at most a letter, as 52A")
        if self.backbone is not None:
            object.__setattr__(self, "backbone", _rounded(self.backbone, numbers))

    def __len__(self) -> int:
        return len(self.letters)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Protein) and self._key() == other._key()

    def __hash__(self) -> int:
        return hash(self._key())

    def _key(self) -> tuple[object, ...]:
        return self.letters, None if self.backbone is None else self.backbone.tobytes(), self.chain, self.numbers

    def atoms(self) -> np.ndarray:
        """The backbone; `DesignError` where there is none."""
        if self.backbone is None:
            raise DesignError(f"a sequence of {len(self)} letters has no backbone; give a structure")
        return self.backbone


def _rounded(backbone: np.ndarray, numbers: tuple[str, ...]) -> np.ndarray:
    """Read-only float32 (n, 4, 3) without negative zeros, so that equal coordinates are equal bytes."""
    found = np.asarray(backbone, dtype=np.float64)
    if found.shape != (len(numbers), len(ATOMS), 3):
        raise DesignError(f"backbone of shape {found.shape} for {len(numbers)} residues; it is (n, 4, 3): N, CA, C, O")
    bad = np.argwhere(~np.isfinite(found))
    if len(bad):
        residue, atom, axis = bad[0]
        raise DesignError(f"residue {numbers[residue]}: {'xyz'[axis]} of {ATOMS[atom]} is not finite; give a number")
    found = (np.round(found, _DECIMALS) + 0.0).astype(np.float32)
    found.setflags(write=False)
    return found


def codes(letters: str) -> np.ndarray:
    """Numbers (n,) uint8 of letters in `LETTERS`, `OTHER` for any other."""
    return _CODE_OF_BYTE[np.frombuffer(letters.encode("ascii", errors="replace"), dtype=np.uint8)]


def text(found: np.ndarray) -> str:
    """The letters of codes (n,); X for `OTHER`."""
    return "".join((LETTERS + UNKNOWN)[code] for code in found.tolist())
