"""The result as a picture: MMD against steps, a panel for each problem.

python -m app.benchmarks.rmf_toys.picture RESULT.json > PICTURE.svg
"""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from app.benchmarks.rmf_toys.findings import BEST, Table
from app.benchmarks.rmf_toys.problems import problem as known

INK = "#7d8796"
LINES: Mapping[str, tuple[str, str]] = {
    "semigroup x1 long": ("#2f7fd1", ""),
    "semigroup x1": ("#2f7fd1", "1.5 3"),
    BEST: (INK, ""),
    "eulerian x1": ("#e0932f", ""),
    "lagrangian_push x1": ("#35a06a", ""),
    "euclidean x1": ("#d8506b", "4 3"),
}
"""Method -> colour on light and on dark, and dashes."""
WORDS = {BEST: "flow matching, the best", "euclidean x1": "Euclidean MeanFlow, projected"}
ACROSS, WIDE, HIGH = 4, 172.0, 118.0
LEFT, TOP, GAP_X, GAP_Y = 34.0, 20.0, 34.0, 42.0


def drawn(result: Mapping[str, Any]) -> str:
    """An SVG without a background."""
    by = Table(result["rows"])
    down = math.ceil((len(by.problems) + 1) / ACROSS)
    width, height = LEFT + ACROSS * (WIDE + GAP_X), TOP + down * (HIGH + GAP_Y)
    parts = [_panel(by, name, *_corner(i)) for i, name in enumerate(by.problems)]
    parts.append(_legend(by, *_corner(len(by.problems))))
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:g} {height:g}" width="{width:g}" '
        f'height="{height:g}" font-family="Helvetica, Arial, DejaVu Sans, sans-serif" font-size="10" fill="{INK}">'
    )
    return "\n".join([head, "<title>MMD against steps on small problems</title>", *parts, "</svg>\n"])


def _corner(index: int) -> tuple[float, float]:
    row, column = divmod(index, ACROSS)
    return LEFT + column * (WIDE + GAP_X), TOP + row * (HIGH + GAP_Y)


def _panel(by: Table, problem: str, left: float, top: float) -> str:
    """One problem: frame, what cannot be told from nothing as a band, a line a method."""
    methods = [name for name in LINES if name == BEST or name in by.methods]
    values = {name: [by.mmd(problem, name, steps) for steps in by.steps] for name in methods}
    least = math.sqrt(by.resolution(problem))
    finite = [value for line in values.values() for value in line if math.isfinite(value)]
    low, high = math.log10(least) - 0.12, max(math.log10(max(finite)) + 0.1, math.log10(least) + 0.6)

    def x(steps: int) -> float:
        """Pixels across, logarithmic."""
        return left + WIDE * (0.04 + 0.92 * math.log(steps) / math.log(by.steps[-1]))

    def y(value: float) -> float:
        """Pixels down, logarithmic."""
        return top + HIGH * (high - math.log10(value)) / (high - low)

    parts = [
        f'<rect x="{left:g}" y="{y(least):.1f}" width="{WIDE:g}" height="{top + HIGH - y(least):.1f}" fill="{INK}" '
        'fill-opacity=".22"/>',
        f'<rect x="{left:g}" y="{top:g}" width="{WIDE:g}" height="{HIGH:g}" fill="none" stroke="{INK}" '
        'stroke-opacity=".6"/>',
        _text(left + WIDE / 2, top - 6, known(problem).title, 'text-anchor="middle" font-weight="bold"'),
        *(_text(x(steps), top + HIGH + 13, str(steps), 'text-anchor="middle"') for steps in by.steps),
    ]
    for value in _ticks(low, high):
        parts.append(f'<path d="M{left:g} {y(value):.1f}h{WIDE:g}" stroke="{INK}" stroke-opacity=".25"/>')
        parts.append(_text(left - 4, y(value) + 3.5, f"{value:g}", 'text-anchor="end"'))
    for name in reversed(methods):
        parts.append(
            _line(name, [(x(s), y(v)) for s, v in zip(by.steps, values[name], strict=True) if math.isfinite(v)])
        )
    return "\n".join(parts)


def _line(name: str, points: Iterable[tuple[float, float]]) -> str:
    colour, dashes = LINES[name]
    path = "M" + "L".join(f"{x:.1f} {y:.1f}" for x, y in points)
    dots = "".join(f"M{x:.1f} {y:.1f}h0" for x, y in points)
    look = f'fill="none" stroke="{colour}" stroke-linejoin="round" stroke-linecap="round"'
    return (
        f'<path d="{path}" {look} stroke-width="1.6" stroke-dasharray="{dashes or "none"}"/>'
        f'<path d="{dots}" {look} stroke-width="4.6"/>'
    )


def _ticks(low: float, high: float) -> list[float]:
    """1, 2 and 5 times powers of ten between two logarithms."""
    decades = range(math.floor(low), math.ceil(high))
    return [
        digit * 10.0**decade
        for decade in decades
        for digit in (1, 2, 5)
        if low < math.log10(digit * 10.0**decade) < high
    ]


def _legend(by: Table, left: float, top: float) -> str:
    methods = [name for name in LINES if name == BEST or name in by.methods]
    parts = []
    for i, name in enumerate(methods):
        y = top + 8 + 16 * i
        parts += [
            _line(name, [(left + 2, y), (left + 22, y)]),
            _text(left + 30, y + 3.5, WORDS.get(name, name.replace("_", " "))),
        ]
    y = top + 8 + 16 * len(methods)
    parts.append(f'<rect x="{left:g}" y="{y - 6:g}" width="24" height="11" fill="{INK}" fill-opacity=".22"/>')
    parts.append(_text(left + 30, y + 3.5, "cannot be told from the data"))
    parts.append(_text(left, y + 20, "steps across, MMD up, logarithmic"))
    return "\n".join(parts)


def _text(x: float, y: float, words: str, look: str = "") -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}"{look and " " + look}>{words}</text>'


if __name__ == "__main__":
    sys.stdout.write(drawn(json.loads(Path(sys.argv[1]).read_text())))
