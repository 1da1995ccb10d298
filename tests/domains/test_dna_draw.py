"""Pictures are well-formed, inside their frame, and show what is there."""

from __future__ import annotations

import itertools
import math
import re
from xml.etree import ElementTree

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from domains import dna
from domains.base import DesignError
from domains.dna import draw, letters, motifs

SVG = "{http://www.w3.org/2000/svg}"


def _boxes(picture: bytes) -> list[tuple[float, float]]:
    root = ElementTree.fromstring(picture)
    return [(float(r.get("x", 0)), float(r.get("x", 0)) + float(r.get("width", 0))) for r in root.iter(f"{SVG}rect")]


@pytest.mark.parametrize("length", [128, 256, 512])
@settings(max_examples=10, deadline=None)
@given(data=st.data())
def test_any_design_gives_a_picture_inside_its_frame(length: int, data: st.DataObject) -> None:
    design = data.draw(st.text("ACGTNR", min_size=length, max_size=length))
    picture = dna.build(length).draw(design)
    assert all(-0.1 <= x0 <= x1 <= draw.WIDTH + 0.1 for x0, x1 in _boxes(picture))
    assert b"nan" not in picture
    assert len(picture) < 200_000


def test_a_track_has_one_mark_a_hit_and_a_band_a_violation() -> None:
    domain = dna.build(256)
    design = "GTATAAAAGGCGGGG" + domain.corpus("val")[0][15:200] + "GAATTC" + "A" * 50
    root = ElementTree.fromstring(domain.draw(design))
    marks = [title.text for title in root.iterfind(f"{SVG}polygon/{SVG}title")]
    assert len(marks) == len(motifs.hits(design)) >= 1
    assert any(text and text.startswith("TATA-Box at -256") for text in marks)
    red = [r for r in root.iter(f"{SVG}rect") if r.get("fill") == "#c8102e" and r.get("fill-opacity")]
    assert len(red) == len(domain.violations(design)) >= 2
    assert {"TATA-Box", "broken rule", "-250", "+1"} <= {text.text for text in root.iter(f"{SVG}text")}


@pytest.mark.parametrize(
    ("designs", "heights"),
    [
        (["A"] * 1000, [2 - 3 / (2000 * math.log(2)), 0, 0, 0]),
        (["A", "C", "G", "T"] * 100, [0, 0, 0, 0]),
        (["A", "T"] * 500, [0.5 - 3 / (4000 * math.log(2)), 0, 0, 0.5 - 3 / (4000 * math.log(2))]),
        (["A"], [0, 0, 0, 0]),
        (["N"], [0, 0, 0, 0]),
        (["C", "N"] * 1000, [0, 2 - 3 / (2000 * math.log(2)), 0, 0]),
    ],
)
def test_letter_heights_have_a_closed_form(designs: list[str], heights: list[float]) -> None:
    np.testing.assert_allclose(draw.logo_heights(letters.codes(designs, 1))[0], heights, atol=1e-12)


def test_a_logo_stacks_letters_from_the_line_up() -> None:
    picture = draw.logo(["ACGT" * 32] * 80 + ["ACGA" * 32] * 20, -4, 0).decode()
    glyphs = re.findall(r"translate\(([\d.]+) ([\d.]+)\) scale\([\d.]+ ([\d.]+)\)", picture)
    columns: dict[str, list[tuple[float, float]]] = {}
    for x, top, scale in glyphs:
        columns.setdefault(x, []).append((float(top), float(top) + 100 * float(scale)))
    assert [len(column) for column in columns.values()] == [1, 1, 1, 2]
    for column in columns.values():
        assert column[0][1] == pytest.approx(130, abs=0.02)
        for below, above in itertools.pairwise(column):
            assert above[1] == pytest.approx(below[0], abs=0.02)


@pytest.mark.parametrize(("start", "end"), [(-5, 1), (-129, 0), (-3, -3), (-3, -9)])
def test_logos_of_no_place_are_refused(start: int, end: int) -> None:
    with pytest.raises(DesignError, match=rf"\[{start}, {end}\).*-128 <= start < end <= 0"):
        draw.logo(["A" * 128], start, end)


def test_logos_of_no_designs_are_refused() -> None:
    with pytest.raises(DesignError, match="0 designs"):
        draw.logo([], -5, 0)
