"""Progress for people: a line that is written over on a terminal, now and then a line of its own elsewhere."""

from __future__ import annotations

import shutil
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field

BAR = 20
"""Characters of a full bar."""
OFTEN, SELDOM = 0.1, 15.0
"""Seconds between two lines at least: on a terminal, and elsewhere."""


def duration(seconds: float) -> str:
    """A time to go, as people say it."""
    if seconds < 90:
        return f"{max(1, round(seconds))} s"
    return f"{round(seconds / 60)} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"


@dataclass
class ProgressLine:
    """Hears what is done and how far it is, and tells it on stderr with the rate since it began and the time to go."""

    clock: Callable[[], float] = time.monotonic
    _what: str = ""
    _began: tuple[float, int] = (0.0, 0)
    _done: int = 0
    _told: float = field(default=float("-inf"))

    def __call__(self, what: str, done: int, total: int) -> None:
        """Tell it, unless that was done a moment ago; the end of a part is always told."""
        now, ended, terminal = self.clock(), done >= total, sys.stderr.isatty()
        if what != self._what or done < self._done:
            self._what, self._began, self._told = what, (now, done), now - (0 if not terminal else OFTEN)
        self._done = done
        if not ended and now - self._told < (OFTEN if terminal else SELDOM):
            return
        self._told = now
        line = self._line(now, total)
        if terminal:
            line = "\r\033[K" + line[: shutil.get_terminal_size().columns - 1]
        print(line, end="" if terminal and not ended else "\n", file=sys.stderr, flush=True)

    def _line(self, now: float, total: int) -> str:
        since, before = self._began
        rate = (self._done - before) / (now - since) if now > since else 0.0
        share = min(1.0, self._done / total) if total > 0 else 1.0
        bar = "#" * int(BAR * share)
        words = [f"{self._what}: [{bar:-<{BAR}}] {self._done}/{total}"]
        words += [f"{rate:.3g}/s"] if rate else []
        words += [f"{duration((total - self._done) / rate)} left"] if rate and self._done < total else []
        return ", ".join(words)
