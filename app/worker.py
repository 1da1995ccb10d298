"""Workers: processes that claim shards of queued runs, one after another, and make their designs.

A worker's second thread lets its shard beat in the claim table, hears there whether the shard is still wanted, and
watches the beats of the others: whoever finds a worker gone gives its shard to the next that asks.
"""

from __future__ import annotations

import os
import resource
import secrets
import socket
import sys
import threading
import time
from collections import OrderedDict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Any

from app.spec import RunSpec, from_plain
from data.errors import InputError
from data.store import BusyError, Cancelled, Run, StoreError, home, locked, runs_folder
from data.store.presence import present
from data.store.queue import CANCELLED, DONE, FAILED, PARTIAL, PAUSED, QUEUED, Queue, Shard, Watch

if TYPE_CHECKING:
    from app.batching import Drawn
    from app.service import Prepared

LOOK_EVERY = 0.2
"""Seconds between two looks at whether there is something to do, at first, or the run was cancelled."""
BEAT_EVERY = 2.0
"""Seconds between two beats of a shard, and between two looks for something to do at most."""
WATCH_EVERY = 5
"""Beats between two looks at those of the others."""
PATIENCE = 30.0
"""Seconds without a beat after which a worker counts as gone."""
SHARD = 32
"""Designs of a shard, at least."""
MOST_MODELS = 2
"""Models that a worker keeps loaded."""
MOST_RUNS = 16
"""Runs of one model whose rewards and the rest it keeps, the last."""
ENDED = {CANCELLED: "cancelled", PARTIAL: "cancelled", PAUSED: "paused"}
"""States of a run that somebody stopped, with the event that says so."""


def enlist(spec: RunSpec, folder: Path, queue: Queue) -> Run:
    """Put a run, or what it lacks, into the queue; raises `StoreError` where its folder is another's."""
    run = Run.enlist(folder, spec.identity())
    n = int(run.spec["n"])
    queue.submit(name_of(run), folder, n, run.finished(), max(spec.batch, SHARD))
    return run


def name_of(run: Run) -> str:
    """A run's name in the queue: that of its folder in the home, else the whole path."""
    path = run.path.absolute()
    return path.name if path.parent == runs_folder().absolute() else str(path)


def work(folder: Path, device: str | None = None) -> None:
    """Make what a run lacks, in turn with others who do that here; how it ends is in the run's events.

    Raises `Cancelled`, `InputError`, or whatever broke.
    """
    run = Run(folder)
    try:
        spec = from_plain(RunSpec, run.spec | {"out": str(folder)})
        with turn(run):
            run.event("preparing", process=os.getpid())
            queue = Queue()
            enlist(spec, folder, queue)
            Worker(queue, device).serve(name_of(run))
    except (Cancelled, BusyError):
        raise
    except InputError as error:
        if (run.events() or [{}])[-1].get("event") != "failed":
            run.event("failed", message=str(error))
        raise


@contextmanager
def turn(run: Run) -> Iterator[None]:
    """Wait until no other of these workers of this home is at work, then keep them waiting; raises `Cancelled`."""
    home().mkdir(parents=True, exist_ok=True)
    with (home() / "turn.lock").open("ab") as file:
        while not locked(file):
            run.heed_cancel()
            time.sleep(LOOK_EVERY)
        run.heed_cancel()
        yield


