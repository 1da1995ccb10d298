"""Designs are drawn in tiles of one size, whatever number is asked for.

The rounding of a sum depends on the shape of the tensor around it, and a design must not depend on the company it is
made in: so the last tile is filled up with repeats.
"""

from __future__ import annotations

from collections.abc import Callable

import torch

from data.noise import DesignNoise
from data.space import State

SIZE = 16


def drawn(n: int, rng: DesignNoise, draw: Callable[[DesignNoise], State], on_designs: Callable[[int], None]) -> State:
    """`n` states from a function that draws `SIZE` at a time; `on_designs` hears how many there are."""
    tiles = []
    for first in range(0, n, SIZE):
        tiles.append(draw(rng.take([first + k % min(SIZE, n - first) for k in range(SIZE)])))
        on_designs(min(first + SIZE, n))
    return {name: torch.cat([tile[name] for tile in tiles])[:n] for name in tiles[0]}
