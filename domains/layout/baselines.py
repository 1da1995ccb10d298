"""The simple models of a layout that any generator has to beat."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from domains.layout.cell import Cell, Rectangle


def uniform(train: Sequence[Cell], n: int, rng: np.random.Generator) -> list[Cell]:
    """As many rectangles as some cell of `train`, each on any layer, between any two points of the grid."""
    return [_scattered(train[i], rng) for i in rng.integers(len(train), size=n)]


def independent(train: Sequence[Cell], n: int, rng: np.random.Generator) -> list[Cell]:
    """As many rectangles of each layer as some cell of `train`, each from any place of any cell, one by one."""
    pools: dict[int, list[Rectangle]] = {}
    for cell in train:
        for shape in cell.shapes:
            pools.setdefault(shape.layer, []).append(shape)
    return [_redrawn(train[i], pools, rng) for i in rng.integers(len(train), size=n)]


def _scattered(like: Cell, rng: np.random.Generator) -> Cell:
    grid, shapes = like.rules.grid, []
    for _ in like.shapes:
        x0, x1 = sorted(rng.choice(like.width // grid + 1, size=2, replace=False).tolist())
        y0, y1 = sorted(rng.choice(like.height // grid + 1, size=2, replace=False).tolist())
        layer = int(rng.integers(len(like.rules.layers)))
        shapes.append(Rectangle(layer, x0 * grid, y0 * grid, x1 * grid, y1 * grid))
    return Cell(like.technology, like.width, like.height, tuple(shapes))


def _redrawn(like: Cell, pools: dict[int, list[Rectangle]], rng: np.random.Generator) -> Cell:
    shapes = (pools[shape.layer][rng.integers(len(pools[shape.layer]))] for shape in like.shapes)
    return Cell(like.technology, like.width, like.height, tuple(shapes))
