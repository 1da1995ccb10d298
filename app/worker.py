"""The process that makes a queued run: what the UI starts, and what a person may start again where it ended early.

Workers of one home take turns, so that two runs do not fight for memory and cores.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from app.spec import RunSpec, from_plain
from data.errors import InputError
from data.store import BusyError, Cancelled, Run, home, locked

LOOK_EVERY = 0.2
"""Seconds between two looks at whether it is our turn, or the run was cancelled."""


def work(folder: Path) -> None:
    """Do what `spec.yaml` in a run's folder asks for; how it ends is in the run's events.

    Raises `Cancelled`, `InputError`, or whatever broke.
    """
    run = Run(folder)
    try:
        spec = from_plain(RunSpec, run.spec | {"out": str(folder)})
        with turn(run):
            run.event("preparing", process=os.getpid())
            from app import service  # loads PyTorch, which is better done by one at a time

            service.generate(spec, lambda what, done, total: None)
    except (Cancelled, BusyError):
        raise
    except InputError as error:
        run.event("failed", message=str(error))
        raise
    except Exception as error:
        run.event("failed", message=f"broke with {type(error).__name__}: {error}")
        raise


@contextmanager
def turn(run: Run) -> Iterator[None]:
    """Wait until no other worker of this home is at work, then keep them waiting; raises `Cancelled`."""
    home().mkdir(parents=True, exist_ok=True)
    with (home() / "turn.lock").open("ab") as file:
        while not locked(file):
            run.heed_cancel()
            time.sleep(LOOK_EVERY)
        run.heed_cancel()
        yield
