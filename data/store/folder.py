"""Runs on disk: one folder each, readable without the program, added to design by design.

spec.yaml          what was asked for
provenance.json    code version, packages, checkpoint, device, seed rule, timings
designs/000000.*   the designs, in every format of their domain
thumbnails/*.svg   a picture of each
violations.jsonl   the rules that each breaks, in words; the last line of a design counts; locked while one is added
scores.csv         raw scores, one row a design; a design is finished when its row and its files are here
labels.json        words that people gave the run, a list
events.jsonl       what happened, with times; locked while a process writes the run, shared by workers
report.html        the run as a page
cancel             is there while somebody wants the run to end
worker.log         what a worker said; locked while it is alive
"""

from __future__ import annotations

import csv
import fcntl
import io
import json
import os
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import IO, Any

import yaml

from data.errors import InputError
from data.store.files import is_locked, lines, locked, runs_folder

Row = dict[str, str | int | float]
LOG, EVENTS = "worker.log", "events.jsonl"
LONGEST_LABEL = 100
LATELY = 1 << 16
"""Bytes of events, from the end, that are read."""
_BEFORE_SPEC = (EVENTS, LOG, "violations.jsonl", "designs", "thumbnails")
"""What a folder may have before it has its spec."""
FREE = ("n", "batch", "device")
"""Keys of a spec in which a run that goes on may differ from before."""


class StoreError(InputError):
    """A run folder that cannot be written, is damaged, or belongs to another run."""


class BusyError(StoreError):
    """A run folder that another process writes."""


class Cancelled(Exception):  # noqa: N818 -- nothing is wrong
    """A run ends because somebody asked for its end; what is finished is kept."""


