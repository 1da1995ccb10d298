"""Polygons in GDSII and OASIS files, by gdstk, which is kept from files that make it crash or hang.

A GDSII file (GDSII Stream Format Manual, release 6.0, Calma 1987) reaches gdstk only when its records have the sizes
and the order of the standard and its references, counted before any is followed, are few: gdstk reads past the end of
damaged records and takes a cut file for a whole one. OASIS (SEMI P39) cannot be vetted without decoding all of it, so
`oasis.py` turns it into GDSII in a process of its own with limits. GDSII is written here, because gdstk prints a
warning for every shape with more than 128 bytes of properties, which all readers take.
"""

from __future__ import annotations

import re
import struct
import subprocess
import sys
import textwrap
import warnings
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory

import gdstk
import numpy as np

from domains.base import DesignError

_CONVERTER = Path(__file__).with_name("oasis.py")
_SECONDS = 60
_DEEPEST = 64
_FARTHEST = 1e10
_WRITTEN = (2000, 1, 1, 0, 0, 0) * 2  # a fixed date, so that equal cells are equal files
_NOTES = "$$$CONTEXT_INFO$$$"
"""KLayout's own cell of notes, which no other refers to and which is no top cell."""

_PLACED = rb"(?:\x1a\x1b?\x1c?)?"
_BODIES = {
    "boundary": rb"\x08\x26?\x2f?\x0d\x0e\x10",
    "path": rb"\x09\x26?\x2f?\x0d\x0e\x21?\x0f?\x30?\x31?\x10",
    "reference": rb"\x0a\x26?\x2f?\x12" + _PLACED + rb"\x10",
    "array": rb"\x0b\x26?\x2f?\x12" + _PLACED + rb"\x13\x10",
    "text": rb"\x0c\x26?\x2f?\x0d\x16\x17?\x21?\x0f?" + _PLACED + rb"\x10\x19",
    "node": rb"\x15\x26?\x2f?\x0d\x2a\x10",
    "box": rb"\x2d\x26?\x2f?\x0d\x2e\x10",
}
_ELEMENT = rb"(?:" + rb"|".join(_BODIES.values()) + rb")(?:\x2b\x2c)*\x11"
_BEFORE = rb"\x00\x01[\x39\x3a\x3b]*\x02[\x1f\x20\x22\x23\x36\x37\x38]*\x03"
_ORDER = re.compile(_BEFORE + rb"(?:\x05\x06\x34?(?:" + _ELEMENT + rb")*\x07)*\x04")
"""The records of a file, one byte each."""
_SIZES = {
    0x01: 24, 0x03: 16, 0x05: 24, 0x0D: 2, 0x0E: 2, 0x0F: 4, 0x13: 4, 0x16: 2, 0x17: 2, 0x1A: 2, 0x1B: 8, 0x1C: 8,
    0x21: 2, 0x2A: 2, 0x2B: 2, 0x2E: 2, 0x30: 4, 0x31: 4,
}  # fmt: skip
_LIBNAME, _STRNAME, _SNAME, _STRANS, _XY = 0x02, 0x06, 0x12, 0x1A, 0x10
_POINTS = {0x08: 4, 0x09: 2, 0x0A: 1, 0x0B: 3, 0x0C: 1, 0x15: 1, 0x2D: 5}
"""The fewest points of each kind of element."""


@dataclass(frozen=True, eq=False)
class Polygon:
    """Corners (n, 2) in nm of a shape on a layer and datatype, without the first one again at the end."""

    layer: tuple[int, int]
    points: np.ndarray
    properties: Mapping[int, str] = field(default_factory=dict)


def write(path: Path, name: str, polygons: Iterable[Polygon], dbu: int, *, oasis: bool) -> None:
    """A file with one cell of this name, in a database unit of `dbu` nm; corners must be whole numbers of it."""
    if oasis:
        _write_oasis(path, name, polygons, dbu)
        return
    parts = [
        _record(0x0002, struct.pack(">h", 600)),
        _record(0x0102, struct.pack(">12h", *_WRITTEN)),
        _record(0x0206, b"FORESHAPE"),
        _record(0x0305, _real(dbu / 1000) + _real(dbu * 1e-9)),
        _record(0x0502, struct.pack(">12h", *_WRITTEN)),
        _record(0x0606, name.encode("ascii")),
        *(_boundary(polygon, dbu) for polygon in polygons),
        _record(0x0700),
        _record(0x0400),
    ]
    path.write_bytes(b"".join(parts))


