"""Design rules: cases with known answers, each rule at its limit, invariance, and a raster as a second opinion."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator, Sequence
from random import Random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from domains import layout
from domains.layout import Cell, Rectangle, cell, rules
from domains.layout.technology import Area, Layer, Pair, Rule, Technology
from tests.domains.test_layout_regions import BOXES, SIZE, raster

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
    ([(LI, 200, 200, 400, 800), (LI, 500, 200, 700, 800), (LI, 200, 200, 700, 400)], ["notch"]),
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
    assert found == {"width", "notch"}


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


A, B, CUT = range(3)
LAYERS = (
    Layer("a", (1, 0), Rule("a.s", 100), Rule("a.w", 60), None, Rule("a.n", 80), Area("a.a", 10000)),
    Layer("b", (2, 0), Rule("b.s", 100), Rule("b.w", 60), None),
    Layer("cut", (3, 0), Rule("cut.s", 50), None, Rule("cut.z", 40)),
)
SIDE = 4000
Box = tuple[int, int, int, int]


def technology(*pairs: tuple[str, int]) -> Technology:
    """Three layers, and rules of these kinds between a and b; those of enclosure are about cuts in both."""
    ends = {"enclosure": ((CUT,), (A, B)), "extension": ((A,), (B,))}
    made = (Pair(kind, kind, nm, *ends.get(kind, ((A,), (B,))), ()) for kind, nm in pairs)
    return Technology("made", 1, 5, (0, 0), LAYERS, tuple(made))


def found(bare: Technology, shapes: Sequence[Sequence[int]]) -> list[rules.Marker]:
    (markers,) = rules.check(bare, [np.array(shapes, dtype=np.int64).reshape(-1, 5)], [(SIDE, SIDE)])
    return markers


def limits() -> Iterator[tuple[str, tuple[tuple[str, int], ...], list[list[int]], int, str]]:
    """Rule, those between layers, shapes whose distance is d, the least legal d, and what is measured a step below."""

    def case(rule: str, least: int, told: str, shapes: str, *pairs: tuple[str, int]) -> tuple[object, ...]:
        return rule, pairs, shapes, least, told

    yield case("width", 60, "55 nm", "A 1000 1000 1000+d 2000")
    yield case("space", 100, "95 nm", "A 1000 1000 1200 1200; A 1200+d 1000 1500 1200")
    yield case("space", 80, "96.05 nm", "A 1000 1000 1200 1200; A 1260 1200+d 1500 1500")  # from corner to corner
    yield case("notch", 80, "75 nm", "A 1000 1000 1200 1500; A 1200+d 1000 1500 1500; A 1000 1000 1500 1100")
    yield case("area", 125, "9600 nm²", "A 1000 1000 1080 1000+d")
    yield case("size", 40, "35 x 40 nm", "CUT 1000 1000 1000+d 1040")
    yield case("enclosure", 20, "15 nm", "CUT 1100 1100 1140 1140; A 1100-d 1000 1300 1300", ("enclosure", 20))
    yield case("enclosure", 1140, "missed", "CUT 1100 1100 1140 1140; A 1000 1000 d 1300", ("enclosure", 0))
    yield case("extension", 70, "65 nm", "A 1000 1000 1100 1300+d; B 900 1100 1300 1300", ("extension", 70))
    yield case("separation", 30, "25 nm", "A 1000 1000 1200 1200; B 1200+d 1000 1500 1500", ("separation", 30))
    yield case("separation", 20, "21.21 nm", "A 1000 1000 1200 1200; B 1215 1200+d 1500 1500", ("separation", 25))
    yield case("overlap", 50, "45 nm", "A 1000 1000 1200 1200; B 1200-d 900 1500 1300", ("overlap", 50))


LIMITS = list(limits())


def drawn(words: str, d: int) -> list[list[int]]:
    names = {"A": A, "B": B, "CUT": CUT}

    def number(word: str) -> int:
        value, sign, _ = re.fullmatch(r"(\d*)([+-]?)(d?)", word).groups()  # type: ignore[union-attr]
        return int(value or 0) + (d * (-1 if sign == "-" else 1) if word.endswith("d") else 0)

    rows = (shape.split() for shape in words.split("; "))
    return [[names[layer], *map(number, sides)] for layer, *sides in rows]


@pytest.mark.parametrize(("rule", "pairs", "shapes", "least", "told"), LIMITS)
def test_each_rule_holds_at_its_limit_and_not_a_step_below(
    rule: str, pairs: tuple[tuple[str, int], ...], shapes: str, least: int, told: str
) -> None:
    bare = technology(*pairs)
    assert found(bare, drawn(shapes, least)) == []
    markers = found(bare, drawn(shapes, least - 5))
    assert [(marker.rule, marker.measured) for marker in markers] == [(rule, told)]


@pytest.mark.parametrize("beyond", [0, 5])
def test_what_ends_beside_a_shape_reaches_as_far_as_its_far_side(beyond: int) -> None:
    """A strip crosses the lower part of b and passes its upper part, whose side faces that of the strip's end."""
    strip, low, high = [A, 1000, 1000, 1100, 1300], [B, 900, 900, 1500, 1200], [B, 1165 + beyond, 1200, 1500, 1500]
    markers = found(technology(("extension", 170)), [strip, low, high])
    beside = [(m.box, m.measured) for m in markers if m.rule == "extension" and m.box[0] == 1000 and m.box[2] > 1100]
    assert beside == ([] if beyond else [((1000, 1200, 1165, 1300), "165 nm")])