class Run:
    """One run's folder."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._lock: IO[bytes] | None = None
        self._new: Path | None = None

    @staticmethod
    def examine(path: Path, spec: Mapping[str, Any], provenance: Mapping[str, Any]) -> None:
        """Raise `StoreError` unless `open` would make or continue this run here; writes nothing."""
        if "\0" in str(path):
            raise StoreError(f"{path!s:.200} has a character that no folder's name has; give another out=DIR")
        try:
            if path.exists() and not path.is_dir():
                raise StoreError(f"{path} is a file; give a folder that is new, empty or a run's")
            if path.is_dir() and not Run(path)._is_new():
                Run(path)._check_same(spec, provenance)
            place = next(folder for folder in (path, *path.absolute().parents) if folder.exists())
            if not place.is_dir() or not os.access(place, os.W_OK | os.X_OK):
                raise StoreError(f"{path} cannot be written; give another out=DIR")
        except (OSError, ValueError) as error:
            if isinstance(error, StoreError):
                raise
            raise StoreError(f"{path!s:.200} cannot be used ({error}); give another out=DIR") from error

    @staticmethod
    def open(
        path: Path,
        spec: Mapping[str, Any],
        provenance: Mapping[str, Any],
        suffixes: Sequence[str],
        shared: bool = False,
    ) -> Run:
        """The run of this spec in this folder: made if absent, continued if it is the same run with another `n`.

        Designs that lack a row or one of their files are forgotten, to be made again. Those who open it `shared`
        write it together. Raises `StoreError` if the folder holds something else, cannot be written, or is being
        written by another process.
        """
        Run.examine(path, spec, provenance)
        run = Run(path)
        try:
            for name in ("designs", "thumbnails"):
                (path / name).mkdir(parents=True, exist_ok=True)
            run._lock = (path / EVENTS).open("ab")
            if not locked(run._lock, shared):
                raise BusyError(f"{path} is being written by another process; wait, or give another out=DIR")
            with run._alone():
                run._prepare(spec, provenance, suffixes)
            run._new = Path(tempfile.mkdtemp(prefix=".new-", dir=path))
        except BusyError:
            run.close()
            raise
        except OSError as error:
            run.close()
            raise StoreError(f"{path} cannot be written ({error.strerror}); give another out=DIR") from error
        return run

    @staticmethod
    def queue(path: Path, spec: Mapping[str, Any]) -> Run:
        """A new folder with what is asked for, for a worker to do; raises `StoreError` where it cannot be made."""
        run = Run(path)
        try:
            path.mkdir(parents=True, exist_ok=True)
            with run._alone():
                if (path / "spec.yaml").exists():
                    raise StoreError(f"{path} is a run already; give another out=DIR")
                run._write_spec(spec)
        except OSError as error:
            raise StoreError(
                f"{path} cannot be made ({error.strerror}); give another out=DIR, or another FORESHAPE_HOME"
            ) from error
        return run

    @staticmethod
    def enlist(path: Path, spec: Mapping[str, Any]) -> Run:
        """The run of this spec in this folder, for workers to do: queued if new, grown if it is the same run."""
        if not path.is_dir() or Run(path)._is_new():
            try:
                return Run.queue(path, spec)
            except StoreError:
                if not (path / "spec.yaml").exists():  # else another process was faster
                    raise
        run = Run(path)
        run._check_same(spec, None)
        if spec["n"] > run.spec["n"]:
            try:
                with run._alone():
                    run._write_spec(spec)
            except OSError as error:
                raise StoreError(f"{path} cannot be written ({error.strerror}); give another out=DIR") from error
        return run

    @staticmethod
    def find(name: str) -> Run:
        """The run in a folder, or of this name in the home; raises `StoreError` where there is none."""
        for folder in (Path(name), runs_folder() / name):
            try:
                if (folder / "spec.yaml").is_file():
                    return Run(folder)
            except (OSError, ValueError):  # a name that no folder has
                continue
        raise StoreError(f"no run {name!r:.200}; give the folder of a run, or the name of one in {runs_folder()}")

    @property
    def spec(self) -> dict[str, Any]:
        """What was asked for; raises `StoreError` where it cannot be read."""
        return self._table("spec.yaml", yaml.safe_load)

    @property
    def provenance(self) -> dict[str, Any]:
        """Where the run comes from; raises `StoreError` where it cannot be read."""
        return self._table("provenance.json", json.loads)

    @property
    def lineage(self) -> dict[str, Any]:
        """What its designs come from: `operator`, `sites`, `file` and its `sha256`; empty where that is nothing."""
        found = self.provenance.get("lineage") if (self.path / "provenance.json").exists() else None
        return found if isinstance(found, dict) and found.keys() >= {"operator", "sites", "file", "sha256"} else {}

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

    def thumbnail_path(self, index: int) -> Path:
        """Where the picture of design `index` is kept."""
        return self.path / "thumbnails" / f"{index:06d}.svg"

    def violations(self) -> dict[int, list[str]]:
        """The rules that designs break, in words, by number; a line that cannot be read is left out."""
        found = {}
        for line in lines(self.path / "violations.jsonl"):
            if isinstance(line.get("design"), int) and isinstance(line.get("violations"), list):
                found[line["design"]] = [str(message) for message in line["violations"]]
        return found

    def labels(self) -> list[str]:
        """Words that people gave the run, sorted; raises `StoreError` where they cannot be read."""
        if not (self.path / "labels.json").exists():
            return []
        try:
            found = json.loads((self.path / "labels.json").read_text())
        except (OSError, ValueError, RecursionError) as error:
            raise StoreError(f"{self.path}/labels.json cannot be read ({error!s:.200}); remove it") from error
        if not isinstance(found, list) or not all(isinstance(label, str) for label in found):
            raise StoreError(f"{self.path}/labels.json is no list of texts; remove it")
        return sorted(set(found))

    def label(self, text: str, wanted: bool = True) -> None:
        """Give the run a label, or take it away; raises `StoreError` for one that cannot be, or is not there."""
        if not text.isprintable() or not 0 < len(text.strip()) <= LONGEST_LABEL:
            raise StoreError(f"label {text!r:.200} is not one line of 1 to {LONGEST_LABEL} characters; give another")
        try:
            with self._alone():
                before = set(self.labels())
                if not wanted and text not in before:
                    raise StoreError(f"{self.path} has no label {text!r}; it has {', '.join(sorted(before)) or 'none'}")
                after = sorted(before | {text} if wanted else before - {text})
                self._write("labels.json", json.dumps(after) + "\n")
        except OSError as error:
            raise StoreError(f"{self.path} cannot be written ({error.strerror}); make it writable") from error

    def formats(self) -> list[str]:
        """The endings of the designs' files, each with its dot."""
        folder = self.path / "designs"
        return sorted({path.suffix for path in folder.iterdir()}) if folder.is_dir() else []

    def export(self, to: Path, suffix: str | None = None) -> int:
        """Copy the finished designs into a folder, in one format or in all; returns how many files there are now.

        Raises `StoreError` for a format that the run does not have, and before it would change a file that is there.
        """
        formats = self.formats() if suffix is None else [suffix]
        if not set(formats) <= set(self.formats()):
            raise StoreError(f"{self.path} has no {suffix} files; it has {', '.join(self.formats()) or 'no designs'}")
        sources = [self.design_path(index, ending) for index in sorted(self.finished()) for ending in formats]
        return put_all(to, {source.name: source.read_bytes for source in sources})

    def add(
        self, row: Row, writers: Mapping[str, Callable[[Path], None]], picture: bytes, violations: Sequence[str]
    ) -> None:
        """Keep a finished design: its files (suffix -> what writes it), picture and violations, then its scores."""
        index = int(row["design"])
        targets = {self.design_path(index, suffix): write for suffix, write in writers.items()}
        targets[self.thumbnail_path(index)] = partial(_put, picture)
        for target, write in targets.items():  # under another name at first, so that no file is ever half a file
            new = (self._new or self.path) / target.name
            write(new)
            new.replace(target)
        with self._alone():
            self._append("violations.jsonl", {"design": index, "violations": list(violations)})
            self._add_row(row)

    def event(self, name: str, **values: Any) -> None:
        """Note that something happened."""
        self._append(EVENTS, {"time": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()), "event": name} | values)

    def events(self) -> list[dict[str, Any]]:
        """What happened lately, in its order: the last events, without any that cannot be read."""
        return [line for line in lines(self.path / EVENTS, LATELY) if isinstance(line.get("event"), str)]

    def in_use(self) -> bool:
        """Whether a process writes the run, or is alive to do so."""
        return any(is_locked(self.path / name) for name in (LOG, EVENTS))

    def cancel(self) -> None:
        """Ask whoever writes the run to end it; what is finished is kept."""
        (self.path / "cancel").touch()

    def withdraw_cancel(self) -> None:
        """Take back what `cancel` asked."""
        (self.path / "cancel").unlink(missing_ok=True)

    def heed_cancel(self) -> None:
        """Raise `Cancelled`, and note it, where the end of the run was asked for."""
        if (self.path / "cancel").exists():
            self.withdraw_cancel()
            self.event("cancelled")
            raise Cancelled(f"{self.path} was cancelled; what is finished is kept, and the same command goes on")

    def finish(self, seconds: float, report: str) -> None:
        """Add the time that was spent to `provenance.json` and write `report.html`."""
        with self._alone():
            self._forget_unfinished(())
            kept = self.provenance
            kept["seconds"] = round(kept.get("seconds", 0.0) + seconds, 3)
            self._write("provenance.json", json.dumps(kept, indent=2) + "\n")
            self._write("report.html", report)

    def close(self) -> None:
        """Let other processes write the run; whoever is the last removes what killed ones have left behind."""
        if self._new is not None:
            shutil.rmtree(self._new, ignore_errors=True)
        if self._lock is not None:
            if locked(self._lock, tries=1):
                with self._alone():  # one who submits it again may be about to rename a file
                    self._sweep()
            self._lock.close()

    @contextmanager
    def _alone(self) -> Iterator[None]:
        """Keep the others who share the run from writing its tables."""
        with (self.path / "violations.jsonl").open("ab") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            yield

    def _sweep(self) -> None:
        """Remove what writers that were killed left behind; nobody else is here."""
        for left in (*self.path.glob(".new-*"), *self.path.glob(".*.[0-9]*")):
            if left.is_dir():
                shutil.rmtree(left, ignore_errors=True)
            else:
                left.unlink(missing_ok=True)

    def _add_row(self, row: Row) -> None:
        path = self.path / "scores.csv"
        with path.open("a+b") as file:
            columns = _columns(file) or list(row)
            if set(columns) != set(row):
                raise StoreError(f"{path} has columns {columns}, not {list(row)}; remove it to make the run anew")
            text = io.StringIO()
            table = csv.DictWriter(text, columns, lineterminator="\n")
            if file.tell() == 0:
                table.writeheader()
            table.writerow(row)
            file.write(text.getvalue().encode())

    def _write_spec(self, spec: Mapping[str, Any]) -> None:
        known = self.spec["n"] if (self.path / "spec.yaml").exists() else 0
        if known >= spec["n"]:
            return
        self._write("spec.yaml", yaml.safe_dump(dict(spec), sort_keys=False))

    def _is_new(self) -> bool:
        """Whether the folder is empty, or has only what whoever makes it a run puts there before `spec.yaml`."""
        names = [entry.name for entry in self.path.iterdir()]
        ours = all(name in _BEFORE_SPEC or name.startswith((".spec.yaml.", ".new-")) for name in names)
        return ours and not any((self.path / "designs").glob("*"))

    def _prepare(self, spec: Mapping[str, Any], provenance: Mapping[str, Any], suffixes: Sequence[str]) -> None:
        self._write_spec(spec)
        if not (self.path / "provenance.json").exists():
            self._write("provenance.json", json.dumps(dict(provenance), indent=2) + "\n")
        self._forget_unfinished(suffixes)

    def _check_same(self, spec: Mapping[str, Any], provenance: Mapping[str, Any] | None) -> None:
        if not (self.path / "spec.yaml").is_file():
            raise StoreError(f"{self.path} is not empty and not a run; give a folder that is new, empty or a run's")
        theirs, ours = self.spec, dict(spec)
        if provenance is not None and (self.path / "provenance.json").exists():
            theirs, ours = theirs | {"weights": _weights(self.provenance)}, ours | {"weights": _weights(provenance)}
            if parent := self.lineage.get("sha256"):
                held = provenance.get("lineage", {})
                theirs, ours = theirs | {"lock.file": parent}, ours | {"lock.file": held.get("sha256")}
        for key in sorted(theirs.keys() | ours.keys()):
            if theirs.get(key) != ours.get(key) and key not in FREE:
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
        """Rewrite `scores.csv` sorted, without rows that are torn, twice there, or lack a file of their design."""
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

    def _append(self, name: str, line: Mapping[str, Any]) -> None:
        with (self.path / name).open("a") as file:
            file.write(json.dumps(line) + "\n")

    def _write(self, name: str, text: str) -> None:
        temporary = self.path / f".{name}.{os.getpid()}"
        temporary.write_text(text)
        temporary.replace(self.path / name)


