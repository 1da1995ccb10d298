"""The database beside the run folders: an index of them and a table of claims, in SQLite or on a Postgres server."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from functools import lru_cache
from typing import Any

from sqlalchemy import (
    Column,
    Connection,
    Double,
    Engine,
    ForeignKey,
    Integer,
    MetaData,
    String,
    Table,
    create_engine,
    event,
    make_url,
)
from sqlalchemy.exc import ArgumentError, DBAPIError, NoSuchModuleError

from data.store.files import home, locked
from data.store.folder import StoreError
from data.store.migrations import migrate

PATIENCE = 120
"""Seconds that one waits for another's transaction to end; transactions take milliseconds."""
METADATA = MetaData()
RUNS = Table(
    "runs",
    METADATA,
    Column("name", String, primary_key=True),
    Column("folder", String, nullable=False),
    Column("place", Integer, nullable=False),
)
SHARDS = Table(
    "shards",
    METADATA,
    Column("run", String, ForeignKey("runs.name"), primary_key=True),
    Column("first", Integer, primary_key=True),
    Column("stop", Integer, nullable=False),
    Column("state", String, nullable=False),
    Column("place", Integer, nullable=False),
    Column("worker", String),
    Column("beat", Integer, nullable=False),
    Column("losses", Integer, nullable=False),
    Column("progress", String),
    Column("message", String),
)
DESIGNS = Table(
    "designs",
    METADATA,
    Column("run", String, ForeignKey("runs.name"), primary_key=True),
    Column("design", Integer, primary_key=True),
    Column("total", Double, nullable=False),
    Column("violations", Integer, nullable=False),
)
SCORES = Table(
    "scores",
    METADATA,
    Column("run", String, primary_key=True),
    Column("design", Integer, primary_key=True),
    Column("name", String, primary_key=True),
    Column("value", Double, nullable=False),
)
ARTIFACTS = Table(
    "artifacts",
    METADATA,
    Column("run", String, primary_key=True),
    Column("design", Integer, primary_key=True),
    Column("suffix", String, primary_key=True),
    Column("sha256", String, nullable=False),
)
LABELS = Table(
    "labels",
    METADATA,
    Column("run", String, ForeignKey("runs.name"), primary_key=True),
    Column("label", String, primary_key=True),
)
PRESETS = Table(
    "presets",
    METADATA,
    Column("name", String, primary_key=True),
    Column("spec", String, nullable=False),
)
LINEAGE = Table(
    "lineage",
    METADATA,
    Column("run", String, ForeignKey("runs.name"), primary_key=True),
    Column("operator", String, nullable=False),
    Column("mask", String, nullable=False),
    Column("parent", String),
)
"""What the designs of a run come from: by which generator, with which sites held (JSON), and the sha256 of the file
of the design that these are of, None where there is none."""


def address() -> str:
    """The URL of the database: `FORESHAPE_STORE`, else a file in the home."""
    return os.environ.get("FORESHAPE_STORE") or f"sqlite:///{(home() / 'foreshape.db').absolute()}"


def shown(url: str) -> str:
    """The URL without its password."""
    return make_url(url).render_as_string(hide_password=True)


class Database:
    """The database at a URL, with its schema brought up to date."""

    def __init__(self, url: str | None = None) -> None:
        self.url = url or address()
        self.engine = _engine(self.url)

    @contextmanager
    def transaction(self) -> Iterator[Connection]:
        """A transaction that may write; raises `StoreError` where the database cannot be used."""
        with self._begun(self.engine) as connection:
            yield connection

    @contextmanager
    def reading(self) -> Iterator[Connection]:
        """A transaction that only reads, and so waits for nobody; raises `StoreError` like the other."""
        with self._begun(self.engine.execution_options(reading=True)) as connection:
            yield connection

    @contextmanager
    def _begun(self, engine: Engine) -> Iterator[Connection]:
        try:
            with engine.begin() as connection:
                yield connection
        except DBAPIError as error:
            raise _refusal(self.url, error) from error


@lru_cache
def _engine(url: str) -> Engine:
    try:
        parsed = make_url(url)
        if parsed.drivername == "postgresql":
            parsed = parsed.set(drivername="postgresql+psycopg")
        if parsed.get_backend_name() not in ("sqlite", "postgresql"):
            raise StoreError(f"FORESHAPE_STORE is {url!r:.200}; give a URL of sqlite:/// or postgresql://")
        if parsed.get_backend_name() == "sqlite":
            return _sqlite(url)
        engine = create_engine(parsed, pool_pre_ping=True, connect_args={"client_encoding": "utf8"})
        _migrate(engine)
    except (ArgumentError, NoSuchModuleError, ModuleNotFoundError) as error:
        raise StoreError(f"FORESHAPE_STORE is {url!r:.200}, which cannot be used ({error}); see the README") from error
    except (DBAPIError, OSError) as error:
        raise _refusal(url, error) from error
    return engine


def _sqlite(url: str) -> Engine:
    engine = create_engine(url, connect_args={"timeout": PATIENCE, "check_same_thread": False})
    event.listen(engine, "connect", _prepare)
    event.listen(engine, "begin", _begin)
    place = home()
    place.mkdir(parents=True, exist_ok=True)
    with (place / "foreshape.db.lock").open("ab") as file:  # turning a new file to WAL is for one at a time
        while not locked(file):
            pass
        _migrate(engine)
    return engine


def _migrate(engine: Engine) -> None:
    try:
        with engine.begin() as connection:
            migrate(connection)
    except BaseException:
        engine.dispose()
        raise


def _prepare(connection: Any, _: Any) -> None:
    connection.isolation_level = None  # transactions begin where we say so
    for pragma in (f"busy_timeout={PATIENCE * 1000}", "journal_mode=WAL", "synchronous=NORMAL", "foreign_keys=ON"):
        connection.execute(f"PRAGMA {pragma}")


def _begin(connection: Connection) -> None:
    reads = connection.get_execution_options().get("reading", False)
    connection.exec_driver_sql("BEGIN" if reads else "BEGIN IMMEDIATE")  # a reader that turns writer could be refused


def _refusal(url: str, error: Exception) -> StoreError:
    what = " ".join(str(getattr(error, "orig", error)).split())
    return StoreError(
        f"the store {shown(url)} cannot be used ({what:.200}); designs are safe in their folders, try again"
    )
