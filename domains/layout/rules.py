"""Design rules: of one layer, between layers, and the manufacturing grid. All cells of a list are checked at once.

Rules hold for the union of a layer's rectangles. Distances are Euclidean, between sides that face each other and
between corners that do, with nothing in between. What the window's edge cuts is excused where the cut decides: a width,
a space or an enclosure counts only when both its ends are inside the window, a contact may be smaller where it meets
the edge, and a shape that meets it may have any area.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from domains.base import Violation
from domains.layout import checks
from domains.layout.cell import Cell
from domains.layout.checks import Limit
from domains.layout.technology import Area, Pair, Technology

NAMES = (*checks.KINDS, "empty")
_BATCH = 16384
"""Rectangles that are checked at once, about: their arrays are to stay in the cache."""
_REMEDIES = {
    "width": "widen it",
    "space": "move the shapes apart or join them",
    "notch": "widen or fill it",
    "size": "draw a square of that size",
    "area": "enlarge it",
    "enclosure": "draw more around it or move it inwards",
    "extension": "lengthen it",
    "separation": "move the shapes apart",
    "overlap": "let them overlap more or move them apart",
    "grid": "round the corners",
}
_WHERE = {"enclosure": "inside", "extension": "beyond", "separation": "from", "overlap": "shared with"}
_UNITS = {"size": "{:.0f} x {:.0f} nm", "area": "{:.0f} nm²"}


class Marker(NamedTuple):
    """A place x0 y0 x1 y1 in nm where a layer breaks a rule, which is one of `NAMES`, in words."""

    rule: str
    layer: int
    box: tuple[int, int, int, int]
    measured: str
    required: str
    remedy: str
    name: str
    """What the foundry's deck calls the rule."""


def markers(cell: Cell) -> list[Marker]:
    """All places where a cell breaks rules, by layer, rule and place."""
    return markers_of([cell])[0]


def markers_of(cells: Sequence[Cell]) -> list[list[Marker]]:
    """All places where cells of one technology break rules; many cells take less time together."""
    sizes = [(cell.width, cell.height) for cell in cells]
    return check(cells[0].rules, [cell.array() for cell in cells], sizes) if cells else []


def check(technology: Technology, shapes: Sequence[np.ndarray], sizes: Sequence[tuple[int, int]]) -> list[list[Marker]]:
    """The markers of cells given as arrays (n, 5) of layer x0 y0 x1 y1 with the width and height of their windows."""
    found: list[list[Marker]] = []
    first, held = 0, 0
    for last, own in enumerate(shapes, 1):
        held += len(own)
        if held >= _BATCH or last == len(shapes):
            found += _marked(technology, shapes[first:last], sizes[first:last])
            first, held = last, 0
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


def _marked(
    technology: Technology, shapes: Sequence[np.ndarray], sizes: Sequence[tuple[int, int]]
) -> list[list[Marker]]:
    batch = checks.Batch(technology, shapes, sizes)
    words: dict[tuple[int, tuple[float, float]], tuple[str, str, str, str]] = {}
    found: list[list[Marker]] = [[] for _ in shapes]
    for cell, number, box, measured in batch.findings():
        limit, key = batch.limits[number], (number, measured)
        if key not in words:
            words[key] = _words(technology, limit, measured)
        found[cell].append(Marker(limit.kind, limit.layer, box, *words[key]))
    return found


def _words(technology: Technology, limit: Limit, measured: tuple[float, float]) -> tuple[str, str, str, str]:
    """What was measured and what is required, the remedy, and the name of the rule."""
    _, kind, rule = limit
    missed = math.isnan(measured[0])
    told = "missed" if missed else _UNITS.get(kind, "{:.4g} nm").format(*measured)
    if rule is None:
        return told, f"multiples of {technology.grid} nm", _REMEDIES[kind], "grid"
    amount = f"{rule.nm2} nm²" if isinstance(rule, Area) else f"{rule.nm} nm"
    least = f"exactly {amount.removesuffix(' nm')} x {amount}" if kind == "size" else f"at least {amount}"
    if isinstance(rule, Pair):
        names = " or ".join(technology.layers[number].name for number in rule.to)
        least = f"{'wholly' if missed else least} {_WHERE[kind]} {names}"
    return told, f"{least} ({rule.rule})", _REMEDIES[kind], rule.rule
