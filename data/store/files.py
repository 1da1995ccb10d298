"""Files that several processes share: locks, lines of JSON, and where runs are kept."""

from __future__ import annotations

import fcntl
import json
import os
import time
from pathlib import Path
from typing import IO, Any


def locked(file: IO[bytes], shared: bool = False, tries: int = 10) -> bool:
    """Take the lock of an open file, for as long as it is open here or in a child; False where another has it.

    Those who take it `shared` have it together. With one of several `tries`, a lock that the file has may be lost.
    """
    for _ in range(tries):  # one who only looks, as `is_locked` does, has it for a moment
        try:
            fcntl.flock(file, (fcntl.LOCK_SH if shared else fcntl.LOCK_EX) | fcntl.LOCK_NB)
            return True
        except BlockingIOError:
            time.sleep(0.02)
    return False


def is_locked(path: Path) -> bool:
    """Whether a process has the lock of a file, alone or shared."""
    try:
        with path.open("rb") as file:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except FileNotFoundError:
        return False
    except BlockingIOError:
        return True
    return False


def lines(path: Path, most: int | None = None) -> list[dict[str, Any]]:
    """The tables in a file of JSON lines, at most its last `most` bytes; what is torn is left out."""
    try:
        with path.open("rb") as file:
            size = file.seek(0, os.SEEK_END)
            file.seek(max(0, size - (most or size)))
            found = file.read().splitlines()
    except OSError:
        return []
    return [table for line in found if isinstance(table := _parsed(line), dict)]


def _parsed(line: bytes) -> Any:
    try:
        return json.loads(line)
    except (ValueError, RecursionError):
        return None


def home() -> Path:
    """Where runs are kept unless told otherwise: `FORESHAPE_HOME`, else `./var`."""
    return Path(os.environ.get("FORESHAPE_HOME", "var"))


def runs_folder() -> Path:
    """Where the runs are that were not given a place of their own."""
    return home() / "runs"
