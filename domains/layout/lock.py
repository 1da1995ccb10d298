"""Shapes of a layout that every design is to have, as sites of a state."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch

from data.space import State
from domains.base import DesignError
from domains.layout.cell import Cell

PLACES = ("first", "spread")


def check(place: str) -> None:
    """Raise `DesignError` unless `place` is one of `PLACES`."""
    if place not in PLACES:
        raise DesignError(f"place={place!r:.60}; shapes are held {' or '.join(PLACES)}; choose one")


def spread(state: State, sites: Sequence[int]) -> State:
    """The state of one design, its sites in use moved to `sites`."""
    moved = {name: torch.zeros_like(value) for name, value in state.items()}
    for name, value in state.items():
        moved[name][0, list(sites)] = value[0, : len(sites)]
    return moved


def usual(cell: Cell, corpus: Sequence[Cell], length: int) -> list[int]:
    """Sites for the rectangles of a cell, in their order: as many are before each as in the mean cell of a corpus."""
    known = np.sort(np.concatenate([_keys(one) for one in corpus]))
    ranks = np.searchsorted(known, _keys(cell)) / len(corpus)
    count, found = len(ranks), list[int]()
    for i, rank in enumerate(ranks):
        least = found[-1] + 1 if found else 0
        found.append(min(max(round(float(rank)), least), length - count + i))
    return found


def _keys(cell: Cell) -> np.ndarray:
    """One number for each rectangle (n,), in the order of rectangles."""
    shapes, keys = cell.array(), np.zeros(len(cell.shapes), dtype=np.int64)
    for column, base in zip(shapes.T, (1, *[cell.width + cell.height + 1] * 4), strict=True):
        keys = keys * base + column
    return keys
