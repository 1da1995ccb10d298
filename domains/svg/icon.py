"""The value type: an icon is strokes of one pen, drawn on a canvas of 24 x 24 units with y pointing down.

Coordinates are whole hundredths of a unit, which is what a file holds, so that writing and reading change nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from domains.base import DesignError

CANVAS = 24.0
"""Width and height of the viewBox, which begins at 0 0."""
PEN = 2.0
"""Width of the stroke, whose caps and joins are round."""
LOW, HIGH = -CANVAS / 2, 1.5 * CANVAS
"""No coordinate is smaller or larger: half a canvas on each side of it."""
DECIMALS = 2
COORDINATES = {"M": 2, "L": 2, "C": 6, "Z": 0}
"""Command -> how many coordinates it has: SVG's move, line, cubic Bezier curve and close, all absolute."""


@dataclass(frozen=True)
class Segment:
    """One command with its coordinates x y …; the last two are where it ends, those before them control points."""

    command: str
    coordinates: tuple[float, ...] = ()


Point = tuple[float, float]
Path = tuple[Segment, ...]
"""One stroke: M, then L and C, and perhaps a Z at its end."""


@dataclass(frozen=True)
class Icon:
    """Strokes in the order in which they are drawn; raises `DesignError` unless each is a path that SVG allows."""

    paths: tuple[Path, ...]

    def __post_init__(self) -> None:
        if not all(self.paths):
            raise DesignError("an icon has a path without segments; leave it out")
        place = 0
        for path in self.paths:
            for i, segment in enumerate(path):
                _check(segment, place, first=i == 0, last=i == len(path) - 1)
                place += 1

    @property
    def segments(self) -> list[Segment]:
        """All segments in order: the units of a state."""
        return [segment for path in self.paths for segment in path]


def assembled(segments: Sequence[Segment]) -> Icon:
    """The icon of a legal sequence of segments: every M begins a path."""
    paths: list[list[Segment]] = []
    for segment in segments:
        if segment.command == "M":
            paths.append([])
        paths[-1].append(segment)
    return Icon(tuple(map(tuple, paths)))


@dataclass(frozen=True)
class Drawn:
    """A segment with the point where it begins and the one where it ends."""

    segment: Segment
    begin: Point
    end: Point

    @property
    def controls(self) -> tuple[Point, Point]:
        """The control points of the segment as a cubic curve."""
        if self.segment.command != "C":
            return self.begin, self.end
        x1, y1, x2, y2, *_ = self.segment.coordinates
        return (x1, y1), (x2, y2)

    @property
    def is_point(self) -> bool:
        """Whether it is a line or a curve that goes nowhere."""
        return self.segment.command in ("L", "C") and len({self.begin, *self.controls, self.end}) == 1

    def sampled(self) -> list[Point]:
        """Points along it, its ends included."""
        (first, second), count = self.controls, 16 if self.segment.command == "C" else 1
        knots = (self.begin, first, second, self.end)
        return [_bezier(knots, step / count) for step in range(count + 1)]


def drawn_segments(design: Icon) -> list[Drawn]:
    """Follow the pen along the segments of an icon; M begins where it ends."""
    found = []
    for path in design.paths:
        home = pen = _last_two(path[0])
        for segment in path:
            end = _last_two(segment) if segment.coordinates else home
            found.append(Drawn(segment, pen, end))
            pen = end
    return found


def _check(segment: Segment, place: int, first: bool, last: bool) -> None:
    command, numbers = segment.command, segment.coordinates
    if len(numbers) != COORDINATES.get(command):
        raise DesignError(f"segment {place}: {command!r} with {len(numbers)} coordinates; legal are {COORDINATES}")
    if (command == "M") != first or (command == "Z" and not last):
        raise DesignError(f"segment {place}: {command} is out of place; a path is M, then L and C, then Z or nothing")
    for value in numbers:
        if not LOW <= value <= HIGH or round(value, DECIMALS) != value:
            raise DesignError(
                f"segment {place}: coordinate {value!r} of {command}; it must be in hundredths from {LOW} to {HIGH}; "
                "round it"
            )


def _bezier(knots: Sequence[Point], t: float) -> Point:
    weights = ((1 - t) ** 3, 3 * t * (1 - t) ** 2, 3 * t**2 * (1 - t), t**3)
    x, y = (sum(weight * knot[axis] for weight, knot in zip(weights, knots, strict=True)) for axis in (0, 1))
    return x, y


def _last_two(segment: Segment) -> Point:
    return segment.coordinates[-2], segment.coordinates[-1]
