"""The claim table under many workers: processes that race for shards, and a crowd of simulated workers in real time."""

from __future__ import annotations

import heapq
import secrets
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from itertools import chain
from multiprocessing import get_context
from pathlib import Path

import numpy as np

from app.worker import BEAT_EVERY, WATCH_EVERY
from data.store.database import Database
from data.store.queue import DONE, Queue, Watch

RACERS, DRIVERS = 8, 4
"""Processes that race, and that play the crowd."""
SHARD_BEATS = 10
"""For so many beats a simulated worker is busy with a shard."""
REPEATS = 50
"""How often a request is timed."""


def raced(url: str, shards: int) -> dict[str, float]:
    """So many trivial shards claimed and ended by eight processes: those lost, those claimed twice, and shards/s."""
    with _run_of(url, shards) as run, _processes(RACERS) as pool:
        answers = list(pool.map(_race, [url] * RACERS, [run] * RACERS, range(RACERS)))
    claimed, moments = (list(chain.from_iterable(part)) for part in zip(*answers, strict=True))
    seconds, kinds = max(moments) - min(moments), len(set(claimed))
    return {
        "n": shards,
        "workers": RACERS,
        "lost": shards - kinds,
        "claimed twice": len(claimed) - kinds,
        "shards/s": shards / seconds,
    }


def crowd(url: str, workers: int, beats: int) -> dict[str, float]:
    """So many workers for so many beats, ten a shard: what they ask of the store in real time, how late it answers.

    `most workers`: the store would be busy all the time with them, by what its answers cost while the crowd's shards
    are in the table: claim and end once a shard, a beat each beat, a look at others' beats every few.
    """
    share = workers // DRIVERS
    with _run_of(url, workers * (2 + beats // SHARD_BEATS)) as run:
        with _processes(DRIVERS) as pool:
            words = [url] * DRIVERS, [run] * DRIVERS, range(DRIVERS), [share] * DRIVERS, [beats] * DRIVERS
            played = list(pool.map(_play, *words))
        costs = _costs(Queue(Database(url)), run)
    claimed = list(chain.from_iterable(claimed for claimed, _ in played))
    late = np.array(list(chain.from_iterable(late for _, late in played)))
    busy = (costs["claim"] + costs["end"]) / SHARD_BEATS + costs["beat"] + costs["look"] / WATCH_EVERY
    return {
        "n": share * DRIVERS,
        "claimed twice": len(claimed) - len(set(claimed)),
        "late, median (s)": float(np.median(late)),
        "late, 99 % (s)": float(np.quantile(late, 0.99)),
        **{f"{name} (ms)": 1000 * cost for name, cost in costs.items()},
        "most workers": BEAT_EVERY / busy,
    }


@contextmanager
def _run_of(url: str, shards: int) -> Iterator[str]:
    """The name of a run with so many shards, in the table meanwhile."""
    queue, run = Queue(Database(url)), f"bench-{secrets.token_hex(4)}"
    queue.submit(run, Path(run), shards, (), 1)
    try:
        yield run
    finally:
        queue.forget(run)


def _processes(count: int) -> ProcessPoolExecutor:
    return ProcessPoolExecutor(count, mp_context=get_context("spawn"))


def _race(url: str, run: str, number: int) -> tuple[list[int], list[float]]:
    """The shards that one process gets, and when."""
    queue, claimed, moments = Queue(Database(url)), list[int](), [time.monotonic()]
    while shard := queue.claim(f"racer-{number}", run):
        queue.end(shard, DONE)
        claimed.append(shard.first)
        moments.append(time.monotonic())
    return claimed, moments


def _play(url: str, run: str, number: int, workers: int, beats: int) -> tuple[list[int], list[float]]:
    """A part of the crowd: the shards that it gets, and by how much its requests end late."""
    queue, rng, claimed, late = Queue(Database(url)), np.random.default_rng(number), list[int](), list[float]()
    lives = [_life(queue, run, f"crowd-{number}-{k}", claimed) for k in range(workers)]
    due = [(float(moment), k) for k, moment in enumerate(rng.uniform(0, BEAT_EVERY * SHARD_BEATS, workers))]
    heapq.heapify(due)
    start = time.monotonic()
    while due[0][0] < BEAT_EVERY * (beats + SHARD_BEATS):
        moment, k = due[0]
        time.sleep(max(0.0, moment - (time.monotonic() - start)))
        next(lives[k])
        if moment > BEAT_EVERY * SHARD_BEATS:  # by then all have come
            late.append(time.monotonic() - start - moment)
        heapq.heapreplace(due, (moment + BEAT_EVERY, k))
    return claimed, late


def _life(queue: Queue, run: str, name: str, claimed: list[int]) -> Iterator[None]:
    """A worker, from one beat to the next."""
    watch = Watch(queue, 1000, name=name)
    while shard := queue.claim(name, run):
        claimed.append(shard.first)
        yield
        for beat in range(1, SHARD_BEATS):
            queue.beat(shard, {"step": beat})
            if beat % WATCH_EVERY == 0:
                watch.look()
            yield
        queue.end(shard, DONE)


def _costs(queue: Queue, run: str) -> dict[str, float]:
    """Median seconds of each request while the shards of a crowd are in the table."""
    watch = Watch(queue, 1000, name="alone")
    shards = [shard for _ in range(REPEATS) if (shard := queue.claim("alone", run))]
    waiting, running = iter(shards), iter(shards)
    requests: dict[str, Callable[[], object]] = {
        "beat": lambda: queue.beat(next(waiting), {"step": 1}),
        "look": watch.look,
        "end": lambda: queue.end(next(running), DONE),
        "claim": lambda: queue.claim("alone", run),
    }
    return {name: float(np.median([_seconds(ask) for _ in shards])) for name, ask in requests.items()}


def _seconds(ask: Callable[[], object]) -> float:
    start = time.perf_counter()
    ask()
    return time.perf_counter() - start
