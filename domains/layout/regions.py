"""Unions of rectangles, exactly: what they cover, where they are narrow, and few rectangles that make them up.

Boxes are whole numbers x0 y0 x1 y1.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np


@dataclass(frozen=True, eq=False)
class Region:
    """A part of a window on the lattice of its own edges: `inside[j, i]` is for [xs[i], xs[i+1]) x [ys[j], ys[j+1])."""

    xs: np.ndarray
    ys: np.ndarray
    inside: np.ndarray

    @property
    def area(self) -> int:
        """Of what is inside."""
        return int(np.diff(self.ys) @ self.inside @ np.diff(self.xs))

    def outside(self) -> Region:
        """The rest of the window."""
        return Region(self.xs, self.ys, ~self.inside)

    def turned(self) -> Region:
        """The region with x and y exchanged."""
        return Region(self.ys, self.xs, self.inside.T)

    def mirrored(self) -> Region:
        """The region with x replaced by -x."""
        return Region(-self.xs[::-1], self.ys, self.inside[:, ::-1])


class Narrow(NamedTuple):
    """A box across which a region measures only `distance`."""

    x0: int
    y0: int
    x1: int
    y1: int
    distance: float


def union(boxes: np.ndarray, width: int, height: int) -> Region:
    """What boxes (n, 4) cover of the window [0, width) x [0, height), in which they lie."""
    rows = boxes.tolist()
    xs = sorted({0, width, *(row[0] for row in rows), *(row[2] for row in rows)})
    ys = sorted({0, height, *(row[1] for row in rows), *(row[3] for row in rows)})
    column, row_of = ({place: k for k, place in enumerate(axis)} for axis in (xs, ys))
    inside = np.zeros((len(ys) - 1, len(xs) - 1), dtype=bool)
    for x0, y0, x1, y1 in rows:
        inside[row_of[y0] : row_of[y1], column[x0] : column[x1]] = True
    return Region(np.array(xs), np.array(ys), inside)


def polygon(points: np.ndarray) -> Region:
    """What a polygon with corners (n, 2) and only horizontal and vertical sides encloses, by the even-odd rule."""
    xs, ys = np.unique(points[:, 0]), np.unique(points[:, 1])
    crossed = np.zeros((max(len(ys) - 1, 0), len(xs)), dtype=bool)
    for (x, y0), (_, y1) in zip(points.tolist(), np.roll(points, -1, axis=0).tolist(), strict=True):
        low, high = np.searchsorted(ys, sorted((y0, y1)))
        crossed[low:high, np.searchsorted(xs, x)] ^= True
    return Region(xs, ys, np.logical_xor.accumulate(crossed, axis=1)[:, :-1])


def narrow(region: Region, least: int) -> list[Narrow]:
    """Where a region measures less than `least`: between parallel edges that face each other, and between corners.

    The distance is Euclidean. Nothing counts that is cut off by the window's edge, as it may go on behind it.
    """
    found = [*_across(region, least), *_between_corners(region, least)]
    found += [Narrow(y0, x0, y1, x1, d) for x0, y0, x1, y1, d in _across(region.turned(), least)]
    found += [Narrow(-x1, y0, -x0, y1, d) for x0, y0, x1, y1, d in _between_corners(region.mirrored(), least)]
    return sorted(set(found))


def groups(boxes: np.ndarray) -> np.ndarray:
    """For each box (n, 4) the first one it hangs together with, as they overlap or share an edge, or by a third one."""
    low, high = boxes[:, None, :2], boxes[:, None, 2:]
    shared = np.minimum(high, boxes[:, 2:]) - np.maximum(low, boxes[:, :2])  # (n, n, 2), below 0 where apart
    linked = (shared.min(-1) >= 0) & (shared.max(-1) > 0)
    label = np.arange(len(boxes))
    while True:
        lowest = np.where(linked, label, len(boxes)).min(1, initial=len(boxes))
        if (lowest == label).all():
            return np.asarray(label)
        label = lowest


def cover(region: Region) -> np.ndarray:
    """Rectangles (m, 4) that make up a region, overlapping, each as large as it can be; by lower left corner.

    First those without which some part stays bare, then always the one that covers most of what is bare. A least
    cover is NP-hard to find (Culberson and Reckhow 1994, Journal of Algorithms 17, 2).
    """
    found = _largest(region.inside)
    chosen = found[_enough(found, region.inside * np.diff(region.ys)[:, None] * np.diff(region.xs))]
    sides = [axis[chosen[:, k]] for k, axis in enumerate((region.xs, region.ys) * 2)]
    boxes: np.ndarray = np.stack(sides, axis=1)[np.lexsort(sides[::-1])]
    return boxes


def _runs(inside: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Row, start and end (half-open) of every run of true in the rows."""
    framed = np.zeros((inside.shape[0], inside.shape[1] + 2), dtype=bool)  # numpy.pad takes ten times as long
    framed[:, 1:-1] = inside
    rows, starts = np.nonzero(framed[:, 1:] > framed[:, :-1])
    return rows, starts, np.nonzero(framed[:, 1:] < framed[:, :-1])[1]


