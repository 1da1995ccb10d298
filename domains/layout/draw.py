"""Pictures of cells, as SVG: one design with its broken rules, many on a contact sheet.

Layers have colours and hatches as in layout editors: diffusion green, poly red, metal blue. A hatch is a pattern whose
id no other picture has, unless it shows the same: a report puts many pictures into one document.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence

import numpy as np

from domains.layout import metrics, regions
from domains.layout.cell import Cell
from domains.layout.rules import Marker

SIZE = 300
"""Pixels along the longer side of a window."""
_COLUMNS, _MOST, _SMALL, _GAP = 8, 64, 96, 8
_STYLES = {
    "nwell": ("#8c6d31", 0), "diff": ("#1b9e4b", 45), "tap": ("#12703a", 90), "poly": ("#d62728", 135),
    "nsdm": ("#7fbf3f", 0), "psdm": ("#e08a00", 0), "contact": ("#20242c", 90), "li_or_met1": ("#2f6fd6", 60),
    "mcon": ("#20242c", 90), "via1": ("#20242c", 90), "met1": ("#17a2b8", 120), "met2": ("#8a4fd0", 120),
}  # fmt: skip
"""The colour of a layer, and how its hatch runs, in degrees from upright."""
_OTHER = "#98a1b0", 20
_PERIOD = 5
"""Pixels from one line of a hatch to the next."""
_INK, _FAINT, _BAD = "#3b4252", "#98a1b0", "#c2009b"
_BAR = 500
"""Length of the scale bar in nm."""
_LEFT, _TOP = 12, 12


def picture(cell: Cell, markers: Sequence[Marker]) -> bytes:
    """The window with its layers over each other, broken rules in magenta; below, a scale bar and the layers' names."""
    scale = SIZE / max(cell.width, cell.height)
    below = _TOP + cell.height * scale + 14
    key = _key([cell], scale)
    rows = [
        _hatches(cell, key, scale),
        _window(cell, key, _LEFT, _TOP, scale, markers),
        _bar(_LEFT, below, scale),
        *(_entry(_LEFT + SIZE / 2, below - 5, f"broken rules: {len(markers)}", _BAD, _BAD) for _ in markers[:1]),
        _legend(cell, key, scale, _LEFT, below + 16, _LEFT + SIZE),
    ]
    title = f"layout of {len(cell.shapes)} rectangles, {cell.technology}"
    return _svg(SIZE + 2 * _LEFT, below + 36, rows, title)


