"""The `d` attribute of an SVG path, as segments of M, L, C and Z.

Grammar and arcs are those of SVG 2, chapter 9.3 and appendix B.2 (https://www.w3.org/TR/SVG2/paths.html).
"""

from __future__ import annotations

import cmath
import math
import re
from collections.abc import Callable, Iterator, Sequence

from domains.base import DesignError
from domains.svg.icon import Segment

MOST = 1e6
"""No number in a file may be larger, either way."""
_TINY = 1e-9
_NO_CONTROL: tuple[str, float, float] = ("", 0.0, 0.0)
_ARITY = {"M": 2, "L": 2, "H": 1, "V": 1, "C": 6, "S": 4, "Q": 4, "T": 2, "A": 7, "Z": 0}
_NUMBER = re.compile(r"[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?")
_FLAG = re.compile("[01]")
_GAP = re.compile(r"[\s,]*")
_LETTER = re.compile(f"[{''.join(_ARITY)}]", re.IGNORECASE)


class Pen:
    """Collects segments, in any units, as it is moved in absolute coordinates."""

    def __init__(self) -> None:
        self.segments: list[Segment] = []
        self.at = self._home = (0.0, 0.0)
        self._control = _NO_CONTROL
        """The kind of the last curve, C or Q, and its last control point."""

    def move(self, x: float, y: float) -> None:
        """Begin a path."""
        self._home = (x, y)
        self._add("M", x, y)

    def line(self, x: float, y: float) -> None:
        """A straight line."""
        self._begin()
        self._add("L", x, y)

    def cubic(self, x1: float, y1: float, x2: float, y2: float, x: float, y: float) -> None:
        """A cubic Bezier curve."""
        self._begin()
        self._add("C", x1, y1, x2, y2, x, y)
        self._control = ("C", x2, y2)

    def smooth_cubic(self, x2: float, y2: float, x: float, y: float) -> None:
        """A cubic curve that goes on in the direction of the one before it."""
        self.cubic(*self._reflected("C"), x2, y2, x, y)

    def quadratic(self, x1: float, y1: float, x: float, y: float) -> None:
        """A quadratic Bezier curve, as the same cubic."""
        (x0, y0), third = self.at, 2 / 3
        self.cubic(x0 + third * (x1 - x0), y0 + third * (y1 - y0), x + third * (x1 - x), y + third * (y1 - y), x, y)
        self._control = ("Q", x1, y1)

    def smooth_quadratic(self, x: float, y: float) -> None:
        """A quadratic curve that goes on in the direction of the one before it."""
        self.quadratic(*self._reflected("Q"), x, y)

    def arc(self, rx: float, ry: float, turn: float, large: float, sweep: float, x: float, y: float) -> None:
        """An elliptic arc, as cubic curves of at most a quarter turn each; a line where a radius is 0."""
        start, end, radii = complex(*self.at), complex(x, y), (abs(rx), abs(ry))
        if abs(end - start) < _TINY:
            return
        if min(radii) < _TINY:
            self.line(x, y)
            return
        for knots in _curves(start, end, radii, math.radians(turn), bool(large), bool(sweep)):
            self.cubic(*(part for knot in knots for part in (knot.real, knot.imag)))
        self._control = _NO_CONTROL

    def close(self) -> None:
        """Back to where the path began."""
        self._begin()
        self._add("Z")
        self.at = self._home

    def _begin(self) -> None:
        if not self.segments or self.segments[-1].command == "Z":
            self.move(*self.at)

    def _add(self, command: str, *coordinates: float) -> None:
        self.segments.append(Segment(command, coordinates))
        self._control = _NO_CONTROL
        if coordinates:
            self.at = coordinates[-2], coordinates[-1]

    def _reflected(self, kind: str) -> tuple[float, float]:
        last, x, y = self._control
        return (2 * self.at[0] - x, 2 * self.at[1] - y) if last == kind else self.at


