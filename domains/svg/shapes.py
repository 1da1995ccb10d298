"""The elements of an SVG document that a pen can draw: paths and basic shapes (SVG 2, chapter 10)."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from xml.etree.ElementTree import Element

from domains.base import DesignError
from domains.svg.grammar import MOST, Pen, trace
from domains.svg.icon import CANVAS, Segment

NAMESPACE = "http://www.w3.org/2000/svg"
_LENGTH = re.compile(r"\s*([+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?)(?:px)?\s*")
_SILENT = {"title", "desc", "metadata", "defs"}
_HIDES = {("display", "none"), ("visibility", "hidden")}
_CHANGES = {"transform", "clip-path", "mask"}

Attributes = Mapping[str, str]


def segments(root: Element) -> list[Segment]:
    """All that a document draws, in the units of its viewBox; `DesignError` names what a pen cannot draw."""
    _refuse_scripts(root)
    found: list[Segment] = []
    for name, attributes in _drawn(root):
        pen = Pen()
        _DRAW[name](attributes, pen)
        found += pen.segments
    return found


def fit(root: Element) -> tuple[float, float, float]:
    """Scale, then shift right and down, that bring a document's viewBox to the middle of the canvas."""
    x, y, width, height = _view_box(root)
    if not min(width, height) > 0:
        raise DesignError(f"the viewBox is {width:g} wide and {height:g} high; both must be above 0; correct it")
    scale = CANVAS / max(width, height)
    return scale, CANVAS / 2 - scale * (x + width / 2), CANVAS / 2 - scale * (y + height / 2)


def _view_box(root: Element) -> list[float]:
    words = root.get("viewBox")
    if words is None:
        return [0.0, 0.0, *(_number(root.attrib, side, CANVAS) for side in ("width", "height"))]
    box = _numbers(words, "viewBox")
    if len(box) != 4:
        raise DesignError(f"viewBox has {len(box)} numbers; it must have x, y, width and height; correct it")
    return box


def _refuse_scripts(root: Element) -> None:
    for element in root.iter():
        handlers = [key for key in element.attrib if key.rsplit("}", 1)[-1].lower().startswith("on")]
        if _name(element).lower() == "script" or handlers:
            raise DesignError(f"<{_name(element):.40}> has a script {handlers[:1]}; scripts are not read; remove it")


def _drawn(root: Element) -> Iterator[tuple[str, Attributes]]:
    """Name and attributes, with the paint inherited, of every element that is drawn, in its order."""
    waiting: list[tuple[Element, Attributes]] = [(root, {})]
    while waiting:
        element, inherited = waiting.pop()
        name, own = _name(element), _declared(element)
        if _is_foreign(element) or name in _SILENT or not _HIDES.isdisjoint(own.items()):
            continue
        _check(name, own, is_root=element is root)
        attributes = {key: inherited[key] for key in ("stroke", "fill") if key in inherited} | own
        if name in ("svg", "g"):
            waiting += [(child, attributes) for child in reversed(element)]
        elif not attributes.get("stroke") == attributes.get("fill") == "none":
            yield name, attributes


def _name(element: Element) -> str:
    return element.tag.rsplit("}", 1)[-1]


def _is_foreign(element: Element) -> bool:
    """Whether it belongs to another language than SVG, as what editors note for themselves does."""
    return element.tag.startswith("{") and not element.tag.startswith(f"{{{NAMESPACE}}}")


def _declared(element: Element) -> dict[str, str]:
    """Attributes; those declared in `style` go before the others."""
    pairs = (declaration.partition(":") for declaration in element.get("style", "").split(";"))
    return element.attrib | {key.strip(): value.strip() for key, colon, value in pairs if colon}


def _check(name: str, attributes: Attributes, is_root: bool) -> None:
    if name not in _DRAW and name != "g" and not is_root:
        raise DesignError(f"<{name:.40}> is not a stroke; legal are g, {', '.join(_DRAW)}; convert it to paths")
    for key in _CHANGES & attributes.keys():
        raise DesignError(f"<{name}> has {key}={attributes[key]!r:.60}; a {key} is not read; apply it to the paths")


def _path(attributes: Attributes, pen: Pen) -> None:
    trace(attributes.get("d", ""), pen)


def _line(attributes: Attributes, pen: Pen) -> None:
    x1, y1, x2, y2 = (_number(attributes, key) for key in ("x1", "y1", "x2", "y2"))
    pen.move(x1, y1)
    pen.line(x2, y2)


def _polyline(attributes: Attributes, pen: Pen) -> None:
    numbers = _numbers(attributes.get("points", ""), "points")
    if len(numbers) % 2:
        raise DesignError(f"points has {len(numbers)} numbers; it must have x and y of each point; correct it")
    for i in range(0, len(numbers), 2):
        (pen.line if i else pen.move)(numbers[i], numbers[i + 1])


def _polygon(attributes: Attributes, pen: Pen) -> None:
    _polyline(attributes, pen)
    if pen.segments:
        pen.close()


def _rect(attributes: Attributes, pen: Pen) -> None:
    x, y, width, height = (_number(attributes, key) for key in ("x", "y", "width", "height"))
    if not min(width, height) > 0:
        return
    rx, ry = _radii(attributes, width / 2, height / 2)
    right, bottom = x + width, y + height
    pen.move(x + rx, y)
    for side, corner in (
        ((right - rx, y), (right, y + ry)),
        ((right, bottom - ry), (right - rx, bottom)),
        ((x + rx, bottom), (x, bottom - ry)),
        ((x, y + ry), (x + rx, y)),
    ):
        if side != pen.at and side != (x, y):
            pen.line(*side)
        pen.arc(rx, ry, 0, 0, 1, *corner)
    pen.close()


def _radii(attributes: Attributes, most_x: float, most_y: float) -> tuple[float, float]:
    """Those of a rectangle's corners: one that is not given is the other one."""
    given = [_number(attributes, key) for key in ("rx", "ry") if attributes.get(key, "auto") != "auto"]
    rx, ry = (given or [0.0])[0], (given or [0.0])[-1]
    return (min(rx, most_x), min(ry, most_y)) if min(rx, ry) > 0 else (0.0, 0.0)


def _circle(attributes: Attributes, pen: Pen) -> None:
    radius = _number(attributes, "r")
    _ellipse({**attributes, "rx": str(radius), "ry": str(radius)}, pen)


def _ellipse(attributes: Attributes, pen: Pen) -> None:
    x, y, rx, ry = (_number(attributes, key) for key in ("cx", "cy", "rx", "ry"))
    if not min(rx, ry) > 0:
        return
    pen.move(x + rx, y)
    for to_x, to_y in ((x, y + ry), (x - rx, y), (x, y - ry), (x + rx, y)):
        pen.arc(rx, ry, 0, 0, 1, to_x, to_y)
    pen.close()


_DRAW: dict[str, Callable[[Attributes, Pen], None]] = {
    "path": _path, "line": _line, "circle": _circle, "rect": _rect, "polyline": _polyline, "polygon": _polygon,
    "ellipse": _ellipse,
}  # fmt: skip


def _number(attributes: Attributes, key: str, absent: float = 0.0) -> float:
    return _length(attributes[key], key) if key in attributes else absent


def _numbers(words: str, key: str) -> list[float]:
    return [_length(word, key) for word in re.split(r"[\s,]+", words) if word]


def _length(word: str, key: str) -> float:
    found = _LENGTH.fullmatch(word)
    if not found or abs(float(found[1])) > MOST:
        raise DesignError(f"{key} has {word!r:.40}; it must be a number of px up to {MOST:g}; correct it")
    return float(found[1])
