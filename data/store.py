"""Runs on disk: one folder each, readable without the program, added to design by design.

spec.yaml          what was asked for
provenance.json    code version, packages, checkpoint, device, seed rule, timings
designs/000000.*   the designs, in every format of their domain
scores.csv         raw scores, one row a design; a design is finished when its row is here
events.jsonl       what happened, with times
report.html        the run as a page
"""

from __future__ import annotations

import csv
import json
import os
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import yaml

from data.errors import InputError

Row = dict[str, str | int | float]


class StoreError(InputError):
    """A run folder that cannot be written, or that belongs to another run."""


class Run:
    """One run's folder."""

    def __init__(self, path: Path) -> None:
        self.path = path

    @staticmethod
    def open(path: Path, spec: Mapping[str, Any]) -> Run:
        """The run of this spec in this folder: made if absent, continued if it is the same run with another `n`.

        Raises `StoreError` if the folder holds something else or cannot be written.
        """
        run = Run(path)
        if path.exists() and not path.is_dir():
            raise StoreError(f"{path} is a file; give a folder that is new, empty or a run's")
        if path.is_dir() and any(path.iterdir()):
            run._check_same(spec)
        try:
            (path / "designs").mkdir(parents=True, exist_ok=True)
            run._write("spec.yaml", yaml.safe_dump(dict(spec), sort_keys=False))
        except OSError as error:
            raise StoreError(f"{path} cannot be written ({error.strerror}); give another out=DIR") from error
        run._drop_torn_row()
        return run

    @property
    def spec(self) -> dict[str, Any]:
        """What was asked for."""
        spec: dict[str, Any] = yaml.safe_load((self.path / "spec.yaml").read_text())
        return spec

    def rows(self) -> list[dict[str, str]]:
        """The rows of `scores.csv`, sorted by design."""
        path = self.path / "scores.csv"
        if not path.exists():
            return []
        with path.open(newline="") as file:
            return sorted(csv.DictReader(file), key=lambda row: int(row["design"]))

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
        with path.open("a", newline="") as file:
            table = csv.DictWriter(file, list(row), lineterminator="\n")
            if new:
                table.writeheader()
            table.writerow(row)

    def event(self, name: str, **values: Any) -> None:
        """Note that something happened."""
        line = {"time": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()), "event": name} | values
        with (self.path / "events.jsonl").open("a") as file:
            file.write(json.dumps(line) + "\n")

    def finish(self, provenance: Mapping[str, Any], report: str) -> None:
        """Write `provenance.json` and `report.html`."""
        self._write("provenance.json", json.dumps(provenance, indent=2) + "\n")
        self._write("report.html", report)

    def _check_same(self, spec: Mapping[str, Any]) -> None:
        if not (self.path / "spec.yaml").is_file():
            raise StoreError(f"{self.path} is not empty and not a run; give a folder that is new, empty or a run's")
        theirs, ours = dict(self.spec), dict(spec)
        differing = [key for key in sorted(theirs.keys() | ours.keys()) if theirs.get(key) != ours.get(key)]
        differing = [key for key in differing if key not in ("n", "batch", "device")]
        if differing:
            key = differing[0]
            raise StoreError(
                f"{self.path} is a run with {key}={theirs.get(key)}, not {ours.get(key)}; "
                "give another out=DIR, or the same values to continue it"
            )

    def _drop_torn_row(self) -> None:
        """A row that was being written when the machine stopped has no end of line; its design is made again."""
        path = self.path / "scores.csv"
        if path.exists() and (text := path.read_bytes()) and not text.endswith(b"\n"):
            path.write_bytes(text[: text.rfind(b"\n") + 1])

    def _write(self, name: str, text: str) -> None:
        temporary = self.path / f".{name}.{os.getpid()}"
        temporary.write_text(text)
        temporary.replace(self.path / name)


def home() -> Path:
    """Where runs are kept unless told otherwise: `FORESHAPE_HOME`, else `./var`."""
    return Path(os.environ.get("FORESHAPE_HOME", "var"))
