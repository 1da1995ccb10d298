"""Ink on a canvas, by the distance of each pixel from the strokes: plain torch, with gradients.

A pixel is covered as its centre's distance to the nearest stroke says: wholly where the pen's edge is half a pixel
further out, not at all where it is half a pixel nearer, and evenly in between.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from domains.svg import units
from domains.svg.icon import CANVAS, PEN, Icon

SIZE = 24
"""Pixels on a side: one unit of the canvas each, the size at which these icons are looked at."""
PIECES = 6
"""Straight pieces that stand for a curve; a quarter of the largest circle is off by 0.08 units at most."""
_CHUNK = 32
_FAR = 4 * CANVAS**2


def ink(designs: Sequence[Icon], size: int = SIZE) -> Tensor:
    """The share of each pixel that is covered, (n, size, size), by row from the top."""
    chunks = [
        coverage(units.strokes(units.encode(part, max(len(icon.segments) for icon in part) or 1)), size)
        for part in (designs[i : i + _CHUNK] for i in range(0, len(designs), _CHUNK))
    ]
    return torch.cat([torch.zeros(0, size, size), *chunks])


def coverage(drawn: units.Strokes, size: int = SIZE) -> Tensor:
    """The share of each pixel that is covered, (B, size, size), with gradients to the points."""
    begin, end, owner = pieces(drawn)
    pixel = CANVAS / size
    centres = (torch.arange(size).to(begin) + 0.5) * pixel
    squared = _squared_distances(begin, end - begin, centres).flatten(1)
    nearest = torch.full((len(drawn.command), size * size), _FAR).to(begin)
    nearest = nearest.scatter_reduce(0, owner[:, None].expand_as(squared), squared, "amin")
    distance = nearest.clamp(min=1e-12).sqrt().reshape(-1, size, size)  # a root has no slope at 0
    return ((PEN / 2 - distance) / pixel + 0.5).clamp(0, 1)


def pieces(drawn: units.Strokes) -> tuple[Tensor, Tensor, Tensor]:
    """The straight pieces of all strokes: where they begin and end (N, 2), and their row of the batch (N,)."""
    straight = (drawn.command == units.LINE) | (drawn.command == units.CLOSE)
    curved = drawn.command == units.CURVE
    ends = drawn.points[straight][:, [0, 3]]
    knots = (_bernstein().to(ends)[..., None] * drawn.points[curved][:, None]).sum(-2)  # the same in any batch
    rows = torch.arange(len(straight), device=straight.device)[:, None].expand_as(straight)
    owner = torch.cat([rows[straight], rows[curved].repeat_interleave(PIECES)])
    begin = torch.cat([ends[:, 0], knots[:, :-1].flatten(0, 1)])
    return begin, torch.cat([ends[:, 1], knots[:, 1:].flatten(0, 1)]), owner


def _squared_distances(begin: Tensor, span: Tensor, centres: Tensor) -> Tensor:
    """From pieces begin + [0, 1] span (N, 2) to the pixels of a grid: (N, rows, columns)."""
    x, y = centres - begin[:, :1], centres - begin[:, 1:]
    long = span.square().sum(-1)[:, None, None]
    along = (x * span[:, :1])[:, None, :] + (y * span[:, 1:])[:, :, None]
    nearest = (along / long.clamp(min=1e-9)).clamp(0, 1)
    return (x.square()[:, None, :] + y.square()[:, :, None] + nearest * (nearest * long - 2 * along)).clamp(min=0)


def _bernstein() -> Tensor:
    """(PIECES + 1, 4): the weights of the four points of a cubic Bezier curve at even steps."""
    t = torch.linspace(0, 1, PIECES + 1)
    return torch.stack([(1 - t) ** 3, 3 * t * (1 - t) ** 2, 3 * t**2 * (1 - t), t**3], -1)
