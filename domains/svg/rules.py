"""What an icon must not have: nothing drawn, idle segments, ink that the canvas cuts off, too many segments."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from domains.base import Violation
from domains.svg.icon import CANVAS, PEN, Drawn, Icon, drawn_segments

EDGE = 0.1
"""Ink may reach this far beyond the canvas: no eye sees it, and real icons do."""


def violations(design: Icon, length: int) -> list[Violation]:
    """The rules that an icon breaks, by place; places are segments, counted over all its paths."""
    drawn = drawn_segments(design)
    found = [*_empty(drawn), *_idle(design, drawn), *_outside(drawn), *_long(drawn, length)]
    return sorted(found, key=lambda violation: (violation.start, violation.end, violation.rule))


def _empty(drawn: Sequence[Drawn]) -> Iterator[Violation]:
    if all(unit.segment.command == "M" for unit in drawn):
        yield Violation("empty", 0, len(drawn), "the icon draws nothing; add a line or a curve")


def _idle(design: Icon, drawn: Sequence[Drawn]) -> Iterator[Violation]:
    """Paths that only move; lines and curves from a point to itself, but for a dot, the only one in its path."""
    start = 0
    for path in design.paths:
        end = start + len(path)
        if len(path) == 1:
            yield Violation("idle", start, end, f"segment {start}: M, and nothing is drawn from there; remove it")
        for i in range(start + 1, end):
            if end - start > 2 and drawn[i].is_point:
                name = drawn[i].segment.command
                yield Violation("idle", i, i + 1, f"segment {i}: {name} from a point to itself; remove it")
        start = end


def _outside(drawn: Sequence[Drawn]) -> Iterator[Violation]:
    for i, unit in enumerate(drawn):
        reach = [abs(value - CANVAS / 2) + (PEN - CANVAS) / 2 for point in unit.sampled() for value in point]
        if unit.segment.command != "M" and max(reach) > EDGE:
            yield Violation(
                "outside", i, i + 1,
                f"segment {i}: the ink of {unit.segment.command} is up to {max(reach):.2f} outside of the canvas; the "
                f"pen must stay between {PEN / 2:g} and {CANVAS - PEN / 2:g}; move it inwards",
            )  # fmt: skip


def _long(drawn: Sequence[Drawn], length: int) -> Iterator[Violation]:
    if len(drawn) > length:
        message = f"{len(drawn)} segments: this domain has at most {length}; simplify the icon"
        yield Violation("too long", length, len(drawn), message)
