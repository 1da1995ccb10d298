"""Runs on disk: one folder each, readable without the program, added to design by design.

spec.yaml          what was asked for
provenance.json    code version, packages, checkpoint, device, seed rule, timings
designs/000000.*   the designs, in every format of their domain
scores.csv         raw scores, one row a design; a design is finished when its row and its files are here
events.jsonl       what happened, with times; locked while a process writes the run
report.html        the run as a page
"""

from __future__ import annotations

import csv
import fcntl
import io
import json
import os
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, TextIO

import yaml

from data.errors import InputError

Row = dict[str, str | int | float]
_FREE = ("n", "batch", "device")
"""Keys of a spec in which a run that goes on may differ from before."""


class StoreError(InputError):
    """A run folder that cannot be written, is damaged, or belongs to another run."""


class Run:
    """One run's folder."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._events: TextIO | None = None

    @staticmethod
    def examine(path: Path, spec: Mapping[str, Any], provenance: Mapping[str, Any]) -> None:
        """Raise `StoreError` unless `open` would make or continue this run here; writes nothing."""
        if "\0" in str(path):
            raise StoreError(f"{path!s:.200} has a character that no folder's name has; give another out=DIR")
        try:
            if path.exists() and not path.is_dir():
                raise StoreError(f"{path} is a file; give a folder that is new, empty or a run's")
            if path.is_dir() and any(path.iterdir()):
                Run(path)._check_same(spec, provenance)
            place = next(folder for folder in (path, *path.absolute().parents) if folder.exists())
            if not place.is_dir() or not os.access(place, os.W_OK | os.X_OK):
                raise StoreError(f"{path} cannot be written; give another out=DIR")
        except (OSError, ValueError) as error:
            if isinstance(error, StoreError):
                raise
            raise StoreError(f"{path!s:.200} cannot be used ({error}); give another out=DIR") from error

    @staticmethod
    def open(path: Path, spec: Mapping[str, Any], provenance: Mapping[str, Any], suffixes: Sequence[str]) -> Run:
        """The run of this spec in this folder: made if absent, continued if it is the same run with another `n`.

        Designs that lack a row or one of their files are forgotten, to be made again. Raises `StoreError` if the
        folder holds something else, cannot be written, or is being written by another process.
        """
        Run.examine(path, spec, provenance)
        run = Run(path)
        try:
            (path / "designs").mkdir(parents=True, exist_ok=True)
            run._events = (path / "events.jsonl").open("a")
            fcntl.flock(run._events, fcntl.LOCK_EX | fcntl.LOCK_NB)
            run._prepare(spec, provenance, suffixes)
        except BlockingIOError as error:
            run.close()
            raise StoreError(f"{path} is being written by another process; wait, or give another out=DIR") from error
        except OSError as error:
            run.close()
            raise StoreError(f"{path} cannot be written ({error.strerror}); give another out=DIR") from error
        return run

    @property
    def spec(self) -> dict[str, Any]:
        """What was asked for; raises `StoreError` where it cannot be read."""
        return self._table("spec.yaml", yaml.safe_load)

    @property
    def provenance(self) -> dict[str, Any]:
        """Where the run comes from; raises `StoreError` where it cannot be read."""
        return self._table("provenance.json", json.loads)

    def rows(self) -> list[dict[str, str]]:
        """The rows of `scores.csv`, sorted by design; raises `StoreError` where it is not a table of designs."""
        path = self.path / "scores.csv"
        if not path.exists():
            return []
        try:
            text = path.read_text()
            table = csv.DictReader(io.StringIO(text[: text.rfind("\n") + 1]))
            return sorted((row for row in table if None not in row.values()), key=lambda row: int(row["design"]))
        except (OSError, csv.Error, KeyError, ValueError, TypeError) as error:
            raise StoreError(f"{path} is not a table of scores ({error}); remove it to make the run anew") from error

    def finished(self) -> set[int]:
        """Numbers of the designs that are done."""
        return {int(row["design"]) for row in self.rows()}

    def design_path(self, index: int, suffix: str) -> Path:
        """Where design `index` is kept in the format of `suffix`."""
        return self.path / "designs" / f"{index:06d}{suffix}"

    def add(self, row: Row, writers: Mapping[str, Callable[[Path], None]]) -> None:
        """Keep a finished design: its files (suffix -> what writes it), then its row of scores."""
        for suffix, write in writers.items():
            write(self.design_path(int(row["design"]), suffix))
        path = self.path / "scores.csv"
        new = not path.exists() or path.stat().st_size == 0
        with path.open("a+", newline="") as file:
            file.seek(0)
            columns = list(row) if new else next(csv.reader(file))
            if set(columns) != set(row):
                raise StoreError(f"{path} has columns {columns}, not {list(row)}; remove it to make the run anew")
            table = csv.DictWriter(file, columns, lineterminator="\n")
            if new:
                table.writeheader()
            table.writerow(row)

    def event(self, name: str, **values: Any) -> None:
        """Note that something happened."""
        line = {"time": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()), "event": name} | values
        assert self._events is not None, "only a run that was opened has events"
        self._events.write(json.dumps(line) + "\n")
        self._events.flush()

    def finish(self, seconds: float, report: str) -> None:
        """Add the time that was spent to `provenance.json` and write `report.html`."""
        kept = self.provenance
        kept["seconds"] = round(kept.get("seconds", 0.0) + seconds, 3)
        self._write("provenance.json", json.dumps(kept, indent=2) + "\n")
        self._write("report.html", report)

    def close(self) -> None:
        """Let other processes write the run."""
        if self._events is not None:
            self._events.close()

    def _prepare(self, spec: Mapping[str, Any], provenance: Mapping[str, Any], suffixes: Sequence[str]) -> None:
        known = self.spec["n"] if (self.path / "spec.yaml").exists() else 0
        self._write("spec.yaml", yaml.safe_dump({**spec, "n": max(known, spec["n"])}, sort_keys=False))
        if not (self.path / "provenance.json").exists():
            self._write("provenance.json", json.dumps(dict(provenance), indent=2) + "\n")
        self._forget_unfinished(suffixes)

    def _check_same(self, spec: Mapping[str, Any], provenance: Mapping[str, Any]) -> None:
        if not (self.path / "spec.yaml").is_file():
            raise StoreError(f"{self.path} is not empty and not a run; give a folder that is new, empty or a run's")
        theirs, ours = self.spec, dict(spec)
        if (self.path / "provenance.json").exists():
            theirs, ours = theirs | {"weights": _weights(self.provenance)}, ours | {"weights": _weights(provenance)}
        for key in sorted(theirs.keys() | ours.keys()):
            if theirs.get(key) != ours.get(key) and key not in _FREE:
                raise StoreError(
                    f"{self.path} is a run with {key}={theirs.get(key)}, not {ours.get(key)}; "
                    "give another out=DIR, or the same values to continue it"
                )
        if not isinstance(theirs.get("n"), int):
            raise StoreError(f"{self.path}/spec.yaml has n={theirs.get('n')!r:.100}; give another out=DIR")
        self.rows()

    def _table(self, name: str, parse: Callable[[str], Any]) -> dict[str, Any]:
        try:
            found = parse((self.path / name).read_text())
        except (OSError, ValueError, yaml.YAMLError, RecursionError) as error:
            reason = " ".join(str(error).split())
            raise StoreError(f"{self.path / name} cannot be read ({reason:.200}); give another out=DIR") from error
        if not isinstance(found, dict):
            raise StoreError(f"{self.path / name} is not a table of keys and values; give another out=DIR")
        return found

    def _forget_unfinished(self, suffixes: Sequence[str]) -> None:
        """Rewrite `scores.csv` without rows that are torn, twice there, or lack a file of their design."""
        path = self.path / "scores.csv"
        if not path.exists():
            return
        whole = {}
        for row in self.rows():
            if all(self.design_path(int(row["design"]), suffix).is_file() for suffix in suffixes):
                whole[row["design"]] = row
        text = io.StringIO()
        table = csv.DictWriter(text, list(next(iter(whole.values()), {})), lineterminator="\n")
        if whole:
            table.writeheader()
            table.writerows(whole.values())
        if text.getvalue() != path.read_text():
            self._write("scores.csv", text.getvalue())

    def _write(self, name: str, text: str) -> None:
        temporary = self.path / f".{name}.{os.getpid()}"
        temporary.write_text(text)
        temporary.replace(self.path / name)


def home() -> Path:
    """Where runs are kept unless told otherwise: `FORESHAPE_HOME`, else `./var`."""
    return Path(os.environ.get("FORESHAPE_HOME", "var"))


def _weights(provenance: Mapping[str, Any]) -> Any:
    checkpoint = provenance.get("checkpoint")
    return checkpoint.get("sha256") if isinstance(checkpoint, dict) else None
