"""Nets, gates and faults of hand-made cells, and nets against unions of rectangles one by one."""

from __future__ import annotations

from itertools import combinations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from domains import layout
from domains.layout import Cell, Rectangle, connectivity, technology
from domains.layout.connectivity import Box, Point

DIFF, POLY, CONTACT, LI = range(4)
INVERTER = (
    (DIFF, 400, 400, 1600, 800),
    (POLY, 900, 200, 1050, 1000),
    (CONTACT, 500, 500, 670, 670),
    (CONTACT, 1300, 500, 1470, 670),
    (LI, 480, 450, 700, 1800),
    (LI, 1280, 450, 1500, 1800),
)
SOURCE, DRAIN = Point(LI, 500, 1700), Point(LI, 1300, 1700)


def made(*shapes: tuple[int, ...]) -> Cell:
    return Cell("sky130", 2000, 2000, tuple(Rectangle(*shape) for shape in shapes))


def test_a_gate_parts_its_diffusion_and_cuts_join_layers() -> None:
    found = connectivity.nets(made(*INVERTER))
    assert found.count == 3  # source, drain and gate
    assert found.at(SOURCE) == found.at(Point(DIFF, 410, 410)) == found.at(Point(CONTACT, 500, 500))
    assert found.at(DRAIN) == found.at(Point(DIFF, 1590, 790)) != found.at(SOURCE)
    assert found.at(Point(POLY, 950, 900)) not in (found.at(SOURCE), found.at(DRAIN), -1)
    assert found.at(Point(DIFF, 950, 500)) == -1  # the channel
    assert found.at(Point(LI, 1000, 500)) == found.at(Point(LI, 2500, 500)) == found.at(Point(LI, -1, 500)) == -1
    assert connectivity.gates(made(*INVERTER)) == [Box(POLY, 900, 400, 1050, 800)]


@pytest.mark.parametrize(
    ("second", "count"),
    [
        ((LI, 400, 200, 600, 400), 1),  # shares an edge
        ((LI, 300, 300, 600, 600), 1),  # overlaps
        ((LI, 400, 400, 600, 600), 2),  # shares a corner only
        ((LI, 405, 200, 600, 400), 2),
        ((POLY, 300, 300, 600, 600), 2),  # another layer, and no cut
    ],
)
def test_edges_connect_and_corners_do_not(second: tuple[int, ...], count: int) -> None:
    assert connectivity.nets(made((LI, 200, 200, 400, 400), second)).count == count


@pytest.mark.parametrize(
    ("shapes", "dangling", "floating"),
    [
        (INVERTER[:1] + INVERTER[2:], 0, 0),
        (INVERTER, 0, 1),  # nothing reaches the poly
        (INVERTER[:4], 2, 1),  # no metal
        (INVERTER[2:], 2, 0),  # no diffusion
        (((CONTACT, 500, 500, 670, 670),), 1, 0),
        (((CONTACT, 0, 500, 170, 670),), 0, 0),  # what it lands on may be behind the window's edge
        (((LI, 500, 500, 900, 900),), 0, 1),
        (((LI, 500, 500, 900, 2000),), 0, 0),
        (((DIFF, 500, 500, 900, 900),), 0, 0),  # diffusion between gates needs no cut
        (((CONTACT, 500, 500, 670, 670), (POLY, 480, 480, 700, 700), (LI, 670, 500, 900, 900)), 1, 1),  # beside it
    ],
)
def test_faults_are_what_was_drawn_wrong(shapes: tuple[tuple[int, ...], ...], dangling: int, floating: int) -> None:
    found = connectivity.faults(made(*shapes))
    assert (len(found.dangling), len(found.floating), len(found)) == (dangling, floating, dangling + floating)
    assert {box.layer for box in found.dangling} <= {CONTACT}
    assert all(box in map(Box._make, made(*shapes).shapes) for box in found.dangling + found.floating)


