"""Many planes of boxes at once, each on the lattice of its own sides: short runs, near corners, all in flat arrays.

Boxes (n, 5) are whole numbers: plane x0 y0 x1 y1, from 0. A plane has shapes of a first kind and, it may be, of a
second: the code of a square is 1 where the first covers it, 2 where the second does, 3 where both do, else 0.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from domains.layout.places import FALLING, RISING, Places
from domains.layout.regions import SPAN, expanded

NONE = np.zeros((0, 5), dtype=np.int64)
FIRST, SECOND = 1, 2
_FEWEST = 5  # planes of up to 2 ** 5 columns share an array
_SW, _SE, _NW, _NE = (np.arange(256) >> shift & 3 for shift in (0, 2, 4, 6))  # of the four squares around a point
_BENT = ~(((_SW == _SE) & (_NW == _NE)) | ((_SW == _NW) & (_SE == _NE)))


class Runs(NamedTuple):
    """Squares of one code in a row (`axis` 0) or a column (1), or none (`length` 0) between two squares."""

    boxes: np.ndarray
    """(n, 5)"""
    axis: np.ndarray
    length: np.ndarray
    code: np.ndarray
    before: np.ndarray
    """The code of the square to the left or below."""
    after: np.ndarray

    @property
    def places(self) -> Places:
        """Where they are."""
        return Places(self.boxes, self.axis, self.length)

    def at_edge(self, sizes: np.ndarray) -> np.ndarray:
        """(2, n): whether runs begin, and end, at the edge of windows of these sizes (n, 2)."""
        n = np.arange(len(self.axis))
        return np.stack([self.boxes[n, 1 + self.axis] == 0, self.boxes[n, 3 + self.axis] == sizes[n, self.axis]])


class Facing(NamedTuple):
    """Which corners look at each other, as functions of the four codes around a point, for one diagonal.

    `between` is the code of every square between the two.
    """

    low: np.ndarray
    high: np.ndarray
    between: int


Diagonals = tuple[Facing, Facing]
"""Where the high corner is right of the low one, and where it is left of it."""


@dataclass(frozen=True, eq=False)
class Stack:
    """Planes of about as many columns, above each other; empty rows and columns are between them and around."""

    code: np.ndarray
    """(rows, columns)"""
    own: np.ndarray
    """(rows,): which of the planes here a row belongs to."""
    planes: np.ndarray
    xs: np.ndarray
    """(planes, columns): where the squares of a column begin."""
    ys: np.ndarray
    """(rows,): where the squares of a row begin."""

    def runs(self, limits: np.ndarray, touching: np.ndarray) -> Iterator[Runs]:
        """Runs shorter than `limits` (4, planes), by code and plane, and all places where `touching` (4, 4) is true.

        `touching` is by the code before and after.
        """
        yield self._along(self.code, 0, limits, touching)
        yield self._along(np.ascontiguousarray(self.code.T), 1, limits, touching)

    def _along(self, code: np.ndarray, axis: int, limits: np.ndarray, touching: np.ndarray) -> Runs:
        flat = code.ravel()
        turns = np.flatnonzero(flat[1:] != flat[:-1]) + 1
        codes, lines = flat[turns], turns // code.shape[1]
        steps = turns - lines * code.shape[1]
        row, column = (lines, steps) if axis == 0 else (steps, lines)
        own = self.own[row]
        place = self.xs[own, column] if axis == 0 else self.ys[row]
        length = np.diff(place)
        same = (lines[1:] == lines[:-1]) & (own[1:] == own[:-1])
        short = np.flatnonzero(same & (length < limits[codes[:-1], self.planes[own[:-1]]]))
        before = flat[turns - 1]
        met = np.flatnonzero(touching[before, codes])
        start, end = np.concatenate([short, met]), np.concatenate([short + 1, met])
        r0, c0, r1, c1 = row[start], column[start], row[end], column[end]
        r1, c1 = (r0 + 1, c1) if axis == 0 else (r1, c0 + 1)
        which = own[start]
        boxes = np.stack([self.planes[which], self.xs[which, c0], self.ys[r0], self.xs[which, c1], self.ys[r1]], 1)
        long = np.concatenate([length[short], np.zeros(len(met), dtype=length.dtype)])
        return Runs(boxes, np.full(len(start), axis), long, codes[start], before[start], codes[end])

    def gaps(self, wanted: Sequence[tuple[Diagonals, np.ndarray]]) -> Iterator[tuple[int, Places]]:
        """Pairs of corners closer than limits (planes,), for each way to face each other that is wanted; its number."""
        places, codes = self._bends()
        rows, columns = np.divmod(places, self.code.shape[1])
        planes = self.planes[self.own[rows]]
        for number, (diagonals, limits) in enumerate(wanted):
            some = np.flatnonzero(limits[planes])
            for rising, (low, high, between) in zip((True, False), diagonals, strict=True):
                a, b = some[low[codes[some]]], some[high[codes[some]]]
                if len(a) and len(b):
                    least = limits[planes[a]]
                    yield number, self._between((rows[a], columns[a]), (rows[b], columns[b]), rising, between, least)

    def _bends(self) -> tuple[np.ndarray, np.ndarray]:
        """Places in the flat array whose lower left point is a corner, and the codes around it in one number."""
        flat, wide = self.code.ravel(), self.code.shape[1]
        around = flat[: -wide - 1] | flat[1:-wide] << 2 | flat[wide:-1] << 4 | flat[wide + 1 :] << 6
        bent = np.flatnonzero(_BENT[around])
        return bent + wide + 1, around[bent]

    def _between(
        self, low: tuple[np.ndarray, ...], high: tuple[np.ndarray, ...], rising: bool, between: int, limits: np.ndarray
    ) -> Places:
        """Corners, given by row and column, with only squares of one code between them."""
        (ra, ca), (rb, cb) = low, high
        oa, ob = self.own[ra], self.own[rb]
        xa, ya, xb, yb = self.xs[oa, ca], self.ys[ra], self.xs[ob, cb], self.ys[rb]
        sign = 1 if rising else -1
        a, b = _near(oa, sign * xa, ya, ob, sign * xb, yb, limits)
        left, right = (ca[a], cb[b]) if rising else (cb[b], ca[a])
        corners = np.stack([ra[a], left, rb[b], right], 1)
        free = [bool((self.code[r0:r1, c0:c1] == between).all()) for r0, c0, r1, c1 in _rows(corners)]
        a, b = a[free], b[free]
        x0, x1 = np.minimum(xa[a], xb[b]), np.maximum(xa[a], xb[b])
        boxes = np.stack([self.planes[oa[a]], x0, ya[a], x1, yb[b]], 1).reshape(-1, 5)
        return Places(boxes, np.full(len(a), RISING if rising else FALLING), np.hypot(x1 - x0, yb[b] - ya[a]))

    def areas(self) -> np.ndarray:
        """What each of the planes (planes,) is covered of."""
        wide, high = np.diff(self.xs, axis=1, append=0), np.diff(self.ys, append=0)
        return np.bincount(self.own, ((self.code > 0) * wide[self.own]).sum(1) * high).astype(np.int64)


def frames(boxes: np.ndarray, label: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Of the boxes (n, 5) of each label (n,): what frames them, (m, 5), and the area (m,) that they cover."""
    order = np.argsort(label, kind="stable")
    boxes, label = boxes[order], label[order]
    begin = np.flatnonzero(np.diff(label, prepend=-1))
    frame = np.concatenate([np.minimum.reduceat(boxes[:, :3], begin), np.maximum.reduceat(boxes[:, 3:], begin)], axis=1)
    area = (frame[:, 3:] - frame[:, 1:3]).prod(1)
    counts = np.diff(begin, append=len(boxes))
    several = np.repeat(counts > 1, counts)
    number = np.repeat(np.arange(len(begin)), counts)
    for stack in stacks(np.column_stack([number, boxes[:, 1:]])[several]):
        area[stack.planes] = stack.areas()
    return frame, area