class Worker:
    """Makes shard after shard on one device, with the models that it used last kept loaded."""

    def __init__(self, queue: Queue, device: str | None = None, patience: float = PATIENCE) -> None:
        self.queue, self.device = queue, device
        self.name = f"{socket.gethostname()}-{os.getpid()}-{secrets.token_hex(3)}"
        self.watch = Watch(queue, patience, name=self.name)
        self.models: OrderedDict[str, dict[str, Prepared]] = OrderedDict()

    def serve(self, run: str | None = None, drain: bool = True) -> None:
        """Make the shards of a run, or of all; `drain` ends when none waits or is being made, else never.

        Raises what broke a shard of the run that was named; otherwise goes on with other shards.
        """
        idle = LOOK_EVERY
        with present(self.name):
            while True:
                shard = self.queue.claim(self.name, run)
                if shard is not None:
                    self._attempt_all(shard, run is not None)
                    idle = LOOK_EVERY
                elif drain and not self.queue.waits(run):
                    return
                else:
                    self.watch.look()
                    time.sleep(idle)
                    idle = min(2 * idle, BEAT_EVERY)

    def _attempt_all(self, first: Shard, strict: bool) -> None:
        """Make a shard and, but for a named run, those that fit into its tile; what it does not come to waits again."""
        left = [first]
        try:
            if not strict:
                self._add_riders(left)
            with Heart(self.queue, left, self.watch) as heart:
                drawn = self._drawn(tuple(left), heart) if len(left) > 1 else None
                while left:
                    self._attempt(left.pop(0), heart, drawn, strict)
        finally:
            for shard in left:
                self.queue.end(shard, QUEUED)

    def _add_riders(self, shards: list[Shard]) -> None:
        from app import batching  # loads PyTorch, which is better done when there is work

        try:
            for rider in batching.riders(self.queue, self.name, shards[0]):
                shards.append(rider)  # one by one, so that none that is claimed is lost where the next claim breaks
        except StoreError:  # the store is away for a moment: those that are claimed are made
            return

    def _attempt(self, shard: Shard, heart: Heart, drawn: Drawn | None, strict: bool) -> None:
        """Make a shard and say in the claim table, and in the run's events, how it ended."""
        run, state, message = Run(shard.folder), QUEUED, ""
        try:
            self._make(shard, heart, drawn)
            state = DONE
        except Cancelled:
            self._stopped(shard, run)
            if strict:
                raise
        except BusyError:
            time.sleep(LOOK_EVERY)  # somebody makes the run without the queue; see later what is left
        except Exception as error:
            own = isinstance(error, InputError)
            state, message = FAILED, str(error) if own else f"broke with {type(error).__name__}: {error}"
            _try_to_note(run, "failed", message=message)
            if strict:
                raise
        finally:
            heart.leave(shard)
            self.queue.end(shard, state, message)

    def _stopped(self, shard: Shard, run: Run) -> None:
        """Tell the other workers of a run that it was cancelled in its folder, and its folder what the table says."""
        if self.queue.beat(shard, {}):
            self.queue.cancel(shard.run)
            return
        standing = self.queue.standing(shard.run)
        if standing is not None and standing.state in ENDED:
            _try_to_note(run, ENDED[standing.state])

    def _make(self, shard: Shard, heart: Heart, drawn: Drawn | None) -> None:
        from app import service  # loads PyTorch, which is better done when there is work

        spec = _spec(shard)
        ready = replace(self.ready(spec), drawn=drawn)
        service.make(ready, spec, shard.designs, partial(heart.hear, shard), shared=True)

    def _drawn(self, shards: Sequence[Shard], heart: Heart) -> Drawn | None:
        """The designs that shards lack, drawn together; None where that breaks, which each then says for itself."""
        from app import batching

        try:
            specs = [_spec(shard) for shard in shards]
            done = [Run(shard.folder).finished() for shard in shards]
            lacking = zip(shards, specs, done, strict=True)
            wanted = [(spec.seed, i) for shard, spec, have in lacking for i in shard.designs if i not in have]
            steps = specs[0].steps

            def hear(step: int) -> None:
                """Every shard is as far as all together."""
                for shard in shards:
                    heart.note(shard, f"steps of {len(wanted)} designs of several runs", step, len(wanted) * steps)
                if heart.unwanted.issuperset(shards):
                    raise Cancelled("none of these runs is wanted now")

            return batching.together(self.ready(specs[0]).generator, steps, wanted, hear) if wanted else None
        except (
            Exception
        ) as error:  # one run's fault, or that of all: the worker must not die of it, nor the others fail
            said = f"{type(error).__name__}: {error}"
            print(f"foreshape: {len(shards)} runs are drawn alone, not together ({said})", file=sys.stderr)
            return None

    def ready(self, spec: RunSpec) -> Prepared:
        """What a run needs; from before where another run needed the same, and its generator where that is the same."""
        from app import batching, cells, service

        asked = spec if self.device is None else replace(spec, device=self.device)
        model = batching.model(asked)
        alike = {"batch": 0} | ({"seed": 0} if cells.is_trained(spec.generator.name) else {})
        key = repr(asked.identity() | alike)
        known = self.models.pop(model, {})
        if any(ready.checkpoint is not None and not ready.checkpoint.is_dir() for ready in known.values()):
            known = {}
        while len(self.models) >= MOST_MODELS:
            self.models.popitem(last=False)
        if key not in known:
            like = next(iter(known.values()), None)
            ready = service.built(asked, like.generator if like else None)
            if like and ready.origin["checkpoint"] != like.origin["checkpoint"]:
                known, ready = {}, service.built(asked)  # the weights on the disk are others by now
            known = dict(list(known.items())[1 - MOST_RUNS :]) | {key: ready}
        self.models[model] = known
        return known[key]


class Heart(threading.Thread):
    """Beats for shards while they are made; `hear` is the progress of one, and ends it where it is no longer wanted."""

    def __init__(self, queue: Queue, shards: Sequence[Shard], watch: Watch) -> None:
        super().__init__(daemon=True)
        self.queue, self.watch = queue, watch
        self.began, self.progress = time.monotonic(), {shard: dict[str, Any]() for shard in shards}
        self.ended, self.unwanted = threading.Event(), set[Shard]()

    def note(self, shard: Shard, what: str, done: int, total: int) -> None:
        """Note how far a shard is."""
        spent = time.monotonic() - self.began
        left = round(spent * (total - done) / done, 1) if done else None
        self.progress[shard] = {"what": what, "step": done, "steps": total, "left": left, "megabytes": _megabytes()}

    def hear(self, shard: Shard, what: str, done: int, total: int) -> None:
        """Note it; raises `Cancelled` where the shard was cancelled, paused or given to another."""
        self.note(shard, what, done, total)
        if shard in self.unwanted:
            raise Cancelled(f"designs {shard.first}-{shard.stop - 1} of {shard.run} are not wanted now")

    def leave(self, shard: Shard) -> None:
        """Beat no more for a shard."""
        self.progress.pop(shard, None)

    def run(self) -> None:
        """Beat until the shards are made."""
        for beats in count(1):
            if self.ended.wait(BEAT_EVERY):
                return
            try:
                for shard, said in list(self.progress.items()):
                    if not self.queue.beat(shard, said):
                        self.unwanted.add(shard)
                if beats % WATCH_EVERY == 0:
                    self.watch.look()
            except StoreError:  # the store is away for a moment; who has lost the shard meanwhile hears it later
                continue

    def __enter__(self) -> Heart:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.ended.set()
        self.join()


def _spec(shard: Shard) -> RunSpec:
    return from_plain(RunSpec, Run(shard.folder).spec | {"out": str(shard.folder)})


def _megabytes() -> int:
    """The most memory that this process has had."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024


def _try_to_note(run: Run, event: str, **values: Mapping[str, Any] | str) -> None:
    try:
        run.event(event, **values)
    except OSError:  # the disk is full or the folder gone, which is what we wanted to say
        return
