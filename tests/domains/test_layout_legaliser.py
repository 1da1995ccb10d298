"""The legaliser: known optima, all places tried one by one, and real clips with noise."""

from __future__ import annotations

from collections.abc import Collection
from functools import cache
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from domains import layout
from domains.layout import Cell, Rectangle, cell, connectivity, legaliser, programme, rules
from domains.layout.programme import RULE, Link

DIFF, POLY, CONTACT, LI = range(4)


@cache
def clips(name: str) -> list[Cell]:
    return [clip for clip in layout.build(name).corpus("val")[::60] if not rules.violations(clip)][:12]


def made(*shapes: tuple[int, ...]) -> Cell:
    return Cell("sky130", 2000, 2000, tuple(Rectangle(*shape) for shape in shapes))


def noisy(clip: Cell, sigma: float, rng: np.random.Generator, held: Collection[int] = ()) -> Cell:
    """The clip with Gaussian noise on all sides, but those of held shapes, in whole nm."""
    shapes = clip.array()
    noise = np.rint(rng.normal(0, sigma, (len(shapes), 4))).astype(np.int64)
    noise[list(held)] = 0
    shapes[:, 1:] += noise
    return cell.from_array(clip.technology, 2000, 2000, np.c_[shapes[:, :1], shapes[:, 1:].clip(0, 2000)])


def rounded(raw: Cell) -> Cell:
    """With all corners on the grid, half a step up."""
    shapes = raw.array()
    shapes[:, 1:] = (2 * shapes[:, 1:] + 5) // 10 * 5
    return cell.from_array(raw.technology, 2000, 2000, shapes)


@pytest.mark.parametrize("name", ["sky130", "ihp_sg13g2"])
def test_what_is_legal_stays_as_it_is(name: str) -> None:
    for clip in clips(name):
        found = legaliser.legalise(clip)
        assert found.cell == clip
        assert (found.moved, found.displacement, found.conflicts, found.left) == (0, 0, (), ())


@pytest.mark.parametrize(
    ("shapes", "moved"),
    [
        ([(LI, 500, 500, 670, 900)], 0),
        ([(LI, 500, 500, 660, 900)], 10),  # too narrow
        ([(LI, 500, 500, 660, 660)], 20),  # on both axes
        ([(LI, 502, 500, 800, 900)], 2),  # off the grid
        ([(LI, 200, 200, 400, 400), (LI, 555, 200, 800, 400)], 15),  # too close
        ([(LI, 200, 200, 400, 400), (LI, 500, 535, 800, 800)], 5),  # corner to corner: 100 and 140 are enough
        ([(LI, 200, 200, 400, 400), (LI, 560, 200, 730, 400), (LI, 890, 200, 1100, 400)], 20),  # the outer two give way
        ([(CONTACT, 500, 500, 675, 670)], 5),  # too large
        ([(CONTACT, 500, 500, 665, 665)], 10),
        ([(CONTACT, 500, 500, 670, 670), (CONTACT, 830, 500, 1000, 670)], 20),  # both edges of one move
        ([(LI, 500, 500, 580, 900), (LI, 580, 500, 660, 900)], 10),  # one shape of two
        ([(LI, 0, 500, 100, 900), (LI, 250, 500, 600, 900)], 20),  # one edge is the window's
        ([(CONTACT, 545, 500, 715, 670), (CONTACT, 550, 835, 720, 1005)], 10),  # a gap as wide as it is long
        ([(LI, 200, 500, 600, 800), (LI, 505, 800, 900, 1100)], 75),  # a neck of no length
    ],
)
@pytest.mark.parametrize("turned", [False, True])
def test_small_cells_have_known_optima(shapes: list[tuple[int, ...]], moved: int, turned: bool) -> None:
    if turned:
        shapes = [(layer, y0, x0, y1, x1) for layer, x0, y0, x1, y1 in shapes]
    found = legaliser.legalise(made(*shapes))
    assert (found.moved, found.left, found.conflicts) == (moved, (), ())
    assert rules.violations(found.cell) == []
    assert found.displacement == moved / (4 * len(shapes))


MOST = 4
LINKS = st.lists(
    st.builds(
        lambda ends, least: Link(*ends, least, "rule"),
        st.lists(st.integers(0, 3), min_size=2, max_size=2, unique=True), st.integers(-2, 3),
    ),
    max_size=5,
)  # fmt: skip


@settings(max_examples=60, deadline=None)
@given(st.lists(st.integers(0, MOST), min_size=4, max_size=4), st.lists(st.booleans(), min_size=4, max_size=4), LINKS)
def test_moves_cost_as_little_as_the_best_of_all_places(target: list[int], free: list[bool], links: list[Link]) -> None:
    def cost(place: tuple[int, ...]) -> float:
        missed = sum(max(link.least - (place[link.high] - place[link.low]), 0) for link in links)
        return RULE * missed + sum(abs(a - b) for a, b in zip(place, target, strict=True))

    place, conflicts = programme.least_moves(np.array(target), np.array(free), MOST, links)
    choices = [range(MOST + 1) if loose else [fixed] for loose, fixed in zip(free, target, strict=True)]
    assert tuple(place) in product(*choices)
    assert cost(tuple(place.tolist())) == min(map(cost, product(*choices)))
    missed = sum(place[link.high] - place[link.low] < link.least for link in links)
    assert len(conflicts) == missed


