"""Design rules: cases with known answers, and KLayout as an independent referee."""

from __future__ import annotations

import re
from collections.abc import Iterator

import numpy as np
import pytest

from domains import layout
from domains.layout import Cell, Rectangle, cell, rules

SKY = layout.build("sky130")
CLIPS = {name: layout.build(name).corpus("val") for name in ("sky130", "ihp_sg13g2")}
DIFF, POLY, CONTACT, LI = range(4)


def made(*shapes: tuple[int, int, int, int, int]) -> Cell:
    return Cell("sky130", 2000, 2000, tuple(Rectangle(*shape) for shape in shapes))


CASES = [
    ([(LI, 500, 500, 670, 900)], []),
    ([(LI, 500, 500, 665, 900)], ["width"]),
    ([(LI, 500, 500, 600, 900), (LI, 600, 500, 700, 900)], []),  # abutting rectangles are one shape
    ([(LI, 500, 500, 700, 900), (LI, 600, 600, 640, 640)], []),  # so are overlapping ones
    ([(LI, 0, 500, 100, 900)], []),  # may go on behind the window's edge
    ([(LI, 500, 0, 600, 900)], ["width"]),  # is too narrow whatever is behind it
    ([(LI, 200, 200, 400, 400), (LI, 570, 200, 800, 400)], []),
    ([(LI, 200, 200, 400, 400), (LI, 565, 200, 800, 400)], ["space"]),
    ([(LI, 200, 200, 400, 400), (LI, 500, 540, 800, 800)], []),  # 172 nm from corner to corner
    ([(LI, 200, 200, 400, 400), (LI, 500, 535, 800, 800)], ["space"]),  # 168 nm
    ([(LI, 200, 200, 400, 400), (LI, 400, 500, 800, 800)], ["space"]),  # corners above each other
    ([(LI, 200, 200, 400, 800), (LI, 500, 200, 700, 800), (LI, 200, 200, 700, 400)], ["space"]),  # a notch
    ([(LI, 0, 100, 400, 800), (LI, 0, 900, 400, 1500)], ["space"]),
    ([(LI, 100, 200, 2000, 800)], []),  # the gap may go on behind the window's edge
    ([(LI, 200, 200, 500, 500), (LI, 500, 500, 800, 800)], ["width", "space"]),  # touching corners
    ([(LI, 200, 200, 400, 400), (POLY, 405, 200, 600, 400)], []),  # rules are each layer's own
    ([(CONTACT, 500, 500, 670, 670)], []),
    ([(CONTACT, 500, 500, 675, 670)], ["size"]),
    ([(CONTACT, 500, 500, 665, 670)], ["size"]),
    ([(CONTACT, 500, 500, 600, 670), (CONTACT, 600, 500, 670, 670)], []),
    ([(CONTACT, 500, 500, 670, 670), (CONTACT, 600, 600, 770, 770)], ["size"]),  # two in one
    ([(CONTACT, 500, 500, 670, 585), (CONTACT, 500, 585, 585, 670)], ["size"]),  # no square
    ([(CONTACT, 0, 500, 100, 670)], []),  # cut by the left edge
    ([(CONTACT, 0, 500, 175, 670)], ["size"]),
    ([(CONTACT, 0, 500, 100, 600)], ["size"]),  # the edge cuts it in one direction only
    ([(CONTACT, 0, 1900, 100, 2000)], []),
    ([(DIFF, 501, 500, 800, 900)], ["grid"]),
    ([], ["empty"]),
]


@pytest.mark.parametrize(("shapes", "broken"), CASES)
@pytest.mark.parametrize("turned", [False, True])
def test_rules_of_known_cases(shapes: list[tuple[int, int, int, int, int]], broken: list[str], turned: bool) -> None:
    if turned:
        shapes = [(layer, y0, 2000 - x1, y1, 2000 - x0) for layer, x0, y0, x1, y1 in shapes]
    assert [violation.rule for violation in SKY.violations(made(*shapes))] == broken


def test_a_violation_says_what_where_and_what_to_do() -> None:
    design = made((DIFF, 0, 0, 500, 500), (LI, 200, 200, 400, 400), (LI, 500, 500, 800, 800), (LI, 0, 1500, 300, 1800))
    (found,) = SKY.violations(design)
    assert found.message == (
        "li_or_met1 space 141.4 nm at x 400..500, y 400..500 nm: at least 170 nm (li.3); "
        "move the shapes apart or join them"
    )
    assert design.shapes[found.start : found.end] == (design.shapes[2], design.shapes[3])


