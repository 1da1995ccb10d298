"""The index of run folders: what the database says about designs, made from the folders and nothing else."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping
from itertools import islice
from typing import Any

from sqlalchemy import Connection, delete, func, select

from data.store.database import ARTIFACTS, DESIGNS, LABELS, LINEAGE, PRESETS, RUNS, SCORES, Database
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
        _describe(connection, name, run)
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


def describe(database: Database, name: str, run: Run) -> None:
    """Make anew what the index says of a run itself: its labels, and what its designs come from."""
    with database.transaction() as connection:
        _register(connection, name, run)
        _describe(connection, name, run)


def keep_presets(database: Database, presets: Mapping[str, str]) -> None:
    """Make the index of presets (name -> its spec in YAML) anew."""
    with database.transaction() as connection:
        connection.execute(delete(PRESETS))
        if presets:
            connection.execute(PRESETS.insert(), [{"name": name, "spec": spec} for name, spec in presets.items()])


def labelled(database: Database, label: str) -> list[str]:
    """The names of the runs that have a label."""
    with database.reading() as connection:
        asked = select(LABELS.c.run).where(LABELS.c.label == label).order_by(LABELS.c.run)
        return list(connection.execute(asked).scalars())


def parents(database: Database, name: str) -> list[tuple[str, int]]:
    """Run and number of the designs, of all runs, that those of a run come from, by the content of their files."""
    asked = select(ARTIFACTS.c.run, ARTIFACTS.c.design).distinct()
    asked = asked.join(LINEAGE, LINEAGE.c.parent == ARTIFACTS.c.sha256).where(LINEAGE.c.run == name)
    with database.reading() as connection:
        return [
            (run, design) for run, design in connection.execute(asked.order_by(ARTIFACTS.c.run, ARTIFACTS.c.design))
        ]


def children(database: Database, name: str) -> list[tuple[str, int]]:
    """The runs whose designs come from one of a run's, with the number of that design."""
    asked = select(LINEAGE.c.run, ARTIFACTS.c.design).distinct()
    asked = asked.join(ARTIFACTS, LINEAGE.c.parent == ARTIFACTS.c.sha256).where(ARTIFACTS.c.run == name)
    with database.reading() as connection:
        return [(run, design) for run, design in connection.execute(asked.order_by(LINEAGE.c.run, ARTIFACTS.c.design))]


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


def _describe(connection: Connection, name: str, run: Run) -> None:
    connection.execute(delete(LABELS).where(LABELS.c.run == name))
    connection.execute(delete(LINEAGE).where(LINEAGE.c.run == name))
    if labels := run.labels():
        connection.execute(LABELS.insert(), [{"run": name, "label": label} for label in labels])
    if held := run.lineage:
        row = {"run": name, "operator": held["operator"], "mask": json.dumps(held["sites"]), "parent": held["sha256"]}
        connection.execute(LINEAGE.insert().values(row))


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
