"""Cells as GDSII and OASIS files: a frame that shows the window and carries the provenance, then the rectangles."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from domains import files
from domains.base import DesignError
from domains.layout import gds, regions
from domains.layout.cell import Cell, Rectangle
from domains.layout.gds import Polygon
from domains.layout.technology import Technology

SUFFIXES = (".gds", ".oas")
MOST_BYTES, MOST_SHAPES, MOST_POINTS = 4 << 20, 4096, 512
"""Larger files, more shapes, and polygons of more corners are not read."""
_ABOUT = 1
"""The property of the frame that tells about the cell; the provenance is in those from 2 on, in pieces."""
_PIECE, _PIECES = 126, 125  # bytes that any reader takes as one property, and how many of them


def read(path: Path, technology: Technology, window: int) -> Cell:
    """The cell in a file of one top cell; `DesignError` where something in it is not a shape of this technology.

    Polygons with only horizontal and vertical sides become the rectangles that `regions.cover` finds. Texts are left
    out. The window, `window` nm wide and high, is the frame; without one, the shapes' lower left corner is its own.
    """
    polygons = _polygons(path)
    frames = [polygon for polygon in polygons if polygon.layer == technology.boundary]
    if len(frames) > 1:
        raise DesignError(f"{path} has {len(frames)} shapes on the boundary layer; a frame is one; remove the others")
    about = _about(frames, technology, path)
    numbers = {layer.gds: number for number, layer in enumerate(technology.layers)}
    found = [
        (_number(polygon, numbers, path), *box)
        for polygon in polygons
        if polygon.layer != technology.boundary
        for box in _boxes(polygon, path).tolist()
    ]
    shapes = np.array(found, dtype=np.int64).reshape(-1, 5)
    x, y = _origin(frames, shapes, window, path)
    placed = (shapes - [0, x, y, x, y]).tolist()
    try:
        return Cell(technology.name, window, window, tuple(map(Rectangle._make, placed)), about)
    except DesignError as error:
        raise DesignError(f"{path}, from the window's corner: {error}") from error


def write(cell: Cell, path: Path, told: Mapping[str, str]) -> None:
    """Write one cell in the format of the suffix; the file appears whole or not at all."""
    suffix = _suffix(path)
    technology = cell.rules
    name = re.sub(r"[^A-Za-z0-9_]", "_", f"cell_{path.stem}")[:32]
    about = {"technology": cell.technology, "dropped": str(cell.dropped)}
    properties = {_ABOUT: ";".join(files.pack(about))} | dict(
        enumerate(_pieces(";".join(files.pack(told))), _ABOUT + 1)
    )
    frame = Polygon(technology.boundary, _corners(0, 0, cell.width, cell.height), properties)
    shapes = [Polygon(technology.layers[s.layer].gds, _corners(*s[1:])) for s in cell.shapes]
    with files.whole(path) as part:
        gds.write(part, name, [frame, *shapes], technology.dbu, oasis=suffix == ".oas")


def provenance(path: Path) -> dict[str, str]:
    """What `write` was told about the cell in a file, of any technology; empty for a file that came from elsewhere."""
    for polygon in _polygons(path):
        if "technology" in files.unpack_lines([polygon.properties.get(_ABOUT, "")]):
            return files.unpack_lines(text for number, text in sorted(polygon.properties.items()) if number > _ABOUT)
    return {}


def _polygons(path: Path) -> list[Polygon]:
    suffix, data = _suffix(path), files.read_bytes(path, MOST_BYTES, "window")
    try:
        return gds.read(path, data, MOST_SHAPES, oasis=suffix == ".oas")
    except DesignError as error:
        raise DesignError(f"{path}: {error}") from error


def _about(frames: Sequence[Polygon], technology: Technology, path: Path) -> int:
    """How many rectangles were dropped, as the frame tells; raises `DesignError` for another technology's cell."""
    told = files.unpack_lines([frames[0].properties.get(_ABOUT, "")]) if frames else {}
    if told.get("technology", technology.name) != technology.name:
        raise DesignError(
            f"{path} is a cell of {told['technology']:.40}; this domain has {technology.name}; build its own"
        )
    dropped = told.get("dropped", "0")
    if not re.fullmatch("[0-9]{1,9}", dropped):
        raise DesignError(f"{path} says that {dropped:.20} rectangles were dropped; it must be a whole number")
    return int(dropped)


def _number(polygon: Polygon, numbers: Mapping[tuple[int, int], int], path: Path) -> int:
    """Its layer's number in the technology."""
    if polygon.layer not in numbers:
        legal = ", ".join(f"{layer}/{datatype}" for layer, datatype in numbers)
        raise DesignError(f"{path} has {_name(polygon)}; the layers here are {legal}; remove the others")
    return numbers[polygon.layer]


def _boxes(polygon: Polygon, path: Path) -> np.ndarray:
    """Rectangles (n, 4) of whole nm that make up the polygon."""
    points = np.rint(polygon.points).astype(np.int64)
    if np.abs(points - polygon.points).max() > 1e-3:
        raise DesignError(f"{path} has {_name(polygon)}, off whole nm; snap it to them")
    points = points[(np.roll(points, 1, axis=0) != points).any(1)]
    steps = np.roll(points, -1, axis=0) - points
    if len(points) > MOST_POINTS or (steps != 0).all(1).any():
        raise DesignError(
            f"{path} has {_name(polygon)} with {len(points)} corners; shapes have only horizontal and vertical sides "
            f"and at most {MOST_POINTS} corners; cut it into rectangles"
        )
    try:
        region = regions.polygon(points)
    except ValueError as error:
        raise DesignError(f"{path} has {_name(polygon)}, {error}; merge or redraw it") from error
    if not region.area:
        raise DesignError(f"{path} has {_name(polygon)} without area; remove it")
    if ((steps * np.roll(steps, -1, axis=0)).sum(1) < 0).any():
        raise DesignError(f"{path} has {_name(polygon)}, part of which has no width; cut that off")
    return regions.cover(region)


def _origin(frames: Sequence[Polygon], shapes: np.ndarray, window: int, path: Path) -> tuple[int, int]:
    """The lower left corner of the window."""
    if not frames:
        return tuple(shapes[:, 1:3].min(0).tolist()) if len(shapes) else (0, 0)
    boxes = _boxes(frames[0], path)
    x0, y0, x1, y1 = boxes[0].tolist()
    if len(boxes) > 1 or (x1 - x0, y1 - y0) != (window, window):
        raise DesignError(
            f"{path} has a frame of {x1 - x0} x {y1 - y0} nm; this domain has {window} x {window} nm; cut it out"
        )
    return x0, y0


def _name(polygon: Polygon) -> str:
    place = polygon.points[0].round(4).tolist() if len(polygon.points) else []
    return f"a shape on {polygon.layer[0]}/{polygon.layer[1]} at {place} nm"


def _corners(x0: int, y0: int, x1: int, y1: int) -> np.ndarray:
    return np.array([(x0, y0), (x1, y0), (x1, y1), (x0, y1)], dtype=np.int64)


def _pieces(text: str) -> list[str]:
    """The text in pieces that any reader takes, larger ones where it would need too many."""
    size = max(_PIECE, -(-len(text) // _PIECES))
    return [text[i : i + size] for i in range(0, len(text), size)]


def _suffix(path: Path) -> str:
    suffix = path.suffix.lower()
    if suffix not in SUFFIXES:
        raise DesignError(f"{path} ends in {path.suffix!r}; a layout file ends in {', '.join(SUFFIXES)}; convert it")
    return suffix
