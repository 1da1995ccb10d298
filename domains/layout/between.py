"""Where cells break rules between layers.

A plane is one rule in one cell. Its rectangles `of` and `to` are those of the rule's layers; only those go through
`lattices.py` that have sides which stand to each other as where the rule is broken.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product

import numpy as np

from domains.layout import lattices, regions
from domains.layout.lattices import FIRST, SECOND, Runs
from domains.layout.places import NO_PLACES, Places, joined
from domains.layout.technology import CHECKS, Pair

_ALL = 1 << 31
"""The length of a run across what is not enclosed at all, which is longer than any."""
_TOGETHER = np.zeros((4, 4), dtype=bool)
_TOGETHER[[3, 0, 1, 2], [0, 3, 2, 1]] = True  # nothing is left of an enclosure, or of a gap
_ENCLOSURE, _EXTENSION, _OVERLAP, _SEPARATION = range(len(CHECKS))


def broken(pairs: Sequence[Pair], boxes: np.ndarray, layer: np.ndarray, sizes: np.ndarray) -> Places:
    """All places, each on the plane `cell * len(pairs) + pair`; NaN is the length of what is not enclosed at all.

    `boxes` (n, 5) are cell x0 y0 x1 y1 on layers (n,), and sizes (cells, 2) those of the windows.
    """
    check = np.array([CHECKS.index(pair.check) for pair in pairs])
    nm = np.array([pair.nm for pair in pairs])
    first, second = _suspects(pairs, boxes, layer, sizes)
    margins = nm * ((check == _ENCLOSURE) | (check == _EXTENSION))
    apart, whole, shared = nm * (check == _SEPARATION), _ALL * (check == _ENCLOSURE), nm * (check == _OVERLAP)
    limits = np.tile(np.stack([apart + nm * (check == _EXTENSION), margins, whole, shared]), len(sizes))
    apart, margins, shared = (np.tile(limit, len(sizes)) for limit in (apart, margins, shared))
    wanted = [(way, margins) for way in lattices.MARGIN] + [(way, apart) for way in lattices.SEPARATION]
    wanted += [(way, shared) for way in lattices.OVERLAP]
    found, beside = [NO_PLACES], [NO_PLACES]
    stack = lattices.stacked(first, second)
    for runs in stack.runs(limits, _TOGETHER):
        found.append(_broken(runs, check, nm, sizes))
        beside.append(_beside(runs, check, nm, sizes))
    found += [places for _, places in stack.gaps(wanted)]
    places = joined([*found, _seen(joined(beside), first)])
    return places._replace(length=np.where(places.length == _ALL, np.nan, places.length))


def _suspects(
    pairs: Sequence[Pair], boxes: np.ndarray, layer: np.ndarray, sizes: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """The boxes of the first and the second kind, (n, 5) and (m, 5), that rules may be broken at, and those around."""
    near = _Near(pairs, boxes, layer)
    found: tuple[list[np.ndarray], list[np.ndarray]] = [], []
    for pair in pairs:
        a, b = near.both(pair.of, pair.to)
        chosen = np.isin(np.arange(layer.max(initial=0) + 1), pair.of)[layer]
        if pair.on:
            c, d = near.both(pair.of, pair.on)
            chosen[:] = False
            chosen[c[(_gaps(boxes[c], boxes[d]) < 0).all(1)]] = True
            a, b = a[chosen[a]], b[chosen[a]]
        of, to = np.zeros((2, len(boxes)), dtype=bool)
        if pair.check == "enclosure":
            of = chosen
            of[a[_holds(pair.nm, boxes[a], boxes[b], sizes[boxes[a, 0]])]] = False
        else:
            bad = _may_break(pair, boxes[a], boxes[b])
            of[a[bad]] = to[b[bad]] = True
            of[a[to[b]]] = True
        to[b[of[a]]] = True
        for which, rows in zip((to, of) if pair.check == "enclosure" else (of, to), found, strict=True):
            rows.append(np.flatnonzero(which))
    first, second = (_planes(boxes, rows) for rows in found)
    return first, second


def _planes(boxes: np.ndarray, rows: Sequence[np.ndarray]) -> np.ndarray:
    """Boxes, the rows of them for each of several planes in a cell."""
    number = np.repeat(np.arange(len(rows)), [len(some) for some in rows])
    chosen = boxes[np.concatenate(rows)]
    return np.column_stack([chosen[:, 0] * len(rows) + number, chosen[:, 1:]])


class _Near:
    """Which boxes of two layers are as near each other, on both axes, as any rule between the layers is about."""

    def __init__(self, pairs: Sequence[Pair], boxes: np.ndarray, layer: np.ndarray) -> None:
        reach: dict[tuple[int, int], int] = {}
        for pair in pairs:
            for one, other in product(pair.of, pair.to + pair.on):
                reach[one, other] = reach[other, one] = max(pair.nm, reach.get((one, other), 0))
        layers = np.arange(max(max(both) for both in reach) + 1)
        wide = [(boxes[layer == k, 3] - boxes[layer == k, 1]).max(initial=0) for k in layers]
        both = [key for key in reach if (wide[key[0]], key[0]) >= (wide[key[1]], key[1])]  # a search by narrow ones
        rows = [np.flatnonzero(layer == k) for k in layers]
        some, others = ([rows[key[side]] for key in both] for side in (0, 1))
        counts = [len(own) for own in some]
        reaches = np.repeat([reach[key] for key in both], counts)
        a, b = regions.nearby(_planes(boxes, some), _planes(boxes, others), reaches)
        ends = np.searchsorted(a, np.cumsum([0, *counts]))
        a, b = np.concatenate(some)[a], np.concatenate(others)[b]
        self._found = {}
        for (one, other), begin, end in zip(both, ends[:-1], ends[1:], strict=True):
            pair_of = a[begin:end], b[begin:end]
            self._found[one, other], self._found[other, one] = pair_of, pair_of[::-1]

    def both(self, some: tuple[int, ...], others: tuple[int, ...]) -> tuple[np.ndarray, np.ndarray]:
        """The numbers of the boxes, (k,) on one of some layers and (k,) on one of others."""
        found = [self._found[key] for key in product(some, others)]
        return np.concatenate([a for a, _ in found]), np.concatenate([b for _, b in found])


def _holds(nm: int, of: np.ndarray, to: np.ndarray, sizes: np.ndarray) -> np.ndarray:
    """Whether each of the boxes `of` lies in that of `to`, far enough from its sides or those of the window."""
    low = to[:, 1:3] <= np.maximum(of[:, 1:3] - nm, 0)
    held: np.ndarray = (low & (to[:, 3:] >= np.minimum(of[:, 3:] + nm, sizes))).all(1)
    return held


def _may_break(pair: Pair, of: np.ndarray, to: np.ndarray) -> np.ndarray:
    """Whether boxes near each other have sides or corners that break a rule where nothing else is around."""
    if pair.check == "overlap":
        return np.ones(len(of), dtype=bool)
    gaps = _gaps(of, to)
    apart = np.maximum(gaps, 0)
    if pair.check == "separation":
        close: np.ndarray = (gaps.max(1) >= 0) & ((apart**2).sum(1) < pair.nm**2)
        return close
    behind = np.stack([to[:, 1:3] - of[:, 1:3], of[:, 3:] - to[:, 3:]])
    short: np.ndarray = ((behind >= 0) & (behind**2 + apart[:, ::-1] ** 2 < pair.nm**2)).any((0, 2))
    return short


def _gaps(some: np.ndarray, others: np.ndarray) -> np.ndarray:
    """How far apart boxes are, by axis (n, 2); below 0 where they overlap."""
    gaps: np.ndarray = np.maximum(others[:, 1:3] - some[:, 3:], some[:, 1:3] - others[:, 3:])
    return gaps


def _broken(runs: Runs, check: np.ndarray, nm: np.ndarray, sizes: np.ndarray) -> Places:
    """The runs that break the rule of their plane."""
    before, code, after = runs.before, runs.code, runs.after
    cell, number = np.divmod(runs.boxes[:, 0], len(check))
    kind = check[number]
    point = runs.length == 0
    facing = (before & FIRST > 0) & (after & SECOND > 0) | (before & SECOND > 0) & (after & FIRST > 0)
    low, high = runs.at_edge(sizes[cell])
    ending = (before == FIRST | SECOND) & (after & FIRST == 0) & ~high
    ending |= (after == FIRST | SECOND) & (before & FIRST == 0) & ~low
    margin = (kind <= _EXTENSION) & (nm[number] > 0) & ending & (point | (code == FIRST))
    gap = (kind == _SEPARATION) & facing & (point | (code == 0))
    bare = (kind <= _EXTENSION) & ~point & (code == SECOND) & (runs.axis == 0)
    crossing = (before == FIRST) & (after == SECOND) | (before == SECOND) & (after == FIRST)
    thin = (kind == _OVERLAP) & crossing & (point | (code == FIRST | SECOND))
    places = runs.places._replace(length=np.where(bare, _ALL, runs.length))
    return places.chosen(gap | margin | bare | thin)


def _beside(runs: Runs, check: np.ndarray, nm: np.ndarray, sizes: np.ndarray) -> Places:
    """Where the first kind, which is to end behind the second, ends beside it instead: its width and the gap."""
    one, other = (Runs(*(part[which] for part in runs)) for which in (slice(-1), slice(1, None)))
    n, axis, length = np.arange(len(one.axis)), one.axis, one.length + other.length
    cell, number = np.divmod(one.boxes[:, 0], len(check))
    follows = (one.boxes[:, 0] == other.boxes[:, 0]) & (length < nm[number]) & (check[number] == _EXTENSION)
    follows &= one.boxes[n, 3 + axis] == other.boxes[n, 1 + axis]
    follows &= one.boxes[n, 2 - axis] == other.boxes[n, 2 - axis]
    rising = (one.code == FIRST) & (one.before & FIRST == 0) & (other.code == 0) & (other.after & SECOND > 0)
    falling = (other.code == FIRST) & (other.after & FIRST == 0) & (one.code == 0) & (one.before & SECOND > 0)
    follows &= (rising & ~one.at_edge(sizes[cell])[0]) | (falling & ~other.at_edge(sizes[cell])[1])
    boxes = np.concatenate([one.boxes[:, :3], other.boxes[:, 3:]], axis=1)
    return Places(boxes, axis, length).chosen(follows)


def _seen(places: Places, first: np.ndarray) -> Places:
    """Those along x or y past an end of which there is nothing of the first kind, so that the second faces its side."""
    bare = np.zeros(len(places.axis), dtype=bool)
    n, across = np.arange(len(bare)), 2 - places.axis
    for end, step in ((across, -1), (across + 2, 1)):
        past = places.boxes.copy()
        past[n, across], past[n, across + 2] = past[n, end], past[n, end] + step
        past[:, 1:] = np.sort(past[:, 1:].reshape(-1, 2, 2), axis=1).reshape(-1, 4)
        bare |= ~np.isin(n, regions.nearby(past, first, -1)[0])
    return places.chosen(bare)
