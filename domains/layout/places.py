"""Boxes across which something measures too little, as arrays."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

RISING, FALLING = 2, 3


class Places(NamedTuple):
    """Boxes that measure `length` along x or y (`axis` 0, 1), or from corner to corner, `RISING` or `FALLING`."""

    boxes: np.ndarray
    """(n, 5): plane x0 y0 x1 y1."""
    axis: np.ndarray
    length: np.ndarray

    def chosen(self, which: np.ndarray) -> Places:
        """Some of them."""
        return Places(*(part[which] for part in self))

    def ends(self) -> tuple[np.ndarray, np.ndarray]:
        """The unit squares (n, 5) just behind both ends."""
        plane, x0, y0, x1, y1 = self.boxes.T
        left = np.where(self.axis == 1, x0, np.where(self.axis == FALLING, x1, x0 - 1))
        right = np.where(self.axis == 1, x0, np.where(self.axis == FALLING, x0 - 1, x1))
        below, above = np.where(self.axis == 0, y0, y0 - 1), np.where(self.axis == 0, y0, y1)
        return _unit(plane, left, below), _unit(plane, right, above)


NO_PLACES = Places(np.zeros((0, 5), dtype=np.int64), np.zeros(0, dtype=np.int64), np.zeros(0))


def _unit(plane: np.ndarray, x: np.ndarray, y: np.ndarray) -> np.ndarray:
    return np.stack([plane, x, y, x + 1, y + 1], axis=1)


def joined(parts: Sequence[Places]) -> Places:
    """All of them, each once; equal runs in rows that follow each other are one."""
    boxes, axis, length = (np.concatenate(part) for part in zip(*parts, strict=True))
    sides = np.where((axis == 1)[:, None], boxes[:, [0, 2, 4, 1, 3]], boxes[:, [0, 1, 3, 2, 4]])
    key = np.column_stack([axis, length, sides])
    order = np.lexsort(key.T[::-1])
    boxes, axis, length, key = boxes[order], axis[order], length[order], key[order]
    begin = np.ones(len(key), dtype=bool)
    corner, start, end = axis[1:] > 1, key[1:, -2], key[:-1, -1]
    follows = np.where(corner, (key[1:] == key[:-1]).all(1), start <= end)
    begin[1:] = (key[1:, :-2] != key[:-1, :-2]).any(1) | ~follows
    first = np.flatnonzero(begin)
    last = np.append(first[1:], len(key))[: len(first)] - 1
    return Places(np.concatenate([boxes[first, :3], boxes[last, 3:]], axis=1), axis[first], length[first])