def trace(text: str, pen: Pen) -> None:
    """Move the pen along path data; `DesignError` at the first character that does not belong there."""
    moves: dict[str, Callable[..., None]] = {
        "M": pen.move, "L": pen.line, "C": pen.cubic, "S": pen.smooth_cubic, "Q": pen.quadratic,
        "T": pen.smooth_quadratic, "A": pen.arc, "Z": pen.close,
        "H": lambda x: pen.line(x, pen.at[1]), "V": lambda y: pen.line(pen.at[0], y),
    }  # fmt: skip
    for i, (letter, numbers) in enumerate(_commands(text)):
        if i == 0 and letter not in "Mm":
            raise DesignError(f"path data begins with {letter!r}; it must begin with M or m")
        name = letter.upper()
        moves[name](*(_absolute(name, numbers, pen.at) if letter.islower() else numbers))


def _commands(text: str) -> Iterator[tuple[str, list[float]]]:
    """Each command with its numbers; a command whose letter is left out is the one before it, L after M."""
    place, letter = _skip(text, 0), ""
    while place < len(text):
        if found := _LETTER.match(text, place):
            letter, place = found[0], found.end()
        elif letter in ("", "Z", "z"):
            raise _misplaced(text, place, "a command")
        numbers = []
        for i in range(_ARITY[letter.upper()]):
            is_flag = letter in "Aa" and i in (3, 4)
            place = _skip(text, place)
            found = (_FLAG if is_flag else _NUMBER).match(text, place)
            if not found:
                raise _misplaced(text, place, "a flag 0 or 1" if is_flag else "a number")
            numbers.append(float(found[0]))
            place = found.end()
            if abs(numbers[-1]) > MOST:
                raise DesignError(f"path data has the number {found[0]:.40}; the largest is {MOST:g}; correct it")
        yield letter, numbers
        letter = {"M": "L", "m": "l"}.get(letter, letter)
        place = _skip(text, place)


def _skip(text: str, place: int) -> int:
    gap = _GAP.match(text, place)
    return gap.end() if gap else place


def _misplaced(text: str, place: int, wanted: str) -> DesignError:
    found = repr(text[place]) if place < len(text) else "the end"
    return DesignError(f"path data has {found} at character {place + 1}, where {wanted} must be; correct it")


def _absolute(name: str, numbers: Sequence[float], at: tuple[float, float]) -> list[float]:
    x, y = at
    shifts = {"H": [x], "V": [y], "A": [0, 0, 0, 0, 0, x, y]}.get(name, [x, y] * (len(numbers) // 2))
    return [number + shift for number, shift in zip(numbers, shifts, strict=True)]


def _curves(
    start: complex, end: complex, radii: tuple[float, float], turn: float, large: bool, sweep: bool
) -> Iterator[tuple[complex, complex, complex]]:
    """Cubic curves (x + iy) for an arc between two ends, see appendix B.2.4; radii that do not reach are scaled up."""
    rotate = cmath.rect(1, turn)
    half = (start - end) / 2 / rotate
    scale = max(1.0, math.hypot(half.real / radii[0], half.imag / radii[1]))
    rx, ry = radii[0] * scale, radii[1] * scale
    chord = complex(half.real / rx, half.imag / ry)  # half of it, where the ellipse is a unit circle about `centre`
    centre = chord * 1j * math.sqrt(max(0.0, 1 / abs(chord) ** 2 - 1)) * (1 if large == sweep else -1)
    angle = cmath.phase(chord - centre)
    swept = (cmath.phase(-chord - centre) - angle) % math.tau - (0 if sweep else math.tau)
    count = max(1, math.ceil(abs(swept) / (math.pi / 2) - 1e-6))
    lever = 4j / 3 * math.tan(swept / count / 4)
    for i in range(count):
        p, q = (cmath.rect(1, angle + swept * k / count) for k in (i, i + 1))
        knots = (centre + p * (1 + lever), centre + q * (1 - lever), centre + q)
        first, second, last = (complex(z.real * rx, z.imag * ry) * rotate + (start + end) / 2 for z in knots)
        yield first, second, last if i < count - 1 else end
