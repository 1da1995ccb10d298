"""Random numbers whose values depend on a seed and a key alone, never on batch size, device or order of work."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import Protocol

import numpy as np
import torch
from torch import Tensor


class Noise(Protocol):
    """A source of float32 random numbers, drawn on the CPU; the first axis of a shape is the batch."""

    def normal(self, *shape: int) -> Tensor:
        """Standard normal numbers of this shape."""

    def uniform(self, *shape: int) -> Tensor:
        """Numbers uniform on [0, 1) of this shape."""

    def fork(self, key: int) -> Noise:
        """An independent source that depends on this one's seed and `key` only, not on what was drawn."""


def stable_seed(*keys: int | str) -> int:
    """A 64-bit seed from any keys; the same on every machine and in every version of Python."""
    return int.from_bytes(hashlib.sha256(repr(keys).encode()).digest()[:8], "little")


class StepNoise:
    """One stream for a whole batch: what training uses."""

    def __init__(self, seed: int) -> None:
        self.seed = seed
        self._rng = np.random.Generator(np.random.Philox(seed))

    def normal(self, *shape: int) -> Tensor:
        """Standard normal numbers of this shape."""
        return torch.from_numpy(self._rng.standard_normal(shape, dtype=np.float32))

    def uniform(self, *shape: int) -> Tensor:
        """Numbers uniform on [0, 1) of this shape."""
        return torch.from_numpy(self._rng.random(shape, dtype=np.float32))

    def integers(self, high: int, size: int) -> Tensor:
        """`size` whole numbers below `high`."""
        return torch.from_numpy(self._rng.integers(high, size=size))

    def fork(self, key: int) -> StepNoise:
        """The stream of this seed and `key`."""
        return StepNoise(stable_seed(self.seed, key))


class DesignNoise:
    """One stream per design, from (seed of its run, number of the design): design i is the same in any batch.

    `seed` is one for all, or one for each design, where designs of several runs are drawn together.
    """

    def __init__(self, seed: int | Sequence[int], designs: Sequence[int]) -> None:
        self.designs = tuple(designs)
        self.seeds = (seed,) * len(self.designs) if isinstance(seed, int) else tuple(seed)
        pairs = zip(self.seeds, self.designs, strict=True)
        self._streams = [StepNoise(stable_seed("design", one, i)) for one, i in pairs]

    @property
    def seed(self) -> int:
        """The seed of all designs; raises `ValueError` where they have several."""
        (seed,) = set(self.seeds)
        return seed

    def normal(self, *shape: int) -> Tensor:
        """Standard normal numbers; `shape[0]` must be the number of designs."""
        self._check(shape)
        return torch.stack([stream.normal(*shape[1:]) for stream in self._streams])

    def uniform(self, *shape: int) -> Tensor:
        """Numbers uniform on [0, 1); `shape[0]` must be the number of designs."""
        self._check(shape)
        return torch.stack([stream.uniform(*shape[1:]) for stream in self._streams])

    def take(self, rows: Sequence[int]) -> DesignNoise:
        """The streams of some of the designs, from their beginning; a row may occur twice."""
        return DesignNoise([self.seeds[row] for row in rows], [self.designs[row] for row in rows])

    def fork(self, key: int) -> DesignNoise:
        """The streams of the same designs under the seeds of their runs mixed with `key`."""
        return DesignNoise([stable_seed(seed, key) for seed in self.seeds], self.designs)

    def _check(self, shape: tuple[int, ...]) -> None:
        if not shape or shape[0] != len(self.designs):
            raise ValueError(f"noise of shape {shape} was asked for {len(self.designs)} designs")
