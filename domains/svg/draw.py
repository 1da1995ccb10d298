"""Pictures of icons, as SVG: one on a tile with its grid, many on a sheet."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

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
    """One icon on its canvas with a grid of 2 units; segments that break a rule have a red core, short ones a ring."""
    broken = _broken(design, violations)
    box = f"{-_MARGIN:g} {-_MARGIN:g} {CANVAS + 2 * _MARGIN:g} {CANVAS + 2 * _MARGIN:g}"
    rows = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="{box}" width="{TILE}" height="{TILE}" fill="none" '
        'stroke-linecap="round" stroke-linejoin="round">',
        f"<title>icon of {len(design.segments)} segments</title>",
        _plate(-_MARGIN, -_MARGIN, CANVAS + 2 * _MARGIN, _PAPER),
        _plate(0, 0, CANVAS, _CANVAS),
        f'<path d="{_grid()}" stroke="{_GRID}" stroke-width="0.12"/>',
        _strokes(design),
        f'<path d="{"".join(map(_core, broken))}" stroke="{_BAD}" stroke-width="0.6"/>',
        *map(_ring, broken),
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


def _broken(design: Icon, violations: Sequence[Violation]) -> list[np.ndarray]:
    """Begin, controls and end (4, 2) of the segments that a violation names."""
    bad = {i for violation in violations for i in range(violation.start, violation.end)}
    units = enumerate(drawn_segments(design))
    return [np.array([unit.begin, *unit.controls, unit.end]) for i, unit in units if i in bad]


def _core(points: np.ndarray) -> str:
    """Path data of a segment."""
    (x, y), *others = points.tolist()
    return f"M{x:g} {y:g}C{' '.join(f'{value:g}' for point in others for value in point)}"


def _ring(points: np.ndarray) -> str:
    """A circle around a segment that is hardly longer than the pen is wide, which its own ink would hide."""
    if float(np.ptp(points, axis=0).max()) > PEN:
        return ""
    x, y = points.mean(0).tolist()
    return f'<circle cx="{x:g}" cy="{y:g}" r="{1.2 * PEN:g}" stroke="{_BAD}" stroke-width="0.6"/>'
