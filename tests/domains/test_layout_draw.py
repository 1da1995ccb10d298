"""Pictures of layouts: where the ink is, and that nothing of a design is left out or repeated."""

from __future__ import annotations

import io
import xml.etree.ElementTree as ElementTree

import numpy as np
import pytest
from PIL import Image

from domains import layout
from domains.layout import Cell, Rectangle, draw

DOMAIN = layout.build("ihp_sg13g2")


def made(*shapes: tuple[int, int, int, int, int]) -> Cell:
    return Cell("ihp_sg13g2", 2000, 2000, tuple(Rectangle(*shape) for shape in shapes))


def pixels(svg: bytes) -> np.ndarray:
    resvg_py = pytest.importorskip("resvg_py")
    png = bytes(resvg_py.svg_to_bytes(svg_string=svg.decode()))
    return np.asarray(Image.open(io.BytesIO(png)).convert("RGB")).astype(int)


def at(picture: np.ndarray, x: float, y: float) -> np.ndarray:
    """The colour at a place of the window in nm, y upwards."""
    scale = draw.SIZE / 2000
    found: np.ndarray = picture[int(12 + draw.SIZE - y * scale), int(12 + x * scale)]
    return found


def test_shapes_are_where_they_belong_and_overlaps_are_not_darker() -> None:
    picture = pixels(DOMAIN.draw(made((3, 0, 0, 1000, 600), (3, 400, 0, 1600, 600))))
    inside, twice = at(picture, 200, 300), at(picture, 700, 300)
    assert at(picture, 200, 1700).tolist() == [255, 255, 255]
    assert inside.tolist() == twice.tolist() == at(picture, 1300, 300).tolist()
    assert inside[2] > inside[0] + 40  # li_or_met1 is blue


def test_broken_rules_are_red() -> None:
    clean = DOMAIN.draw(made((3, 400, 400, 1600, 600)))
    broken = DOMAIN.draw(made((3, 400, 400, 1600, 410)))
    red = [((p[..., 0] > 150) & (p[..., 1] < 60) & (p[..., 2] < 90)).sum() for p in map(pixels, (clean, broken))]
    assert red[0] == 0 < red[1]
    assert b"broken rules: 1" in broken
    assert b"broken" not in clean


@pytest.mark.parametrize("count", [0, 1, 9, 70])
def test_sheets_are_wellformed_and_show_at_most_64(count: int) -> None:
    designs = (DOMAIN.corpus("val")[:10] * 7)[:count]
    (svg,) = DOMAIN.overview(designs).values()
    tree = ElementTree.fromstring(svg)
    frames = [g for g in tree.iter() if g.tag.endswith("}g")]
    assert len(frames) == min(count, 64)
    pixels(svg)


def test_pictures_are_wellformed_and_name_every_layer() -> None:
    for design in [*DOMAIN.corpus("val")[:3], made(), made((0, 0, 0, 2000, 2000))]:
        tree = ElementTree.fromstring(DOMAIN.draw(design))
        words = {element.text for element in tree.iter() if element.tag.endswith("}text")}
        assert {"diff", "poly", "contact", "li_or_met1", "0.5 µm"} <= words
