"""GDSII and OASIS files as others write them: flattened as KLayout does it, or refused; and damaged ones."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from domains import layout
from domains.base import DesignError
from domains.layout import files, gds
from domains.layout.cell import Cell

DOMAIN = layout.build("sky130")
LAYER = (67, 20)


def awkward(dbu: float = 0.001) -> Any:
    """A layout by KLayout: arrays of arrays, turned and mirrored, every kind of path end, boxes, texts, empty cells."""
    db = pytest.importorskip("klayout.db")
    made = db.Layout()
    made.dbu = dbu
    layer = made.layer(*LAYER)
    leaf, middle, top = (made.create_cell(name) for name in ("leaf", "middle", "top"))
    made_empty = made.create_cell("empty")
    leaf.shapes(layer).insert(db.Box(0, 0, 40, 20))
    leaf.shapes(layer).insert(
        db.Polygon([db.Point(*p) for p in ((0, 30), (0, 60), (10, 60), (10, 40), (30, 40), (30, 30))])
    )
    turns = (db.Trans.R0, db.Trans.R90, db.Trans.M45, db.Trans.M90)
    for k, turn in enumerate(turns):
        at = db.Trans(turn, 200 * k, 100)
        middle.insert(db.CellInstArray(leaf.cell_index(), at, db.Vector(70, 10), db.Vector(-10, 90), 2, 3))
    top.insert(db.CellInstArray(middle.cell_index(), db.Trans(db.Trans.R270, 300, 900)))
    top.insert(
        db.CellInstArray(middle.cell_index(), db.Trans(db.Trans.M0, 500, 1500), db.Vector(3, 400), db.Vector(), 2, 1)
    )
    top.insert(db.CellInstArray(made_empty.cell_index(), db.Trans(5, 5)))
    bends = [db.Point(*p) for p in ((1200, 100), (1400, 100), (1400, 300), (1300, 300), (1300, 50))]
    for k, (begin, end) in enumerate(((0, 0), (20, 20), (5, 30))):
        top.shapes(layer).insert(db.Path(bends, 40, begin, end).moved(0, 500 * k))
    top.shapes(layer).insert(db.Text("net", db.Trans(10, 10)))
    return made


def flattened(made: Any) -> Any:
    db = pytest.importorskip("klayout.db")
    return db.Region(made.top_cell().begin_shapes_rec(made.layer(*LAYER))).merged()


def as_region(path: Path, dbu: float) -> Any:
    db = pytest.importorskip("klayout.db")
    found = db.Region()
    for polygon in gds.read(path, path.read_bytes(), 4096, oasis=path.suffix == ".oas"):
        found.insert(db.Polygon([db.Point(*p) for p in np.rint(polygon.points / (1000 * dbu)).astype(int).tolist()]))
    return found.merged()


@pytest.mark.parametrize("dbu", [0.001, 0.0005, 0.005, 0.00025])
@pytest.mark.parametrize("suffix", DOMAIN.suffixes)
def test_what_klayout_wrote_is_flattened_as_by_klayout(tmp_path: Path, suffix: str, dbu: float) -> None:
    made = awkward(dbu)
    made.write(str(tmp_path / f"x{suffix}"))
    assert (flattened(made) ^ as_region(tmp_path / f"x{suffix}", dbu)).is_empty()


@pytest.mark.parametrize("suffix", DOMAIN.suffixes)
def test_exported_cells_are_the_same_to_klayout(tmp_path: Path, suffix: str) -> None:
    db = pytest.importorskip("klayout.db")
    for design in DOMAIN.corpus("val")[:5]:
        DOMAIN.write(design, tmp_path / f"x{suffix}", {"spec": "y" * 500})
        view = db.Layout()
        view.read(str(tmp_path / f"x{suffix}"))
        for number, layer in enumerate(design.rules.layers):
            ours = db.Region([db.Box(*shape[1:]) for shape in design.shapes if shape.layer == number])
            theirs = db.Region(view.top_cell().begin_shapes_rec(view.layer(*layer.gds)))
            assert (ours ^ theirs).is_empty()


@cache
def whole(suffix: str) -> bytes:
    with TemporaryDirectory() as folder:
        path = Path(folder, f"x{suffix}")
        awkward().write(str(path))
        return path.read_bytes()


def outcomes(data: bytes, suffix: str) -> list[object]:
    """What reading a file gives, and what its provenance is; a `DesignError` for what is refused."""
    found: list[object] = []
    with TemporaryDirectory() as folder:
        path = Path(folder, f"x{suffix}")
        path.write_bytes(data)
        for look in (DOMAIN.read, DOMAIN.provenance):
            try:
                found.append(look(path))
            except DesignError as error:
                found.append(error)
    return found


def sound(found: list[object]) -> bool:
    """Whether each is what it should be, or a refusal of one line."""
    cell, notes = found
    lines = [str(x) for x in found if isinstance(x, DesignError)]
    return (
        isinstance(cell, Cell | DesignError)
        and isinstance(notes, Mapping | DesignError)
        and all(line and "\n" not in line and len(line) < 1000 for line in lines)
    )


@settings(max_examples=300, deadline=None)
@given(st.integers(0, 2**32 - 1))
def test_a_damaged_gds_is_read_or_refused(seed: int) -> None:
    rng = np.random.default_rng(seed)
    data = bytearray(whole(".gds"))
    for place in rng.integers(len(data), size=int(rng.integers(1, 6))):
        data[place] = rng.integers(256)
    assert sound(outcomes(bytes(data), ".gds"))


@settings(max_examples=8, deadline=None)
@given(st.integers(0, 2**32 - 1))
def test_a_damaged_oasis_is_read_or_refused(seed: int) -> None:
    rng = np.random.default_rng(seed)
    data = bytearray(whole(".oas"))
    for place in rng.integers(13, len(data), size=int(rng.integers(1, 4))):
        data[place] = rng.integers(256)
    assert sound(outcomes(bytes(data), ".oas"))


@settings(max_examples=30, deadline=None)
@given(st.binary(max_size=200), st.sampled_from([b"", b"\0\6\0\2\2X"]))
def test_random_bytes_are_refused(data: bytes, start: bytes) -> None:
    with TemporaryDirectory() as folder:
        path = Path(folder, "x.gds")
        path.write_bytes(start + data)
        with pytest.raises(DesignError, match="not a whole GDSII"):
            DOMAIN.read(path)


@pytest.mark.parametrize("suffix", DOMAIN.suffixes)
def test_a_cut_file_is_never_taken_for_a_whole_one(tmp_path: Path, suffix: str) -> None:
    data, path = whole(suffix), tmp_path / f"x{suffix}"
    for length in np.linspace(0, len(data) - 4, 40 if suffix == ".gds" else 5, dtype=int):
        path.write_bytes(data[:length])
        with pytest.raises(DesignError, match="not a whole"):
            DOMAIN.read(path)


def test_a_huge_file_is_refused_unread(tmp_path: Path) -> None:
    with (tmp_path / "x.gds").open("wb") as file:
        file.truncate(100 << 20)
    with pytest.raises(DesignError, match=f"larger than {files.MOST_BYTES}"):
        DOMAIN.read(tmp_path / "x.gds")
