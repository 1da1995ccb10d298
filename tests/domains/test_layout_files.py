"""GDSII and OASIS: round trips, what other programs read in them, files from elsewhere, and files that are refused."""

from __future__ import annotations

import re
import zlib
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory

import gdstk
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from domains import layout
from domains.base import DesignError
from domains.layout import Cell, Rectangle, files

DOMAIN = layout.build("sky130")
LAYERS = [(65, 20), (66, 20), (66, 44), (67, 20)]
FRAME = gdstk.rectangle((0, 0), (2, 2), layer=235, datatype=4)
PROVENANCE = st.dictionaries(st.text(min_size=1, max_size=30), st.text(max_size=200), max_size=5)
SIDES = st.lists(st.integers(0, 400), min_size=2, max_size=2, unique=True).map(sorted)
RECTANGLES = st.builds(
    lambda layer, x, y: Rectangle(layer, x[0] * 5, y[0] * 5, x[1] * 5, y[1] * 5), st.integers(0, 3), SIDES, SIDES
)
CELLS = st.builds(
    lambda shapes, dropped: Cell("sky130", 2000, 2000, tuple(shapes), dropped),
    st.lists(RECTANGLES, max_size=10), st.integers(0, 60),
)  # fmt: skip
CLIPS = DOMAIN.corpus("val")[:20]
PLAIN = Cell("sky130", 2000, 2000, (Rectangle(0, 0, 5, 700, 1995), Rectangle(2, 100, 100, 270, 270)))


def foreign(path: Path, *shapes: object, unit: float = 1e-6, precision: float = 1e-9) -> Path:
    """A file by gdstk with these elements in its one cell, lengths in `unit`."""
    library = gdstk.Library("foreign", unit, precision)
    library.new_cell("top").add(*shapes)
    library.write_gds(path) if path.suffix == ".gds" else library.write_oas(path, validation="crc32")
    return path


@pytest.mark.parametrize("suffix", DOMAIN.suffixes)
@settings(max_examples=12, deadline=None)
@given(design=CELLS, told=PROVENANCE)
def test_reading_undoes_writing_and_keeps_provenance(suffix: str, design: Cell, told: dict[str, str]) -> None:
    with TemporaryDirectory() as folder:
        path = Path(folder, f"design{suffix}")
        DOMAIN.write(design, path, told)
        assert DOMAIN.read(path) == design
        assert DOMAIN.provenance(path) == told
        assert list(Path(folder).iterdir()) == [path]


