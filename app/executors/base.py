"""What an executor is, and what all of them need."""

from __future__ import annotations

import importlib
import os
from collections.abc import Mapping
from types import ModuleType
from typing import Protocol

from data.errors import InputError
from data.store import home
from data.store.database import address

MOST_WORKERS = 1000
"""Workers that one command starts, at most."""
WORK = ("worker", "--drain")
"""What every worker does: `foreshape worker` until nothing waits."""


class Executor(Protocol):
    """Starts workers on the queue of this home and store."""

    def start(self) -> list[str]:
        """Start the workers; returns what each is known as, for people."""


def checked(workers: int) -> int:
    """A number of workers that can be; raises `InputError`."""
    if not 1 <= workers <= MOST_WORKERS:
        raise InputError(f"workers is {workers}; it must be a whole number from 1 to {MOST_WORKERS}")
    return workers


def needed(package: str, extra: str) -> ModuleType:
    """A package that comes with an extra of the installation; raises `InputError` where it is missing."""
    try:
        return importlib.import_module(package)
    except ImportError as error:
        raise InputError(
            f"the package {package} is needed ({error}); `pip install 'foreshape[{extra}]'` installs it"
        ) from error


def check_shared() -> None:
    """Raise `InputError` where the store is a file, which workers on other machines cannot share."""
    if address().startswith("sqlite"):
        raise InputError("workers on other machines cannot share an SQLite file; set FORESHAPE_STORE=postgresql://…")


def environment() -> Mapping[str, str]:
    """Variables by which a worker finds this home and store from any folder."""
    return {"FORESHAPE_HOME": str(home().absolute()), "FORESHAPE_STORE": address()}


def work() -> int:
    """Be a worker in this process, until nothing waits; returns the exit code."""
    from app import cli  # which imports this package

    return cli.run(WORK)


def set_environment(variables: Mapping[str, str]) -> None:
    """Take over the variables of whoever asked for a worker."""
    os.environ.update(variables)
