"""Pictures of layouts: where the ink is, and that nothing of a design is left out or repeated."""

from __future__ import annotations

import io
import re
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


def mean(picture: np.ndarray, x: float, y: float, side: float = 200) -> np.ndarray:
    """The mean colour of a square around a place."""
    places = [(x + dx, y + dy) for dx in np.linspace(-side, side, 41) for dy in np.linspace(-side, side, 41)]
    found: np.ndarray = np.mean([at(picture, *place) for place in places], axis=0)
    return found


def test_shapes_are_where_they_belong_and_overlaps_are_not_darker() -> None:
    picture = pixels(DOMAIN.draw(made((3, 0, 0, 1000, 600), (3, 400, 0, 1600, 600))))
    inside, twice = mean(picture, 250, 300, 120), mean(picture, 700, 300)
    assert at(picture, 200, 1700).tolist() == [255, 255, 255]
    assert np.abs(inside - twice).max() < 8
    assert np.abs(inside - mean(picture, 1300, 300)).max() < 8
    assert inside[2] > inside[0] + 40  # li_or_met1 is blue


def test_layers_have_their_usual_colours() -> None:
    for layer, strongest in ((0, 1), (1, 0), (3, 2)):  # green, red, blue
        assert mean(pixels(DOMAIN.draw(made((layer, 500, 500, 1500, 1500)))), 1000, 1000).argmax() == strongest


def test_broken_rules_are_marked_and_named() -> None:
    clean = DOMAIN.draw(made((3, 400, 400, 1600, 600)))
    broken = DOMAIN.draw(made((3, 400, 400, 1600, 410)))
    marked = [((p[..., 0] > 150) & (p[..., 1] < 60) & (p[..., 2] > 120)).sum() for p in map(pixels, (clean, broken))]
    assert marked[0] == 0 < marked[1]
    assert b"broken rules: 1" in broken
    assert "<title>width 10 nm, at least 160 nm (M1_a)</title>" in broken.decode()
    assert b"broken" not in clean


def ids(svg: bytes) -> set[str]:
    """The ids of a picture, each of which it uses and has once."""
    tree = ElementTree.fromstring(svg)
    found = [element.get("id", "") for element in tree.iter() if "id" in element.attrib]
    assert len(found) == len({*found})
    assert {*re.findall(r"url\(#([^)]*)\)", svg.decode())} == {*found}
    return {*found}


def test_pictures_in_one_document_share_no_ids_and_are_small() -> None:
    designs = DOMAIN.corpus("val")[:30]
    pictures = [*map(DOMAIN.draw, designs), draw.sheet(designs), draw.sheet(designs[:1]), draw.sheet(designs[:2])]
    assert sum(len(ids(svg)) for svg in pictures) == len(set().union(*map(ids, pictures)))
    assert max(len(svg) for svg in pictures[:30]) < 60_000


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