def test_junk_of_many_crossing_bars_is_judged_all_the_same() -> None:
    upright = [(LI, 70 * k, 0, 70 * k + 5, 2000) for k in range(28)]
    level = [(LI, 0, 70 * k, 2000, 70 * k + 5) for k in range(28)]
    found = {marker.rule for marker in rules.markers(made(*upright, *level))}
    assert found == {"width", "space"}


@pytest.mark.parametrize("name", ["sky130", "ihp_sg13g2"])
def test_real_clips_are_clean(name: str) -> None:
    clips = CLIPS[name][::20]
    assert sum(bool(rules.violations(clip)) for clip in clips) <= 0.01 * len(clips)


def perturbed(clips: list[Cell], share: float, steps: int, rng: np.random.Generator) -> Iterator[Cell]:
    """Clips with a share of their sides moved by up to so many steps of the grid."""
    for clip in clips:
        shapes = clip.array()
        moved = rng.random((len(shapes), 4)) < share
        shapes[:, 1:] += 5 * moved * rng.choice([-1, 1], moved.shape) * rng.integers(1, steps + 1, moved.shape)
        yield cell.from_array(clip.technology, 2000, 2000, np.hstack([shapes[:, :1], shapes[:, 1:].clip(0, 2000)]))


def klayout_verdict(design: Cell) -> set[tuple[int, str]]:
    """Layer and rule of what KLayout finds with Euclidean metrics, less what lies at the window's edge."""
    db = pytest.importorskip("klayout.db")
    found = set()

    def at_edge(edge: object) -> bool:
        a, b = edge.p1, edge.p2  # type: ignore[attr-defined]
        return (a.x == b.x and a.x in (0, design.width)) or (a.y == b.y and a.y in (0, design.height))

    def fits(start: int, end: int, size: int) -> bool:
        return end - start == size or (end - start < size and (start == 0 or end == 2000))

    for number, layer in enumerate(design.rules.layers):
        region = db.Region()
        for shape in design.shapes:
            if shape.layer == number:
                region.insert(db.Box(*shape[1:]))
        region.merge()
        checks = [("space", region.space_check, layer.space), ("width", region.width_check, layer.width)]
        for rule, check, limit in checks:
            pairs = check(limit.nm, False, db.Region.Euclidian, None, None, None).each() if limit else ()
            if any(not at_edge(pair.first) and not at_edge(pair.second) for pair in pairs):
                found.add((number, rule))
        for polygon in region.each() if layer.size else ():
            box, size = polygon.bbox(), layer.size.nm
            if not (polygon.is_box() and fits(box.left, box.right, size) and fits(box.bottom, box.top, size)):
                found.add((number, "size"))
    return found


@pytest.mark.parametrize("name", ["sky130", "ihp_sg13g2"])
@pytest.mark.parametrize(("share", "steps"), [(0.0, 1), (0.02, 1), (0.3, 1), (0.3, 40)])
def test_klayout_comes_to_the_same_verdict(name: str, share: float, steps: int) -> None:
    rng = np.random.default_rng(0)
    chosen = [CLIPS[name][i] for i in rng.choice(len(CLIPS[name]), 30, replace=False)]
    differ, judged = [], 0
    for design in perturbed(chosen, share, steps, rng):
        ours = {(marker.layer, marker.rule) for marker in rules.markers(design)}
        theirs = klayout_verdict(design)
        differ += [(finding, "klayout" if finding in theirs else "ours") for finding in ours ^ theirs]
        judged += 3 * len(design.rules.layers)
    assert len(differ) <= 0.01 * judged, differ


def test_each_rule_is_found_by_both_somewhere() -> None:
    """A positive control: the comparison above is not one of two checks that never find anything."""
    rng = np.random.default_rng(1)
    designs = list(perturbed(CLIPS["sky130"][:60], 0.3, 60, rng))
    ours = {(m.layer, m.rule) for design in designs for m in rules.markers(design)}
    theirs = {finding for design in designs for finding in klayout_verdict(design)}
    wanted = {(k, "space") for k in range(4)} | {(k, "width") for k in (DIFF, POLY, LI)} | {(CONTACT, "size")}
    assert ours == theirs == wanted


def test_markers_lie_where_the_message_says() -> None:
    rng = np.random.default_rng(2)
    for design in perturbed(CLIPS["sky130"][:20], 0.2, 3, rng):
        for marker, violation in zip(rules.markers(design), SKY.violations(design), strict=False):
            xs, ys = re.findall(r"(\d+)\.\.(\d+)", violation.message)
            x0, x1, y0, y1 = map(int, xs + ys)
            assert (x0, y0, x1, y1) == marker.box
            for shape in (design.shapes[violation.start], design.shapes[violation.end - 1]):
                assert shape.layer == marker.layer
                assert max(shape.x0, x0) <= min(shape.x1, x1)
                assert max(shape.y0, y0) <= min(shape.y1, y1)
