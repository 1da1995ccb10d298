"""Layouts made legal with the least displacement: a linear programme of difference constraints on each axis in turn.

Lengths here are whole steps of the grid. On one axis, with the other held, widths, spaces, sizes of cuts and margins
are constraints `place[high] - place[low] >= least` between two edges, and the sum of |place - target| is to be least;
the target is the layout as it came, rounded to the grid. The matrix is totally unimodular, so a vertex is on the grid.
Each constraint may be missed at a high price: then the others that bear on it are named. A shape of too little area
grows by one of its rectangles, on one axis, as far as it lacks with the other held. Shapes that are held do not move.

What decides which axis keeps two shapes apart is where they lack less, once. Shapes that touch stay in touch, shapes
apart stay apart, edges on the window's edge stay there, and so does the order of the edges of two shapes that overlap
and connect: a cut stays on its metal, and a gate across its channel. A cell that breaks no rule comes back as it is.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from domains.layout import regions, rules
from domains.layout.cell import Cell, from_array
from domains.layout.checks import Batch, Finding
from domains.layout.programme import ORDER, Conflict, Link, least_moves
from domains.layout.technology import Area, Layer, Rule, Technology

_ROUNDS = 8
_REFINED = 6
_ATTEMPTS = 4


@dataclass(frozen=True)
class Legalised:
    """A layout after its repair."""

    cell: Cell
    moved: int
    """Sum over all edges of how far they moved, in nm."""
    edges: int
    conflicts: tuple[Conflict, ...]
    left: tuple[rules.Marker, ...]
    """The rules that the result breaks; none where it is legal."""

    @property
    def displacement(self) -> float:
        """How far an edge moved, in nm, the mean over all."""
        return self.moved / max(self.edges, 1)


def legalise(cell: Cell, held: Collection[int] = ()) -> Legalised:
    """The cell with its edges moved the least so that it breaks no rule, as far as that is possible.

    The shapes of the numbers in `held` stay as they are, and so do rules that only they break.
    """
    if not rules.markers(cell):
        return Legalised(cell, 0, 4 * len(cell.shapes), (), ())
    turned: set[tuple[int, int]] = set()
    found: list[Legalised] = []
    for _ in range(_ATTEMPTS):
        problem = _Problem(cell, turned, held)
        found.append(problem.solved())
        if not found[-1].left or not problem.stuck - turned:
            break
        turned = turned | problem.stuck
    return min(found, key=lambda one: (len(one.left), one.moved))


class _Gap(NamedTuple):
    """Two shapes that have to be `least` apart, and the name of the rule."""

    first: int
    second: int
    least: int
    name: str


class _Problem:
    """One layout on its way. `box[k, axis]` is the low and the high edge of shape k."""

    def __init__(self, cell: Cell, turned: Iterable[tuple[int, int]], held: Collection[int]) -> None:
        self.cell, self.technology = cell, cell.rules
        self.grid = self.technology.grid
        shapes = cell.array()
        self.layer = shapes[:, 0]
        self.raw = shapes[:, [1, 3, 2, 4]].reshape(-1, 2, 2)
        self.most = np.array([cell.width, cell.height]) // self.grid
        self.target = _on_grid(self.raw, self.grid, self.most)
        self.box = self.target.copy()
        self.held = np.isin(np.arange(len(shapes)), list(held))
        self.inside = (self.target > 0) & (self.target < self.most[:, None])
        """The others are on the window's edge."""
        self.free = self.inside & ~self.held[:, None, None]
        self.turned = set(turned)
        """Pairs of shapes to be kept apart on the axis where they lack more."""
        self.axis: dict[tuple[int, int], tuple[int, int, int]] = {}
        """By pair: the axis on which it is kept apart, and which of the two is the lower one."""
        self.joined: set[tuple[int, int, int]] = set()
        """Axis, lower and upper shape of gaps to be closed."""
        self.enlarged: dict[int, tuple[int, int, int]] = {}
        """By connected shape of too little area: the rectangle that grows, on which axis, and to what length."""
        self.stuck: set[tuple[int, int]] = set()
        self.conflicts: list[list[Conflict]] = [[], []]
        self.shape = self._connected()
        self.same, self.touching = self._touching()
        self.overlapping, self.apart = self._meetings()

    def solved(self) -> Legalised:
        """Both axes in turn until nothing moves."""
        for _ in range(_ROUNDS):
            before = self.box.copy()
            for axis in (0, 1):
                self._settle(axis)
            if (self.box == before).all():
                break
        places = np.where(self.held[:, None, None], self.raw, self.box * self.grid)
        corners = places.transpose(0, 2, 1).reshape(-1, 4)
        shapes = np.unique(np.concatenate([self.layer[:, None], corners], 1), axis=0)
        made = from_array(self.cell.technology, self.cell.width, self.cell.height, shapes)
        moved = int(np.abs(places - self.raw).sum())
        conflicts = tuple(self.conflicts[0] + self.conflicts[1])
        return Legalised(made, moved, self.raw.size, conflicts, tuple(rules.markers(made)))

    def _settle(self, axis: int) -> None:
        """Solve one axis again until its places bring no constraint that was not there."""
        links: dict[tuple[int, int, float], Link] = {}
        for _ in range(_REFINED):
            for link in self._links(axis):
                key = link.low, link.high, link.price
                if key not in links or link.least > links[key].least:
                    links[key] = link
            own = list(links.values())
            place, found = least_moves(
                self.target[:, axis].ravel(), self.free[:, axis].ravel(), int(self.most[axis]), own
            )
            self.conflicts[axis] = [Conflict(c.rule, c.short * self.grid, c.against) for c in found]
            self.stuck |= self._missed(own, place)
            if (place.reshape(-1, 2) == self.box[:, axis]).all():
                return
            self.box[:, axis] = place.reshape(-1, 2)

    def _missed(self, links: Sequence[Link], place: np.ndarray) -> set[tuple[int, int]]:
        pairs = ((link.low // 2, link.high // 2) for link in links if place[link.high] - place[link.low] < link.least)
        return {(min(pair), max(pair)) for pair in pairs if pair[0] != pair[1]}

    def _links(self, axis: int) -> Iterator[Link]:
        yield from self._order(axis)
        yield from self._pair_rules(axis)
        for k, layer in enumerate(self.layer.tolist()):
            size = self.technology.layers[layer].size
            yield Link(2 * k, 2 * k + 1, 1, "empty")
            if size:
                yield from self._size(axis, k, self._steps(size.nm), self._name(layer, "size", size))
        for layer in np.unique(self.layer).tolist():
            yield from self._layer(axis, layer)

    def _size(self, axis: int, k: int, size: int, name: str) -> Iterator[Link]:
        yield Link(2 * k + 1, 2 * k, -size, name)
        if self.inside[k, axis].all():
            yield Link(2 * k, 2 * k + 1, size, name)

    def _layer(self, axis: int, number: int) -> Iterator[Link]:
        layer, own = self.technology.layers[number], np.flatnonzero(self.layer == number)
        boxes = self.box[own].transpose(0, 2, 1).reshape(-1, 4)
        if layer.area:
            yield from self._areas(axis, number, layer.area)
        narrow, gaps = self._near(layer, boxes)
        if layer.width:
            least, name = self._steps(layer.width.nm), self._name(number, "width", layer.width)
            for place in narrow:
                yield from self._wide(axis, own, boxes, place, least, name)
        for one, other in self._seen(gaps, own, boxes):
            same = self.shape[one] == self.shape[other]
            rule = layer.notch if same and layer.notch else layer.space
            gap = _Gap(one, other, self._steps(rule.nm), self._name(number, "space", rule))
            yield from self._apart(axis, gap, bool(same) and not layer.size)

    def _areas(self, axis: int, number: int, area: Area) -> Iterator[Link]:
        """Each shape of too little area grows, unless the window's edge cuts it."""
        name = f"{self.technology.layers[number].name} area ({area.rule})"
        for label in np.unique(self.shape[self.layer == number]).tolist():
            own = np.flatnonzero(self.shape == label)
            boxes = self.box[own]
            if ((boxes > 0) & (boxes < self.most[:, None])).all():
                covered = regions.union(boxes.transpose(0, 2, 1).reshape(-1, 4), *self.most.tolist()).area
                self._enlarge(label, own, -(-area.nm2 // self.grid**2) - covered)
            if label in self.enlarged and self.enlarged[label][1] == axis:
                k, _, length = self.enlarged[label]
                yield Link(2 * k, 2 * k + 1, length, name)

    def _enlarge(self, label: int, own: np.ndarray, lack: int) -> None:
        """Let that rectangle of a shape grow that has to grow least to make up for this lack of area."""
        sides = self.box[own, :, 1] - self.box[own, :, 0]
        steps = np.where(self.free[own].any(2), -(-lack // sides[:, ::-1]), self.most.max() + 1)
        if label in self.enlarged:
            k, axis, _ = self.enlarged[label]
            at = int(np.flatnonzero(own == k)[0])
        else:
            at, axis = (int(i) for i in np.unravel_index(steps.argmin(), steps.shape))
        if lack > 0 and steps[at, axis] <= self.most.max():
            self.enlarged[label] = int(own[at]), axis, int(sides[at, axis] + steps[at, axis])

    def _near(self, layer: Layer, boxes: np.ndarray) -> tuple[list[Finding], list[Finding]]:
        """Where boxes (n, 4) of a layer, and the gaps between them, measure less than twice what they have to."""
        space = Rule("", 2 * self._steps(max(layer.space.nm, layer.notch.nm if layer.notch else 0)))
        width = Rule("", 2 * self._steps(layer.width.nm)) if layer.width else None
        doubled = Technology("", 1, 1, (0, 0), (Layer("", (0, 0), space, width, None),))
        wide, high = self.most.tolist()
        batch = Batch(doubled, [np.insert(boxes, 0, 0, axis=1)], [(wide, high)])
        narrow: list[Finding] = []
        gaps: list[Finding] = []
        for place in batch.findings():
            (narrow if batch.limits[place.limit].kind == "width" else gaps).append(place)
        return narrow, gaps

    def _seen(self, gaps: Sequence[Finding], own: np.ndarray, boxes: np.ndarray) -> list[tuple[int, int]]:
        """Pairs of shapes that face each other over these gaps, and those decided on before."""
        seen = {pair for pair in self.axis if self.layer[pair[0]] == self.layer[pair[1]] == self.layer[own[0]]}
        seen |= {(k, i) for k, i in self.touching if self.layer[k] == self.layer[own[0]] and self._cuts_apart(k, i)}
        for gap in gaps:
            seen |= {(own[min(pair)], own[max(pair)]) for pair in _facing(boxes, gap)}
        return sorted((int(one), int(other)) for one, other in seen if (one, other) not in self.same)

    def _cuts_apart(self, one: int, other: int) -> bool:
        """Whether two cuts that touch are to be two; otherwise they become one."""
        return bool(self.technology.layers[self.layer[one]].size) and (one, other) not in self.same

    def _apart(self, axis: int, gap: _Gap, may_join: bool) -> Iterator[Link]:
        """Keep two shapes apart on this axis, if it is the one that does."""
        one, other, least, name = gap
        first, second, here = self._gap(axis, one, other)
        _, _, there = self._gap(1 - axis, one, other)
        need = _needed(least, there)
        decided = self.axis.get((one, other))
        if decided is None and here < need:
            decided = self._decide(gap, may_join)
        if decided is not None and (axis, decided[1], decided[2]) in self.joined:
            yield Link(2 * decided[2], 2 * decided[1] + 1, 0, name)
        elif decided is not None and decided[0] == axis:
            if need:
                yield Link(2 * decided[1] + 1, 2 * decided[2], need, name)
        elif here >= 0 and need:
            yield Link(2 * first + 1, 2 * second, min(here, need), name)

    def _decide(self, gap: _Gap, may_join: bool) -> tuple[int, int, int]:
        one, other, least, _ = gap
        ways = []
        for axis in (0, 1):
            first, second, here = self._gap(axis, one, other)
            there = self._gap(1 - axis, one, other)[2]
            lack = _needed(least, there if there > 0 else 0) - here
            stays = not self.free[first, axis, 1] and not self.free[second, axis, 0]
            ways.append((lack + 10**6 * stays, axis, first, second))
            if may_join and here >= 0 and there < 0:
                ways.append((here, axis + 2, first, second))
        ways.sort()
        _, axis, first, second = ways[1 if (one, other) in self.turned else 0]
        if axis >= 2:
            axis -= 2
            self.joined.add((axis, first, second))
        self.axis[one, other] = axis, first, second
        return axis, first, second

    def _gap(self, axis: int, one: int, other: int) -> tuple[int, int, int]:
        """The lower of two shapes, the upper one, and how far they are apart; below 0 where they overlap."""
        (a0, a1), (b0, b1) = self.box[[one, other], axis].tolist()
        return (one, other, b0 - a1) if b0 - a1 >= a0 - b1 else (other, one, a0 - b1)

    def _wide(
        self, axis: int, own: np.ndarray, boxes: np.ndarray, narrow: Finding, least: int, name: str
    ) -> Iterator[Link]:
        """Keep a part wide that measures so much on this axis, between two sides or two inner corners."""
        (x0, y0, x1, y1), distance = narrow.box, narrow.measured[0]
        begin, end = ((x0, x1), (y0, y1))[axis], ((y0, y1), (x0, x1))[axis]
        here, there = begin[1] - begin[0], end[1] - end[0]
        run = distance == here
        if not run and distance == there:
            return
        need = least if run else _needed(least, there)
        if not run and here < need and need - here > _needed(least, here) - there:
            return
        a, b = axis, 1 - axis
        meets = (boxes[:, b] <= end[1]) & (boxes[:, b + 2] >= end[0])
        if run:
            meets = (boxes[:, b] < max(end[1], end[0] + 1)) & (boxes[:, b + 2] > end[0] - (end[0] == end[1]))
        lows, highs = own[meets & (boxes[:, a] == begin[0])], own[meets & (boxes[:, a + 2] == begin[1])]
        for low in lows.tolist():
            for high in highs.tolist():
                yield Link(2 * low, 2 * high + 1, need, name)

    def _order(self, axis: int) -> Iterator[Link]:
        """Touching shapes stay in touch, cuts on their conductors, gates across their channels."""
        for one, other in self.touching:
            if (one, other) in self.same:
                for end in (0, 1):
                    yield Link(2 * one + end, 2 * other + end, 0, "one cut")
                    yield Link(2 * other + end, 2 * one + end, 0, "one cut")
            elif not self.technology.layers[self.layer[one]].size:
                (a0, a1), (b0, b1) = self.target[[one, other], axis].tolist()
                least = min(min(a1, b1) - max(a0, b0), 1)
                yield Link(2 * one, 2 * other + 1, least, "touch", ORDER)
                yield Link(2 * other, 2 * one + 1, least, "touch", ORDER)
        for one, other in self.overlapping:
            for end in (0, 1):
                first, second = 2 * one + end, 2 * other + end
                low, high = self.target[[one, other], axis, end].tolist()
                yield Link(*((first, second) if low <= high else (second, first)), 0, "overlap", ORDER)
            yield Link(2 * one, 2 * other + 1, 1, "overlap", ORDER)
            yield Link(2 * other, 2 * one + 1, 1, "overlap", ORDER)
        yield from (Link(2 * a + 1, 2 * b, 0, "no overlap", ORDER) for its, a, b in self.apart if its == axis)

    def _pair_rules(self, axis: int) -> Iterator[Link]:
        """Margins of the rules between layers, between the rectangles that overlap or are near."""
        for pair in self.technology.pairs:
            of = [k for k in np.flatnonzero(np.isin(self.layer, pair.of)).tolist() if self._on(k, pair.on)]
            to = np.flatnonzero(np.isin(self.layer, pair.to))
            least, name = self._steps(pair.nm), f"{pair.check} ({pair.rule})"
            for k in of if len(to) else ():
                if pair.check == "enclosure":
                    yield from self._inside(axis, k, to, least, name)
                for other in to.tolist() if pair.check == "extension" else ():
                    (a0, a1), (b0, b1) = self.target[[k, other], axis].tolist()
                    if a0 < b0 and b1 < a1 and self._gap(1 - axis, k, other)[2] < 0:
                        yield from self._beyond(axis, other, k, least, name)
                for other in to.tolist() if pair.check == "separation" else ():
                    if k != other and max(self._gap(a, k, other)[2] for a in (0, 1)) in range(2 * least):
                        yield from self._apart(axis, _Gap(min(k, other), max(k, other), least, name), False)

    def _inside(self, axis: int, k: int, to: np.ndarray, least: int, name: str) -> Iterator[Link]:
        margins = np.stack([self.target[k, :, 0] - self.target[to, :, 0], self.target[to, :, 1] - self.target[k, :, 1]])
        yield from self._beyond(axis, k, int(to[margins.min((0, 2)).argmax()]), least, name)

    def _beyond(self, axis: int, inner: int, outer: int, least: int, name: str) -> Iterator[Link]:
        if self.inside[outer, axis, 0]:
            yield Link(2 * outer, 2 * inner, least, name)
        if self.inside[outer, axis, 1]:
            yield Link(2 * inner + 1, 2 * outer + 1, least, name)

    def _on(self, k: int, layers: tuple[int, ...]) -> bool:
        if not layers:
            return True
        other = self.target[np.isin(self.layer, layers)]
        return bool(((other[..., 0] < self.target[k, :, 1]) & (other[..., 1] > self.target[k, :, 0])).all(1).any())

    def _connected(self) -> np.ndarray:
        """For each shape the number of the first one of its layer that it hangs together with."""
        label = np.arange(len(self.layer))
        for layer in np.unique(self.layer):
            own = np.flatnonzero(self.layer == layer)
            label[own] = own[regions.groups(self.target[own].transpose(0, 2, 1).reshape(-1, 4))]
        return label

    def _touching(self) -> tuple[set[tuple[int, int]], list[tuple[int, int]]]:
        """Pairs of cuts that are to become one, and all pairs of a layer that overlap or share an edge."""
        found = [
            (one, other)
            for one, other in zip(*np.nonzero(np.triu(self.layer[:, None] == self.layer, 1)), strict=True)
            if self._shared(one, other).min() >= 0 and self._shared(one, other).max() > 0
        ]
        pairs = [(int(one), int(other)) for one, other in found]
        same = {pair for pair in pairs if self._is_one_cut(*pair)}
        return same, pairs

    def _shared(self, one: int, other: int) -> np.ndarray:
        a, b = self.target[one], self.target[other]
        shared: np.ndarray = np.minimum(a[:, 1], b[:, 1]) - np.maximum(a[:, 0], b[:, 0])
        return shared

    def _is_one_cut(self, one: int, other: int) -> bool:
        """Whether two cuts that overlap are nearer to being one than to being apart."""
        layer = self.technology.layers[self.layer[one]]
        if not layer.size:
            return False
        together = int(np.abs(self.target[one] - self.target[other]).sum())
        return together <= 2 * (self._steps(layer.space.nm) + int(self._shared(one, other).min()))

    def _meetings(self) -> tuple[list[tuple[int, int]], list[tuple[int, int, int]]]:
        """Pairs of shapes on layers that connect or make gates: those that overlap; axis, lower and upper of others.

        The axis is the one on which they are further apart.
        """
        layers = {(cut.layer, k) for cut in self.technology.cuts for k in (*cut.below, *cut.above)}
        layers |= {self.technology.gate} if self.technology.gate else set()
        pairs = [
            (one, other)
            for over, under in sorted(layers)
            for one in np.flatnonzero(self.layer == over).tolist()
            for other in np.flatnonzero(self.layer == under).tolist()
        ]
        found, apart = [], []
        for one, other in pairs:
            x, y = (self._gap(axis, one, other) for axis in (0, 1))
            axis = 0 if x[2] >= y[2] else 1
            first, second, gap = (x, y)[axis]
            if gap < 0:
                found.append((one, other))
            else:
                apart.append((axis, first, second))
        return found, apart

    def _steps(self, nm: int) -> int:
        return -(-nm // self.grid)

    def _name(self, layer: int, kind: str, rule: Rule) -> str:
        return f"{self.technology.layers[layer].name} {kind} ({rule.rule})"


def _on_grid(raw: np.ndarray, grid: int, most: np.ndarray) -> np.ndarray:
    """Edges (n, axis, end) in steps, half a step up, each shape at least one step across and inside the window."""
    steps = np.clip((2 * raw + grid) // (2 * grid), 0, most[:, None])
    steps[..., 0] = np.minimum(steps[..., 0], most - 1)
    steps[..., 1] = np.maximum(steps[..., 1], steps[..., 0] + 1)
    return steps


def _facing(boxes: np.ndarray, gap: Finding) -> Iterator[tuple[int, int]]:
    """Boxes (n, 4) at the two ends of a gap: of a run, the sides there, else the corners."""
    (x0, y0, x1, y1), distance = gap.box, gap.measured[0]
    low, high = boxes[:, :2], boxes[:, 2:]
    begin, end, ways = (x0, y0), (x1, y1), []
    for a in (0, 1):  # a run as long as it is wide may be of either
        if distance == end[a] - begin[a]:
            other = 1 - a
            beside = (low[:, other] < max(end[other], begin[other] + 1)) & (
                high[:, other] > begin[other] - (begin == end)
            )
            ways.append((beside & (high[:, a] == begin[a]), beside & (low[:, a] == end[a])))
    if not ways:
        left, right = high[:, 0] == x0, low[:, 0] == x1
        ways = [
            (left & (high[:, 1] == y0), right & (low[:, 1] == y1)),
            (left & (low[:, 1] == y1), right & (high[:, 1] == y0)),
        ]
    for firsts, seconds in ways:
        for one in np.flatnonzero(firsts).tolist():
            yield from ((one, other) for other in np.flatnonzero(seconds).tolist())


def _needed(least: int, across: int) -> int:
    """How far apart shapes must be on one axis that are `across` apart on the other (0 or less: face each other)."""
    if across <= 0:
        return least
    return 0 if across >= least else math.isqrt(least**2 - across**2 - 1) + 1