def _across(region: Region, least: int) -> Iterator[Narrow]:
    """Runs shorter than `least` with both ends in the window; equal runs in rows that follow each other are one."""
    rows, starts, ends = _runs(region.inside)
    short = (region.xs[ends] - region.xs[starts] < least) & (starts > 0) & (ends < len(region.xs) - 1)
    found = sorted(zip(starts[short].tolist(), ends[short].tolist(), rows[short].tolist(), strict=True), reverse=True)
    while found:
        start, end, row = found.pop()
        top = row + 1
        while found and found[-1] == (start, end, top):
            top = found.pop()[-1] + 1
        (x0, x1), (y0, y1) = region.xs[[start, end]].tolist(), region.ys[[row, top]].tolist()
        yield Narrow(x0, y0, x1, y1, float(x1 - x0))


def _between_corners(region: Region, least: int) -> Iterator[Narrow]:
    """Pairs of a corner that juts in from the lower left and one from the upper right, closer than `least`."""
    i = region.inside
    low_left, low_right, up_left, up_right = i[:-1, :-1], i[:-1, 1:], i[1:, :-1], i[1:, 1:]
    sides = low_right & up_left
    ay, ax = np.argwhere(sides & ~low_left).T + 1
    by, bx = np.argwhere(sides & ~up_right).T + 1
    if not len(ax) or not len(bx):
        return
    a, b = _near(region.xs[ax], region.ys[ay], region.xs[bx], region.ys[by], least)
    ax, ay, bx, by = ax[a], ay[a], bx[b], by[b]
    bare = np.zeros((len(region.ys), len(region.xs)), dtype=np.int64)
    bare[1:, 1:] = (~i).cumsum(0).cumsum(1)  # of the squares left of and below each corner, how many are not inside
    seen = bare[by, bx] - bare[ay, bx] - bare[by, ax] + bare[ay, ax] == 0
    boxes = np.stack([region.xs[ax], region.ys[ay], region.xs[bx], region.ys[by]], axis=1)[seen]
    for x0, y0, x1, y1 in boxes.tolist():
        yield Narrow(x0, y0, x1, y1, math.hypot(x1 - x0, y1 - y0))


def _near(ax: np.ndarray, ay: np.ndarray, bx: np.ndarray, by: np.ndarray, least: int) -> tuple[np.ndarray, np.ndarray]:
    """Numbers of all pairs of a point a and a point b, level with it or right of and above it, closer than `least`."""
    order = np.argsort(bx, kind="stable")
    first, last = np.searchsorted(bx[order], [ax, ax + least])  # the others need no look: there may be very many
    counts = last - first
    a = np.repeat(np.arange(len(ax)), counts)
    b = order[np.arange(counts.sum()) - np.repeat(counts.cumsum() - counts - first, counts)]
    dx, dy = bx[b] - ax[a], by[b] - ay[a]
    close = (dy >= 0) & (dx**2 + dy**2 < least**2)
    return a[close], b[close]


def _largest(inside: np.ndarray) -> np.ndarray:
    """All rectangles (k, 4) of true squares that cannot grow on any side."""
    framed = np.pad(inside, 1)
    found = []
    for bottom in range(1, len(framed) - 1):
        full = np.logical_and.accumulate(framed[bottom:], axis=0)  # [j]: rows bottom .. bottom + j are all inside
        for top, x0, x1 in zip(*(part.tolist() for part in _runs(full)), strict=True):
            below, above = framed[bottom - 1, x0:x1], framed[bottom + top + 1, x0:x1]
            if not below.all() and not above.all():
                found.append((x0 - 1, bottom - 1, x1 - 1, bottom + top))
    return np.array(found, dtype=np.int64).reshape(-1, 4)


def _enough(found: np.ndarray, areas: np.ndarray) -> list[int]:
    """Which of the rectangles `found` (k, 4) cover all squares of a lattice whose `areas` are not 0."""
    squares = [(slice(y0, y1), slice(x0, x1)) for x0, y0, x1, y1 in found.tolist()]
    times = np.zeros(areas.shape, dtype=int)
    for square in squares:
        times[square] += 1
    chosen = [k for k, square in enumerate(squares) if (times[square] == 1).any()]
    bare = areas.copy()
    for k in chosen:
        bare[squares[k]] = 0
    while bare.any():
        best = int(np.argmax([bare[square].sum() for square in squares]))
        bare[squares[best]] = 0
        chosen.append(best)
    return chosen