def stacks(first: np.ndarray, second: np.ndarray = NONE) -> Iterator[Stack]:
    """The planes on which boxes of two kinds are, by their number of columns."""
    boxes, kinds = np.concatenate([first, second]), np.repeat([FIRST, SECOND], [len(first), len(second)])
    if not len(boxes):
        return
    lattice = _Sides(boxes, (1, 3))
    digits = np.maximum(np.ceil(np.log2(lattice.counts)).astype(int), _FEWEST)
    for size in np.unique(digits).tolist():
        chosen = digits[lattice.own] == size
        yield _stack(boxes[chosen], kinds[chosen], 1 << size)


class _Sides:
    """The places of the sides of boxes on one axis, plane by plane, and the numbers of them that each box has."""

    def __init__(self, boxes: np.ndarray, axis: tuple[int, int]) -> None:
        keys = boxes[:, axis] + boxes[:, :1] * SPAN
        self.places, self.at = np.unique(keys.ravel(), return_inverse=True)
        self.at = self.at.reshape(-1, 2)
        self.planes, self.begin, self.counts = np.unique(self.places // SPAN, return_index=True, return_counts=True)
        self.places %= SPAN
        self.own = np.searchsorted(self.planes, boxes[:, 0])


def _stack(boxes: np.ndarray, kinds: np.ndarray, columns: int) -> Stack:
    x, y = _Sides(boxes, (1, 3)), _Sides(boxes, (2, 4))
    own = np.concatenate([[0, 0], np.repeat(np.arange(len(y.planes)), y.counts)])
    ys = np.concatenate([[0, 0], y.places])
    ranks = np.arange(len(x.places)) - np.repeat(x.begin, x.counts)
    xs = np.zeros((len(x.planes), columns), dtype=np.int64)
    xs[np.repeat(np.arange(len(x.planes)), x.counts), ranks] = x.places
    rows, ends = y.at + 2, x.at - x.begin[x.own, None]
    code = np.zeros(len(own) * columns, dtype=np.uint8)
    for kind in (FIRST, SECOND):
        which = kinds == kind
        box, row = expanded(*rows[which].T)
        begin, end = ends[which][box].T + row * columns
        code[expanded(begin, end)[1]] |= kind
    return Stack(code.reshape(-1, columns), own, x.planes, xs, ys)


def _rows(array: np.ndarray) -> Iterator[tuple[int, ...]]:
    """The rows of an array (n, k); a list of lists would set off the garbage collector."""
    return zip(*(column.tolist() for column in array.T), strict=True)


def _near(
    oa: np.ndarray, xa: np.ndarray, ya: np.ndarray, ob: np.ndarray, xb: np.ndarray, yb: np.ndarray, limits: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """All pairs of a point a and a point b of its plane, level with or right of and above it, closer than a limit."""
    key_a, key_b = oa * SPAN + xa + SPAN // 2, ob * SPAN + xb + SPAN // 2
    order = np.argsort(key_b, kind="stable")
    key_b = key_b[order]
    first, last = np.searchsorted(key_b, key_a), np.searchsorted(key_b, key_a + limits)
    a, b = expanded(first, last)
    b = order[b]
    dx, dy = xb[b] - xa[a], yb[b] - ya[a]
    close = (dy >= 0) & (dx * dx + dy * dy < limits[a] ** 2)
    return a[close], b[close]


def _facing(back: np.ndarray, beside: np.ndarray, front: np.ndarray, beyond: np.ndarray, between: int) -> Diagonals:
    """Corners, by which codes (4,) the square behind the low one may have and those beside it; so for the high one."""
    rising = Facing(back[_SW] & beside[_SE] & beside[_NW], front[_NE] & beyond[_SE] & beyond[_NW], between)
    falling = Facing(back[_SE] & beside[_SW] & beside[_NE], front[_NW] & beyond[_SW] & beyond[_NE], between)
    return rising, falling


def _codes(*allowed: int) -> np.ndarray:
    return np.isin(np.arange(4), allowed)


_IN, _OUT, _ALSO = _codes(1, 3), _codes(0, 2), _codes(2, 3)
WIDTH = (_facing(_OUT, _IN, _OUT, _IN, 1),)
SPACE = (_facing(_IN, _OUT, _IN, _OUT, 0),)
MARGIN = (_facing(_codes(3), _codes(1), _OUT, _IN, 1), _facing(_OUT, _IN, _codes(3), _codes(1), 1))
SEPARATION = (_facing(_IN, _codes(0), _ALSO, _codes(0), 0), _facing(_ALSO, _codes(0), _IN, _codes(0), 0))
OVERLAP = (_facing(_OUT, _IN, _codes(0, 1), _ALSO, 3), _facing(_codes(0, 1), _ALSO, _OUT, _IN, 3))
"""How the corners stand between which the first kind is narrow, or its gaps are; between which the second kind is
barely enclosed in the first; between which the two kinds are close; and between which they barely overlap."""