def read(path: Path, data: bytes, most: int, *, oasis: bool) -> list[Polygon]:
    """The polygons of the one top cell, references followed, paths as their outlines, texts left out.

    `data` is what the file holds. Raises `DesignError` for a damaged file, or more than `most` shapes and references.
    """
    if not oasis:
        return _flat(path, data, most)
    with TemporaryDirectory() as folder:
        made = Path(folder, "flat.gds")
        command = [sys.executable, "-I", str(_CONVERTER), str(path.resolve()), str(made)]
        try:
            done = subprocess.run(command, capture_output=True, timeout=_SECONDS)
        except subprocess.TimeoutExpired as error:
            raise DesignError(f"not read as OASIS within {_SECONDS} s; export it again, or as .gds") from error
        if done.returncode:
            told = textwrap.shorten(done.stderr.decode("utf-8", "replace"), 80) or f"gdstk stopped, {done.returncode}"
            raise DesignError(f"not a whole OASIS file ({told}); export it again, or as .gds")
        return _flat(made, made.read_bytes(), most)


def _flat(path: Path, data: bytes, most: int) -> list[Polygon]:
    _vet(data)
    try:
        with warnings.catch_warnings(action="error"):  # of what is left out
            library = gdstk.read_gds(path, unit=1e-9)
    except (OSError, RuntimeError, RuntimeWarning) as error:
        raise DesignError(f"not a GDSII file ({textwrap.shorten(str(error), 80)}); export it again") from error
    if not 1e-6 < library.precision * 1e9 < 1e6:
        raise DesignError(f"a database unit of {library.precision * 1e9:g} nm; it is usually 1 nm; export it again")
    top = _top(library)
    if _count(top, {}, most, 0) > most:
        raise DesignError(f"more than {most} shapes and references; no more are read; cut out a smaller window")
    polygons = [_polygon(own) for own in top.get_polygons(include_paths=False)]
    return polygons + [outline for path_of in top.get_paths() for outline in _outlines(path_of)]


def _top(library: gdstk.Library) -> gdstk.Cell:
    cells = [cell for cell in library.cells if isinstance(cell, gdstk.Cell)]
    used = {reference.cell_name for cell in cells for reference in cell.references}
    tops = [cell for cell in cells if cell.name not in used and cell.name != _NOTES]
    if len(tops) != 1:
        names = ", ".join(cell.name for cell in tops)
        raise DesignError(f"{len(tops)} top cells ({names[:80]}); one is read; give each cell its own file")
    return tops[0]


def _count(cell: gdstk.Cell, known: dict[str, int], most: int, depth: int) -> int:
    """How many shapes and references there are in a cell and those that it refers to; stops counting after `most`."""
    if depth > _DEEPEST:
        raise DesignError(f"references more than {_DEEPEST} deep at the cell {cell.name!r:.50}; flatten the file")
    if cell.name not in known:
        total = len(cell.polygons) + len(cell.paths)
        for reference in cell.references:
            times = max(reference.repetition.size, 1)
            total += times * (1 + _count(reference.cell, known, most, depth + 1))
        known[cell.name] = min(total, most + 1)
    return known[cell.name]


def _outlines(path: gdstk.FlexPath | gdstk.RobustPath) -> Iterator[Polygon]:
    """The outlines of a path, united, because it may cross itself."""
    for outline in path.to_polygons():
        drawn = _polygon(outline)  # refuses what is too far away to unite
        yield from map(_polygon, gdstk.boolean(outline, [], "or", 1e-3, *drawn.layer))


