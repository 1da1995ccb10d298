"""Pictures of icons, as SVG: one on a tile with its grid, many on a sheet."""

from __future__ import annotations

from collections.abc import Sequence

from domains.base import Violation
from domains.svg.files import path_data
from domains.svg.icon import CANVAS, PEN, Icon, drawn_segments

TILE = 132
_MARGIN = 3.0
"""Units around the canvas, where ink that leaves it can be seen."""
_PAPER, _CANVAS, _GRID, _INK, _BAD = "#f3f5f8", "#ffffff", "#e9edf2", "#1f2933", "#c8102e"
_COLUMNS, _MOST = 12, 120
_CELL = 32.0


def tile(design: Icon, violations: Sequence[Violation]) -> bytes:
    """One icon on its canvas with a grid of 2 units; segments that break a rule have a red core."""
    box = f"{-_MARGIN:g} {-_MARGIN:g} {CANVAS + 2 * _MARGIN:g} {CANVAS + 2 * _MARGIN:g}"
    rows = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="{box}" width="{TILE}" height="{TILE}" fill="none" '
        'stroke-linecap="round" stroke-linejoin="round">',
        f"<title>icon of {len(design.segments)} segments</title>",
        _plate(-_MARGIN, -_MARGIN, CANVAS + 2 * _MARGIN, _PAPER),
        _plate(0, 0, CANVAS, _CANVAS),
        f'<path d="{_grid()}" stroke="{_GRID}" stroke-width="0.12"/>',
        _strokes(design),
        f'<path d="{_broken(design, violations)}" stroke="{_BAD}" stroke-width="0.6"/>',
        "</svg>\n",
    ]
    return "\n".join(rows).encode()


def sheet(designs: Sequence[Icon]) -> bytes:
    """Up to 120 icons, 12 in a row."""
    shown = designs[:_MOST]
    columns = max(1, min(_COLUMNS, len(shown)))
    width, height = _CELL * columns, _CELL * max(1, -(-len(shown) // columns))
    rows = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:g} {height:g}" width="{2 * width:g}" '
        f'height="{2 * height:g}" fill="none" stroke-linecap="round" stroke-linejoin="round">',
        f"<title>{len(shown)} icons</title>",
        f'<rect width="{width:g}" height="{height:g}" rx="3" fill="{_PAPER}"/>',
        *(_cell(design, i % columns, i // columns) for i, design in enumerate(shown)),
        "</svg>\n",
    ]
    return "\n".join(rows).encode()


def _cell(design: Icon, column: int, row: int) -> str:
    x, y, shift = _CELL * column, _CELL * row, (_CELL - CANVAS) / 2
    plate = _plate(x + 1, y + 1, _CELL - 2, _CANVAS)
    place = f'x="{x + shift:g}" y="{y + shift:g}" width="{CANVAS:g}" height="{CANVAS:g}"'
    return f"{plate}<svg {place}>{_strokes(design)}</svg>"


def _plate(x: float, y: float, side: float, colour: str) -> str:
    return f'<rect x="{x:g}" y="{y:g}" width="{side:g}" height="{side:g}" rx="2" fill="{colour}"/>'


def _strokes(design: Icon) -> str:
    return f'<path d="{"".join(map(path_data, design.paths))}" stroke="{_INK}" stroke-width="{PEN:g}"/>'


def _grid() -> str:
    return "".join(f"M{i} 0V{CANVAS:g}M0 {i}H{CANVAS:g}" for i in range(2, int(CANVAS), 2))


def _broken(design: Icon, violations: Sequence[Violation]) -> str:
    """Path data of the segments that a violation names."""
    bad = {i for violation in violations for i in range(violation.start, violation.end)}
    parts = []
    for i, unit in enumerate(drawn_segments(design)):
        if i in bad:
            points = (unit.begin, *unit.controls, unit.end)
            x0, y0, *others = (f"{value:g}" for point in points for value in point)
            parts.append(f"M{x0} {y0}C{' '.join(others)}")
    return "".join(parts)