def put_all(to: Path, contents: Mapping[str, Callable[[], bytes]]) -> int:
    """Write files (name -> what gives its content) into a folder; returns how many.

    Raises `StoreError` where the folder cannot take them, and before it would change a file that is there.
    """
    try:
        for name, content in contents.items():
            if (to / name).exists() and (to / name).read_bytes() != content():
                raise StoreError(f"{to / name} is there already and differs; give another folder")
        to.mkdir(parents=True, exist_ok=True)
        for name, content in contents.items():
            (to / name).write_bytes(content())
    except (OSError, ValueError) as error:
        if isinstance(error, InputError):
            raise
        raise StoreError(f"{to!s:.200} cannot take the designs ({error}); give another folder") from error
    return len(contents)


def _put(content: bytes, path: Path) -> None:
    path.write_bytes(content)


def _columns(file: IO[bytes]) -> list[str]:
    """The names of the columns, with the file at its end; a row that is torn there is cut off."""
    file.seek(0)
    columns = next(csv.reader([file.readline().decode()]), [])
    size = file.seek(0, os.SEEK_END)
    file.seek(max(0, size - LATELY))
    tail = file.read()
    if not tail.endswith(b"\n"):
        file.truncate(size - len(tail) + tail.rfind(b"\n") + 1)
    return columns if file.seek(0, os.SEEK_END) else []


def _weights(provenance: Mapping[str, Any]) -> Any:
    checkpoint = provenance.get("checkpoint")
    return checkpoint.get("sha256") if isinstance(checkpoint, dict) else None
