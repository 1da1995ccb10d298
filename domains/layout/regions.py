"""Unions of rectangles, exactly: what they cover, which hang together, and few rectangles that make them up.

Boxes are whole numbers x0 y0 x1 y1.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

SPAN = 1 << 32
"""More than any coordinate: what sets planes apart where boxes of many are in one order."""


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

    def turned(self) -> Region:
        """The region with x and y exchanged."""
        return Region(self.ys, self.xs, self.inside.T)


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
    """What a polygon with corners (n, 2) and only horizontal and vertical sides encloses.

    It may touch itself, as one with a hole does; `ValueError` where it winds around a place twice or either way.
    """
    xs, ys = np.unique(points[:, 0]), np.unique(points[:, 1])
    winding = np.zeros((max(len(ys) - 1, 0), len(xs)), dtype=np.int64)
    for (x, y0), (_, y1) in zip(points.tolist(), np.roll(points, -1, axis=0).tolist(), strict=True):
        low, high = np.searchsorted(ys, sorted((y0, y1)))
        winding[low:high, np.searchsorted(xs, x)] += 1 if y0 < y1 else -1
    winding = winding.cumsum(axis=1)[:, :-1]
    if winding.max(initial=0) - winding.min(initial=0) > 1:
        raise ValueError("which crosses itself")
    return Region(xs, ys, winding != 0)


def groups(boxes: np.ndarray) -> np.ndarray:
    """For each box (n, 4) the first one it hangs together with, as they overlap or share an edge, or by a third one."""
    return groups_by_plane(np.concatenate([np.zeros((len(boxes), 1), dtype=np.int64), boxes], axis=1))


def groups_by_plane(boxes: np.ndarray) -> np.ndarray:
    """`groups` of boxes (n, 5) plane x0 y0 x1 y1, which hang together on their plane only."""
    a, b = nearby(boxes, boxes, 0)
    shared = np.minimum(boxes[a, 3:], boxes[b, 3:]) - np.maximum(boxes[a, 1:3], boxes[b, 1:3])
    linked = (shared.max(-1) > 0) & (a != b)  # not at a corner only
    a, b = a[linked], b[linked]
    label = np.arange(len(boxes))
    while True:
        lowest = label.copy()
        np.minimum.at(lowest, a, label[b])
        lowest = lowest[lowest]
        if (lowest == label).all():
            return np.asarray(label)
        label = lowest


def nearby(some: np.ndarray, others: np.ndarray, reach: int | np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """All pairs of one of some boxes (n, 5) and one of others (m, 5) on its plane, no further apart on either axis.

    Boxes are plane x0 y0 x1 y1, and the reach is one or (n,); what comes back are the numbers of the boxes, (k,) and
    (k,).
    """
    order = np.argsort(others[:, 0] * SPAN + others[:, 1], kind="stable")
    plane, x0, y0, x1, y1 = np.ascontiguousarray(others[order].T)
    own, left, below, right, above = np.ascontiguousarray(some.T)
    left, below, right, above = left - reach, below - reach, right + reach, above + reach
    widest = np.zeros(max(plane.max(initial=0), own.max(initial=0)) + 1, dtype=np.int64)
    np.maximum.at(widest, plane, x1 - x0)
    start = plane * SPAN + x0
    first = np.searchsorted(start, own * SPAN + left - widest[own])
    a, b = expanded(first, np.searchsorted(start, own * SPAN + right, "right"))
    close = left[a] <= x1[b]  # the fourth side is how they were found
    a, b = a[close], b[close]
    close = (below[a] <= y1[b]) & (y0[b] <= above[a])
    return a[close], order[b[close]]


def expanded(first: np.ndarray, last: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """For ranges (n,) from first to last: the number of the range, and each number in it, one range after the other."""
    counts = np.maximum(last - first, 0)
    number = np.repeat(np.arange(len(counts)), counts)
    return number, np.arange(len(number)) - np.repeat(counts.cumsum() - counts - first, counts)


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
