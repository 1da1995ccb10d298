"""Micro-batches: small runs that want the same of the same model are drawn together, each design from its own seed."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from app import cells
from app.spec import RunSpec, from_plain
from data.errors import InputError
from data.noise import DesignNoise
from data.space import State
from data.store import Run
from data.store.queue import Queue, Shard
from generators import tiles
from generators.base import Generator

LOOKED_AT = 64
"""Waiting shards among which riders are looked for."""
MODEL = ("domain", "generator", "checkpoint", "device", "condition", "cfg")
"""Keys of a spec that decide what a loaded generator is."""


@dataclass(frozen=True)
class Drawn:
    """Finished states of designs of several runs, by seed and number."""

    rows: Mapping[tuple[int, int], int]
    state: State
    seconds: float
    """That each of them took."""

    def of(self, rng: DesignNoise) -> State | None:
        """The states of the designs of a noise; None where one is not among them."""
        found = [self.rows.get(pair) for pair in zip(rng.seeds, rng.designs, strict=True)]
        rows = [row for row in found if row is not None]
        return {name: value[rows] for name, value in self.state.items()} if len(rows) == len(found) else None


def together(
    generator: Generator, steps: int, wanted: Sequence[tuple[int, int]], on_step: Callable[[int], None]
) -> Drawn:
    """Draw designs, unguided, each from the seed and the number of a pair."""
    rng = DesignNoise([seed for seed, _ in wanted], [design for _, design in wanted])
    started = time.monotonic()
    state = generator.sample(len(wanted), steps, None, None, rng, on_step)
    return Drawn({pair: row for row, pair in enumerate(wanted)}, state, (time.monotonic() - started) / len(wanted))


def model(spec: RunSpec) -> str:
    """What runs have alike that can use one loaded generator."""
    plain = spec.identity()
    if not cells.is_trained(spec.generator.name):
        return repr(plain | {"batch": 0})  # it learns from its own run, and from what it measures there
    return repr({key: plain.get(key) for key in MODEL})


def riders(queue: Queue, worker: str, first: Shard) -> Iterator[Shard]:
    """Claim shards of other runs that fit into the rows that a shard leaves free in its last tile, one by one."""
    free = -len(first.designs) % tiles.SIZE
    wanted = _draw(first.folder) if free else None
    for waiting in queue.waiting(LOOKED_AT) if wanted else ():
        if len(waiting.designs) <= free and waiting.run != first.run and _draw(waiting.folder) == wanted:
            claimed = queue.claim(worker, waiting.run, waiting.first)
            if claimed is not None:
                free -= len(claimed.designs)
                yield claimed


def _draw(folder: Path) -> str | None:
    """What runs have alike that can be drawn in one tile; None for one that is drawn alone."""
    try:
        return _draw_of(folder, (folder / "spec.yaml").stat().st_mtime_ns)
    except (InputError, OSError):  # what is wrong with it is said when it is made
        return None


@lru_cache(maxsize=1024)
def _draw_of(folder: Path, changed: int) -> str | None:
    """The same of a spec that was `changed` then; reading those of all that wait would cost as much as a small run."""
    spec = from_plain(RunSpec, Run(folder).spec | {"out": str(folder)})
    alone = spec.lock is not None or spec.guidance.name != "free" or not cells.is_trained(spec.generator.name)
    return None if alone else repr((model(spec), spec.steps))
