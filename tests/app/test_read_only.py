"""Folders that may not be written: one clear line, nothing half-written, nothing lost."""

import json
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from app import cli
from data.store import Run

NOBODY = 65534


@pytest.fixture
def place(tiny: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder that everybody may enter, with a checkpoint and a home."""
    with tempfile.TemporaryDirectory(prefix="foreshape-read-only-", dir="/tmp") as name:
        folder = Path(name)
        shutil.copytree(tiny, folder / "tiny")
        (folder / "home").mkdir()
        give_back(folder)
        monkeypatch.setenv("FORESHAPE_HOME", str(folder / "home"))
        monkeypatch.setenv("TMPDIR", "/tmp")
        yield folder
        give_back(folder)


def give_back(folder: Path) -> None:
    for path in (folder, *folder.rglob("*")):
        path.chmod(0o755 if path.is_dir() else 0o644)


@contextmanager
def denied(folder: Path) -> Iterator[None]:
    """A folder, with all that is in it, may only be read meanwhile, by one whom permissions bind: root is nobody."""
    for path in (folder, *folder.rglob("*")):
        path.chmod(0o555 if path.is_dir() else 0o444)
    root = os.geteuid() == 0
    if root:
        os.seteuid(NOBODY)
    try:
        yield
    finally:
        if root:
            os.seteuid(0)
        give_back(folder)


def words(place: Path, *more: str) -> list[str]:
    return ["domain.length=128", f"checkpoint={place / 'tiny'}", "n=3", "steps=1", *more]


def contents(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def refused(capsys: pytest.CaptureFixture[str], *line: str) -> str:
    code, caught = cli.run(line), capsys.readouterr()
    assert (code, caught.out, caught.err.count("\n")) == (2, "", 1), caught.err
    return caught.err


@pytest.fixture
def made(place: Path, capsys: pytest.CaptureFixture[str]) -> Path:
    """A run; and all that is imported late is there, which nobody could not read."""
    assert cli.run(["generate", *words(place, f"out={place / 'run'}")]) == 0
    assert cli.run(["submit", *words(place, f"out={place / 'home' / 'runs' / 'one'}")]) == 0
    assert cli.run(["worker", "--drain"]) == 0
    capsys.readouterr()
    return place / "run"


@pytest.mark.parametrize("verb", ["generate", "submit"])
def test_a_new_run_is_refused(made: Path, verb: str, place: Path, capsys) -> None:
    (place / "shut").mkdir()
    with denied(place / "shut"):
        assert "shut" in refused(capsys, verb, *words(place, f"out={place / 'shut' / 'new'}"))
    assert list((place / "shut").iterdir()) == []


def test_a_run_that_is_shut_keeps_what_it_has(made: Path, place: Path, capsys) -> None:
    before = contents(made)
    with denied(made):
        for verb in ("generate", "submit"):
            assert "cannot be written" in refused(capsys, verb, *words(place, "n=5", f"out={made}"))
        assert "cannot be written" in refused(capsys, "runs", "label", str(made), "x")
    assert contents(made) == before
    assert cli.run(["generate", *words(place, "n=5", f"out={made}")]) == 0
    assert len(Run(made).finished()) == 5


def test_a_home_that_is_shut_is_told(made: Path, place: Path, capsys, monkeypatch) -> None:
    (place / "shut").mkdir()
    monkeypatch.setenv("FORESHAPE_HOME", str(place / "shut" / "home"))
    with denied(place / "shut"):
        for line in (["runs"], ["reindex"], ["submit", *words(place, f"out={made}")], ["worker", "--drain"]):
            assert "shut" in refused(capsys, *line)
        assert "shut" in refused(capsys, "export", str(made), "--to", str(place / "shut" / "to"))
        assert "shut" in refused(capsys, "runs", "preset", str(made), "good")


def test_a_worker_says_that_its_run_is_shut_and_the_run_goes_on_later(made: Path, place: Path, capsys) -> None:
    run = place / "home" / "runs" / "one"
    assert cli.run(["submit", *words(place, "n=6", f"out={run}")]) == 0
    (place / "home").chmod(0o777)
    for path in (place / "home").glob("*"):
        path.chmod(0o777)
    with denied(run):
        assert cli.run(["worker", "--drain"]) == 0
    capsys.readouterr()
    assert cli.run(["runs", "--json"]) == 0
    (listed,) = json.loads(capsys.readouterr().out)["runs"]
    assert listed["designs"] == 3
    assert cli.run(["runs", "retry", "one"]) == 0
    assert cli.run(["worker", "--drain"]) == 0
    assert len(Run(run).finished()) == 6