def _polygon(polygon: gdstk.Polygon) -> Polygon:
    found = (own[1:3] for own in polygon.properties if own[0] == "S_GDS_PROPERTY" and len(own) == 3)
    told = {
        n: v.rstrip(b"\0").decode("ascii", "replace") for n, v in found if isinstance(n, int) and isinstance(v, bytes)
    }
    points = np.array(polygon.points)
    if not (np.abs(points) <= _FARTHEST).all():
        raise DesignError(f"a shape farther than {_FARTHEST:g} nm from the origin; move or scale it")
    return Polygon((polygon.layer, polygon.datatype), points, told)


def _vet(data: bytes) -> None:
    """Raise `DesignError` unless the records have the sizes and the order of the standard, up to the last one.

    All cells that are referred to must be there: gdstk would tell the terminal.
    """
    kinds, place, element = bytearray(), 0, 0
    names: dict[int, set[bytes]] = {_LIBNAME: set(), _STRNAME: set(), _SNAME: set()}
    while place + 4 <= len(data) and kinds[-1:] != b"\x04":
        size, kind = struct.unpack_from(">HB", data, place)
        if size < 4 or size % 2 or place + size > len(data) or not _fits(kind, size - 4, element):
            break
        if kind in names:
            names[kind].add(data[place + 4 : place + size].rstrip(b"\0"))
        if kind == _STRANS and data[place + 5] & 6:
            raise DesignError(f"a reference of absolute size or angle at byte {place}; make it relative, or flatten it")
        element = kind if kind in _POINTS else element
        kinds.append(kind)
        place += size
    if not _ORDER.fullmatch(kinds):
        raise DesignError(f"not a whole GDSII file: it ends or is damaged at byte {place} of {len(data)}; export again")
    for name in sorted(set().union(*names.values())):
        if not re.fullmatch(rb"[ -~]+", name):
            raise DesignError(f"a cell or library named {str(name)[1:]:.50}; names are ASCII; rename it")
    for name in sorted(names[_SNAME] - names[_STRNAME]):
        raise DesignError(f"a reference to the cell {str(name)[1:]:.50}, which is not in the file; export both")


def _fits(kind: int, size: int, element: int) -> bool:
    if kind == _XY:
        return size % 8 == 0 and size >= 8 * _POINTS.get(element, 1)
    return size == _SIZES.get(kind, size)


def _write_oasis(path: Path, name: str, polygons: Iterable[Polygon], dbu: int) -> None:
    library = gdstk.Library("FORESHAPE", 1e-9, dbu * 1e-9)
    cell = library.new_cell(name)
    for polygon in polygons:
        shape = gdstk.Polygon(polygon.points.tolist(), *polygon.layer)
        for number, value in polygon.properties.items():
            shape.set_gds_property(number, value)
        cell.add(shape)
    library.write_oas(path, validation="crc32")


def _boundary(polygon: Polygon, dbu: int) -> bytes:
    points = np.concatenate([polygon.points, polygon.points[:1]]) // dbu
    properties = (
        _record(0x2B02, struct.pack(">h", number)) + _record(0x2C06, value.encode("ascii"))
        for number, value in polygon.properties.items()
    )
    parts = [
        _record(0x0800),
        _record(0x0D02, struct.pack(">h", polygon.layer[0])),
        _record(0x0E02, struct.pack(">h", polygon.layer[1])),
        _record(0x1003, points.astype(">i4").tobytes()),
        *properties,
        _record(0x1100),
    ]
    return b"".join(parts)


def _record(kind: int, content: bytes = b"") -> bytes:
    """A length, the kind of record and of its data, and the data, big-endian."""
    padded = content + b"\0" * (len(content) % 2)
    return struct.pack(">HH", len(padded) + 4, kind) + padded


def _real(value: float) -> bytes:
    """A number above 0 in eight bytes: an exponent of 16 in excess 64, and 56 bits of mantissa below the point."""
    exponent = 64
    while value < 1 / 16:
        value, exponent = value * 16, exponent - 1
    while value >= 1:
        value, exponent = value / 16, exponent + 1
    return (exponent << 56 | round(value * (1 << 56))).to_bytes(8, "big")
