"""Runs: `folder` keeps their designs, `queue` says who makes which, `database` finds both again.

The folder is the truth about designs. The database is an index of folders and a table of claims; whatever is lost
of it, `foreshape reindex` makes again.
"""

from data.store.files import home, locked, runs_folder
from data.store.folder import EVENTS, FREE, LOG, BusyError, Cancelled, Row, Run, StoreError, put_all

__all__ = [
    "EVENTS",
    "FREE",
    "LOG",
    "BusyError",
    "Cancelled",
    "Row",
    "Run",
    "StoreError",
    "home",
    "locked",
    "put_all",
    "runs_folder",
]
