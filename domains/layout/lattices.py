"""Many planes of boxes at once, each on the lattice of its own sides: short runs, near corners, all in flat arrays.

Boxes (n, 5) are whole numbers: plane x0 y0 x1 y1, from 0. A plane has shapes of a first kind and, it may be, of a
second: the code of a square is 1 where the first covers it, 2 where the second does, 3 where both do, else 0.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np

from domains.layout.places import FALLING, RISING, Places
from domains.layout.regions import SPAN, expanded

NONE = np.zeros((0, 5), dtype=np.int64)
FIRST, SECOND = 1, 2
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
    """Planes one after the other, row by row; an empty row is before each, and the last square of each row is empty."""

    code: np.ndarray
    """(squares,), the first of them empty and of no plane."""
    begin: np.ndarray
    """(rows,): the number of the first square of a row."""
    own: np.ndarray
    """(rows,): which of the planes here a row belongs to."""
    planes: np.ndarray
    first: np.ndarray
    """(planes,): where the places of a plane are in `xs`."""
    xs: np.ndarray
    """Where the squares of a column begin."""
    ys: np.ndarray
    """(rows,): where the squares of a row begin."""

    @cached_property
    def wide(self) -> np.ndarray:
        """(rows,): how many squares a row has."""
        wide: np.ndarray = np.diff(self.begin, append=len(self.code))
        return wide

    @cached_property
    def row(self) -> np.ndarray:
        """(squares,): of each."""
        return np.concatenate([[0], np.repeat(np.arange(len(self.begin)), self.wide)])

    @cached_property
    def below(self) -> np.ndarray:
        """(squares,): the codes of the squares below."""
        back = np.where(np.diff(self.own, prepend=-1), 0, self.wide)
        below = self.code[np.arange(1, len(self.code)) - back[self.row[1:]]]
        return np.concatenate([self.code[:1], below])

    def runs(self, limits: np.ndarray, touching: np.ndarray) -> Iterator[Runs]:
        """Runs shorter than `limits` (4, planes), by code and plane, and all places where `touching` (4, 4) is true.

        `touching` is by the code before and after.
        """
        across = np.flatnonzero(self.code[1:] != self.code[:-1]) + 1
        row, column = self._at(across)
        yield self._along(0, row, column, self.code[across - 1], self.code[across], limits, touching)
        up = np.flatnonzero(self.code != self.below)
        row, column = self._at(up)
        order = np.argsort((self.first[self.own[row]] + column) * len(self.begin) + row)
        row, column, up = row[order], column[order], up[order]
        yield self._along(1, row, column, self.below[up], self.code[up], limits, touching)

    def _at(self, squares: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        row = self.row[squares]
        return row, squares - self.begin[row]

    def _along(
        self, axis: int, row: np.ndarray, column: np.ndarray, before: np.ndarray, codes: np.ndarray,
        limits: np.ndarray, touching: np.ndarray,
    ) -> Runs:  # fmt: skip
        """Of the places where the code turns, in the order of lines."""
        own = self.own[row]
        xs = self.first[own] + column
        place, line = (self.xs[xs], row) if axis == 0 else (self.ys[row], xs)
        length = np.diff(place)
        short = np.flatnonzero((line[1:] == line[:-1]) & (length < limits[codes[:-1], self.planes[own[:-1]]]))
        met = np.flatnonzero(touching[before, codes])
        start, end = np.concatenate([short, met]), np.concatenate([short + 1, met])
        right, above = (xs[end], row[start] + 1) if axis == 0 else (xs[start] + 1, row[end])
        sides = self.xs[xs[start]], self.ys[row[start]], self.xs[right], self.ys[above]
        long = np.concatenate([length[short], np.zeros(len(met), dtype=length.dtype)])
        boxes = np.stack([self.planes[own[start]], *sides], 1)
        return Runs(boxes, np.full(len(start), axis), long, codes[start], before[start], codes[end])

    def gaps(self, wanted: Sequence[tuple[Diagonals, np.ndarray]]) -> Iterator[tuple[int, Places]]:
        """Pairs of corners closer than limits (planes,), for each way to face each other that is wanted; its number."""
        around = self.below[:-1] | self.below[1:] << 2 | self.code[:-1] << 4 | self.code[1:] << 6
        bent = np.flatnonzero(_BENT[around])
        codes = around[bent]
        rows, columns = self._at(bent + 1)
        planes = self.planes[self.own[rows]]
        for number, (diagonals, limits) in enumerate(wanted):
            some = np.flatnonzero(limits[planes])
            for rising, (low, high, between) in zip((True, False), diagonals, strict=True):
                a, b = some[low[codes[some]]], some[high[codes[some]]]
                if len(a) and len(b):
                    least = limits[planes[a]]
                    yield number, self._between((rows[a], columns[a]), (rows[b], columns[b]), rising, between, least)

    def _between(
        self, low: tuple[np.ndarray, ...], high: tuple[np.ndarray, ...], rising: bool, between: int, limits: np.ndarray
    ) -> Places:
        """Corners, given by row and column, with only squares of one code between them."""
        (ra, ca), (rb, cb) = low, high
        oa, ob = self.own[ra], self.own[rb]
        xa, ya, xb, yb = self.xs[self.first[oa] + ca], self.ys[ra], self.xs[self.first[ob] + cb], self.ys[rb]
        sign = 1 if rising else -1
        a, b = _near(oa, sign * xa, ya, ob, sign * xb, yb, limits)
        left, right = (ca[a], cb[b]) if rising else (cb[b], ca[a])
        corners = np.stack([self.begin[ra[a]], self.begin[rb[b]], self.wide[ra[a]], left, right], 1)
        free = [
            bool((self.code[low:high].reshape(-1, wide)[:, c0:c1] == between).all())
            for low, high, wide, c0, c1 in _rows(corners)
        ]
        a, b = a[free], b[free]
        x0, x1 = np.minimum(xa[a], xb[b]), np.maximum(xa[a], xb[b])
        boxes = np.stack([self.planes[oa[a]], x0, ya[a], x1, yb[b]], 1).reshape(-1, 5)
        return Places(boxes, np.full(len(a), RISING if rising else FALLING), np.hypot(x1 - x0, yb[b] - ya[a]))

    def areas(self) -> np.ndarray:
        """What each of the planes (planes,) is covered of."""
        squares = np.flatnonzero(self.code)
        row, column = self._at(squares)
        at = self.first[self.own[row]] + column
        sizes = (self.xs[at + 1] - self.xs[at]) * (self.ys[row + 1] - self.ys[row])
        return np.bincount(self.own[row], sizes, len(self.planes)).astype(np.int64)


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
    stack = stacked(np.column_stack([number, boxes[:, 1:]])[several])
    area[stack.planes] = stack.areas()
    return frame, area


def stacked(first: np.ndarray, second: np.ndarray = NONE) -> Stack:
    """The planes on which boxes of two kinds are."""
    boxes = np.concatenate([first, second])
    x, y = _Sides(boxes, (1, 3)), _Sides(boxes, (2, 4))
    number = np.arange(len(x.planes))
    own = np.insert(np.repeat(number, y.counts), y.begin, number)
    wide = x.counts[own]
    begin = np.cumsum(wide) - wide + 1
    code = np.zeros(wide.sum() + 1, dtype=np.uint8)
    rows, columns = y.at + (x.own + 1)[:, None], x.at - x.begin[x.own, None]
    for kind, which in ((FIRST, slice(len(first))), (SECOND, slice(len(first), None))):
        box, row = expanded(*rows[which].T)
        low, high = columns[which][box].T + begin[row]
        code[expanded(low, high)[1]] |= kind
    return Stack(code, begin, own, x.planes, x.begin, x.places, np.insert(y.places, y.begin, 0))


class _Sides:
    """The places of the sides of boxes on one axis, plane by plane, and the numbers of them that each box has."""

    def __init__(self, boxes: np.ndarray, axis: tuple[int, int]) -> None:
        keys = boxes[:, axis] + boxes[:, :1] * SPAN
        self.places, self.at = np.unique(keys.ravel(), return_inverse=True)
        self.at = self.at.reshape(-1, 2)
        self.planes, self.begin, self.counts = np.unique(self.places // SPAN, return_index=True, return_counts=True)
        self.places %= SPAN
        self.own = np.searchsorted(self.planes, boxes[:, 0])


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
