"""What hangs together electrically in a layout: nets, gates, cuts that land on nothing, metal that nothing reaches.

Pieces of one conductor are its connected parts, where sharing an edge connects and sharing a corner does not. A gate
ends its channel: diffusion under poly belongs to no net, and what is left on both sides are two pieces. A cut joins
every piece that it overlaps on the layers it can land on. The window hides what lies behind its edge, so what meets
the edge is taken to be sound.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from scipy import ndimage, sparse  # type: ignore[import-untyped]

from domains.layout.cell import Cell
from domains.layout.technology import Cut


class Box(NamedTuple):
    """A connected part x0 y0 x1 y1 of a layer, by the box around it, in nm."""

    layer: int
    x0: int
    y0: int
    x1: int
    y1: int


class Point(NamedTuple):
    """A place in nm on a layer; it is in the square from it to (x + 1, y + 1)."""

    layer: int
    x: int
    y: int


@dataclass(frozen=True, eq=False)
class Nets:
    """The nets of a cell on the lattice of its edges: `net[layer, j, i]` is for [xs[i], xs[i+1]) x [ys[j], ys[j+1]).

    Nets are numbered from 0; -1 is where nothing conducts. Cuts belong to the net that they join.
    """

    xs: np.ndarray
    ys: np.ndarray
    net: np.ndarray
    count: int

    def at(self, point: Point) -> int:
        """The net at a point; -1 where nothing conducts, and outside the window."""
        i, j = (int(np.searchsorted(a, p, "right")) - 1 for a, p in ((self.xs, point.x), (self.ys, point.y)))
        inside = 0 <= i < self.net.shape[2] and 0 <= j < self.net.shape[1]
        return int(self.net[point.layer, j, i]) if inside else -1


@dataclass(frozen=True)
class Faults:
    """What is wrong without looking at any reference."""

    dangling: tuple[Box, ...]
    """Cuts inside the window that do not land both below and above."""
    floating: tuple[Box, ...]
    """Pieces of poly or metal inside the window that no cut reaches; diffusion between two gates needs none."""

    def __len__(self) -> int:
        return len(self.dangling) + len(self.floating)


@dataclass(frozen=True)
class Difference:
    """How the nets of a cell part the points of a reference, compared with the reference itself."""

    opens: int
    """Nets of the reference, each counted by the parts it fell into, less one."""
    shorts: int
    """Nets of the cell, each counted by the reference's nets it unites, less one."""
    missing: tuple[Point, ...]
    """Points at which nothing conducts any more; each counts as a part of its own."""


def nets(cell: Cell) -> Nets:
    """The nets of a cell."""
    return _Pieces(cell).nets()


def gates(cell: Cell) -> list[Box]:
    """The channels of a cell's transistors: the connected parts of poly over diffusion, on the layer of the poly."""
    return _Pieces(cell).gates()


def faults(cell: Cell) -> Faults:
    """Dangling cuts and floating conductors."""
    return _Pieces(cell).faults()


def terminals(cell: Cell) -> list[Point]:
    """One point inside each piece of conductor, in its largest square of the lattice."""
    return _Pieces(cell).points()


def compare(cell: Cell, reference: Cell, points: Sequence[tuple[Point, Point]] = ()) -> Difference:
    """Opens and shorts of a cell against a reference.

    `points` are pairs of a point in the reference and the one in the cell that should be on the same net: pins, labels,
    or the same shape before and after a change. Without them, the `terminals` of the reference stand for both. Points
    at which the reference has no conductor are left out.
    """
    pairs = list(points) or [(point, point) for point in terminals(reference)]
    old, new = nets(reference), nets(cell)
    ends = [(old.at(before), new.at(after), before) for before, after in pairs]
    ends = [end for end in ends if end[0] >= 0]
    missing = tuple(point for _, net, point in ends if net < 0)
    links = {(before, after if after >= 0 else -1 - k) for k, (before, after, _) in enumerate(ends)}
    parts = len({after for _, after in links})
    wholes = len({before for before, _ in links})
    return Difference(len(links) - wholes, len(links) - parts, missing)


