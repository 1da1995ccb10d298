"""Design rules of one layer: least width and space, exact size of contacts, the manufacturing grid.

Rules hold for the union of a layer's rectangles. What the window's edge cuts is excused where the cut decides: a width
or a space counts only when both its ends are inside the window, and a contact may be smaller where it meets the edge.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from domains.base import Violation
from domains.layout import regions
from domains.layout.cell import Cell
from domains.layout.technology import Layer, Rule

NAMES = ("width", "space", "size", "grid", "empty")


@dataclass(frozen=True)
class Marker:
    """A place x0 y0 x1 y1 in nm where a layer breaks a rule, which is one of `NAMES`, in words."""

    rule: str
    layer: int
    box: tuple[int, int, int, int]
    measured: str
    required: str
    remedy: str


def markers(cell: Cell) -> list[Marker]:
    """All places where a cell breaks rules, by layer."""
    shapes = cell.array()
    found: list[Marker] = []
    for number, layer in enumerate(cell.rules.layers):
        boxes = shapes[shapes[:, 0] == number, 1:]
        if len(boxes):
            found += _layer(cell, number, layer, boxes)
    return found


def violations(cell: Cell) -> list[Violation]:
    """The broken rules in words; the sites are the rectangles of the layer that meet the place, and those between."""
    shapes = cell.array()
    found = [_in_words(cell, marker, shapes) for marker in markers(cell)]
    if cell.dropped:
        message = (
            f"{cell.dropped} rectangles had x1 <= x0 or y1 <= y0 and were dropped: each needs an area; draw it again"
        )
        found.append(Violation("empty", 0, 0, message))
    if not cell.shapes:
        found.append(Violation("empty", 0, 0, "no rectangles: a layout has one or more; draw one"))
    return found


def _in_words(cell: Cell, marker: Marker, shapes: np.ndarray) -> Violation:
    x0, y0, x1, y1 = marker.box
    meets = (shapes[:, 1:3] <= [x1, y1]).all(1) & (shapes[:, 3:] >= [x0, y0]).all(1) & (shapes[:, 0] == marker.layer)
    concerned = np.flatnonzero(meets)
    message = (
        f"{cell.rules.layers[marker.layer].name} {marker.rule} {marker.measured} at x {x0}..{x1}, y {y0}..{y1} nm: "
        f"{marker.required}; {marker.remedy}"
    )
    return Violation(marker.rule, int(concerned[0]), int(concerned[-1]) + 1, message)


def _layer(cell: Cell, number: int, layer: Layer, boxes: np.ndarray) -> Iterator[Marker]:
    region = regions.union(boxes, cell.width, cell.height)
    if layer.width:
        yield from _narrow(region, "width", number, layer.width, "widen it")
    if layer.size:
        yield from _wrong_size(cell, number, layer.size, boxes)
    yield from _narrow(region.outside(), "space", number, layer.space, "move the shapes apart or join them")
    for box in boxes[(boxes % cell.rules.grid != 0).any(1)].tolist():
        yield Marker("grid", number, tuple(box), "missed", f"multiples of {cell.rules.grid} nm", "round the corners")


def _narrow(region: regions.Region, rule: str, number: int, limit: Rule, remedy: str) -> Iterator[Marker]:
    required = f"at least {limit.nm} nm ({limit.rule})"
    for x0, y0, x1, y1, distance in regions.narrow(region, limit.nm):
        yield Marker(rule, number, (x0, y0, x1, y1), f"{distance:.4g} nm", required, remedy)


def _wrong_size(cell: Cell, number: int, limit: Rule, boxes: np.ndarray) -> Iterator[Marker]:
    """Connected shapes that are not squares of exactly this size, as far as they are in the window."""
    label = regions.groups(boxes)
    for group in np.unique(label):
        own = boxes[label == group]
        x0, y0, x1, y1 = box = (*own[:, :2].min(0).tolist(), *own[:, 2:].max(0).tolist())
        whole = len(own) == 1 or regions.union(own, cell.width, cell.height).area == (x1 - x0) * (y1 - y0)
        if not (whole and _fits(x0, x1, cell.width, limit.nm) and _fits(y0, y1, cell.height, limit.nm)):
            required = f"exactly {limit.nm} x {limit.nm} nm ({limit.rule})"
            yield Marker("size", number, box, f"{x1 - x0} x {y1 - y0} nm", required, "draw a square of that size")


def _fits(start: int, end: int, window: int, size: int) -> bool:
    cut = start == 0 or end == window
    return end - start == size or (cut and end - start < size)
