"""Workers: processes that claim shards of queued runs, one after another, and make their designs.

A worker's second thread lets its shard beat in the claim table, hears there whether the shard is still wanted, and
watches the beats of the others: whoever finds a worker gone gives its shard to the next that asks.
"""

from __future__ import annotations

import os
import resource
import secrets
import socket
import threading
import time
from collections import OrderedDict
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Any

from app.spec import RunSpec, from_plain
from data.errors import InputError
from data.store import BusyError, Cancelled, Run, StoreError, home, locked, runs_folder
from data.store.presence import present
from data.store.queue import CANCELLED, DONE, FAILED, PARTIAL, PAUSED, QUEUED, Queue, Shard, Watch

if TYPE_CHECKING:
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
        self.models: OrderedDict[str, Prepared] = OrderedDict()

    def serve(self, run: str | None = None, drain: bool = True) -> None:
        """Make the shards of a run, or of all; `drain` ends when none waits or is being made, else never.

        Raises what broke a shard of the run that was named; otherwise goes on with other shards.
        """
        idle = LOOK_EVERY
        with present(self.name):
            while True:
                shard = self.queue.claim(self.name, run)
                if shard is not None:
                    self._attempt(shard, run is not None)
                    idle = LOOK_EVERY
                elif drain and not self.queue.waits(run):
                    return
                else:
                    self.watch.look()
                    time.sleep(idle)
                    idle = min(2 * idle, BEAT_EVERY)

    def _attempt(self, shard: Shard, strict: bool) -> None:
        """Make a shard and say in the claim table, and in the run's events, how it ended."""
        run, state, message = Run(shard.folder), QUEUED, ""
        try:
            self._make(shard)
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
            self.queue.end(shard, state, message)

    def _stopped(self, shard: Shard, run: Run) -> None:
        """Tell the other workers of a run that it was cancelled in its folder, and its folder what the table says."""
        if self.queue.beat(shard, {}):
            self.queue.cancel(shard.run)
            return
        standing = self.queue.standing(shard.run)
        if standing is not None and standing.state in ENDED:
            _try_to_note(run, ENDED[standing.state])

    def _make(self, shard: Shard) -> None:
        from app import service  # loads PyTorch, which is better done when there is work

        spec = from_plain(RunSpec, Run(shard.folder).spec | {"out": str(shard.folder)})
        with Heart(self.queue, shard, self.watch) as heart:
            ready = self.ready(spec)
            service.make(ready, spec, range(shard.first, shard.stop), heart.hear, shared=True)

    def ready(self, spec: RunSpec) -> Prepared:
        """What a run needs, from before where another run needed the same."""
        from app import cells, service

        asked = spec if self.device is None else replace(spec, device=self.device)
        alike = {"batch": 0} | ({"seed": 0} if cells.is_trained(spec.generator.name) else {})
        key = repr(asked.identity() | alike)
        ready = self.models.pop(key, None)
        if ready is None or not (ready.checkpoint is None or ready.checkpoint.is_dir()):
            while len(self.models) >= MOST_MODELS:
                self.models.popitem(last=False)
            ready = service.built(asked)
        self.models[key] = ready
        return ready


class Heart(threading.Thread):
    """Beats for a shard while it is made; `hear` is its progress, and ends it where it is no longer wanted."""

    def __init__(self, queue: Queue, shard: Shard, watch: Watch) -> None:
        super().__init__(daemon=True)
        self.queue, self.shard, self.watch = queue, shard, watch
        self.began, self.progress = time.monotonic(), dict[str, Any]()
        self.ended, self.unwanted = threading.Event(), False

    def hear(self, what: str, done: int, total: int) -> None:
        """Note how far it is; raises `Cancelled` where the shard was cancelled, paused or given to another."""
        spent = time.monotonic() - self.began
        left = round(spent * (total - done) / done, 1) if done else None
        self.progress = {"what": what, "step": done, "steps": total, "left": left, "megabytes": _megabytes()}
        if self.unwanted:
            raise Cancelled(f"designs {self.shard.first}-{self.shard.stop - 1} of {self.shard.run} are not wanted now")

    def run(self) -> None:
        """Beat until the shard is made."""
        for beats in count(1):
            if self.ended.wait(BEAT_EVERY):
                return
            try:
                self.unwanted = self.unwanted or not self.queue.beat(self.shard, self.progress)
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


def _megabytes() -> int:
    """The most memory that this process has had."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024


def _try_to_note(run: Run, event: str, **values: Mapping[str, Any] | str) -> None:
    try:
        run.event(event, **values)
    except OSError:  # the disk is full or the folder gone, which is what we wanted to say
        return
