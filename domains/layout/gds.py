"""GDSII stream files, as far as cells need them: polygons, boxes, references to other cells, properties.

Written and read here rather than by gdstk because that crashes on damaged files. The format is that of the GDSII Stream
Format Manual, release 6.0 (Calma, 1987): records of a length, a type and big-endian data.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

import numpy as np

from domains.base import DesignError

_HEADER, _BGNLIB, _LIBNAME, _UNITS, _ENDLIB = 0x0002, 0x0102, 0x0206, 0x0305, 0x0400
_BGNSTR, _STRNAME, _ENDSTR = 0x0502, 0x0606, 0x0700
_BOUNDARY, _PATH, _SREF, _AREF, _TEXT, _NODE, _BOX = 0x0800, 0x0900, 0x0A00, 0x0B00, 0x0C00, 0x1500, 0x2D00
_LAYER, _DATATYPE, _BOXTYPE, _XY, _ENDEL = 0x0D02, 0x0E02, 0x2E02, 0x1003, 0x1100
_SNAME, _COLROW, _STRANS, _MAG, _ANGLE = 0x1206, 0x1302, 0x1A01, 0x1B05, 0x1C05
_PROPATTR, _PROPVALUE = 0x2B02, 0x2C06
_ELEMENTS = (_BOUNDARY, _PATH, _SREF, _AREF, _TEXT, _NODE, _BOX)
_WORTHLESS = (_TEXT, _NODE)  # no geometry
_WRITTEN = (2000, 1, 1, 0, 0, 0) * 2  # a fixed date, so that equal cells are equal files
_DEEPEST = 16


@dataclass(frozen=True, eq=False)
class Polygon:
    """Corners (n, 2) in nm of a shape on a layer and datatype, without the first one again at the end."""

    layer: tuple[int, int]
    points: np.ndarray
    properties: Mapping[int, str] = field(default_factory=dict)


@dataclass
class _Element:
    kind: int
    records: dict[int, bytes] = field(default_factory=dict)
    properties: dict[int, str] = field(default_factory=dict)


@dataclass(frozen=True, eq=False)
class _Placement:
    """How a cell is put into another: a point p goes to `matrix @ p + offset`."""

    matrix: np.ndarray
    offset: np.ndarray


def pack(name: str, polygons: Iterable[Polygon], dbu: int) -> bytes:
    """A file with one cell of this name, in a database unit of `dbu` nm; corners must be whole numbers of it."""
    parts = [
        _record(_HEADER, struct.pack(">h", 600)),
        _record(_BGNLIB, struct.pack(">12h", *_WRITTEN)),
        _record(_LIBNAME, b"FORESHAPE"),
        _record(_UNITS, _real(dbu / 1000) + _real(dbu * 1e-9)),
        _record(_BGNSTR, struct.pack(">12h", *_WRITTEN)),
        _record(_STRNAME, name.encode("ascii")),
        *(_boundary(polygon, dbu) for polygon in polygons),
        _record(_ENDSTR),
        _record(_ENDLIB),
    ]
    return b"".join(parts)


def unpack(data: bytes, most: int) -> list[Polygon]:
    """The polygons of the one top cell, references flattened; `DesignError` for a damaged file or more than `most`."""
    cells: dict[str, list[_Element]] = {}
    elements: list[_Element] = []
    dbu, attribute = 0.0, 0
    for kind, content in _records(data):
        if kind == _UNITS:
            dbu = _number(content[8:]) * 1e9
        elif kind == _STRNAME:
            elements = cells.setdefault(_text(content), [])
        elif kind in _ELEMENTS:
            elements.append(_Element(kind))
        elif kind == _PROPATTR:
            (attribute,) = _whole(content)
        elif kind == _PROPVALUE and elements:
            elements[-1].properties[attribute] = _text(content)
        elif elements:
            elements[-1].records[kind] = content
    if not 1e-6 < dbu < 1e6:
        raise DesignError(f"a database unit of {dbu:g} nm; it is usually 1 nm; export the file again")
    upright = _Placement(np.eye(2, dtype=np.int64), np.zeros(2, dtype=np.int64))
    found = _Hierarchy(cells, most).flat(_top(cells), upright, 0)
    return [Polygon(polygon.layer, polygon.points * dbu, polygon.properties) for polygon in found]


def _top(cells: Mapping[str, list[_Element]]) -> str:
    """The one cell that no other refers to; KLayout's cell of notes does not count."""
    used = {_text(e.records.get(_SNAME, b"")) for elements in cells.values() for e in elements}
    tops = [name for name in cells if name not in used and name != "$$$CONTEXT_INFO$$$"]
    if len(tops) != 1:
        raise DesignError(f"{len(tops)} top cells ({', '.join(tops)[:80]}); one is read; give each cell its own file")
    return tops[0]


