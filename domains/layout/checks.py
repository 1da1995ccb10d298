"""Where cells break design rules, all cells of a batch at once; `rules.py` says what the rules are.

Rectangles that no rule can find fault with are left out first, and the rest goes through `lattices.py`. Planes, which
share nothing, are one layer of one cell here, and one rule between layers in one cell in `between.py`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from domains.layout import between, lattices, regions
from domains.layout.lattices import FIRST
from domains.layout.places import NO_PLACES, Places, joined
from domains.layout.technology import Area, Pair, Rule, Technology

KINDS = ("width", "space", "notch", "size", "area", "enclosure", "extension", "separation", "overlap", "grid")


class Limit(NamedTuple):
    """A rule of one of `KINDS`, and the layer that breaks it."""

    layer: int
    kind: str
    of: Rule | Area | Pair | None
    """None for the grid."""


class Found(NamedTuple):
    """Places where rules are broken, as arrays."""

    limit: np.ndarray
    """(n,): the numbers of the rules in `Batch.limits`."""
    boxes: np.ndarray
    """(n, 5): cell x0 y0 x1 y1."""
    measured: np.ndarray
    """(n, 2): nm, nm², or both sides; NaN where nothing could be measured: what is not enclosed, a corner off grid."""


class Finding(NamedTuple):
    """One of them."""

    cell: int
    limit: int
    box: tuple[int, int, int, int]
    measured: tuple[float, float]


class Batch:
    """Cells of one technology: shapes (n, 5) of layer x0 y0 x1 y1, and the width and height of their windows."""

    def __init__(self, technology: Technology, shapes: Sequence[np.ndarray], sizes: Sequence[tuple[int, int]]) -> None:
        self.technology, self.layers = technology, len(technology.layers)
        self.sizes = np.array(sizes, dtype=np.int64).reshape(-1, 2)
        every = np.concatenate([np.zeros((0, 5), dtype=np.int64), *shapes])
        cell = np.repeat(np.arange(len(shapes)), [len(own) for own in shapes])
        self.layer = every[:, 0]
        self.boxes = np.concatenate([cell[:, None], every[:, 1:]], axis=1)
        self.planes = np.concatenate([cell[:, None] * self.layers + self.layer[:, None], every[:, 1:]], axis=1)
        self.limits = sorted(_limits(technology), key=lambda one: (one.layer, KINDS.index(one.kind), _name(one)))
        """In the order of the findings."""
        self._number = {(one.layer, one.kind): k for k, one in enumerate(self.limits)}

    def findings(self) -> list[Finding]:
        """All there are, by cell, rule and place."""
        parts = [*self._sizes(), *self._areas(), *self._distances(), *self._pairs(), *self._grid()]
        limit, boxes, measured = (np.concatenate(part) for part in zip(*parts, strict=True))
        order = np.lexsort([*boxes[:, :0:-1].T, limit, boxes[:, 0]])
        cell, *sides = (column.tolist() for column in boxes[order].T)
        both = zip(*(side.tolist() for side in measured[order].T), strict=True)
        return list(map(Finding, cell, limit[order].tolist(), zip(*sides, strict=True), both))

    def _sizes(self) -> Iterator[Found]:
        """Connected shapes that are not squares of exactly their layer's size, as far as they are in the window."""
        size = np.array([layer.size.nm if layer.size else 0 for layer in self.technology.layers])
        own = self.planes[size[self.layer] > 0]
        a, b = regions.nearby(own, own, 0)
        wrong = ~self._fit(own, size)
        wrong[a[a != b]] = True
        own = own[wrong]
        frames, area = lattices.frames(own, regions.groups_by_plane(own))
        sides = frames[:, 3:] - frames[:, 1:3]
        bad = ~self._fit(frames, size) | (area < sides.prod(1))
        yield self._found("size", frames[bad], sides[bad].T)

    def _fit(self, boxes: np.ndarray, size: np.ndarray) -> np.ndarray:
        """Which boxes (n, 5) are as large as those of their layer are, or are cut by the window's edge."""
        cell, layer = np.divmod(boxes[:, 0], self.layers)
        sides, size = boxes[:, 3:] - boxes[:, 1:3], size[layer, None]
        cut = (boxes[:, 1:3] == 0) | (boxes[:, 3:] == self.sizes[cell])
        fit: np.ndarray = ((sides == size) | (cut & (sides < size))).all(1)
        return fit

    def _areas(self) -> Iterator[Found]:
        """Shapes of too little area, unless they meet the window's edge."""
        least = np.array([layer.area.nm2 if layer.area else 0 for layer in self.technology.layers])
        limit = least[self.layer]
        small = (self.boxes[:, 3:] - self.boxes[:, 1:3]).prod(1) < limit
        few, rest = self.planes[small], self.planes[~small & (limit > 0)]
        a, b = regions.nearby(few, rest, 0)
        shared = np.minimum(few[a, 3:], rest[b, 3:]) - np.maximum(few[a, 1:3], rest[b, 1:3])
        label = regions.groups_by_plane(few)
        alone = ~np.isin(label, label[a[shared.max(1, initial=0) > 0]])  # hangs together with none that is enough
        frames, area = lattices.frames(few[alone], label[alone])
        cell, layer = np.divmod(frames[:, 0], self.layers)
        bad = (area < least[layer]) & (frames[:, 1:3] > 0).all(1) & (frames[:, 3:] < self.sizes[cell]).all(1)
        yield self._found("area", frames[bad], area[bad])

    def _distances(self) -> Iterator[Found]:
        """Width, space and notch of every layer."""
        layers, cells = self.technology.layers, len(self.sizes)
        width = np.array([layer.width.nm if layer.width else 0 for layer in layers])
        space = np.array([max(layer.space.nm, layer.notch.nm if layer.notch else 0) for layer in layers])
        widths, spaces = np.tile(width, cells), np.tile(space, cells)
        limits = np.stack([spaces, widths, 0 * widths, 0 * widths])
        wanted = [(way, widths) for way in lattices.WIDTH] + [(way, spaces) for way in lattices.SPACE]
        narrow, gaps = [NO_PLACES], [NO_PLACES]
        stack = lattices.stacked(self._concerned(width, space))
        for runs in stack.runs(limits, _NOWHERE):
            solid = runs.code == FIRST
            cut = runs.at_edge(self.sizes[runs.boxes[:, 0] // self.layers]).any(0)
            narrow.append(runs.places.chosen(solid & ~cut))
            gaps.append(runs.places.chosen(~solid))
        for way, places in stack.gaps(wanted):
            (gaps if way else narrow).append(places)
        thin = joined(narrow)
        yield self._found("width", thin.boxes, thin.length)
        yield from self._gaps(joined(gaps))

    def _concerned(self, width: np.ndarray, space: np.ndarray) -> np.ndarray:
        """The rectangles that a distance may be wrong at: without a least width, those near others."""
        near = self.planes[width[self.layer] == 0]
        a, b = regions.nearby(near, near, space[near[:, 0] % self.layers] - 1)
        return np.concatenate([self.planes[width[self.layer] > 0], near[np.unique(a[a != b])]])

    def _gaps(self, places: Places) -> Iterator[Found]:
        """A gap between two shapes is a space, one between sides of one shape a notch."""
        near = self.planes[np.isin(self.planes[:, 0], places.boxes[:, 0])]
        label = regions.groups_by_plane(near)
        held = np.zeros((2, len(places.length)), dtype=np.int64)
        for end, points in zip(held, places.ends(), strict=True):
            a, b = regions.nearby(points, near, -1)
            end[a] = label[b]
        same = held[0] == held[1]
        for kind, which in (("space", ~same), ("notch", same)):
            least = np.array(
                [((kind == "notch" and layer.notch) or layer.space).nm for layer in self.technology.layers]
            )
            short = places.chosen(which & (places.length < least[places.boxes[:, 0] % self.layers]))
            yield self._found(kind, short.boxes, short.length)

    def _pairs(self) -> Iterator[Found]:
        """Rules between layers."""
        pairs = self.technology.pairs
        if pairs:
            broken = between.broken(pairs, self.boxes, self.layer, self.sizes)
            cell, number = np.divmod(broken.boxes[:, 0], len(pairs))
            limit = np.array([self.limits.index(Limit(pair.of[0], pair.check, pair)) for pair in pairs])[number]
            yield _found(limit, cell, broken.boxes, broken.length)

    def _grid(self) -> Iterator[Found]:
        off = self.planes[(self.boxes[:, 1:] % self.technology.grid != 0).any(1)]
        yield self._found("grid", off, np.full(len(off), np.nan))

    def _found(self, kind: str, planes: np.ndarray, measured: np.ndarray) -> Found:
        """What breaks the rules of this kind, on boxes (n, 5) of planes."""
        cell, layer = np.divmod(planes[:, 0], self.layers)
        number = np.array([self._number.get((k, kind), -1) for k in range(self.layers)])
        return _found(number[layer], cell, planes, measured)


_NOWHERE = np.zeros((4, 4), dtype=bool)


def _found(limit: np.ndarray, cell: np.ndarray, boxes: np.ndarray, measured: np.ndarray) -> Found:
    both = np.broadcast_to(measured, (2, len(boxes))).T
    return Found(limit, np.concatenate([cell[:, None], boxes[:, 1:]], axis=1), both)


def _limits(technology: Technology) -> Iterator[Limit]:
    for k, layer in enumerate(technology.layers):
        single: dict[str, Rule | Area | None]
        single = {"width": layer.width, "space": layer.space, "notch": layer.notch or layer.space}
        single |= {"size": layer.size, "area": layer.area}
        yield from (Limit(k, kind, rule) for kind, rule in single.items() if rule)
        yield Limit(k, "grid", None)
    yield from (Limit(pair.of[0], pair.check, pair) for pair in technology.pairs)


def _name(limit: Limit) -> str:
    return limit.of.rule if limit.of else ""