def test_limits_are_of_every_rule() -> None:
    assert {rule for rule, *_ in LIMITS} == {*rules.NAMES} - {"grid", "empty"}
    assert {marker.rule for marker in found(technology(), [[A, 1000, 1000, 1100, 1203]])} == {"grid"}


PLACES = st.integers(60, 180).map(lambda k: 5 * k)
SIDES = st.lists(PLACES, min_size=2, max_size=2, unique=True).map(sorted)
SHAPES = st.lists(st.builds(lambda layer, x, y: [layer, x[0], y[0], x[1], y[1]], st.integers(0, 2), SIDES, SIDES))
EVERY = technology(("enclosure", 20), ("extension", 70), ("separation", 30), ("overlap", 50))


def facts(shapes: Sequence[Sequence[int]], back: Callable[[Box], Box]) -> list[tuple[object, ...]]:
    """What is found, at the places that `back` says."""
    return sorted((m.rule, m.layer, back(m.box), m.measured, m.name) for m in found(EVERY, shapes))


@settings(max_examples=60, deadline=None)
@given(SHAPES, st.integers(-50, 400), st.integers(-50, 400), st.randoms())
def test_rules_do_not_depend_on_place_or_order(shapes: list[list[int]], right: int, up: int, random: Random) -> None:
    dx, dy = 5 * right, 5 * up
    moved = [[layer, x0 + dx, y0 + dy, x1 + dx, y1 + dy] for layer, x0, y0, x1, y1 in shapes]
    random.shuffle(moved)
    assert facts(moved, lambda b: (b[0] - dx, b[1] - dy, b[2] - dx, b[3] - dy)) == facts(shapes, lambda b: b)


@settings(max_examples=60, deadline=None)
@given(SHAPES)
def test_rules_are_the_same_in_a_mirror(shapes: list[list[int]]) -> None:
    image = [[layer, SIDE - x1, y0, SIDE - x0, y1] for layer, x0, y0, x1, y1 in shapes]
    assert facts(image, lambda b: (SIDE - b[2], b[1], SIDE - b[0], b[3])) == facts(shapes, lambda b: b)


def slow_narrow(inside: np.ndarray, least: int) -> bool:
    """Whether any two points of the outside, wholly in the window, face each other closer than `least`.

    By rays from every unit side, and by all pairs of corners with a free view of each other.
    """
    for squares in (inside, inside.T):
        for row in squares:
            words = "".join("x" if square else "." for square in row)
            runs = [run for run in words.split(".")[1:-1] if run]
            if any(len(run) < least for run in runs):
                return True
    for squares in (inside, inside[:, ::-1]):
        corners = [
            (y, x, not squares[y - 1, x - 1], not squares[y, x])
            for y in range(1, SIZE)
            for x in range(1, SIZE)
            if squares[y - 1, x] and squares[y, x - 1]
        ]
        for ya, xa, low, _ in corners:
            for yb, xb, _, high in corners:
                if low and high and ya <= yb and xa <= xb and math.hypot(yb - ya, xb - xa) < least:
                    return True
    return False


@settings(max_examples=60, deadline=None)
@given(BOXES, st.integers(1, 6))
def test_widths_and_gaps_are_those_of_the_raster(boxes: np.ndarray, least: int) -> None:
    limit = Rule("r", least)
    bare = Technology("made", 1, 1, (0, 0), (Layer("a", (1, 0), limit, limit, None),))
    (markers,) = rules.check(bare, [np.insert(boxes, 0, 0, axis=1)], [(SIZE, SIZE)])
    broken = {marker.rule for marker in markers}
    assert ("width" in broken) == slow_narrow(raster(boxes), least)
    assert bool(broken & {"space", "notch"}) == slow_narrow(~raster(boxes), least)


def test_cells_are_judged_together_as_each_alone() -> None:
    designs = list(perturbed(CLIPS["sky130"][:30], 0.2, 3, np.random.default_rng(3)))
    assert rules.markers_of(designs) == [rules.markers(design) for design in designs]


@pytest.mark.parametrize(
    ("boxes", "narrow"),
    [
        ([[2, 2, 5, 12]], [(2, 2, 5, 12, 3)]),
        ([[2, 2, 12, 6]], [(2, 2, 12, 6, 4)]),
        ([[0, 2, 3, 12]], []),  # cut by the left edge
        ([[11, 2, 14, 12]], []),
        ([[2, 0, 5, 14]], [(2, 0, 5, 14, 3)]),  # cut above and below: its width is known all the same
        ([[2, 2, 8, 8]], []),
        ([[1, 1, 7, 7], [5, 4, 13, 13]], [(5, 4, 7, 7, math.hypot(2, 3))]),  # a neck between two corners
        ([[1, 1, 7, 7], [7, 7, 13, 13]], [(7, 7, 7, 7, 0)]),  # corner to corner
    ],
)
def test_narrow_places_are_boxes_with_a_distance(boxes: list[list[int]], narrow: list[tuple[float, ...]]) -> None:
    bare = Technology("made", 1, 1, (0, 0), (Layer("a", (1, 0), Rule("s", 1), Rule("w", 5), None),))
    (markers,) = rules.check(bare, [np.insert(np.array(boxes), 0, 0, axis=1)], [(SIZE, SIZE)])
    told = [(*marker.box, marker.measured) for marker in markers if marker.rule == "width"]
    assert told == [(*box, f"{length:.4g} nm") for *box, length in narrow]