class _Pieces:
    """The connected parts of each layer of a cell, on the lattice of all its edges, gates taken out of the channels."""

    def __init__(self, cell: Cell) -> None:
        shapes = cell.array()
        technology = cell.rules
        self.cuts, self.gate = technology.cuts, technology.gate
        self.conductors = sorted({layer for cut in self.cuts for layer in (*cut.below, *cut.above)})
        self.xs = np.unique(np.r_[0, cell.width, shapes[:, 1], shapes[:, 3]])
        self.ys = np.unique(np.r_[0, cell.height, shapes[:, 2], shapes[:, 4]])
        columns, rows = np.searchsorted(self.xs, shapes[:, [1, 3]]), np.searchsorted(self.ys, shapes[:, [2, 4]])
        inside = np.zeros((len(technology.layers), len(self.ys) - 1, len(self.xs) - 1), dtype=bool)
        for layer, (i0, i1), (j0, j1) in zip(shapes[:, 0].tolist(), columns.tolist(), rows.tolist(), strict=True):
            inside[layer, j0:j1, i0:i1] = True
        self.channel = np.zeros_like(inside[0])
        if self.gate:
            over, channel = self.gate
            self.channel = inside[over] & inside[channel]
            inside[channel] &= ~self.channel
        self.label = np.zeros(inside.shape, dtype=np.int64)
        """Number of the piece, from 1 over all layers; 0 where there is none."""
        self.ends = [0]
        """Layer k has the pieces ends[k] + 1 to ends[k + 1]."""
        for layer, plane in enumerate(inside):
            found, count = ndimage.label(plane)
            self.label[layer] = np.where(plane, found + self.ends[-1], 0)
            self.ends.append(self.ends[-1] + count)

    def nets(self) -> Nets:
        """Pieces that cuts join, and what else conducts."""
        ends = [(cut, layer) for cut in self.cuts for layer in (*cut.below, *cut.above)]
        links = [pair for cut, layer in ends for pair in self._meet(cut, layer)]
        rows, columns = np.array(links, dtype=np.int64).reshape(-1, 2).T
        size = self.ends[-1] + 1
        graph = sparse.coo_array((np.ones(len(rows), dtype=bool), (rows, columns)), shape=(size, size))
        _, group = sparse.csgraph.connected_components(graph, directed=False)
        conducts = np.zeros(size, dtype=bool)
        for layer in {*self.conductors, *(cut.layer for cut in self.cuts)}:
            conducts[self.ends[layer] + 1 : self.ends[layer + 1] + 1] = True
        number = np.full(size, -1, dtype=np.int64)
        seen, number[conducts] = np.unique(group[conducts], return_inverse=True)
        return Nets(self.xs, self.ys, number[self.label], len(seen))

    def gates(self) -> list[Box]:
        """The connected parts of the channels."""
        found, count = ndimage.label(self.channel)
        layer = self.gate[0] if self.gate else 0
        return [self._box(layer, place) for place in ndimage.find_objects(found, count)]

    def faults(self) -> Faults:
        """Cuts that do not land on both sides, and conductors that none reaches."""
        dangling, reached = [], set()
        for cut in self.cuts:
            below, above = (
                {pair for layer in side for pair in self._meet(cut, layer)} for side in (cut.below, cut.above)
            )
            reached |= {piece for _, piece in below | above}
            dangling += self._within(cut.layer, {own for own, _ in below} & {own for own, _ in above})
        channel = self.gate[1] if self.gate else -1
        floating = [box for layer in self.conductors if layer != channel for box in self._within(layer, reached)]
        return Faults(tuple(dangling), tuple(floating))

    def points(self) -> list[Point]:
        """The middle of the largest square of each piece of conductor."""
        areas = np.diff(self.ys)[:, None] * np.diff(self.xs)
        found = []
        for layer in self.conductors:
            label = self.label[layer]
            for piece in range(self.ends[layer] + 1, self.ends[layer + 1] + 1):
                j, i = np.unravel_index(np.argmax(np.where(label == piece, areas, 0)), areas.shape)
                x, y = ((axis[k] + axis[k + 1]) // 2 for axis, k in ((self.xs, i), (self.ys, j)))
                found.append(Point(layer, int(x), int(y)))
        return found

    def _meet(self, cut: Cut, layer: int) -> set[tuple[int, int]]:
        """Pairs of a piece of the cuts and a piece of the layer that overlap."""
        own, other = self.label[cut.layer], self.label[layer]
        both = (own > 0) & (other > 0)
        return set(zip(own[both].tolist(), other[both].tolist(), strict=True))

    def _within(self, layer: int, sound: set[int]) -> list[Box]:
        """The pieces of a layer that are not among the `sound` ones and do not meet the window's edge."""
        first = self.ends[layer]
        label = np.maximum(self.label[layer] - first, 0)
        found = []
        for k, (rows, columns) in enumerate(ndimage.find_objects(label, self.ends[layer + 1] - first)):
            cut_off = 0 in (rows.start, columns.start) or rows.stop == label.shape[0] or columns.stop == label.shape[1]
            if not cut_off and first + 1 + k not in sound:
                found.append(self._box(layer, (rows, columns)))
        return found

    def _box(self, layer: int, place: tuple[slice, slice]) -> Box:
        rows, columns = place
        xs, ys = self.xs[[columns.start, columns.stop]].tolist(), self.ys[[rows.start, rows.stop]].tolist()
        return Box(layer, xs[0], ys[0], xs[1], ys[1])
