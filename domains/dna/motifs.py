"""Core-promoter motifs as position weight matrices, and where they occur in a sequence.

The matrices are those of JASPAR (https://jaspar.elixir.no; POL012.1 of release 2020, the others of release 2026) whose
places in fly promoters depend on the distance to the transcription start. Scores are log2 odds against equal bases.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache, lru_cache
from pathlib import Path
from types import MappingProxyType

import numpy as np
import torch
from Bio.motifs import jaspar
from torch import Tensor

from domains.base import DesignError
from domains.dna import letters

FALSE_POSITIVES = 1e-4
"""Chance that a random word of equal bases counts as an occurrence."""
_FILE = Path(__file__).with_name("core_motifs.jaspar")
_PATTERN_SITES = 20.0
_STEP = 0.01


@dataclass(frozen=True, eq=False)
class Motif:
    """A matrix of log2 odds (width, 4), and the score from which a word counts as an occurrence."""

    name: str
    identifier: str
    log_odds: np.ndarray
    threshold: float

    @property
    def width(self) -> int:
        """Number of bases."""
        return len(self.log_odds)

    @property
    def least(self) -> float:
        """The lowest score any word can have."""
        return float(self.log_odds.min(1).sum())

    @property
    def most(self) -> float:
        """The score of the best word."""
        return float(self.log_odds.max(1).sum())


@dataclass(frozen=True)
class Hit:
    """An occurrence of a motif: 0-based half-open sites, strand +1 or -1, score in bits."""

    motif: str
    start: int
    end: int
    strand: int
    score: float


@cache
def core_motifs() -> Mapping[str, Motif]:
    """The shipped motifs by name, in a fixed order."""
    with _FILE.open() as file:
        found = [
            _motif(matrix.name, matrix.matrix_id, np.array([matrix.counts[letter] for letter in letters.LETTERS]).T)
            for matrix in jaspar.read(file, "jaspar")
        ]
    return MappingProxyType({motif.name: motif for motif in found})


def find(name: str) -> Motif:
    """The shipped motif of this name, or that of an IUPAC pattern such as TATAWAWR; `DesignError` on neither."""
    known = core_motifs()
    if name in known:
        return known[name]
    if not set(name) <= set(letters.IUPAC) or set(name) <= {"N"}:
        raise DesignError(
            f"no motif {name!r}; there are {', '.join(known)}; choose one, "
            f"or give a pattern of the letters {''.join(letters.IUPAC)}, not all N"
        )
    allowed = np.array([[base in letters.IUPAC[letter] for base in letters.LETTERS] for letter in name])
    return _motif(name, name, _PATTERN_SITES * allowed / allowed.sum(1, keepdims=True))


def scan(bases: Tensor, log_odds: Tensor) -> Tensor:
    """Expected score of a matrix (width, 4) at every place and on both strands of probabilities (B, length, 4).

    Returns (B, 2, length - width + 1): strand + then -, by the leftmost site. Exact scores where `bases` is one-hot.
    """
    both = torch.stack([log_odds, log_odds.flip(0, 1)], -1).to(bases).flatten(0, 1)  # (width * 4, 2)
    words = bases.flatten(1).unfold(1, len(both), 4)  # (B, places, width * 4)
    return (words @ both).transpose(1, 2)


def occurrences(bases: Tensor, motif: Motif) -> Tensor:
    """Bool (B, 2, places), true where one-hot bases (B, length, 4) score at least the motif's threshold."""
    return scan(bases, torch.from_numpy(motif.log_odds)) >= motif.threshold


@lru_cache(maxsize=1024)
def hits(design: str) -> tuple[Hit, ...]:
    """Occurrences of the shipped motifs by place; where those of one motif overlap, only the best is kept."""
    bases = letters.one_hot(letters.codes([design], len(design)))
    kept: list[Hit] = []
    for motif in core_motifs().values():
        scores = scan(bases, torch.from_numpy(motif.log_odds))[0]
        places = [
            Hit(motif.name, start, start + motif.width, 1 - 2 * strand, float(scores[strand, start]))
            for strand, start in (scores >= motif.threshold).nonzero().tolist()
        ]
        kept += _best_apart(places)
    return tuple(sorted(kept, key=lambda hit: (hit.start, hit.motif)))


def _best_apart(places: list[Hit]) -> list[Hit]:
    kept: list[Hit] = []
    for hit in sorted(places, key=lambda hit: -hit.score):
        if all(hit.end <= other.start or other.end <= hit.start for other in kept):
            kept.append(hit)
    return kept


def _motif(name: str, identifier: str, counts: np.ndarray) -> Motif:
    """The usual pseudo-count: the square root of the number of sites, shared by the four bases."""
    counts = counts + math.sqrt(counts.sum(1).mean()) / 4
    log_odds = np.log2(counts / counts.sum(1, keepdims=True) * 4)
    return Motif(name, identifier, log_odds, _threshold(log_odds))


def _threshold(log_odds: np.ndarray) -> float:
    """The lowest score reached by at most `FALSE_POSITIVES` of random words, or the best where none is so rare.

    The distribution is exact but for scores rounded to `_STEP` a base (Staden 1989, Bioinformatics 5, 89).
    """
    least = log_odds.min(1, keepdims=True)
    chance = np.ones(1)
    for column in np.rint((log_odds - least) / _STEP).astype(int):
        longer = np.zeros(len(chance) + column.max())
        for jump in column:
            longer[jump : jump + len(chance)] += chance / 4
        chance = longer
    best_first = chance[::-1]
    rare = np.flatnonzero((best_first > 0) & (best_first.cumsum() <= FALSE_POSITIVES))
    steps = len(chance) - 1 - (rare[-1] if len(rare) else 0)
    most_rounding = len(log_odds) / 2
    return float(least.sum() + (steps - most_rounding) * _STEP)
