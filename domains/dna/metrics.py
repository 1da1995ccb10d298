"""How far a set of promoters is from real ones, and how much of it was copied. Arrays are codes (n, length)."""

from __future__ import annotations

import math

import numpy as np

from domains.dna import letters, motifs
from domains.statistics import divergence

NAMES: tuple[str, ...] = (
    "kmer4_js", "kmer6_js", "tata_enrichment", "gc_error", "motif_profile_js",
    "diversity", "exact_copies", "near_copies", "nearest_distance", "shared_32mers",
)  # fmt: skip
NEAR = 0.1
"""A design is a near copy when at most this share of its letters differs from some training sequence."""
_TATA = letters.codes(["TATAAA"], 6)
_CORE, _FAR = (-38, -19), (-128, -59)  # where TATAAA starts, both ends included
_BIN = 16
_CHUNK = 2048


def closeness(designs: np.ndarray, reference: np.ndarray) -> dict[str, float]:
    """Distances of the statistics of two sets, best at 0; and the designs' own `tata_enrichment` and `diversity`."""
    return {
        "kmer4_js": divergence(_kmers(designs, 4), _kmers(reference, 4)),
        "kmer6_js": divergence(_kmers(designs, 6), _kmers(reference, 6)),
        "tata_enrichment": tata_enrichment(designs),
        "gc_error": abs(_gc(designs) - _gc(reference)),
        "motif_profile_js": motif_profile_js(designs, reference),
        "diversity": diversity(designs),
    }


def copying(designs: np.ndarray, train: np.ndarray) -> dict[str, float]:
    """Shares of designs that come from `train`; the median distance to the nearest of it, as a share of letters."""
    distance = nearest(designs, train) / designs.shape[1]
    shared = _shared(letters.windows(designs, 32), letters.windows(train, 32))
    return {
        "exact_copies": float((distance == 0).mean()),
        "near_copies": float((distance <= NEAR).mean()),
        "nearest_distance": float(np.median(distance)),
        "shared_32mers": float(shared.any(1).mean()),
    }


def nearest(designs: np.ndarray, train: np.ndarray) -> np.ndarray:
    """Number of letters (n,) in which each design differs from the training sequence most like it."""
    best = np.zeros(len(designs))
    for start in range(0, len(train), _CHUNK):
        known = letters.one_hot(train[start : start + _CHUNK]).flatten(1).T
        for row in range(0, len(designs), _CHUNK):
            rows = slice(row, row + _CHUNK)
            same = letters.one_hot(designs[rows]).flatten(1) @ known  # whole numbers, exact in float32
            best[rows] = np.maximum(best[rows], same.max(1).values.numpy())
    distance: np.ndarray = designs.shape[1] - best
    return distance


def _shared(words: np.ndarray, known: np.ndarray) -> np.ndarray:
    """Bool, true where a word is among the known; as `numpy.isin`, without sorting the known, which are many more."""
    own, place_of = np.unique(words, return_inverse=True)
    place = np.searchsorted(own, known.ravel()).clip(max=len(own) - 1)
    seen = np.zeros(len(own), dtype=bool)
    seen[place[own[place] == known.ravel()]] = True
    return seen[place_of].reshape(words.shape)


def tata_enrichment(designs: np.ndarray) -> float:
    """How many times as often TATAAA starts at -38..-19 as at -128..-59, by site.

    Where it starts nowhere in -128..-59, half an occurrence is assumed there, which keeps the ratio finite.
    """
    places = designs.shape[1] - 5
    starts = (np.lib.stride_tricks.sliding_window_view(designs, 6, axis=1) == _TATA).all(-1)
    position = np.arange(places) - designs.shape[1]
    core = starts[:, (position >= _CORE[0]) & (position <= _CORE[1])]
    far = starts[:, (position >= _FAR[0]) & (position <= _FAR[1])]
    return float(core.mean() / (max(far.sum(), 0.5) / far.size))


def diversity(designs: np.ndarray) -> float:
    """Mean share of letters in which two different designs of the set differ; 0 for a single one."""
    n = len(designs)
    counts = letters.one_hot(designs).sum(0).double()  # (length, 4)
    same = (counts * (counts - 1)).sum(-1) / max(n * (n - 1), 1)
    return float(1 - same.mean()) if n > 1 else 0.0


def motif_profile_js(designs: np.ndarray, reference: np.ndarray) -> float:
    """Divergence of where the core motifs occur (strand and bins of 16 sites), mean over motifs, in nats.

    A motif that occurs in only one of the sets counts as ln 2, the largest divergence; in neither, as 0.
    """
    pairs = zip(_profiles(designs), _profiles(reference), strict=True)
    return float(np.mean([_profile_divergence(a, b) for a, b in pairs]))


def _profiles(found: np.ndarray) -> list[np.ndarray]:
    """Occurrences (2 x bins,) of each core motif, by strand and distance to the transcription start."""
    known = motifs.core_motifs().values()
    counts = [np.zeros((2, -(-found.shape[1] // _BIN) * _BIN)) for _ in known]
    for start in range(0, len(found), _CHUNK):
        bases = letters.one_hot(found[start : start + _CHUNK])
        for count, motif in zip(counts, known, strict=True):
            places = motifs.occurrences(bases, motif).sum(0).numpy()
            count[:, -places.shape[1] :] += places
    return [count.reshape(2, -1, _BIN).sum(-1).ravel() for count in counts]


def _profile_divergence(a: np.ndarray, b: np.ndarray) -> float:
    if not a.any() or not b.any():
        return math.log(2) if a.any() or b.any() else 0.0
    return divergence(a / a.sum(), b / b.sum())


def _kmers(found: np.ndarray, k: int) -> np.ndarray:
    """Frequencies (4^k,) of all words of k letters, pooled over sequences and places."""
    words = letters.windows(found, k)
    frequencies: np.ndarray = np.bincount(words.ravel().astype(np.int64), minlength=4**k) / words.size
    return frequencies


def _gc(found: np.ndarray) -> float:
    return float(((found == 1) | (found == 2)).mean())
