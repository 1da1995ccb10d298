"""Bases that a promoter shall have at given positions."""

from __future__ import annotations

import re
from collections.abc import Sequence

import torch

from data.space import State
from domains.base import DesignError, placed
from domains.dna import letters


def state(text: str, at: Sequence[int], length: int) -> State:
    """One design of `length` bases, of which those of `text` alone are in use, at the positions `at`.

    Several pieces of `text` are parted by commas, slashes or spaces, each with its position in `at`: that of its first
    base, counted from 1, or, where it is negative, from the transcription start, before which is -1. Without `at` they
    are spread evenly. Raises `DesignError` for other letters and for pieces that overlap or do not fit.
    """
    pieces = re.split(r"[,/\s]+", text.upper().strip(",/ \n\t"))
    strange = [letter for letter in "".join(pieces) if letter not in letters.LETTERS]
    if strange or not all(pieces):
        raise DesignError(f"text={text!r:.60}; locked bases are A, C, G, T, as TATAAA; use rewards.motif for patterns")
    base, mask = torch.full((1, length, 4), 1 / 4), torch.zeros(1, length, dtype=torch.bool)
    starts = [length + 1 + start if start < 0 else start for start in at]
    for piece, sites in zip(pieces, placed([len(piece) for piece in pieces], starts, length), strict=True):
        base[0, list(sites)] = letters.one_hot(letters.codes([piece], len(piece)))[0]
        mask[0, list(sites)] = True
    return {"base": base, "mask": mask}
