"""Who makes which designs: runs in shards (ranges of designs), claimed by workers one after another.

A worker has a shard for as long as its beats, which count up, arrive; no clock is read. Whoever sees the beat of a
shard stand still for long enough, by a stopwatch of its own, or its worker dead, gives the shard to others. That a
shard may so be made twice does no harm: design i is the same whoever makes it, and its row is kept once.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from sqlalchemy import ColumnElement, Connection, and_, delete, func, select, update
from sqlalchemy.dialects import postgresql, sqlite

from data.store import presence
from data.store.database import RUNS, SHARDS, Database
from data.store.folder import StoreError

QUEUED, RUNNING, PAUSED, DONE = "queued", "running", "paused", "done"
FAILED, CANCELLED, PARTIAL, LOST = "failed", "cancelled", "partial", "lost"
TURN = (SHARDS.c.place, SHARDS.c.run, SHARDS.c.first)
"""The order in which shards are made."""
WATCHED = 50
"""Shards at which one who watches looks."""
MOST_LOSSES = 5
"""Workers that may vanish over one shard before it is left alone, lest it kills them all."""


@dataclass(frozen=True)
class Shard:
    """Designs `first` to `stop` - 1 of the run in a folder, claimed by a worker, or by none yet."""

    run: str
    folder: Path
    first: int
    stop: int
    worker: str = ""

    @property
    def designs(self) -> range:
        """The numbers of its designs."""
        return range(self.first, self.stop)

    @property
    def ours(self) -> ColumnElement[bool]:
        """What holds in the table while the claim does."""
        return and_(_of(self.run, self.first), SHARDS.c.worker == self.worker, SHARDS.c.state == RUNNING)


@dataclass(frozen=True)
class Standing:
    """How a run in the queue is doing: its shards by state, and what running ones say about themselves."""

    name: str
    folder: Path
    place: int
    counts: Mapping[str, int]
    progress: Mapping[str, Mapping[str, Any]]
    message: str = ""

    @property
    def state(self) -> str:
        """One word for the run: that of its liveliest shard, and `partial` where only some of an ended run is done."""
        for state in (RUNNING, QUEUED, PAUSED):
            if self.counts.get(state):
                return state
        ended = next((state for state in (LOST, FAILED, CANCELLED) if self.counts.get(state)), DONE)
        return PARTIAL if ended in (FAILED, CANCELLED) and self.counts.get(DONE) else ended


class Queue:
    """The shards of all runs of a database."""

    def __init__(self, database: Database | None = None) -> None:
        self.database = database or Database()

    def submit(self, name: str, folder: Path, n: int, finished: Collection[int], size: int) -> None:
        """Queue what a run of n designs lacks, in shards of `size`; again, for a run that is here, that goes on.

        Shards that are being made are left to their workers.
        """
        have = set(finished)
        with self.database.transaction() as connection:
            insert = postgresql.insert if connection.dialect.name == "postgresql" else sqlite.insert
            last = connection.execute(select(func.coalesce(func.max(RUNS.c.place), 0))).scalar_one()
            row = {"name": name, "folder": str(folder.absolute()), "place": last + 1}
            connection.execute(insert(RUNS).values(row).on_conflict_do_nothing())
            run = connection.execute(select(RUNS).where(RUNS.c.name == name).with_for_update()).one()
            if run.folder != row["folder"]:
                raise StoreError(f"a run {name!r} is queued in {run.folder}; give a folder of another name")
            known = connection.execute(select(SHARDS.c.first, SHARDS.c.stop).where(SHARDS.c.run == name)).all()
            start = max((stop for _, stop in known), default=0)
            new = [(first, min(n, first + size)) for first in range(start, n, size)]
            if new:
                common = {"run": name, "state": QUEUED, "place": run.place, "beat": 0, "losses": 0}
                connection.execute(SHARDS.insert(), [common | {"first": a, "stop": b} for a, b in new])
            done = {first for first, stop in (*map(tuple, known), *new) if have.issuperset(range(first, stop))}
            _settle(connection, name, done)

    def claim(self, worker: str, run: str | None = None, first: int | None = None) -> Shard | None:
        """The shard that is next, or next of one run, or the one of it that begins there; None where none waits."""
        asked = {SHARDS.c.run: run, SHARDS.c.first: first}
        waits = and_(
            SHARDS.c.state == QUEUED, *(column == value for column, value in asked.items() if value is not None)
        )
        next_one = select(SHARDS.c.run, SHARDS.c.first, SHARDS.c.stop).where(waits).order_by(*TURN).limit(1)
        with self.database.transaction() as connection:
            found = connection.execute(next_one.with_for_update(skip_locked=True)).one_or_none()
            if found is None:
                return None
            values = {"state": RUNNING, "worker": worker, "beat": SHARDS.c.beat + 1, "message": None}
            connection.execute(update(SHARDS).where(_of(found.run, found.first)).values(values))
            folder = connection.execute(select(RUNS.c.folder).where(RUNS.c.name == found.run)).scalar_one()
        return Shard(found.run, Path(folder), found.first, found.stop, worker)

    def waiting(self, most: int) -> list[Shard]:
        """At most so many of the shards that wait, those that are next."""
        asked = select(SHARDS.c.run, RUNS.c.folder, SHARDS.c.first, SHARDS.c.stop).join_from(
            SHARDS, RUNS, SHARDS.c.run == RUNS.c.name
        )
        with self.database.reading() as connection:
            rows = connection.execute(asked.where(SHARDS.c.state == QUEUED).order_by(*TURN).limit(most)).all()
        return [Shard(run, Path(folder), first, stop) for run, folder, first, stop in rows]

    def beat(self, shard: Shard, progress: Mapping[str, Any]) -> bool:
        """Say that a shard is alive, and how it is doing; False where it is no longer ours to make."""
        values = {"beat": SHARDS.c.beat + 1, "progress": json.dumps(dict(progress))}
        return self._change(shard.ours, values) == 1

    def end(self, shard: Shard, state: str, message: str = "") -> bool:
        """Give a shard back as done, failed, or queued again; False where it is no longer ours."""
        losses = {"losses": 0} if state == DONE else {}
        return self._change(shard.ours, {"state": state, "progress": None, "message": message or None} | losses) == 1

    def cancel(self, run: str) -> int:
        """End what is not made of a run, between two steps; returns how many shards that is."""
        return self._change(self._those(run, QUEUED, RUNNING, PAUSED), {"state": CANCELLED, "progress": None})

    def pause(self, run: str) -> int:
        """Let the shards of a run wait until `resume`; those being made stop between two steps."""
        return self._change(self._those(run, QUEUED, RUNNING), {"state": PAUSED, "progress": None})

    def resume(self, run: str) -> int:
        """Queue the shards of a run again that are paused."""
        return self._change(self._those(run, PAUSED), {"state": QUEUED})

    def retry(self, run: str) -> int:
        """Queue the shards of a run again that failed, were cancelled or lost."""
        return self._change(self._those(run, FAILED, CANCELLED, LOST, PAUSED), {"state": QUEUED, "losses": 0})

    def first(self, run: str) -> int:
        """Let a run be next; returns how many shards that is."""
        with self.database.transaction() as connection:
            place = connection.execute(select(func.min(RUNS.c.place))).scalar_one() or 0
            connection.execute(update(RUNS).where(RUNS.c.name == run).values(place=place - 1))
            moved = connection.execute(update(SHARDS).where(SHARDS.c.run == run).values(place=place - 1))
            return int(moved.rowcount)

    def forget(self, run: str) -> None:
        """Take a run out of the store, with its shards and what is indexed of it; its folder stays as it is."""
        with self.database.transaction() as connection:
            connection.execute(delete(RUNS).where(RUNS.c.name == run))

    def standings(self) -> list[Standing]:
        """Every run of the queue, in the order of their turn."""
        runs = select(RUNS).order_by(RUNS.c.place, RUNS.c.name)
        counts = select(SHARDS.c.run, SHARDS.c.state, func.count()).group_by(SHARDS.c.run, SHARDS.c.state)
        said = select(SHARDS.c.run, SHARDS.c.worker, SHARDS.c.progress).where(SHARDS.c.progress.is_not(None))
        told = select(SHARDS.c.run, func.max(SHARDS.c.message)).group_by(SHARDS.c.run)
        with self.database.reading() as connection:
            table = connection.execute(runs).all()
            by_state, by_worker = connection.execute(counts).all(), connection.execute(said).all()
            messages = {run: message for run, message in connection.execute(told).all()}  # noqa: C416 -- rows are no pairs to mypy
        return [
            Standing(
                name,
                Path(folder),
                place,
                {state: count for run, state, count in by_state if run == name},
                {worker: json.loads(progress) for run, worker, progress in by_worker if run == name},
                messages.get(name) or "",
            )
            for name, folder, place in table
        ]

    def standing(self, run: str) -> Standing | None:
        """How one run is doing; None where it was never queued."""
        return next((one for one in self.standings() if one.name == run), None)

    def waits(self, run: str | None = None) -> bool:
        """Whether a shard, of one run or of any, is still to be made or being made."""
        still = SHARDS.c.state.in_((QUEUED, RUNNING))
        asked = select(SHARDS.c.run).where(still if run is None else and_(still, SHARDS.c.run == run)).limit(1)
        with self.database.reading() as connection:
            return connection.execute(asked).first() is not None

    def is_working(self, worker: str) -> bool:
        """Whether a worker has a shard."""
        asked = select(SHARDS.c.run).where(SHARDS.c.state == RUNNING, SHARDS.c.worker == worker).limit(1)
        with self.database.reading() as connection:
            return connection.execute(asked).first() is not None

    def beats(self, after: str = "", most: int | None = None) -> dict[tuple[str, int, str], int]:
        """The beat of each shard that is being made, by run, first design and worker.

        At most so many: those of the workers that come after one by name, and after the last the first.
        """
        asked = select(SHARDS.c.run, SHARDS.c.first, SHARDS.c.worker, SHARDS.c.beat).where(SHARDS.c.state == RUNNING)
        asked = asked.order_by(SHARDS.c.worker).limit(most)
        with self.database.reading() as connection:
            rows = list(connection.execute(asked.where(SHARDS.c.worker > after)))
            if most is None or len(rows) < most:
                rows += connection.execute(asked.where(SHARDS.c.worker <= after))
        return {(run, first, worker): beat for run, first, worker, beat in rows[:most]}

    def give_up(self, run: str, first: int, worker: str, beat: int) -> bool:
        """Take a shard from a worker that stands still at a beat; False where it has moved after all."""
        alike = and_(_of(run, first), SHARDS.c.worker == worker, SHARDS.c.beat == beat, SHARDS.c.state == RUNNING)
        few = SHARDS.c.losses < MOST_LOSSES - 1
        values = {"losses": SHARDS.c.losses + 1, "progress": None, "message": f"worker {worker} vanished"}
        freed = self._change(and_(alike, few), values | {"state": QUEUED})
        return freed + self._change(alike, values | {"state": LOST}) > 0

    def _those(self, run: str, *states: str) -> ColumnElement[bool]:
        return and_(SHARDS.c.run == run, SHARDS.c.state.in_(states))

    def _change(self, where: ColumnElement[bool], values: Mapping[str, Any]) -> int:
        with self.database.transaction() as connection:
            return int(connection.execute(update(SHARDS).where(where).values(dict(values))).rowcount)


@dataclass
class Watch:
    """One who looks at the beats of some shards, and gives up those that stand still or whose worker is dead.

    The workers stand in a circle by name, and each watches those that come next, so that a look costs as much however
    many there are. Where all that one watches are gone, it gives them up and sees those behind them.
    """

    queue: Queue
    patience: float
    """Seconds that a beat may stand still."""
    clock: Callable[[], float] = time.monotonic
    name: str = ""
    _seen: dict[tuple[str, int, str], tuple[int, float]] = field(default_factory=dict)

    def look(self) -> int:
        """Look once; returns how many shards were given up."""
        now, beats = self.clock(), self.queue.beats(self.name, WATCHED)
        dead = {worker for worker in {worker for _, _, worker in beats} if presence.vanished(worker)}
        same = {key: seen for key, seen in self._seen.items() if beats.get(key) == seen[0]}
        self._seen = {key: same.get(key, (beat, now)) for key, beat in beats.items()}
        gone = [
            (key, beat) for key, (beat, since) in self._seen.items() if now - since >= self.patience or key[2] in dead
        ]
        given = sum(self.queue.give_up(*key, beat) for key, beat in gone)
        if given:
            presence.sweep(self.queue.is_working)
        return given


def _settle(connection: Connection, run: str, done: Collection[int]) -> None:
    """Set the shards of a run that nobody makes to done or queued, as their designs are there or not."""
    idle = and_(SHARDS.c.run == run, SHARDS.c.state != RUNNING)
    for row in connection.execute(select(SHARDS.c.first, SHARDS.c.state).where(idle)).all():
        state = DONE if row.first in done else QUEUED
        if state != row.state:
            connection.execute(update(SHARDS).where(_of(run, row.first)).values(state=state, losses=0, message=None))


def _of(run: str, first: int) -> ColumnElement[bool]:
    return and_(SHARDS.c.run == run, SHARDS.c.first == first)
