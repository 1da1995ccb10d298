"""Workers on this machine: processes that outlive the command."""

from __future__ import annotations

from dataclasses import dataclass

from app import jobs
from app.executors.base import WORK, Executor, checked, environment
from data.store import home


@dataclass(frozen=True)
class Local:
    """So many processes."""

    workers: int

    def start(self) -> list[str]:
        """Start them; what they say is in `workers.log` in the home."""
        with (home() / "workers.log").open("ab") as log:
            return [f"process {jobs.begin(WORK, log, **environment())}" for _ in range(self.workers)]


def build(workers: int = 1) -> Executor:
    """So many workers."""
    return Local(checked(workers))
