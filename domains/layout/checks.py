"""Where cells break design rules, all cells of a batch at once; `rules.py` says what the rules are.

Rectangles that no rule can find fault with are left out first, and the rest goes through `lattices.py`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

import numpy as np

from domains.layout import lattices, regions
from domains.layout.lattices import FIRST, SECOND, Gaps, Runs
from domains.layout.technology import Area, Layer, Pair, Rule, Technology

Box = tuple[int, int, int, int]
_ALL = 1 << 31
"""The length of a run across what is not enclosed at all, which is longer than any."""


class Finding(NamedTuple):
    """A place x0 y0 x1 y1 where a layer of a cell breaks a rule, and what was measured: nm, nm², or both sides."""

    cell: int
    kind: str
    layer: int
    box: Box
    measured: float | tuple[int, int] | None
    """None where nothing could be measured: a shape that is not enclosed, a corner off the grid."""
    limit: Rule | Area | Pair | None


class Batch:
    """Cells of one technology in one array; a plane is one layer, or one rule between layers, of one cell."""

    def __init__(self, technology: Technology, shapes: Sequence[np.ndarray], sizes: Sequence[tuple[int, int]]) -> None:
        self.technology = technology
        self.sizes = np.array(sizes, dtype=np.int64).reshape(-1, 2)
        every = np.concatenate([np.zeros((0, 5), dtype=np.int64), *shapes])
        cell = np.repeat(np.arange(len(shapes)), [len(own) for own in shapes])
        self.boxes = np.concatenate([cell[:, None], every[:, 1:]], axis=1)
        """(n, 5): cell x0 y0 x1 y1."""
        self.layer = every[:, 0]
        self._kept: dict[tuple[tuple[int, ...], tuple[int, ...]], np.ndarray] = {}
        self._labels: dict[tuple[int, int], tuple[np.ndarray, np.ndarray]] = {}

    def findings(self) -> Iterator[Finding]:
        """All there are, in no order."""
        for number, layer in enumerate(self.technology.layers):
            own = np.flatnonzero(self.layer == number)
            if len(own) and layer.size:
                yield from self._sizes(number, layer.size, own)
            if len(own) and layer.area:
                yield from self._areas(number, layer.area, own)
        yield from self._distances()
        yield from self._pairs()
        for row in np.flatnonzero((self.boxes[:, 1:] % self.technology.grid != 0).any(1)).tolist():
            cell, *box = self.boxes[row].tolist()
            yield Finding(cell, "grid", int(self.layer[row]), (box[0], box[1], box[2], box[3]), None, None)

    def _sizes(self, number: int, limit: Rule, own: np.ndarray) -> Iterator[Finding]:
        """Connected shapes that are not squares of exactly this size, as far as they are in the window."""
        boxes = self.boxes[own]
        sides = boxes[:, 3:] - boxes[:, 1:3]
        cut = (boxes[:, 1:3] == 0) | (boxes[:, 3:] == self.sizes[boxes[:, 0]])
        a, b = regions.nearby(boxes, boxes, 0)
        wrong = ~((sides == limit.nm) | (cut & (sides < limit.nm))).all(1)
        wrong[a[a != b]] = True
        for shape in self._shapes(own, boxes[wrong, 0]):
            x0, y0, x1, y1 = box = _frame(shape)
            width, height = self.sizes[shape[0, 0]].tolist()
            whole = len(shape) == 1 or _area(shape) == (x1 - x0) * (y1 - y0)
            if not (whole and _fits(x0, x1, width, limit.nm) and _fits(y0, y1, height, limit.nm)):
                yield Finding(int(shape[0, 0]), "size", number, box, (x1 - x0, y1 - y0), limit)

    def _areas(self, number: int, limit: Area, own: np.ndarray) -> Iterator[Finding]:
        """Shapes of too little area, unless they meet the window's edge."""
        boxes = self.boxes[own]
        small = (boxes[:, 3:] - boxes[:, 1:3]).prod(1) < limit.nm2
        few, rest = boxes[small], boxes[~small]
        a, b = regions.nearby(few, rest, 0)
        shared = np.minimum(few[a, 3:], rest[b, 3:]) - np.maximum(few[a, 1:3], rest[b, 1:3])
        small[np.flatnonzero(small)[a[shared.max(1, initial=0) > 0]]] = False  # hang together with one that is enough
        for shape in self._shapes(own, boxes[small, 0]):
            x0, y0, x1, y1 = box = _frame(shape)
            width, height = self.sizes[shape[0, 0]].tolist()
            cut = x0 == 0 or y0 == 0 or x1 == width or y1 == height
            area = limit.nm2 if cut else _area(shape)
            if area < limit.nm2:
                yield Finding(int(shape[0, 0]), "area", number, box, area, limit)

    def _shapes(self, own: np.ndarray, cells: np.ndarray) -> Iterator[np.ndarray]:
        """The rectangles (n, 5) of each connected shape of a layer in some cells."""
        boxes = self.boxes[own]
        boxes = boxes[np.isin(boxes[:, 0], cells)]
        label = regions.groups_by_plane(boxes)
        order = np.argsort(label, kind="stable")
        yield from np.split(boxes[order], np.flatnonzero(np.diff(label[order])) + 1) if len(boxes) else ()

    def _distances(self) -> Iterator[Finding]:
        """Width, space and notch of every layer."""
        layers = self.technology.layers
        width = np.array([layer.width.nm if layer.width else 0 for layer in layers])
        space = np.array([max(layer.space.nm, layer.notch.nm if layer.notch else 0) for layer in layers])
        own = np.concatenate([self._concerned(number, layer) for number, layer in enumerate(layers)])
        planes = self.boxes[own, :1] * len(layers) + self.layer[own, None]
        widths, spaces = np.tile(width, len(self.sizes)), np.tile(space, len(self.sizes))
        limits = np.stack([spaces, widths, 0 * widths, 0 * widths])
        wanted = [(way, widths) for way in lattices.WIDTH] + [(way, spaces) for way in lattices.SPACE]
        for stack in lattices.stacks(np.concatenate([planes, self.boxes[own, 1:]], axis=1)):
            narrow, gaps = [], []
            for runs in stack.runs(limits, _NOWHERE):
                solid = runs.code == FIRST
                cut = self._at_edge(runs, len(layers)).any(0)
                narrow += _of_runs(runs.chosen(solid & ~cut))
                gaps += _of_runs(runs.chosen(~solid))
            for way, found in stack.gaps(wanted):
                (gaps if way else narrow).extend(_of_gaps(found))
            for place in _joined(narrow):
                cell, number = divmod(place.plane, len(layers))
                yield Finding(cell, "width", number, place.box, place.length, layers[number].width)
            for place in _joined(gaps):
                yield from self._gap(place)

    def _concerned(self, number: int, layer: Layer) -> np.ndarray:
        """The rectangles of a layer that a distance may be wrong at: without a least width, those near others."""
        own = np.flatnonzero(self.layer == number)
        if not layer.width:
            a, b = regions.nearby(self.boxes[own], self.boxes[own], layer.space.nm - 1)
            own = own[np.unique(a[a != b])]
        return own

    def _gap(self, place: _Place) -> Iterator[Finding]:
        """A gap between two shapes is a space, one between sides of one shape a notch."""
        cell, number = divmod(place.plane, len(self.technology.layers))
        layer = self.technology.layers[number]
        boxes, label = self._labelled(cell, number)
        a, b = (label[_holding(boxes, *point)] for point in place.ends())
        limit = layer.notch if a == b and layer.notch else layer.space
        if place.length < limit.nm:
            yield Finding(cell, "notch" if a == b else "space", number, place.box, place.length, limit)

    def _labelled(self, cell: int, number: int) -> tuple[np.ndarray, np.ndarray]:
        if (cell, number) not in self._labels:
            boxes = self.boxes[(self.boxes[:, 0] == cell) & (self.layer == number), 1:]
            self._labels[cell, number] = boxes, regions.groups(boxes)
        return self._labels[cell, number]

    def _at_edge(self, runs: Runs, planes: int) -> np.ndarray:
        """(2, n): whether runs begin, and end, at the window's edge."""
        n = np.arange(len(runs.axis))
        ends = self.sizes[runs.boxes[:, 0] // planes, runs.axis]
        return np.stack([runs.boxes[n, 1 + runs.axis] == 0, runs.boxes[n, 3 + runs.axis] == ends])

    def _pairs(self) -> Iterator[Finding]:
        """Rules between layers."""
        pairs = self.technology.pairs
        if not pairs:
            return
        first, second = [lattices.NONE], [lattices.NONE]
        for number, pair in enumerate(pairs):
            of, to = self._suspects(pair)
            for own, kind in zip((to, of) if pair.check == "enclosure" else (of, to), (first, second), strict=True):
                planes = self.boxes[own, :1] * len(pairs) + number
                kind.append(np.concatenate([planes, self.boxes[own, 1:]], axis=1))
        margins, apart, whole, shared = (
            np.tile([value(pair) for pair in pairs], len(self.sizes)) for value in (_margin, _apart, _whole, _shared)
        )
        limits = np.stack([apart, margins, whole, shared])
        wanted = [(way, margins) for way in lattices.MARGIN] + [(way, apart) for way in lattices.SEPARATION]
        wanted += [(way, shared) for way in lattices.OVERLAP]
        for stack in lattices.stacks(np.concatenate(first), np.concatenate(second)):
            places = [place for runs in stack.runs(limits, _TOGETHER) for place in self._broken(runs, margins > 0)]
            places += [place for _, found in stack.gaps(wanted) for place in _of_gaps(found)]
            for place in _joined(places):
                cell, number = divmod(place.plane, len(pairs))
                pair = pairs[number]
                measured = None if place.length == _ALL else place.length
                yield Finding(cell, pair.check, pair.of[0], place.box, measured, pair)

    def _suspects(self, pair: Pair) -> tuple[np.ndarray, np.ndarray]:
        """Which rectangles of both kinds a rule may find fault with."""
        of, to = self._chosen(pair.of, pair.on), self._chosen(pair.to, ())
        if pair.check == "enclosure":
            a, b = regions.nearby(self.boxes[of], self.boxes[to], 0)
            inner, outer, size = self.boxes[of[a]], self.boxes[to[b]], self.sizes[self.boxes[of[a], 0]]
            low = outer[:, 1:3] <= np.maximum(inner[:, 1:3] - pair.nm, 0)
            high = outer[:, 3:] >= np.minimum(inner[:, 3:] + pair.nm, size)
            of = np.delete(of, np.unique(a[(low & high).all(1)]))
            a, b = regions.nearby(self.boxes[of], self.boxes[to], pair.nm)
            return of, to[np.unique(b)]
        a, b = regions.nearby(self.boxes[of], self.boxes[to], pair.nm - (pair.check == "separation"))
        return of[np.unique(a)], to[np.unique(b)]

    def _chosen(self, layers: tuple[int, ...], on: tuple[int, ...]) -> np.ndarray:
        """The rectangles of some layers, all or those that overlap others."""
        if (layers, on) not in self._kept:
            own = np.flatnonzero(np.isin(self.layer, layers))
            if on:
                a, _ = regions.nearby(self.boxes[own], self.boxes[self._chosen(on, ())], -1)
                own = own[np.unique(a)]
            self._kept[layers, on] = own
        return self._kept[layers, on]

    def _broken(self, runs: Runs, enclosed: np.ndarray) -> list[_Place]:
        """The runs on planes of pairs that break their rule; `enclosed` are the planes where the first is to go on."""
        pairs = self.technology.pairs
        before, code, after = runs.before, runs.code, runs.after
        apart, over = (
            np.array([pair.check == kind for pair in pairs])[runs.boxes[:, 0] % len(pairs)]
            for kind in ("separation", "overlap")
        )
        point = runs.length == 0
        facing = (before & FIRST > 0) & (after & SECOND > 0) | (before & SECOND > 0) & (after & FIRST > 0)
        low, high = self._at_edge(runs, len(pairs))
        ending = (before == FIRST | SECOND) & (after & FIRST == 0) & ~high
        ending |= (after == FIRST | SECOND) & (before & FIRST == 0) & ~low
        gap = apart & facing & (point | (code == 0))
        margin = enclosed[runs.boxes[:, 0]] & ending & (point | (code == FIRST))
        bare = ~apart & ~over & ~point & (code == SECOND) & (runs.axis == 0)
        crossing = (before == FIRST) & (after == SECOND) | (before == SECOND) & (after == FIRST)
        thin = over & crossing & (point | (code == FIRST | SECOND))
        lengths = np.where(bare, _ALL, runs.length)
        return _of_runs(runs._replace(length=lengths).chosen(gap | margin | bare | thin))


def _margin(pair: Pair) -> int:
    return pair.nm if pair.check in ("enclosure", "extension") else 0


def _apart(pair: Pair) -> int:
    return pair.nm if pair.check == "separation" else 0


def _whole(pair: Pair) -> int:
    return _ALL if pair.check == "enclosure" else 0


def _shared(pair: Pair) -> int:
    return pair.nm if pair.check == "overlap" else 0


_NOWHERE, _TOGETHER = np.zeros((2, 4, 4), dtype=bool)
_TOGETHER[[3, 0, 1, 2], [0, 3, 2, 1]] = True  # nothing is left of an enclosure, or of a gap


class _Place(NamedTuple):
    """A box across which something measures only `length`: along x or y (`axis` 0, 1), rising or falling (2, 3)."""

    plane: int
    axis: int
    x0: int
    y0: int
    x1: int
    y1: int
    length: float

    @property
    def box(self) -> Box:
        """x0 y0 x1 y1."""
        return self.x0, self.y0, self.x1, self.y1

    def ends(self) -> tuple[tuple[float, float], tuple[float, float]]:
        """Points just behind both ends."""
        left, right, below, above = self.x0 - 0.5, self.x1 + 0.5, self.y0 - 0.5, self.y1 + 0.5
        if self.axis == 0:
            return (left, below + 1), (right, below + 1)
        if self.axis == 1:
            return (left + 1, below), (left + 1, above)
        return ((left, below), (right, above)) if self.axis == 2 else ((right, below), (left, above))


def _of_runs(runs: Runs) -> list[_Place]:
    boxes = runs.boxes
    columns = [boxes[:, 0], runs.axis, *boxes[:, 1:].T, runs.length]
    return [_Place(*row) for row in zip(*(column.tolist() for column in columns), strict=True)]


def _of_gaps(gaps: Gaps) -> list[_Place]:
    columns = [gaps.boxes[:, 0], np.where(gaps.rising, 2, 3), *gaps.boxes[:, 1:].T, gaps.length]
    return [_Place(*row) for row in zip(*(column.tolist() for column in columns), strict=True)]


def _joined(places: Iterable[_Place]) -> list[_Place]:
    """Equal runs in rows that follow each other are one."""
    joined: dict[tuple[float, ...], _Place] = {}
    for place in sorted(set(places)):
        plane, axis, x0, y0, x1, y1, length = place
        if axis > 1:
            joined[place] = place
            continue
        start, end, sides = (y0, y1, (x0, x1)) if axis == 0 else (x0, x1, (y0, y1))
        before = joined.pop((plane, axis, *sides, start), None)
        if before and before.length == length:
            place = place._replace(x0=before.x0, y0=before.y0)
        elif before:
            joined[(plane, axis, *sides, start, 0)] = before
        joined[(plane, axis, *sides, end)] = place
    return list(joined.values())


def _holding(boxes: np.ndarray, x: float, y: float) -> int:
    """The first box that has a point inside."""
    return int(np.argmax((boxes[:, :2] < [x, y]).all(1) & (boxes[:, 2:] > [x, y]).all(1)))


def _frame(shape: np.ndarray) -> Box:
    (x0, y0), (x1, y1) = shape[:, 1:3].min(0).tolist(), shape[:, 3:].max(0).tolist()
    return x0, y0, x1, y1


def _area(shape: np.ndarray) -> int:
    if len(shape) == 1:
        return int((shape[0, 3] - shape[0, 1]) * (shape[0, 4] - shape[0, 2]))
    _, _, x1, y1 = _frame(shape)
    return regions.union(shape[:, 1:], x1, y1).area


def _fits(start: int, end: int, window: int, size: int) -> bool:
    cut = start == 0 or end == window
    return end - start == size or (cut and end - start < size)
