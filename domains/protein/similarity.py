"""How similar the folds of two chains are: TM-score (Zhang and Skolnick 2004, Proteins 57, 702) of the best alignment.

The search is like that of TM-align (Zhang and Skolnick 2005, Nucleic Acids Res. 33, 2302): one chain is laid on the
other without gaps at every offset, and from the best of these superpositions alignments with gaps and superpositions
take turns. It is made for many pairs at once, and begins in fewer ways: what it finds is a lower bound.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from domains.protein import geometry

NEAREST = 16
"""Chains of a set that are compared with a design: those with the most similar `shape`."""
_POINTS = 16
_PAIRS = np.triu_indices(_POINTS, 1)
_FAR = 8.0
"""Distances of `shape`, in angstrom, beyond which differences count less."""
_KEPT = 2
"""Offsets from which alignments with gaps are sought."""
_ROUNDS = 3
"""Alignments in a row, and superpositions for each."""
_FIRST = 3
"""Superpositions at every offset."""
GAP = 0.6
"""What a gap costs in an alignment, whose matches count from 0 to 1."""
_ROWS = 256
"""Superpositions at a time, which bounds the memory."""


def closest(designs: Sequence[np.ndarray], known: Sequence[np.ndarray], count: int = NEAREST) -> np.ndarray:
    """Highest TM-score (n,) of each design's CA atoms (residues, 3) to one of `known`, normalised by the design.

    Only the `count` chains most similar in shape are superposed.
    """
    shapes, theirs = (np.stack([shape(chain) for chain in some]) for some in (designs, known))
    squared = (shapes**2).sum(1)[:, None] + (theirs**2).sum(1) - 2 * shapes @ theirs.T
    near = np.argsort(squared, axis=1, kind="stable")[:, :count]
    pairs = np.stack([np.repeat(np.arange(len(designs)), near.shape[1]), near.ravel()], axis=1)
    found: np.ndarray = tm_scores(designs, known, pairs).reshape(near.shape).max(1)
    return found


def shape(chain: np.ndarray) -> np.ndarray:
    """What tells at once that two folds differ, (120,): nearness of 16 points spread evenly along the chain."""
    places = chain[np.arange(_POINTS) * (len(chain) - 1) // (_POINTS - 1)]
    first, second = _PAIRS
    found: np.ndarray = 1 / (1 + np.linalg.norm(places[first] - places[second], axis=-1) / _FAR)
    return found


def tm_scores(first: Sequence[np.ndarray], second: Sequence[np.ndarray], pairs: np.ndarray) -> np.ndarray:
    """TM-scores (k,) of `pairs` (k, 2) of chains of CA atoms, by index into `first` and `second`.

    Normalised by the chain in `first`; from 0, for nothing in common, to 1.
    """
    a, b = _padded(first), _padded(second)
    offsets = [_offsets(len(first[i]), len(second[j])) for i, j in pairs.tolist()]
    own = np.repeat(np.arange(len(pairs)), [len(some) for some in offsets])
    rows = np.concatenate([np.zeros(0, np.int64), *offsets])

    def laid(at: np.ndarray) -> tuple[_Couples, np.ndarray]:
        """Pairs and their first alignments."""
        couples = _couples(a, b, pairs[own[at]])
        return couples, couples.gapless(rows[at])

    scores = _in_blocks(lambda at: _superposed(*laid(at), _FIRST).scores, np.arange(len(rows)))
    order = np.lexsort((-scores, own))
    kept = order[_rank(own[order]) < _KEPT]
    found = np.zeros(len(pairs))
    np.maximum.at(found, own[kept], _in_blocks(lambda at: _aligned(*laid(at)), kept))
    return found


def length_scale(n: np.ndarray) -> np.ndarray:
    """d0 in angstrom: at this distance two residues of chains of n count one half."""
    found: np.ndarray = np.maximum(1.24 * np.cbrt(np.maximum(n - 15.0, 0)) - 1.8, 0.5)
    return found


def align(matches: np.ndarray, gap: float = GAP) -> np.ndarray:
    """For each residue of the first of two chains its partner in the second, -1 for none, of `matches` (rows, n, m).

    The alignment in the order of both chains with the highest sum of what its matches count, less `gap` for each gap,
    however long; those before the first match and after the last are free.
    """
    rows, n, m = matches.shape
    each = np.arange(rows)
    came = np.empty((n, rows, m), dtype=np.int32)  # cell before, i * m + j, or -1
    ends, best = np.full((rows, m), -1), np.full((rows, m), -np.inf, np.float32)  # of all cells up to here
    before, sites = np.full((rows, m), -np.inf, np.float32), np.arange(m)
    for i in range(n):
        jump, at = best - np.float32(gap), ends
        onward = before >= jump
        through = _shifted(np.where(onward, before, jump), -np.inf)
        origin = _shifted(np.where(onward, (i - 1) * m + sites, at), -1)
        came[i] = np.where(through > 0, origin, -1)
        before = matches[:, i] + np.maximum(through, 0)
        highest = np.maximum.accumulate(before, axis=1)
        where = np.maximum.accumulate(np.where(before == highest, sites, 0), axis=1)
        better = highest > best
        best, ends = np.where(better, highest, best), np.where(better, i * m + where, ends)
    partners, cell = np.full((rows, n), -1), ends[:, -1]
    for i in range(n - 1, -1, -1):
        here = each[cell // m == i]
        partners[here, i] = cell[here] % m
        cell[here] = came[i, here, partners[here, i]]
    return partners


@dataclass(frozen=True)
class _Couples:
    """Rows of two chains each: places (rows, 3, longest), zero behind the ends, and lengths (rows,)."""

    a: np.ndarray
    b: np.ndarray
    n: np.ndarray
    m: np.ndarray

    def gapless(self, offsets: np.ndarray) -> np.ndarray:
        """Partners (rows, longest of a) of the residues of the first when the second is so far ahead; -1 for none."""
        sites = np.arange(self.a.shape[2])
        other = sites + offsets[:, None]
        return np.where((sites < self.n[:, None]) & (other >= 0) & (other < self.m[:, None]), other, -1)

    def near(self, squared: np.ndarray) -> np.ndarray:
        """What residues at such squared distances (rows, ...) count, from 0 to 1."""
        scale = length_scale(self.n).astype(np.float32).reshape(-1, *[1] * (squared.ndim - 1)) ** 2
        return 1 / (1 + squared / scale)


@dataclass(frozen=True)
class _Superposed:
    scores: np.ndarray
    moved: np.ndarray
    """The first chain (rows, 3, longest), laid on the second."""


def _superposed(couples: _Couples, partners: np.ndarray, rounds: int) -> _Superposed:
    """By an alignment, in some rounds.

    The score is convex in the squared distances, so its tangent is below it: superposing with the tangent's weights
    raises the score in each round.
    """
    both = partners >= 0
    theirs = np.take_along_axis(couples.b, np.where(both, partners, 0)[:, None], axis=2)
    weights: np.ndarray = both.astype(np.float32)
    for _ in range(rounds):
        moved = _moved(couples.a, theirs, weights)
        apart = moved - theirs
        near = both * couples.near(np.einsum("rin,rin->rn", apart, apart))
        weights = near**2
    return _Superposed(near.sum(1, dtype=np.float64) / couples.n, moved)


def _moved(a: np.ndarray, b: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """The first places after the superposition that is best with these weights (rows, longest); Kabsch 1976."""
    shares = (weights / weights.sum(1, keepdims=True))[:, None]
    weighed = a * shares
    middle, its_middle = weighed.sum(2, keepdims=True), (b * shares).sum(2, keepdims=True)
    turns = geometry.nearest_rotations(weighed @ b.mT - middle @ its_middle.mT).mT
    moved: np.ndarray = turns @ a + (its_middle - turns @ middle)
    return moved


def _aligned(couples: _Couples, partners: np.ndarray) -> np.ndarray:
    """Scores (rows,): the highest of some rounds of alignment and superposition, from a first alignment."""
    found = _superposed(couples, partners, _ROUNDS)
    scores = found.scores
    inside = np.arange(couples.b.shape[2]) < couples.m[:, None]
    outside = np.arange(couples.a.shape[2]) >= couples.n[:, None]
    for _ in range(_ROUNDS):
        squared = np.square(found.moved).sum(1)[:, :, None] + np.square(couples.b).sum(1)[:, None]
        matches = couples.near((squared - 2 * found.moved.mT @ couples.b).clip(min=0))
        matches[~np.broadcast_to(inside[:, None], matches.shape)] = 0
        matches[outside] = 0
        partners = align(matches)
        partners[outside | ~np.take_along_axis(inside, partners.clip(min=0), 1)] = -1
        found = _superposed(couples, partners, _ROUNDS)
        scores = np.maximum(scores, found.scores)
    return scores


def _couples(a: tuple[np.ndarray, np.ndarray], b: tuple[np.ndarray, np.ndarray], pairs: np.ndarray) -> _Couples:
    n, m = a[1][pairs[:, 0]], b[1][pairs[:, 1]]
    return _Couples(a[0][pairs[:, 0], :, : n.max()], b[0][pairs[:, 1], :, : m.max()], n, m)


def _padded(chains: Sequence[np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
    """Places (k, 3, longest), zero behind the ends, and lengths (k,)."""
    lengths = np.array([len(chain) for chain in chains])
    places = np.zeros((len(chains), 3, lengths.max(initial=0)), np.float32)
    for row, chain in zip(places, chains, strict=True):
        row[:, : len(chain)] = (chain - chain.mean(0)).T
    return places, lengths


def _offsets(n: int, m: int) -> np.ndarray:
    """Those that keep half of the first chain, or the whole of the shorter."""
    overlap = min(n, m, max(n // 2, 3))
    return np.arange(overlap - n, m - overlap + 1)


def _shifted(values: np.ndarray, first: float) -> np.ndarray:
    """Columns one to the right, with `first` before them."""
    found = np.empty_like(values)
    found[:, 0], found[:, 1:] = first, values[:, :-1]
    return found


def _in_blocks(score: Callable[[np.ndarray], np.ndarray], rows: np.ndarray) -> np.ndarray:
    blocks = [score(rows[start : start + _ROWS]) for start in range(0, len(rows), _ROWS)]
    return np.concatenate([np.zeros(0), *blocks])


def _rank(groups: np.ndarray) -> np.ndarray:
    """Place (k,) of each within its group, from 0, where the groups (k,) are in order."""
    found: np.ndarray = np.arange(len(groups)) - np.searchsorted(groups, groups)
    return found
