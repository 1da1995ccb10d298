"""Where cells break rules between layers.

A plane is one rule in one cell. Its rectangles `of` and `to` are those of the rule's layers; only those go through
`lattices.py` that have sides which stand to each other as where the rule is broken.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from domains.layout import lattices, regions
from domains.layout.lattices import FIRST, SECOND, Runs
from domains.layout.places import Places, joined
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
    first, second = _suspects(pairs, check, nm, boxes, layer, sizes)
    margins = nm * ((check == _ENCLOSURE) | (check == _EXTENSION))
    apart, whole, shared = nm * (check == _SEPARATION), _ALL * (check == _ENCLOSURE), nm * (check == _OVERLAP)
    limits = np.tile(np.stack([apart, margins, whole, shared]), len(sizes))
    apart, margins, whole, shared = limits
    wanted = [(way, margins) for way in lattices.MARGIN] + [(way, apart) for way in lattices.SEPARATION]
    wanted += [(way, shared) for way in lattices.OVERLAP]
    found = [Places(lattices.NONE, np.zeros(0, dtype=np.int64), np.zeros(0))]
    for stack in lattices.stacks(first, second):
        found += [_broken(runs, check, nm, sizes) for runs in stack.runs(limits, _TOGETHER)]
        found += [places for _, places in stack.gaps(wanted)]
    places = joined(found)
    return places._replace(length=np.where(places.length == _ALL, np.nan, places.length))


def _suspects(
    pairs: Sequence[Pair], check: np.ndarray, nm: np.ndarray, boxes: np.ndarray, layer: np.ndarray, sizes: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """The rectangles of both kinds, (n, 5) and (m, 5), that a rule may find fault with, and those around them."""
    of, to, on = (_planes([getattr(pair, side) for pair in pairs], boxes, layer) for side in ("of", "to", "on"))
    kept = np.array([not pair.on for pair in pairs])[of[:, 0] % len(pairs)]
    kept[regions.nearby(of, on, -1)[0]] = True
    of = of[kept]
    number = of[:, 0] % len(pairs)
    a, b = regions.nearby(of, to, nm[number])
    kind, inside = check[number], check[number] == _ENCLOSURE
    fault = _may_break(kind[a], nm[number[a]], of[a], to[b])
    bad_of, bad_to = np.zeros(len(of), dtype=bool), np.zeros(len(to), dtype=bool)
    bad_of[a[fault]] = bad_to[b[fault]] = True
    held = _holds(of[a], to[b], nm[number[a]], sizes[of[a, 0] // len(pairs)])
    bad_of[inside] = True
    bad_of[a[inside[a] & held]] = False
    near_of, near_to = bad_of.copy(), bad_to
    near_of[a[bad_to[b]]] = True
    near_to[b[bad_of[a]]] = True
    outer = check[to[:, 0] % len(pairs)] == _ENCLOSURE
    first = np.concatenate([of[near_of & ~inside], to[near_to & outer]])
    return first, np.concatenate([of[near_of & inside], to[near_to & ~outer]])


def _planes(sides: Sequence[tuple[int, ...]], boxes: np.ndarray, layer: np.ndarray) -> np.ndarray:
    """The boxes (n, 5) on the layers of each rule, on its planes."""
    layers = np.arange(layer.max(initial=0) + 1)
    pair, row = np.nonzero(np.array([np.isin(layers, own) for own in sides])[:, layer])
    return np.column_stack([boxes[row, 0] * len(sides) + pair, boxes[row, 1:]])


def _holds(of: np.ndarray, to: np.ndarray, nm: np.ndarray, sizes: np.ndarray) -> np.ndarray:
    """Whether each of the boxes `of` lies in that of `to`, far enough from its sides or those of the window."""
    low = to[:, 1:3] <= np.maximum(of[:, 1:3] - nm[:, None], 0)
    held: np.ndarray = (low & (to[:, 3:] >= np.minimum(of[:, 3:] + nm[:, None], sizes))).all(1)
    return held


def _may_break(check: np.ndarray, nm: np.ndarray, of: np.ndarray, to: np.ndarray) -> np.ndarray:
    """Whether boxes near each other have sides or corners that break a rule where nothing else is around."""
    behind = np.concatenate([to[:, 1:3] - of[:, 1:3], of[:, 3:] - to[:, 3:]], axis=1)
    short = ((behind >= 0) & (behind < nm[:, None])).any(1)
    gap = np.maximum(to[:, 1:3] - of[:, 3:], of[:, 1:3] - to[:, 3:])
    close = (gap.max(1) >= 0) & ((np.maximum(gap, 0) ** 2).sum(1) < nm**2)
    return np.choose(check, [np.zeros_like(short), short, np.ones_like(short), close])


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
