"""Icons as states: one unit per segment, with its command and six numbers.

The numbers of a unit are x1 y1 x2 y2 x y. The end point (x, y) is absolute, (p - 12) / 12, so that an error in one unit
moves nothing but its own ends. The control points of a C are handles, as in a vector editor: the first relative to
where the curve begins, the second relative to where it ends, p / 6. So an arc of one radius has the same handles
everywhere, and a horizontal tangent has an exact 0.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from data.space import Categorical, Real, Space, State
from domains.svg.icon import CANVAS, COORDINATES, DECIMALS, HIGH, LOW, Drawn, Icon, Segment, assembled, drawn_segments

COMMANDS = tuple(COORDINATES)
MOVE, LINE, CURVE, CLOSE = range(len(COMMANDS))
NOTHING = len(COMMANDS)
"""The code of a unit that draws nothing at all: it is not in use, or closes what is not open."""
HANDLE = 6.0
"""Units of length in one unit of a handle: hardly any handle of a real icon is longer."""
_USED = tuple((False,) * (6 - n) + (True,) * n for n in COORDINATES.values())


def space(length: int) -> Space:
    """The space of icons of at most `length` segments."""
    arguments = Real(6, scale=1.0, given="command", used=_USED)
    return Space(length, {"command": Categorical(len(COMMANDS)), "arguments": arguments})


class Strokes(NamedTuple):
    """What the units of a batch draw, in units of the canvas."""

    command: Tensor
    """(B, L) codes as in `COMMANDS`, or `NOTHING`."""
    points: Tensor
    """(B, L, 4, 2): where a unit begins, its control points (its ends, where it has none), where it ends."""


def strokes(state: State) -> Strokes:
    """Follow the pen along a batch, with gradients to `arguments`; every state draws something that SVG allows.

    The likeliest command counts. A line or curve while no path is open begins one at its end, as M would; a Z while
    none is open is nothing.
    """
    asked = state["command"].argmax(-1).masked_fill(~state["mask"], NOTHING)
    ends = ((state["arguments"][..., 4:] + 1) * CANVAS / 2).clamp(LOW, HIGH)
    command, begin, end = _followed(asked, ends)
    handles = HANDLE * state["arguments"][..., :4] * (command == CURVE)[..., None]
    points = [begin, begin + handles[..., :2], end + handles[..., 2:], end]
    return Strokes(command, torch.stack(points, -2).clamp(LOW, HIGH))


def _followed(asked: Tensor, ends: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """What each unit does (B, L), where the pen is before it, but M has no way to go, and after it (B, L, 2)."""
    pen = home = torch.zeros_like(ends[:, 0])
    is_open = torch.zeros_like(asked[:, 0], dtype=torch.bool)
    steps = []
    for wanted, there in zip(asked.unbind(1), ends.unbind(1), strict=True):
        command = wanted.masked_fill(~is_open & (wanted < CLOSE), MOVE)
        command = command.masked_fill(~is_open & (wanted == CLOSE), NOTHING)
        moves, closes, goes = ((command == MOVE)[:, None], (command == CLOSE)[:, None], (command < CLOSE)[:, None])
        home = torch.where(moves, there, home)
        after = torch.where(goes, there, torch.where(closes, home, pen))
        steps.append((command, torch.where(moves, after, pen), after))
        pen, is_open = after, torch.where(command == NOTHING, is_open, command != CLOSE)
    commands, begins, finishes = (torch.stack(parts, 1) for parts in zip(*steps, strict=True))
    return commands, begins, finishes


def encode(designs: Sequence[Icon], length: int) -> State:
    """The state of icons of at most `length` segments: one-hot commands, unused numbers zero."""
    drawn = [unit for design in designs for unit in drawn_segments(design)]
    sizes = torch.tensor([len(design.segments) for design in designs], dtype=torch.long)
    mask = torch.arange(length) < sizes[:, None]  # its true places come in the order of `drawn`
    commands = torch.zeros(len(designs), length, len(COMMANDS))
    codes = torch.tensor([COMMANDS.index(unit.segment.command) for unit in drawn], dtype=torch.long)
    commands[mask] = torch.eye(len(COMMANDS))[codes]
    arguments = torch.zeros(len(designs), length, 6)
    arguments[mask] = torch.tensor([_numbers(unit) for unit in drawn]).reshape(-1, 6)
    return {"command": commands, "arguments": arguments, "mask": mask}


def decode(state: State) -> list[Icon]:
    """The icons of a batch, their coordinates rounded to hundredths."""
    drawn = strokes(state | {"arguments": state["arguments"].detach().double()})
    points = drawn.points.round(decimals=DECIMALS).flatten(-2)
    rows = zip(drawn.command.tolist(), points.tolist(), strict=True)
    return [assembled([_segment(*unit) for unit in zip(*row, strict=True) if unit[0] != NOTHING]) for row in rows]


def _numbers(drawn: Drawn) -> list[float]:
    if not drawn.segment.coordinates:
        return [0.0] * 6
    handles = [0.0] * 4
    if drawn.segment.command == "C":
        anchors = (*drawn.begin, *drawn.end)
        handles = [(p - a) / HANDLE for p, a in zip(drawn.segment.coordinates, anchors, strict=False)]
    return handles + [2 * p / CANVAS - 1 for p in drawn.end]


def _segment(command: int, points: Sequence[float]) -> Segment:
    name = COMMANDS[command]
    return Segment(name, tuple(points[len(points) - COORDINATES[name] :]))
