"""Icons as SVG files, with their provenance inside; and those in other files, as far as they are strokes.

The geometry of an element is read, its paint is not: widths, colours and fills become those of the one pen.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from xml.etree import ElementTree
from xml.sax.saxutils import escape

from domains import files
from domains.base import DesignError
from domains.svg import shapes
from domains.svg.icon import CANVAS, DECIMALS, HIGH, LOW, PEN, Icon, Segment, assembled
from domains.svg.shapes import NAMESPACE

SUFFIX = ".svg"
MOST_BYTES = 1 << 20
"""No file of one icon is larger."""
MOST_SEGMENTS = 4000
"""No icon in a file has more."""
HEAD = (
    f'<svg xmlns="{NAMESPACE}" viewBox="0 0 {CANVAS:g} {CANVAS:g}" fill="none" stroke="currentColor" '
    f'stroke-width="{PEN:g}" stroke-linecap="round" stroke-linejoin="round">'
)


def read(path: Path) -> Icon:
    """The icon in a file, its viewBox fitted to the canvas; `DesignError` on what is not made of strokes alone."""
    root = _root(path)
    try:
        segments = shapes.segments(root)
        if len(segments) > MOST_SEGMENTS:
            raise DesignError(f"{len(segments)} segments; at most {MOST_SEGMENTS} are read; simplify it")
        return assembled(_fitted(segments, *shapes.fit(root)))
    except DesignError as error:
        raise DesignError(f"{path}: {error}") from error


def provenance(path: Path) -> dict[str, str]:
    """What `write` was told about the design in a file; empty for a file that came from elsewhere."""
    metadata = _root(path).find(f"{{{NAMESPACE}}}metadata")
    try:
        told = json.loads((metadata.text or "") if metadata is not None else "")
    except (ValueError, RecursionError):
        return {}
    ours = isinstance(told, dict) and all(isinstance(value, str) for value in told.values())
    return told if ours else {}


def write(design: Icon, path: Path, told: Mapping[str, str]) -> None:
    """Write one design; the file appears whole or not at all."""
    _check_suffix(path)
    if len(design.segments) > MOST_SEGMENTS:
        raise DesignError(f"{len(design.segments)} segments; a file has at most {MOST_SEGMENTS}; simplify the icon")
    text = document(design, told)
    if len(text) > MOST_BYTES:
        raise DesignError(f"the file would have {len(text)} bytes; it may have {MOST_BYTES}; shorten the provenance")
    files.write_text(path, text)


def document(design: Icon, told: Mapping[str, str]) -> str:
    """The text of a file: one `path` element a stroke."""
    metadata = f"<metadata>{escape(json.dumps(dict(told)))}</metadata>"
    return "\n".join([HEAD, metadata, *(f'<path d="{path_data(path)}"/>' for path in design.paths), "</svg>\n"])


def path_data(segments: tuple[Segment, ...]) -> str:
    """The `d` attribute of a path: absolute, each number as short as it can be."""
    return "".join(part.command + " ".join(map(_number, part.coordinates)) for part in segments)


def _number(value: float) -> str:
    return f"{value + 0.0:.{DECIMALS}f}".rstrip("0").rstrip(".")  # + 0.0, for the zero that is negative


def _fitted(segments: list[Segment], scale: float, right: float, down: float) -> list[Segment]:
    return [
        Segment(part.command, tuple(_placed(x, scale, (right, down)[i % 2]) for i, x in enumerate(part.coordinates)))
        for part in segments
    ]


def _placed(value: float, scale: float, shift: float) -> float:
    found = value * scale + shift
    if not LOW <= found <= HIGH:
        raise DesignError(
            f"coordinate {value:g} is at {found:.4g} on a canvas of 0 to {CANVAS:g}; it must be from {LOW:g} to "
            f"{HIGH:g}; move the drawing into its viewBox"
        )
    return round(found, DECIMALS)


def _check_suffix(path: Path) -> None:
    if path.suffix.lower() != SUFFIX:
        raise DesignError(f"{path} ends in {path.suffix!r}; an icon's file ends in {SUFFIX}; rename or convert it")


def _root(path: Path) -> ElementTree.Element:
    """The `svg` element of a file that has no document type, so that no entity can be defined in it."""
    _check_suffix(path)
    text = files.read_text(path, MOST_BYTES, "icon")
    for word in ("<!DOCTYPE", "<!ENTITY"):
        if word in text.upper():
            raise DesignError(f"{path} has {word}; files with document types are not read; remove it")
    try:
        root = ElementTree.fromstring(text)
    except (ElementTree.ParseError, ValueError) as error:
        raise DesignError(f"{path} is not XML ({error}); export it again") from error
    if root.tag not in (f"{{{NAMESPACE}}}svg", "svg"):
        raise DesignError(f"{path} holds <{root.tag:.60}>; an icon's file holds <svg>; export it as SVG")
    return root