@pytest.mark.parametrize("name", ["sky130", "ihp_sg13g2"])
@pytest.mark.parametrize("sigma", [2, 8])
def test_noise_is_repaired_on_the_grid_and_nets_stay(name: str, sigma: float) -> None:
    rng = np.random.default_rng(0)
    before, after = 0, 0
    for clip in clips(name):
        raw = noisy(clip, sigma, rng)
        found = legaliser.legalise(raw)
        assert list(found.left) == rules.markers(found.cell)
        assert not (found.cell.array()[:, 1:] % 5).any()
        assert found.conflicts or not found.left
        before, after = before + bool(rules.violations(raw)), after + bool(found.left)
        changed = connectivity.compare(found.cell, rounded(raw))
        assert (changed.opens, changed.shorts) == (0, 0)
    assert before == len(clips(name))
    assert after <= 0.1 * before


def test_what_cannot_be_satisfied_is_named() -> None:
    ends = [(LI, 0, 0, 170, 2000), (LI, 1830, 0, 2000, 2000)]
    bars = [(LI, 250 + 250 * k, 0, 420 + 250 * k, 2000) for k in range(6)]  # 6 widths and 7 spaces of 170 are 2210
    found = legaliser.legalise(made(*ends, *bars))
    assert {marker.name for marker in found.left} <= {"li.1", "li.3"} != set()
    assert {conflict.rule for conflict in found.conflicts} <= {"li_or_met1 width (li.1)", "li_or_met1 space (li.3)"}
    assert all(conflict.short > 0 and conflict.against for conflict in found.conflicts)
    assert sum(conflict.short for conflict in found.conflicts) >= 2210 - 2000


def test_a_whole_cell_keeps_its_margins() -> None:
    known = layout.technology.load("sky130_cells")
    mcon, met1 = known.index("mcon"), known.index("met1")
    li = known.index("li_or_met1")
    metal = Rectangle(li, 400, 400, 900, 900)
    tight = Cell(
        "sky130_cells", 2000, 2000, (metal, Rectangle(mcon, 500, 500, 670, 670), Rectangle(met1, 480, 300, 900, 900))
    )
    assert [marker.name for marker in rules.markers(tight)] == ["m1.4"]
    found = legaliser.legalise(tight)
    assert (found.left, found.moved) == ((), 10)


@pytest.mark.parametrize("name", ["sky130", "ihp_sg13g2"])
def test_held_shapes_stay_to_the_nanometre_and_the_rest_gives_way(name: str) -> None:
    """Real shapes are held in noisy ones: every rule can be kept, as the real cell shows."""
    rng = np.random.default_rng(1)
    left = 0
    for clip in clips(name):
        held = np.flatnonzero(rng.random(len(clip.shapes)) < 0.4).tolist()
        raw = noisy(clip, 2, rng, held)
        found = legaliser.legalise(raw, [k for k, site in enumerate(raw.sites) if site in held])
        assert {clip.shapes[k] for k in held} <= {*found.cell.shapes}
        left += bool(found.left)
    assert left <= 0.1 * len(clips(name))


def test_what_is_held_off_the_grid_or_against_a_rule_stays_so() -> None:
    held, near = Rectangle(LI, 502, 500, 600, 900), Rectangle(LI, 700, 500, 900, 900)
    found = legaliser.legalise(made(held, near), [0])
    assert held in found.cell.shapes
    assert {marker.rule for marker in found.left} == {"width", "grid"}
    assert found.cell.shapes[1].x0 == 770


@pytest.mark.parametrize(
    ("shapes", "held", "grown"),
    [
        ([(200, 200, 400, 400)], [], 85),  # 200 x 285 nm are 57000 nm²
        ([(200, 200, 400, 300), (200, 300, 370, 400)], [], 100),  # together they lack 19100 nm²: the wider one grows
        ([(0, 200, 200, 400)], [], 0),  # may go on behind the window's edge
        ([(200, 200, 370, 400), (200, 570, 370, 1500)], [1], 115),  # sideways, as 200 nm there are the more
        ([(200, 200, 400, 400)], [0], 0),
    ],
)
def test_too_small_shapes_grow(shapes: list[tuple[int, ...]], held: list[int], grown: int) -> None:
    li = layout.technology.load("sky130_cells").index("li_or_met1")
    before = Cell("sky130_cells", 2000, 2000, tuple(Rectangle(li, *shape) for shape in shapes))
    found = legaliser.legalise(before, held)
    assert found.moved == grown
    assert [marker.name for marker in found.left] == (["li.6"] if held == [0] else [])