@dataclass
class _Hierarchy:
    """Cells that refer to each other; no more than `most` shapes and references are followed."""

    cells: Mapping[str, list[_Element]]
    most: int
    followed: int = 0

    def flat(self, name: str, at: _Placement, depth: int) -> Iterator[Polygon]:
        """All polygons of a cell, and of those it refers to, where `at` puts them, in database units."""
        if name not in self.cells:
            raise DesignError(
                f"a reference to the cell {name!r:.50}, which is not in the file; export it with its cells"
            )
        if depth > _DEEPEST:
            raise DesignError(f"references more than {_DEEPEST} deep at the cell {name!r:.50}; flatten the file")
        for element in self.cells[name]:
            if element.kind in (_SREF, _AREF):
                for inner in _placements(element):
                    self._count()
                    joined = _Placement(at.matrix @ inner.matrix, at.matrix @ inner.offset + at.offset)
                    yield from self.flat(_text(element.records.get(_SNAME, b"")), joined, depth + 1)
            elif element.kind not in _WORTHLESS:
                self._count()
                polygon = _polygon(element)
                yield Polygon(polygon.layer, polygon.points @ at.matrix.T + at.offset, polygon.properties)

    def _count(self) -> None:
        self.followed += 1
        if self.followed > self.most:
            raise DesignError(
                f"more than {self.most} shapes and references; no more are read; cut out a smaller window"
            )


def _polygon(element: _Element) -> Polygon:
    points, kind = _points(element), _BOXTYPE if element.kind == _BOX else _DATATYPE
    layer = (_one(element, _LAYER), _one(element, kind))
    if element.kind == _PATH:
        raise DesignError(f"a path on layer {layer[0]}/{layer[1]} at {points[0].tolist()}; turn paths into polygons")
    return Polygon(layer, points[:-1], element.properties)


def _placements(element: _Element) -> Iterator[_Placement]:
    """Where a reference puts its cell; an array does so in every column and row."""
    points = _points(element)
    flags = _one(element, _STRANS) if _STRANS in element.records else 0
    angle, mag = (
        _number(element.records[kind]) if kind in element.records else default
        for kind, default in ((_ANGLE, 0.0), (_MAG, 1.0))
    )
    if angle % 90 or mag != 1:
        raise DesignError(
            f"a reference turned by {angle:g} degrees, times {mag:g}; only quarter turns are read; flatten it"
        )
    quarter = np.linalg.matrix_power(np.array([[0, -1], [1, 0]]), int(angle // 90) % 4)
    matrix = quarter @ np.diag([1, -1 if flags & 0x8000 else 1])
    if element.kind == _SREF:
        yield _Placement(matrix, points[0])
        return
    columns, rows = _whole(element.records.get(_COLROW, b""), 2)
    if len(points) != 3 or columns < 1 or rows < 1:
        raise DesignError(f"an array of {columns} x {rows} with {len(points)} points; it has 3; export the file again")
    right, up = points[1] - points[0], points[2] - points[0]
    for k in range(columns * rows):
        yield _Placement(matrix, points[0] + right * (k % columns) // columns + up * (k // columns) // rows)


def _boundary(polygon: Polygon, dbu: int) -> bytes:
    points = np.concatenate([polygon.points, polygon.points[:1]]) // dbu
    properties = (
        _record(_PROPATTR, struct.pack(">h", number)) + _record(_PROPVALUE, value.encode("ascii"))
        for number, value in polygon.properties.items()
    )
    return b"".join(
        [
            _record(_BOUNDARY),
            _record(_LAYER, struct.pack(">h", polygon.layer[0])),
            _record(_DATATYPE, struct.pack(">h", polygon.layer[1])),
            _record(_XY, points.astype(">i4").tobytes()),
            *properties,
            _record(_ENDEL),
        ]
    )


def _record(kind: int, content: bytes = b"") -> bytes:
    padded = content + b"\0" * (len(content) % 2)
    return struct.pack(">HH", len(padded) + 4, kind) + padded


def _records(data: bytes) -> Iterator[tuple[int, bytes]]:
    place = 0
    while place + 4 <= len(data):
        size, kind = struct.unpack_from(">HH", data, place)
        if size < 4 or place + size > len(data) or (place == 0) != (kind == _HEADER):
            break
        yield kind, data[place + 4 : place + size]
        if kind == _ENDLIB:
            return
        place += size
    raise DesignError(f"not a whole GDSII file: byte {place} of {len(data)} begins no record; export it again")


def _whole(content: bytes, n: int = 1) -> tuple[int, ...]:
    if len(content) != 2 * n:
        raise DesignError(f"a record of {len(content)} bytes where {2 * n} belong; export the file again")
    return struct.unpack(f">{n}h", content)


def _one(element: _Element, kind: int) -> int:
    return _whole(element.records.get(kind, b""))[0] & 0xFFFF


def _points(element: _Element) -> np.ndarray:
    content = element.records.get(_XY, b"")
    if not content or len(content) % 8:
        raise DesignError(f"a shape with {len(content)} bytes of points, which take 8 each; export the file again")
    return np.frombuffer(content, ">i4").reshape(-1, 2).astype(np.int64)


def _text(content: bytes) -> str:
    return content.rstrip(b"\0").decode("ascii", "replace")


def _number(content: bytes) -> float:
    """An eight-byte real: sign, exponent of 16 in excess 64, 56 bits of mantissa below the point."""
    if len(content) != 8:
        raise DesignError(f"a number of {len(content)} bytes where 8 belong; export the file again")
    bits = int.from_bytes(content, "big")
    value = (bits & (1 << 56) - 1) * 16.0 ** ((bits >> 56 & 127) - 64 - 14)
    return -value if bits >> 63 else value


def _real(value: float) -> bytes:
    """The inverse of `_number`, for numbers above 0."""
    exponent = 64
    while value < 1 / 16:
        value, exponent = value * 16, exponent - 1
    while value >= 1:
        value, exponent = value / 16, exponent + 1
    return (exponent << 56 | round(value * (1 << 56))).to_bytes(8, "big")
