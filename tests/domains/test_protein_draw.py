"""Pictures are well-formed, inside their frame, and show what is there."""

from __future__ import annotations

import re
from xml.etree import ElementTree

import numpy as np
import pytest
import resvg_py

from domains import protein
from domains.protein import Protein, baselines, cartoon, geometry, letter_block, svg, torsion_plot

SVG = "{http://www.w3.org/2000/svg}"
FRAMES = protein.build()
SEQUENCES = protein.build("sequence")


def _helix(n: int) -> Protein:
    torsions = np.broadcast_to(np.radians([-63, -42]), (1, max(n, 1), 2))
    return Protein("A" * n, geometry.with_oxygens(baselines.from_torsions(torsions)[0][:n]))


@pytest.fixture(scope="module")
def val() -> list[Protein]:
    return FRAMES.corpus("val")[:12]


def _starts(picture: bytes) -> np.ndarray:
    return np.array([list(map(float, pair)) for pair in re.findall(r'd="M([-\d.]+) ([-\d.]+)l', picture.decode())])


def test_real_chains_fill_their_frame_and_stay_inside(val: list[Protein]) -> None:
    for design in val[:3]:
        places = _starts(FRAMES.draw(design))
        assert places.min() > 0
        assert (places.max(0) < [cartoon.WIDTH, cartoon.HEIGHT]).all()
        assert (np.ptp(places, axis=0) / [cartoon.WIDTH, cartoon.HEIGHT]).max() > 0.6


@pytest.mark.parametrize("n", [0, 1, 2, 3, 5])
def test_short_chains_have_a_picture(n: int) -> None:
    root = ElementTree.fromstring(FRAMES.draw(_helix(n)))
    assert f"backbone of {n} residues" in (root.findtext(f"{SVG}title") or "")
    assert [text.text for text in root.iter(f"{SVG}text")] == (["N", "C"] if n else ["no residues"])


def test_the_legend_says_how_much_is_drawn_as_what() -> None:
    words = [text.text for text in ElementTree.fromstring(FRAMES.draw(_helix(30))).iter(f"{SVG}text")]
    (helix,) = (word for word in words if word and word.startswith("helix "))
    assert 80 < float(helix.split()[1]) < 100  # not the ends
    assert not [word for word in words if word and "strand" in word]


def test_the_letters_of_the_ends_are_clear_of_the_chain(val: list[Protein]) -> None:
    for design in val:
        atoms = cartoon.seen(design.atoms().astype(float))
        places = cartoon._on_page(atoms[:, 1, :2], *cartoon._fit(atoms))
        texts = [t for t in ElementTree.fromstring(FRAMES.draw(design)).iter(f"{SVG}text") if t.text in ("N", "C")]
        for place, text in zip(places[[0, -1]], texts, strict=True):
            x, y = float(text.get("x", 0)), float(text.get("y", 0)) - 4.5
            straight = place + 13 * (place - [160, 118]) / np.linalg.norm(place - [160, 118])
            free = np.linalg.norm(places - [x, y], axis=-1).min()
            assert free >= 0.9 * np.linalg.norm(places - straight, axis=-1).min()
            assert np.linalg.norm(place - [x, y]) == pytest.approx(13, abs=0.2)
            assert 4 < x < cartoon.WIDTH - 4
            assert 4 < y < cartoon.HEIGHT - 4


def test_colours_tell_helix_strand_and_coil(val: list[Protein]) -> None:
    def hues(picture: bytes) -> set[str]:
        lines = set(re.findall(r'stroke="(#\w+)"/></?', picture.decode().replace("><path", "/><path")))
        dark = {svg.shade(c, 0.42): n for c, n in ((svg.HELIX, "H"), (svg.STRAND, "E"), (svg.COIL, "C"))}
        return {dark[line] for line in lines | set(re.findall(r'stroke="(#\w+)"', picture.decode())) if line in dark}

    assert hues(FRAMES.draw(_helix(30))) == {"H", "C"}
    assert set().union(*(hues(FRAMES.draw(design)) for design in val[:3])) == {"H", "E", "C"}


def test_a_helix_looks_the_same_when_moved_and_turned() -> None:
    turn = geometry.nearest_rotations(np.random.default_rng(1).normal(size=(3, 3)))
    here = _helix(20)
    there = cartoon.seen(here.atoms() @ turn.T + [9, 8, 7])
    np.testing.assert_allclose(np.abs(there), np.abs(cartoon.seen(here.atoms().astype(float))), atol=0.01)