def test_upper_cuts_join_metals_in_whole_cells() -> None:
    known = technology.load("sky130_cells")
    li, mcon, met1 = (known.index(name) for name in ("li_or_met1", "mcon", "met1"))
    box = (500, 500, 700, 700)
    shapes = (Rectangle(li, *box), Rectangle(met1, *box), Rectangle(mcon, 515, 515, 685, 685))
    assert connectivity.nets(Cell("sky130_cells", 2000, 2000, shapes[:2])).count == 2
    assert connectivity.nets(Cell("sky130_cells", 2000, 2000, shapes)).count == 1


@pytest.mark.parametrize("name", technology.names())
def test_every_technology_says_what_connects(name: str) -> None:
    clip, whole = technology.load(name), technology.load(name + technology.CELLS)
    assert len(clip.cuts) == 1
    assert {whole.layers[cut.layer].name for cut in whole.cuts} == {x.name for x in whole.layers if x.size}
    assert whole.gate == (whole.index("poly"), whole.index("diff"))


def test_a_wire_cut_through_is_an_open() -> None:
    cell = made(*INVERTER[:4], (LI, 480, 450, 700, 1000), (LI, 480, 1100, 700, 1800), INVERTER[5])
    points = [(point, point) for point in (SOURCE, DRAIN, Point(DIFF, 410, 410), Point(DIFF, 1590, 410))]
    found = connectivity.compare(cell, made(*INVERTER), points)
    assert (found.opens, found.shorts, found.missing) == (1, 0, ())


def test_a_bridge_is_a_short() -> None:
    found = connectivity.compare(made(*INVERTER, (LI, 700, 1000, 1280, 1200)), made(*INVERTER))
    assert (found.opens, found.shorts, found.missing) == (0, 1, ())


def test_a_lost_contact_is_an_open_and_lost_poly_is_missing_and_a_short() -> None:
    found = connectivity.compare(made(*INVERTER[:3], *INVERTER[4:]), made(*INVERTER))
    assert (found.opens, found.shorts, found.missing) == (1, 0, ())
    found = connectivity.compare(made(INVERTER[0], *INVERTER[2:]), made(*INVERTER))
    assert (found.opens, found.shorts) == (0, 1)  # source and drain, as no gate parts them
    assert [point.layer for point in found.missing] == [POLY]


@pytest.mark.parametrize("name", ["sky130", "ihp_sg13g2"])
def test_real_clips_differ_in_nothing_from_themselves_and_have_no_faults(name: str) -> None:
    clips = layout.build(name).corpus("val")[::40]
    for clip in clips:
        found = connectivity.compare(clip, clip)
        assert (found.opens, found.shorts, found.missing) == (0, 0, ())
    assert sum(bool(connectivity.faults(clip)) for clip in clips) <= 0.05 * len(clips)


PLACES = st.lists(st.integers(0, 40), min_size=2, max_size=2, unique=True).map(sorted)
SHAPES = st.lists(
    st.builds(
        lambda layer, x, y: (layer, x[0], y[0], x[1], y[1]), st.sampled_from([DIFF, CONTACT, LI]), PLACES, PLACES
    ),
    max_size=12,
)


def joined(a: Rectangle, b: Rectangle) -> bool:
    wide, high = min(a.x1, b.x1) - max(a.x0, b.x0), min(a.y1, b.y1) - max(a.y0, b.y0)
    if a.layer == b.layer:
        return min(wide, high) >= 0 and max(wide, high) > 0
    return CONTACT in (a.layer, b.layer) and min(wide, high) > 0


@settings(max_examples=80, deadline=None)
@given(SHAPES)
def test_nets_are_unions_of_rectangles_one_by_one(shapes: list[tuple[int, ...]]) -> None:
    cell = made(*shapes)
    net = list(range(len(cell.shapes)))
    for i, j in combinations(range(len(net)), 2):
        if joined(cell.shapes[i], cell.shapes[j]):
            net = [net[i] if k == net[j] else k for k in net]
    found = connectivity.nets(cell)
    own = [found.at(Point(shape.layer, shape.x0, shape.y0)) for shape in cell.shapes]
    assert found.count == len({*net}) == len({*own})
    assert len({*zip(net, own, strict=True)}) == found.count
