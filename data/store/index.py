"""The index of run folders: what the database says about designs, made from the folders and nothing else."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping
from itertools import islice
from typing import Any

from sqlalchemy import Connection, delete, func, select

from data.store.database import ARTIFACTS, DESIGNS, RUNS, SCORES, Database
from data.store.folder import Run, StoreError

AT_ONCE = 500
"""Designs that are put into the database at a time."""
PLAIN = ("design", "total", "violations")
"""Columns of `scores.csv` that are no score of a reward."""


def reindex(database: Database, name: str, run: Run) -> int:
    """Make the index of one run anew; returns how many designs it has. Raises `StoreError` for a damaged folder."""
    rows, suffixes = run.rows(), run.formats()
    with database.transaction() as connection:
        _register(connection, name, run)
        for table in (ARTIFACTS, SCORES, DESIGNS):
            connection.execute(delete(table).where(table.c.run == name))
        for some in _pieces(rows):
            try:
                designs = [_design(name, row) for row in some]
                scores = [score for row in some for score in _scores(name, row)]
            except (KeyError, ValueError) as error:
                raise StoreError(f"{run.path}/scores.csv has a row without numbers ({error}); remove it") from error
            files = [file for row in some for file in _files(name, run, int(row["design"]), suffixes)]
            for table, values in ((DESIGNS, designs), (SCORES, scores), (ARTIFACTS, files)):
                if values:
                    connection.execute(table.insert(), values)
    return len(rows)


def refresh(database: Database, name: str, run: Run) -> None:
    """Make the index of one run anew if designs came since; raises `StoreError` for a damaged folder."""
    with database.reading() as connection:
        known = connection.execute(select(func.count()).where(DESIGNS.c.run == name)).scalar_one()
    if known != len(run.finished()):
        reindex(database, name, run)


def best(database: Database, reward: str, most: int) -> list[tuple[str, int, float]]:
    """Run, design and value of those that score highest by a reward, over all runs."""
    if reward == "total":
        asked = select(DESIGNS.c.run, DESIGNS.c.design, DESIGNS.c.total).order_by(DESIGNS.c.total.desc())
    else:
        asked = select(SCORES.c.run, SCORES.c.design, SCORES.c.value).where(SCORES.c.name == reward)
        asked = asked.order_by(SCORES.c.value.desc())
    with database.reading() as connection:
        return [(run, design, value) for run, design, value in connection.execute(asked.limit(most))]


def _register(connection: Connection, name: str, run: Run) -> None:
    if connection.execute(select(RUNS.c.name).where(RUNS.c.name == name)).one_or_none() is None:
        connection.execute(RUNS.insert().values(name=name, folder=str(run.path.absolute()), place=0))


def _design(name: str, row: Mapping[str, str]) -> dict[str, Any]:
    values = {"run": name, "design": int(row["design"]), "total": float(row["total"])}
    return values | {"violations": int(row.get("violations", 0))}


def _scores(name: str, row: Mapping[str, str]) -> Iterator[dict[str, Any]]:
    for column, value in row.items():
        if column not in PLAIN:
            yield {"run": name, "design": int(row["design"]), "name": column, "value": float(value)}


def _files(name: str, run: Run, design: int, suffixes: Iterable[str]) -> Iterator[dict[str, Any]]:
    for suffix in suffixes:
        path = run.design_path(design, suffix)
        if path.is_file():
            digest = hashlib.sha256(path.read_bytes()).hexdigest()
            yield {"run": name, "design": design, "suffix": suffix, "sha256": digest}


def _pieces(rows: list[dict[str, str]]) -> Iterator[list[dict[str, str]]]:
    source = iter(rows)
    while piece := list(islice(source, AT_ONCE)):
        yield piece
