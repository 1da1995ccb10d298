"""KLayout's verdict on cells: run as a process of its own, and importing nothing of ours.

Each line on stdin is a JSON object: `rules`, the number of `layers`, `repeats`, and `cells` with a `size` and `boxes`
(layer x0 y0 x1 y1 in nm). Each line on stdout is the answer: by cell, the number of a rule and a box x0 y0 x1 y1 for
each finding; and CPU seconds of merging and of the checks, the least of all repeats for each cell.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable, Iterator
from typing import Any

import klayout.db as db

Box = list[int]
EUCLIDEAN = db.Region.Euclidian


def main() -> None:
    """Answer line by line."""
    for line in sys.stdin:
        asked = json.loads(line)
        seconds, found = 0.0, []
        for cell in asked["cells"]:
            runs = [judged(cell, asked) for _ in range(asked["repeats"])]
            seconds += min(spent for spent, _ in runs)
            results = runs[0][1]
            found.append([[k, box] for k, some in enumerate(results) for box in boxes(some, asked["rules"][k], cell)])
        print(json.dumps({"found": found, "seconds": seconds}), flush=True)


def judged(cell: dict[str, Any], asked: dict[str, Any]) -> tuple[float, list[list[Any]]]:
    """CPU seconds of merging and of the checks, and what these found, rule by rule."""
    layers, drawn = (regions(cell["boxes"], asked["layers"]) for _ in range(2))
    started = time.process_time()
    for region in layers:
        region.merge()
    results = [CHECKS[rule["check"]](rule, drawn if rule["check"] == "grid" else layers) for rule in asked["rules"]]
    return time.process_time() - started, results


def regions(rows: list[list[int]], layers: int) -> list[db.Region]:
    """One region a layer."""
    found = [db.Region() for _ in range(layers)]
    for layer, *box in rows:
        found[layer].insert(db.Box(*box))
    return found


def width(rule: dict[str, Any], layers: list[db.Region]) -> list[Any]:
    """Sides of one polygon that are too close, with inside between them."""
    return [layers[rule["layer"]].width_check(rule["nm"], False, EUCLIDEAN)]


def space(rule: dict[str, Any], layers: list[db.Region]) -> list[Any]:
    """Sides with outside between them, of one polygon or of two; a notch may have a limit of its own."""
    region = layers[rule["layer"]]
    if rule["notch"] == rule["nm"]:
        return [region.space_check(rule["nm"], False, EUCLIDEAN)]
    checks = region.isolated_check(rule["nm"], False, EUCLIDEAN), region.notch_check(rule["notch"], False, EUCLIDEAN)
    return list(checks)


def size(rule: dict[str, Any], layers: list[db.Region]) -> list[Any]:
    """Polygons that are no squares of exactly this size."""
    region = layers[rule["layer"]]
    wide, high = region.with_bbox_width(rule["nm"], True), region.with_bbox_height(rule["nm"], True)
    return [wide, high, region.non_rectangles()]


def area(rule: dict[str, Any], layers: list[db.Region]) -> list[Any]:
    """Polygons of too little area."""
    return [layers[rule["layer"]].with_area(0, rule["nm"], False)]


def grid(rule: dict[str, Any], layers: list[db.Region]) -> list[Any]:
    """Corners of shapes as they were drawn, off the grid."""
    region = layers[rule["layer"]]
    region.merged_semantics = False
    return [region.grid_check(rule["nm"], rule["nm"])]


def enclosure(rule: dict[str, Any], layers: list[db.Region]) -> list[Any]:
    """What is not inside, and sides too close to those of what it is in."""
    of, to = chosen(rule, layers)
    bare = of - to
    return [bare, to.enclosing_check(of, rule["nm"], False, EUCLIDEAN)] if rule["nm"] else [bare]


def extension(rule: dict[str, Any], layers: list[db.Region]) -> list[Any]:
    """Sides of what crosses too close behind those of what is crossed.

    KLayout also measures from corner to corner where nothing crosses in between: such places share nothing with `of`.
    """
    of, to = chosen(rule, layers)
    pairs = of.enclosing_check(to, rule["nm"], False, EUCLIDEAN)
    return [db.EdgePairs([pair for pair in pairs.each() if touches(pair.bbox(), of)])]


def touches(box: db.Box, region: db.Region) -> bool:
    """Whether a box without area is anywhere, or one with area shares some with a region."""
    return not box.area() or not (db.Region(box) & region).is_empty()


def separation(rule: dict[str, Any], layers: list[db.Region]) -> list[Any]:
    """Sides of two kinds with neither between them."""
    of, to = chosen(rule, layers)
    return [of.separation_check(to, rule["nm"], False, EUCLIDEAN)]


def overlap(rule: dict[str, Any], layers: list[db.Region]) -> list[Any]:
    """Sides of two kinds with both between them."""
    of, to = chosen(rule, layers)
    return [of.overlap_check(to, rule["nm"], False, EUCLIDEAN)]


def chosen(rule: dict[str, Any], layers: list[db.Region]) -> tuple[db.Region, db.Region]:
    """What a rule between layers is about."""
    of, to, on = (united([layers[k] for k in rule[key]]) for key in ("of", "to", "on"))
    return (of.overlapping(on) if rule["on"] else of), to


def united(some: list[db.Region]) -> db.Region:
    """One region as it is, several added."""
    if len(some) == 1:
        return some[0]
    every = db.Region()
    for region in some:
        every += region
    return every


CHECKS: dict[str, Callable[[dict[str, Any], list[db.Region]], list[Any]]] = {
    check.__name__: check for check in (width, space, size, area, grid, enclosure, extension, separation, overlap)
}


def boxes(results: list[Any], rule: dict[str, Any], cell: dict[str, Any]) -> Iterator[Box]:
    """Where the findings are, less what the window's edge excuses."""
    wide, high = cell["size"]
    for result in results:
        for one in result.each():
            frame = one.bbox()
            if not excused(one, frame, rule, wide, high):
                yield [frame.left, frame.bottom, frame.right, frame.top]


def excused(one: Any, frame: db.Box, rule: dict[str, Any], wide: int, high: int) -> bool:
    """Whether a finding is where the window's edge cuts a shape."""
    if rule["check"] == "size":
        return fits(one, rule["nm"], wide, high)
    if rule["check"] == "area":
        return not inside(frame, wide, high)
    pair = isinstance(one, db.EdgePair) and rule["check"] != "grid"
    return pair and any(at_edge(edge, wide, high) for edge in (one.first, one.second))


def inside(frame: db.Box, wide: int, high: int) -> bool:
    """Whether a box does not meet the window's edge."""
    return bool(frame.left > 0 and frame.bottom > 0 and frame.right < wide and frame.top < high)


def at_edge(edge: db.Edge, wide: int, high: int) -> bool:
    """Whether an edge of a shape is where the window's edge cuts it."""
    a, b = edge.p1, edge.p2
    return (a.x == b.x and a.x in (0, wide)) or (a.y == b.y and a.y in (0, high))


def fits(polygon: db.Polygon, least: int, wide: int, high: int) -> bool:
    """Whether a box is a square of this size as far as it is in the window."""
    frame = polygon.bbox()
    sides = ((frame.left, frame.right, wide), (frame.bottom, frame.top, high))
    whole = (b - a == least or (b - a < least and (a == 0 or b == end)) for a, b, end in sides)
    return bool(polygon.is_box()) and all(whole)


if __name__ == "__main__":
    main()
