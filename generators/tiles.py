"""Designs are drawn in tiles of one size, whatever number is asked for, each in a row that its number decides.

The rounding of a sum depends on the shape of the tensor around it, that of a gradient on the row too, and a design must
not depend on the company it is made in: so rows that are free are filled up with repeats.

Without a gradient any row does, so that designs of several runs, whose numbers are alike, fit into one tile.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch

from data.noise import DesignNoise
from data.space import State

SIZE = 16


def drawn(
    n: int,
    rng: DesignNoise,
    draw: Callable[[DesignNoise], State],
    on_designs: Callable[[int], None],
    in_row: bool = False,
) -> State:
    """`n` states from a function that draws `SIZE` at a time; `on_designs` hears how many there are.

    `in_row`: each in the row that its number decides, as must be where gradients are taken.
    """
    found: dict[int, State] = {}
    designs = rng.designs[:n]
    for tile in _tiles(designs if in_row else range(len(designs))):
        state = draw(rng.take([tile.get(row, next(iter(tile.values()))) for row in range(SIZE)]))
        found |= {k: {name: value[row] for name, value in state.items()} for row, k in tile.items()}
        on_designs(len(found))
    return {name: torch.stack([found[k][name] for k in range(n)]) for name in found[0]}


def _tiles(designs: Sequence[int]) -> list[dict[int, int]]:
    """Tiles of row -> index into `designs`: row i % SIZE for design i, in the first tile where it is free."""
    tiles: list[dict[int, int]] = []
    taken = [0] * SIZE
    for k, design in enumerate(designs):
        row = design % SIZE
        if taken[row] == len(tiles):
            tiles.append({})
        tiles[taken[row]][row] = k
        taken[row] += 1
    return tiles