def test_pictures_are_never_mirrored(val: list[Protein]) -> None:
    for design in val:
        before, after = design.atoms().astype(float), cartoon.seen(design.atoms().astype(float))
        for i in (5, 20):
            volume = [np.linalg.det(x[i, 1:] - x[i, 0]) for x in (before[:, [1, 0, 2, 3]], after[:, [1, 0, 2, 3]])]
            assert volume[0] == pytest.approx(volume[1], abs=1e-4)


def test_nearer_parts_are_drawn_later(val: list[Protein]) -> None:
    pieces = cartoon._pieces(cartoon.seen(val[0].atoms().astype(float)), "C" * len(val[0]))
    assert [piece.depth for piece in pieces] == sorted(piece.depth for piece in pieces)
    assert len(pieces) == cartoon._PIECES * (len(val[0]) - 1)


def test_breaks_are_dotted_lines() -> None:
    atoms = _helix(20).atoms().copy()
    atoms[10:] += 15
    assert FRAMES.draw(Protein("A" * 20, atoms)).count(b"stroke-dasharray") == 1
    assert FRAMES.draw(_helix(20)).count(b"stroke-dasharray") == 0


@pytest.mark.parametrize("paper", ["white", "black"])
def test_pictures_show_on_any_paper(val: list[Protein], paper: str) -> None:
    from io import BytesIO

    from PIL import Image

    picture = FRAMES.draw(val[0]).decode()
    png = bytes(resvg_py.svg_to_bytes(svg_string=picture, background=paper))
    pixels = np.asarray(Image.open(BytesIO(png)).convert("L")).astype(int)
    assert (np.abs(pixels - (255 if paper == "white" else 0)) > 60).mean() > 0.03


def test_a_plot_has_a_dot_a_residue_and_red_ones_outside(val: list[Protein]) -> None:
    (picture,) = FRAMES.overview([val[0], _chain_of_zeros()]).values()
    root = ElementTree.fromstring(picture)
    dots = {p.get("stroke"): p.get("d", "").count("h0") for p in root.iter(f"{SVG}path") if p.get("stroke-linecap")}
    assert dots[svg.BAD] >= 8
    assert sum(dots.values()) == len(val[0]) - 2 + 8
    assert f"{len(val[0]) + 6} residues" in picture.decode()


def _chain_of_zeros() -> Protein:
    return Protein("A" * 10, geometry.with_oxygens(baselines.from_torsions(np.zeros((1, 10, 2)))[0]))


def test_dots_lie_where_their_torsions_are() -> None:
    (picture,) = FRAMES.overview([_chain_of_zeros()]).values()
    middle = (torsion_plot._LEFT + torsion_plot.SIZE / 2, torsion_plot._TOP + torsion_plot.SIZE / 2)
    places = re.findall(r"M([\d.]+) ([\d.]+)h0", picture.decode())
    np.testing.assert_allclose(np.array(places, float), np.tile(middle, (8, 1)), atol=0.3)


def test_large_sets_are_thinned(val: list[Protein], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torsion_plot, "MOST_POINTS", 50)
    picture = torsion_plot.plot(val[:3]).decode()
    assert picture.count("h0") == 50
    assert "50 of " in picture
    assert b"0 residues" in torsion_plot.plot([])


@pytest.mark.parametrize("n", [0, 1, 30, 31, 80])
def test_a_block_has_every_letter_in_its_row(n: int) -> None:
    design = Protein(("ACDEFGHIKLMNPQRSTVWYX" * 4)[:n])
    root = ElementTree.fromstring(SEQUENCES.draw(design))
    texts = [text for text in root.iter(f"{SVG}text") if text.get("font-weight")]
    rows = -(-n // letter_block._COLUMNS)
    assert "".join(text.text or "" for text in texts) == design.letters
    assert len({text.get("y") for text in texts}) == rows
    red = [r for r in root.iter(f"{SVG}rect") if r.get("fill") == svg.BAD]
    assert len(red) == design.letters.count("X")
    width, height = float(root.get("width", 0)), float(root.get("height", 0))
    assert all(float(r.get("x", 0)) + float(r.get("width", 0)) < width for r in root.iter(f"{SVG}rect"))
    assert all(float(r.get("y", 0)) + float(r.get("height", 0)) < height for r in root.iter(f"{SVG}rect"))


def test_every_standard_letter_has_its_colour() -> None:
    assert set(letter_block._COLOURS) == set("ACDEFGHIKLMNPQRSTVWY")