@pytest.mark.parametrize("suffix", DOMAIN.suffixes)
@pytest.mark.parametrize("size", [1, 126, 127, 4096, 100_000])
def test_long_provenance_is_kept(tmp_path: Path, suffix: str, size: int) -> None:
    told = {"spec": "a;b=c%" * (size // 6) + "é" * (size % 6)}
    path = tmp_path / f"x{suffix}"
    DOMAIN.write(PLAIN, path, told)
    assert DOMAIN.provenance(path) == told
    assert DOMAIN.read(path) == PLAIN


@pytest.mark.parametrize("suffix", DOMAIN.suffixes)
@pytest.mark.parametrize("stem", ["000017", "a b;c=d", "x" * 60, "é$?"])
def test_other_programs_find_one_legal_cell_with_the_same_shapes(tmp_path: Path, stem: str, suffix: str) -> None:
    db = pytest.importorskip("klayout.db")
    design, path = CLIPS[7], tmp_path / f"{stem}{suffix}"
    DOMAIN.write(design, path, {"spec": "x" * 4000})
    view = db.Layout()
    view.read(str(path))
    library = (gdstk.read_gds if suffix == ".gds" else gdstk.read_oas)(path)
    assert view.dbu == pytest.approx(0.001, abs=1e-12)
    assert (library.unit, library.precision) == pytest.approx((1e-6, 1e-9))
    names = {cell.name for cell in view.each_cell()} | {cell.name for cell in library.cells}
    assert len(names) == 1
    assert re.fullmatch("[A-Za-z][A-Za-z0-9_]{0,31}", names.pop())
    for number, layer in enumerate([*LAYERS, (235, 4)]):
        boxes = [tuple(map(int, (b.left, b.bottom, b.right, b.top))) for b in klayout_boxes(view, layer)]
        wanted = [shape[1:] for shape in design.shapes if shape.layer == number] if number < 4 else [(0, 0, 2000, 2000)]
        assert sorted(boxes) == sorted(wanted)
        polygons = [p for p in library.cells[0].polygons if (p.layer, p.datatype) == layer]
        assert sorted(tuple(np.rint(np.ravel(p.bounding_box()) * 1000)) for p in polygons) == sorted(wanted)
    (frame,) = view.top_cell().shapes(view.layer(235, 4)).each()
    assert "".join(frame.property(k) for k in range(2, 2 + 32)) == "spec=" + "x" * 4000


def klayout_boxes(view: object, layer: tuple[int, int]) -> list[object]:
    return [shape.box for shape in view.top_cell().shapes(view.layer(*layer)).each()]  # type: ignore[attr-defined]


@pytest.mark.parametrize("suffix", DOMAIN.suffixes)
def test_equal_designs_are_equal_files(tmp_path: Path, suffix: str) -> None:
    contents = []
    for folder in ("a", "b"):
        (tmp_path / folder).mkdir()
        DOMAIN.write(PLAIN, tmp_path / folder / f"x{suffix}", {"a": "b"})
        contents.append((tmp_path / folder / f"x{suffix}").read_bytes())
    assert contents[0] == contents[1]


@pytest.mark.parametrize("suffix", DOMAIN.suffixes)
def test_a_file_that_cannot_be_finished_leaves_nothing(tmp_path: Path, suffix: str) -> None:
    with pytest.raises(DesignError, match="this domain has sky130"):
        DOMAIN.write(Cell("ihp_sg13g2", 2000, 2000, ()), tmp_path / f"x{suffix}", {})
    with pytest.raises(OSError, match=r".*"):
        DOMAIN.write(PLAIN, tmp_path / "absent" / f"x{suffix}", {})
    assert list(tmp_path.iterdir()) == []


def test_klayout_may_save_the_file_again(tmp_path: Path) -> None:
    """With its own cell of notes, which would be a second top cell."""
    db = pytest.importorskip("klayout.db")
    design, path = CLIPS[11], tmp_path / "x.gds"
    DOMAIN.write(design, path, {"spec": "x" * 300})
    view = db.Layout()
    view.read(str(path))
    view.add_meta_info(db.LayoutMetaInfo("note", "by hand", "", True))
    view.write(str(path))
    assert DOMAIN.read(path) == design
    assert DOMAIN.provenance(path) == {"spec": "x" * 300}


@pytest.mark.parametrize(("unit", "precision"), [(1e-6, 1e-9), (1e-9, 1e-9), (1e-6, 5e-9), (1e-3, 1e-10)])
def test_the_database_unit_is_read_not_assumed(tmp_path: Path, unit: float, precision: float) -> None:
    micron = 1e-6 / unit
    box = gdstk.rectangle((0, 0.005 * micron), (0.7 * micron, 1.995 * micron), layer=65, datatype=20)
    path = foreign(tmp_path / "x.gds", FRAME.copy().scale(micron), box, unit=unit, precision=precision)
    assert DOMAIN.read(path).shapes == PLAIN.shapes[:1]
    assert DOMAIN.provenance(path) == {}


def test_the_window_is_the_frame_wherever_it_is(tmp_path: Path) -> None:
    box = gdstk.rectangle((-3, 7), (-2.5, 7.5), layer=67, datatype=20)
    assert DOMAIN.read(foreign(tmp_path / "a.gds", box)).shapes == (Rectangle(3, 0, 0, 500, 500),)
    frame = FRAME.copy().translate(-3.2, 6.9)
    assert DOMAIN.read(foreign(tmp_path / "b.gds", box, frame)).shapes == (Rectangle(3, 200, 100, 700, 600),)


def test_polygons_become_rectangles_and_texts_are_left_out(tmp_path: Path) -> None:
    corner = gdstk.Polygon([(0, 0), (1, 0), (1, 0.2), (0.2, 0.2), (0.2, 1), (0, 1)], layer=67, datatype=20)
    path = foreign(tmp_path / "x.gds", FRAME, corner, gdstk.Label("net", (0, 0), layer=67, texttype=5))
    assert DOMAIN.read(path).shapes == (Rectangle(3, 0, 0, 200, 1000), Rectangle(3, 0, 0, 1000, 200))


@pytest.mark.parametrize("mirrored", [False, True])
@pytest.mark.parametrize("turn", [0, 1, 2, 3])
def test_references_are_flattened_as_by_gdstk(tmp_path: Path, turn: int, mirrored: bool) -> None:
    library = gdstk.Library()
    inner, middle, top = (library.new_cell(name) for name in ("inner", "middle", "top"))
    inner.add(gdstk.rectangle((0, 0), (0.1, 0.05), layer=65, datatype=20))
    middle.add(gdstk.Reference(inner, (0.1, 0.2), rotation=np.pi / 2, columns=2, rows=3, spacing=(0.15, 0.2)))
    top.add(gdstk.Reference(middle, (1, 1), rotation=turn * np.pi / 2, x_reflection=mirrored), FRAME)
    library.write_gds(tmp_path / "x.gds")
    shapes = [p for p in top.get_polygons() if p.layer == 65]
    wanted = [tuple(np.rint(np.ravel(p.bounding_box()) * 1000).astype(int)) for p in shapes]
    assert [shape[1:] for shape in DOMAIN.read(tmp_path / "x.gds").shapes] == sorted(wanted)
    assert len(wanted) == 6


BOX = {"layer": 67, "datatype": 20}
BAD: list[tuple[list[object], str]] = [
    ([gdstk.rectangle((0, 0), (1, 1), layer=68, datatype=20)], "a shape on 68/20 at .*layers here are 65/20"),
    ([gdstk.Polygon([(0, 0), (1, 0), (0, 1)], **BOX)], "67/20 at .* with 3 corners"),
    ([gdstk.Polygon([(0, 0), (1, 0), (1, 0)], **BOX)], "without area"),
    ([gdstk.ellipse((1, 1), 0.5, **BOX)], "only horizontal and vertical sides"),
    ([gdstk.FlexPath([(0, 0), (1, 1)], 0.17, simple_path=True, **BOX)], "off whole nm"),
    ([gdstk.FlexPath([(0, 0), (1, 0)], 0.175, simple_path=True, **BOX)], "off whole nm"),
    ([gdstk.Polygon([(0, 0), (2, 0), (2, 1), (1, 1), (1, -1), (0, -1)], **BOX)], "crosses itself"),
    ([gdstk.Polygon([(0, 0), (1, 0), (1, 1), (0.5, 1), (0.5, 2), (0.5, 1), (0, 1)], **BOX)], "no width"),
    ([gdstk.rectangle((0, 0), (1, 2.5), **BOX), FRAME], "lie within 2000"),
    ([gdstk.rectangle((-0.1, 0), (1, 1), **BOX), FRAME], "lie within 2000"),
    ([FRAME, FRAME.copy()], "2 shapes on the boundary layer"),
    ([gdstk.rectangle((0, 0), (3, 2), layer=235, datatype=4)], "frame of 3000 x 2000 nm"),
    ([gdstk.Reference("absent", (0, 0))], "'absent', which is not in the file"),
    ([gdstk.Reference("top", (0, 0))], "0 top cells"),
]


@pytest.mark.parametrize(("shapes", "words"), BAD)
def test_what_is_no_cell_is_refused_by_name(tmp_path: Path, shapes: list[object], words: str) -> None:
    with pytest.raises(DesignError, match=words) as caught:
        DOMAIN.read(foreign(tmp_path / "x.gds", *shapes))
    assert "\n" not in str(caught.value)
    assert str(tmp_path) in str(caught.value)


def test_lengths_between_nanometres_are_refused(tmp_path: Path) -> None:
    box = gdstk.rectangle((0, 0), (0.1004, 1), **BOX)
    with pytest.raises(DesignError, match="off whole nm"):
        DOMAIN.read(foreign(tmp_path / "x.gds", box, precision=1e-10))


def test_corners_off_the_grid_are_read_and_reported(tmp_path: Path) -> None:
    design = DOMAIN.read(foreign(tmp_path / "x.gds", gdstk.rectangle((0.001, 0), (0.5, 0.5), **BOX), FRAME))
    assert [violation.rule for violation in DOMAIN.violations(design)] == ["grid"]


def test_another_technologys_file_is_refused_but_keeps_its_provenance(tmp_path: Path) -> None:
    other = layout.build("ihp_sg13g2")
    other.write(other.corpus("val")[0], tmp_path / "x.gds", {"a": "b"})
    with pytest.raises(DesignError, match=r"layers here are|ihp_sg13g2"):
        DOMAIN.read(tmp_path / "x.gds")
    assert DOMAIN.provenance(tmp_path / "x.gds") == {"a": "b"}


def _two_tops(path: Path) -> None:
    library = gdstk.Library()
    library.new_cell("a").add(FRAME)
    library.new_cell("b")
    library.write_gds(path)


def _huge_array(path: Path) -> None:
    library = gdstk.Library()
    inner, top = library.new_cell("inner"), library.new_cell("top")
    inner.add(gdstk.rectangle((0, 0), (0.1, 0.1), **BOX))
    top.add(gdstk.Reference(inner, (0, 0), columns=30000, rows=30000, spacing=(0.001, 0.001)))
    library.write_gds(path)


def _empty_array(path: Path) -> None:
    library = gdstk.Library()
    inner, top = library.new_cell("inner"), library.new_cell("top")
    top.add(gdstk.Reference(inner, (0, 0), columns=30000, rows=30000, spacing=(0.001, 0.001)))
    library.write_gds(path)


def _two_turn_cycle(path: Path) -> None:
    library = gdstk.Library()
    a, b, top = (library.new_cell(name) for name in ("a", "b", "top"))
    a.add(gdstk.Reference(b, (0, 0)))
    b.add(gdstk.Reference(a, (0, 0)), gdstk.Reference(a, (1, 0)))
    top.add(gdstk.Reference(a, (0, 0)))
    library.write_gds(path)


FILES: list[tuple[str, Callable[[Path], object], str]] = [
    ("a.gds", lambda path: None, "cannot be read"),
    ("a.gds", lambda path: path.mkdir(), "cannot be read"),
    ("a.gds", lambda path: path.write_bytes(b""), "not a whole GDSII file"),
    ("a.gds", lambda path: path.write_bytes(b"\0" * 64), "not a whole GDSII file"),
    ("a.gds", lambda path: path.write_bytes(b"%SEMI-OASIS\r\n" * 9), "not a whole GDSII file"),
    ("a.gds", lambda path: path.write_bytes(b"\0" * (files.MOST_BYTES + 1)), "larger than"),
    ("a.oas", lambda path: path.write_bytes(b""), "not a whole OASIS"),
    ("a.oas", lambda path: path.write_bytes(b"%SEMI-OASIS\r\n" * 9), "not a whole OASIS"),
    ("a.gds", _two_tops, "2 top cells"),
    ("a.gds", _huge_array, "more than 4096"),
    ("a.gds", _empty_array, "more than 4096"),
    ("a.gds", _two_turn_cycle, "deep|more than"),
    ("a.fasta", lambda path: path.write_text(">a\nACGT\n"), "ends in '.fasta'"),
]


@pytest.mark.parametrize(("name", "make", "words"), FILES)
def test_files_that_are_none_of_ours(tmp_path: Path, name: str, make: Callable[[Path], object], words: str) -> None:
    make(tmp_path / name)
    for ask in (DOMAIN.read, DOMAIN.provenance):
        with pytest.raises(DesignError, match=words) as caught:
            ask(tmp_path / name)
        assert "\n" not in str(caught.value)


def test_the_checksum_is_that_of_the_standard(tmp_path: Path) -> None:
    DOMAIN.write(PLAIN, tmp_path / "x.oas", {})
    assert gdstk.oas_validate(tmp_path / "x.oas")[0] is True
    data = (tmp_path / "x.oas").read_bytes()
    assert int.from_bytes(data[-4:], "little") == zlib.crc32(data[:-4])
