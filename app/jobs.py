"""Runs as jobs: queue one, start its worker, and tell from its folder alone how it is doing."""

from __future__ import annotations

import calendar
import os
import secrets
import subprocess
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import IO, Any

from app import PROGRAM
from app.spec import RunSpec, from_plain
from app.worker import name_of
from data.store import LOG, Run, StoreError, locked, runs_folder
from data.store.queue import CANCELLED, DONE, FAILED, LOST, PAUSED, QUEUED, RUNNING, Queue

ENDS = {"finished": DONE, "cancelled": CANCELLED, "failed": FAILED, "paused": PAUSED}
"""Events that end a run, or its making for a while, with the state that it is in then."""
STEPS = ("progress", "designs", "out of memory")
"""Events on the way, which change no state."""
SUBMITTED = "submitted"
"""The event of a run that waits in the queue for any worker."""


@dataclass(frozen=True)
class Status:
    """How a run is doing. `share` of its designs is made, counting halves; `left` is in seconds, None if unknown."""

    state: str
    kept: int
    n: int
    share: float
    left: float | None
    message: str

    @property
    def active(self) -> bool:
        """Whether a process is at work on it, or about to be."""
        return self.state in (QUEUED, RUNNING)


def submit(plain: Mapping[str, Any]) -> Run:
    """Queue a run of this spec in the home and start its worker; raises `InputError` where the spec is wrong."""
    spec = from_plain(RunSpec, plain).identity()
    stamp = time.strftime("%Y%m%d-%H%M%S", time.gmtime())
    run = Run.queue(runs_folder() / f"{stamp}-{secrets.token_hex(4)}", spec)
    start(run)
    return run


def start(run: Run) -> None:
    """Start a worker that makes what the run lacks, unless there is one; it outlives this process.

    The worker inherits the lock of its log, so that the lock tells of it from its first moment to its last.
    """
    try:
        with (run.path / LOG).open("ab") as log:
            if not locked(log):
                return
            run.withdraw_cancel()
            run.event("queued")
            begin(("worker", str(run.path)), log)
    except OSError as error:
        raise StoreError(f"no worker can be started in {run.path} ({error}); is the disk full?") from error


def begin(words: Sequence[str], log: IO[bytes], **variables: str) -> int:
    """Start this program in a process that outlives this one and inherits the log; returns its number."""
    process = subprocess.Popen(
        [*PROGRAM, *words],
        stdin=subprocess.DEVNULL,
        stdout=log,
        stderr=log,
        start_new_session=True,
        env=os.environ | variables,
    )
    threading.Thread(target=process.wait, daemon=True).start()  # so that it leaves no zombie
    return process.pid


def status(run: Run) -> Status:
    """The state of a run, from its folder; raises `StoreError` where that is damaged."""
    alive = run.in_use()  # asked before the events are read, else a run that ends in between would look lost
    events, kept, n = run.events(), len(run.finished()), run.spec.get("n")
    if not isinstance(n, int) or n < 1:
        raise StoreError(f"{run.path}/spec.yaml has n={n!r:.100}; it must be a whole number above 0")
    turns = [event for event in events if event["event"] not in STEPS]
    last = turns[-1] if turns else {"event": STEPS[0] if events else QUEUED}
    state = ENDS.get(last["event"]) or (_active(last) if alive else _idle(run, last))
    try:
        share = min(1.0, (kept + _half_done(events[-1] if events else last)) / n)
        left = _left(events, share, n) if state == RUNNING else None
    except (KeyError, TypeError, ValueError) as error:
        raise StoreError(f"{run.path}/events.jsonl is damaged ({error!r:.100}); remove the run") from error
    return Status(state, kept, n, share, left, str(last.get("message", "")))


def runs() -> list[Run]:
    """All runs of the home, the last touched first."""
    found = runs_folder().glob("*/spec.yaml")
    return [Run(path.parent) for path in sorted(found, key=lambda path: -path.stat().st_mtime)]


def named(name: str) -> Run | None:
    """The run of the home with this name, None where there is none."""
    return next((run for run in runs() if run.path.name == name), None)


def cancel(run: Run) -> None:
    """Ask for the end of a run, whoever makes it, or of its waiting."""
    if run.in_use():
        run.cancel()
    elif Queue().cancel(name_of(run)):
        run.event("cancelled")


def _active(last: Mapping[str, Any]) -> str:
    return QUEUED if last["event"] in (QUEUED, SUBMITTED) else RUNNING


def _idle(run: Run, last: Mapping[str, Any]) -> str:
    """The state of a run that nobody writes: it waits for any worker, or was left without a word."""
    standing = Queue().standing(name_of(run)) if last["event"] == SUBMITTED else None
    return standing.state if standing is not None else LOST


def _half_done(event: Mapping[str, Any]) -> float:
    """How many designs the steps of an unfinished batch are worth."""
    if event["event"] != "progress":
        return 0.0
    return float(event["batch"]) * float(event["steps"]) / max(1.0, float(event["total"]))


def _left(events: list[dict[str, Any]], share: float, n: int) -> float | None:
    """Seconds to go, at the mean pace since the run was started."""
    started = next((event for event in reversed(events) if event["event"] == "started"), None)
    if started is None:
        return None
    pace = share - (n - float(started["missing"])) / n
    seconds = time.time() - calendar.timegm(time.strptime(started["time"], "%Y-%m-%dT%H:%M:%SZ"))
    return max(1.0, seconds) * (1 - share) / pace if pace > 0 else None
