"""Unions of rectangles, against a raster of unit squares."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import ndimage

from domains.layout import regions

SIZE = 14
SIDES = st.lists(st.integers(0, SIZE), min_size=2, max_size=2, unique=True).map(sorted)
BOXES = st.lists(st.builds(lambda x, y: [x[0], y[0], x[1], y[1]], SIDES, SIDES), max_size=7).map(
    lambda rows: np.array(rows, dtype=np.int64).reshape(-1, 4)
)


def raster(boxes: np.ndarray) -> np.ndarray:
    squares = np.zeros((SIZE, SIZE), dtype=bool)
    for x0, y0, x1, y1 in boxes:
        squares[y0:y1, x0:x1] = True
    return squares


@settings(max_examples=40, deadline=None)
@given(BOXES)
def test_area_of_a_union(boxes: np.ndarray) -> None:
    region = regions.union(boxes, SIZE, SIZE)
    assert region.area == region.turned().area == raster(boxes).sum()


@settings(max_examples=50, deadline=None)
@given(BOXES)
def test_a_cover_has_the_same_union_and_depends_on_it_alone(boxes: np.ndarray) -> None:
    found = regions.cover(regions.union(boxes, SIZE, SIZE))
    squares = raster(boxes)
    assert np.array_equal(raster(found), squares)
    units = np.argwhere(squares)[:, ::-1]
    again = regions.cover(regions.union(np.concatenate([units, units + 1], axis=1), SIZE, SIZE))
    assert np.array_equal(found, again)
    for x0, y0, x1, y1 in found:  # none can grow
        for grown in ([x0 - 1, y0, x1, y1], [x0, y0 - 1, x1, y1], [x0, y0, x1 + 1, y1], [x0, y0, x1, y1 + 1]):
            inside = min(grown) >= 0 and max(grown) <= SIZE
            assert not inside or not squares[grown[1] : grown[3], grown[0] : grown[2]].all()


@pytest.mark.parametrize(
    ("boxes", "count"),
    [([[0, 4, 12, 8], [4, 0, 8, 12]], 2), ([[0, 0, 4, 12], [0, 8, 12, 12]], 2), ([[0, 0, 6, 6], [6, 0, 12, 6]], 1)],
)
def test_crosses_and_corners_take_two_rectangles(boxes: list[list[int]], count: int) -> None:
    assert len(regions.cover(regions.union(np.array(boxes), SIZE, SIZE))) == count


@settings(max_examples=40, deadline=None)
@given(BOXES)
def test_groups_are_connected_parts_of_the_raster(boxes: np.ndarray) -> None:
    number, _ = ndimage.label(raster(boxes))
    part = [number[y0, x0] for x0, y0, _, _ in boxes]
    same = np.equal.outer(part, part)
    label = regions.groups(boxes)
    assert np.array_equal(np.equal.outer(label, label), same)
    assert all(label <= np.arange(len(boxes)))


@pytest.mark.parametrize(
    ("points", "area"),
    [
        ([(0, 0), (6, 0), (6, 4), (0, 4)], 24),
        ([(0, 0), (0, 4), (6, 4), (6, 0)], 24),
        ([(0, 0), (6, 0), (6, 2), (3, 2), (3, 4), (0, 4)], 18),
        ([(0, 0), (9, 0), (9, 9), (0, 9), (0, 3), (3, 3), (3, 6), (6, 6), (6, 3), (0, 3)], 72),  # with a key-hole
        ([(0, 0), (5, 0), (5, 0), (0, 0)], 0),
        ([(0, 0), (5, 0)], 0),
        ([(2, 2)], 0),
    ],
)
def test_a_polygon_is_what_it_encloses(points: list[tuple[int, int]], area: int) -> None:
    assert regions.polygon(np.array(points)).area == area
