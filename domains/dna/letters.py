"""Bases as text, as codes and as one-hot tensors.

Codes are 0 to 3 for A, C, G, T and `OTHER` for anything else; arrays of them have shape (designs, length), uint8.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor

from domains.base import DesignError

LETTERS = "ACGT"
OTHER = 4
IUPAC = {
    "A": "A", "C": "C", "G": "G", "T": "T", "R": "AG", "Y": "CT", "S": "CG", "W": "AT", "K": "GT", "M": "AC",
    "B": "CGT", "D": "AGT", "H": "ACT", "V": "ACG", "N": "ACGT",
}  # fmt: skip
"""Letter -> the bases it stands for (IUPAC-IUB nomenclature of 1984)."""

_CODE_OF_BYTE = np.full(256, OTHER, dtype=np.uint8)
_CODE_OF_BYTE[np.frombuffer(LETTERS.encode(), dtype=np.uint8)] = range(4)
_BYTE_OF_CODE = np.frombuffer(b"ACGTN", dtype=np.uint8)
_COMPLEMENT = str.maketrans("ACGTRYSWKMBDHVN", "TGCAYRSWMKVHDBN")


def reverse_complement(sequence: str) -> str:
    """The other strand, read in its own direction; IUPAC letters are complemented too."""
    return sequence.translate(_COMPLEMENT)[::-1]


def codes(designs: Sequence[str], length: int) -> np.ndarray:
    """Codes (n, length) of designs, `OTHER` for letters that are not bases; `DesignError` on another length."""
    for i, design in enumerate(designs):
        if len(design) != length:
            raise DesignError(
                f"design {i} has {len(design)} letters; this domain has {length}; "
                f"cut it, or build the domain with length={len(design)}"
            )
    joined = "".join(designs).encode("ascii", errors="replace")
    return _CODE_OF_BYTE[np.frombuffer(joined, dtype=np.uint8)].reshape(len(designs), length)


def definite_codes(designs: Sequence[str], length: int) -> np.ndarray:
    """Codes (n, length), all below 4; `DesignError` on another length or on a letter outside ACGT."""
    found = codes(designs, length)
    unknown = np.argwhere(found == OTHER)
    if len(unknown):
        i, site = (int(index) for index in unknown[0])
        raise DesignError(
            f"design {i} has {designs[i][site]!r} at position {site - length}; "
            f"only A, C, G, T can be encoded; choose one of the four"
        )
    return found


def text(found: np.ndarray) -> list[str]:
    """The designs of codes (n, length); `OTHER` is written N."""
    joined = _BYTE_OF_CODE[found].tobytes().decode("ascii")
    length = found.shape[1]
    return [joined[i * length : (i + 1) * length] for i in range(len(found))]


def one_hot(found: np.ndarray) -> Tensor:
    """Float32 (n, length, 4) of codes (n, length); all zero where a letter is `OTHER`."""
    return torch.eye(5, 4)[torch.from_numpy(found.astype(np.int64))]


def windows(found: np.ndarray, width: int) -> np.ndarray:
    """Every word of `width` letters as one number, base 4: codes (n, length) -> uint64 (n, length - width + 1).

    Exact for `width` up to 32, at two bits a letter.
    """
    count = found.shape[1] - width + 1
    words = np.zeros((len(found), count), dtype=np.uint64)
    for i in range(width):
        words = words * np.uint64(4) + found[:, i : i + count]
    return words