def sheet(cells: Sequence[Cell]) -> bytes:
    """The first 64 cells, eight in a row, with one legend."""
    shown, step = cells[:_MOST], _SMALL + _GAP
    scale = _SMALL / max((max(cell.width, cell.height) for cell in shown), default=1)
    key = _key(cells, scale)
    rows = [_hatches(cell, key, scale) for cell in shown[:1]]
    for i, cell in enumerate(shown):
        x, y = _LEFT + i % _COLUMNS * step, _TOP + i // _COLUMNS * step
        rows.append(_window(cell, key, x, y, scale, ()))
    right, lines = _LEFT + min(len(shown), _COLUMNS) * step, -(-len(shown) // _COLUMNS)
    rows += [_legend(cell, key, scale, right + 6, _TOP, right + 106) for cell in shown[:1]]
    return _svg(right + 106, _TOP + max(lines, 1) * step + 4, rows, f"{len(shown)} of {len(cells)} layouts")


def _key(cells: Sequence[Cell], scale: float) -> str:
    """What the ids of a picture of these cells begin with."""
    return "h" + hashlib.blake2s(repr((scale, cells)).encode(), digest_size=6).hexdigest()


def _hatches(cell: Cell, key: str, scale: float) -> str:
    """A pattern for each layer, in the units of a window."""
    side = _PERIOD / scale
    patterns = []
    for number in range(len(cell.rules.layers)):
        colour, angle = _style(cell, number)
        patterns.append(
            f'<pattern id="{key}-{number}" width="{side:.1f}" height="{side:.1f}" patternUnits="userSpaceOnUse" '
            f'patternTransform="rotate({angle})"><path d="M0 0H{side:.1f}V{side:.1f}H0Z" fill="{colour}" '
            f'fill-opacity="0.16"/><path d="M{side / 2:.1f} 0V{side:.1f}" stroke="{colour}" '
            f'stroke-opacity="0.6" stroke-width="{1.2 / scale:.1f}"/></pattern>'
        )
    return f"<defs>{''.join(patterns)}</defs>"


def _window(cell: Cell, key: str, left: float, top: float, scale: float, markers: Sequence[Marker]) -> str:
    """The layers in nm with y upwards, put where they belong by a transform."""
    layers = (
        _layer(region, f"url(#{key}-{number})", _style(cell, number)[0], bool(layer.size), 1 / scale)
        for number, (region, layer) in enumerate(zip(metrics.layer_regions(cell), cell.rules.layers, strict=True))
    )
    boxes = (_marker(marker, 1 / scale) for marker in markers)
    frame = (
        f'<rect width="{cell.width}" height="{cell.height}" fill="none" stroke="{_FAINT}" '
        f'stroke-width="{1 / scale:.1f}"/>'
    )
    place = f"translate({left:.1f} {top + cell.height * scale:.1f}) scale({scale:.5f} -{scale:.5f})"
    return "\n".join([f'<g transform="{place}">', *layers, frame, *boxes, "</g>"])


def _layer(region: regions.Region, hatch: str, colour: str, crossed: bool, pixel: float) -> str:
    """Fill and outline of what a layer covers; contacts have a cross, as on a mask."""
    boxes = regions.cover(region).tolist()
    fill = "".join(f"M{x0} {y0}H{x1}V{y1}H{x0}Z" for x0, y0, x1, y1 in boxes)
    crosses = "".join(f"M{x0} {y0}L{x1} {y1}M{x0} {y1}L{x1} {y0}" for x0, y0, x1, y1 in boxes if crossed)
    return (
        f'<path d="{fill}" fill="{hatch}"/>'
        f'<path d="{_outline(region)}{crosses}" fill="none" stroke="{colour}" stroke-width="{pixel:.1f}"/>'
    )


def _outline(region: regions.Region) -> str:
    """Where the region ends inside the window; what the window's edge cuts has no line there."""
    upright = (f"M{x} {y0}V{y1}" for x, y0, y1 in _sides(region))
    return "".join([*upright, *(f"M{x0} {y}H{x1}" for y, x0, x1 in _sides(region.turned()))])


def _sides(region: regions.Region) -> Iterable[tuple[int, int, int]]:
    """Place and ends of the upright sides."""
    for row, column in np.argwhere(region.inside[:, 1:] != region.inside[:, :-1]).tolist():
        yield int(region.xs[column + 1]), int(region.ys[row]), int(region.ys[row + 1])


def _marker(marker: Marker, pixel: float) -> str:
    x0, y0, x1, y1 = marker.box
    grown = 3 * pixel
    return (
        f'<rect x="{x0 - grown:.1f}" y="{y0 - grown:.1f}" width="{x1 - x0 + 2 * grown:.1f}" '
        f'height="{y1 - y0 + 2 * grown:.1f}" fill="{_BAD}" fill-opacity="0.15" stroke="{_BAD}" '
        f'stroke-width="{1.5 * pixel:.1f}"><title>{marker.rule} {marker.measured}, {marker.required}</title></rect>'
    )


def _bar(left: float, y: float, scale: float) -> str:
    right = left + _BAR * scale
    line = f'<path d="M{left} {y - 3}v6M{left} {y}H{right:.1f}M{right:.1f} {y - 3}v6" fill="none" stroke="{_INK}"/>'
    return line + _text(right + 6, y + 4.5, f"{_BAR / 1000:g} µm")


def _legend(cell: Cell, key: str, scale: float, left: float, top: float, right: float) -> str:
    """The layers' names side by side, on a new line where one would pass `right`."""
    rows, x, y = [], left, top
    for number, layer in enumerate(cell.rules.layers):
        wide = 28 + 7.2 * len(layer.name)
        if x > left and x + wide > right:
            x, y = left, y + 18
        rows.append(_entry(x, y, layer.name, _style(cell, number)[0], f"url(#{key}-{number})", scale))
        x += wide
    return "".join(rows)


def _entry(x: float, y: float, name: str, colour: str, fill: str, scale: float = 1) -> str:
    """A patch and a name; the scale is that of the window whose hatch fills the patch."""
    place, side = f"translate({x + 0.5:.1f} {y + 0.5:.1f}) scale({scale:.5f})", 10 / scale
    patch = f'<rect transform="{place}" width="{side:.1f}" height="{side:.1f}" fill="{fill}" stroke="{colour}" '
    return f'{patch}stroke-width="{1 / scale:.1f}"/>{_text(x + 16, y + 10, name)}'


def _style(cell: Cell, number: int) -> tuple[str, int]:
    return _STYLES.get(cell.rules.layers[number].name, _OTHER)


def _text(x: float, y: float, words: str) -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}">{words}</text>'


def _svg(width: float, height: float, rows: Sequence[str], title: str) -> bytes:
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:g} {height:g}" width="{width:g}" '
        f'height="{height:g}" font-family="Helvetica, Arial, DejaVu Sans, sans-serif" font-size="13" fill="{_INK}">'
    )
    paper = f'<rect width="{width:g}" height="{height:g}" fill="white"/>'
    return "\n".join([head, f"<title>{title}</title>", paper, *rows, "</svg>\n"]).encode()
