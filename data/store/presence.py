"""Who is at work on this home: a file for each worker, locked for as long as the worker lives.

It tells at once of a worker on this machine that was killed; of one on another machine only its beats tell.
"""

from __future__ import annotations

import fcntl
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from data.store.files import home, is_locked


def _folder() -> Path:
    return home() / "workers"


@contextmanager
def present(name: str) -> Iterator[None]:
    """Be known as alive by this name meanwhile."""
    _folder().mkdir(parents=True, exist_ok=True)
    coming, here = _folder() / f".{name}", _folder() / name
    with coming.open("ab") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        coming.rename(here)  # so that nobody sees it before it is locked
        try:
            yield
        finally:
            here.unlink(missing_ok=True)


def vanished(name: str) -> bool:
    """Whether a worker was here and is dead; False also where it was never seen here."""
    return (_folder() / name).exists() and not is_locked(_folder() / name)


def sweep(needed: Callable[[str], bool]) -> None:
    """Forget the dead whose names are not needed."""
    for path in _folder().glob("*"):
        if not path.name.startswith(".") and vanished(path.name) and not needed(path.name):
            path.unlink(missing_ok=True)
