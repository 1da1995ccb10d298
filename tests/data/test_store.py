"""A run folder is a target: it can be continued, and it never mixes two runs."""

import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from data.store import BusyError, Cancelled, Row, Run, StoreError, locked

SPEC = {"domain": {"name": "dna"}, "seed": 1, "n": 2}
NOTES = {"checkpoint": {"name": "x", "sha256": "ab"}, "seconds": 0.0}


@contextmanager
def opened(path: Path, spec: Mapping[str, Any] = SPEC, notes: Mapping[str, Any] = NOTES) -> Iterator[Run]:
    run = Run.open(path, spec, notes, [".txt"])
    try:
        yield run
    finally:
        run.close()


def put(run: Run, index: int, **more: float) -> None:
    row: Row = {"design": index, "total": 0.5, **more}
    run.add(row, {".txt": lambda path: path.write_text(str(index)) and None}, b"<svg/>", [f"rule {index}"])


def grown(path: Path, *indices: int) -> None:
    with opened(path) as run:
        for index in indices:
            put(run, index)


def test_rows_and_files_come_back_sorted(tmp_path: Path) -> None:
    grown(tmp_path / "run", 2, 0, 1)
    with opened(tmp_path / "run", SPEC | {"n": 5}) as again:
        assert [row["design"] for row in again.rows()] == ["0", "1", "2"]
        assert again.finished() == {0, 1, 2}
        assert again.design_path(2, ".txt").read_text() == "2"
        assert again.spec["n"] == 5


def test_a_smaller_n_does_not_shrink_a_run(tmp_path: Path) -> None:
    grown(tmp_path, 0, 1)
    with opened(tmp_path, SPEC | {"n": 1}) as again:
        assert again.spec["n"] == 2


@pytest.mark.parametrize("torn", ["1,0.", "1", "1,0.5", "design,tot"])
def test_a_torn_row_is_made_again(tmp_path: Path, torn: str) -> None:
    grown(tmp_path, *([] if torn[0] == "d" else [0]))
    with (tmp_path / "scores.csv").open("a") as file:
        file.write(torn)
    with opened(tmp_path) as again:
        before = again.finished()
        assert before <= {0}
        put(again, 1)
        assert again.finished() == before | {1}


def test_a_design_without_its_file_is_made_again(tmp_path: Path) -> None:
    grown(tmp_path, 0, 1)
    (tmp_path / "designs" / "000000.txt").unlink()
    with opened(tmp_path) as again:
        assert again.finished() == {1}


def test_a_row_that_is_there_twice_counts_once(tmp_path: Path) -> None:
    grown(tmp_path, 0, 1)
    text = (tmp_path / "scores.csv").read_text()
    (tmp_path / "scores.csv").write_text(text + text.splitlines()[-1] + "\n")
    with opened(tmp_path) as again:
        assert [row["design"] for row in again.rows()] == ["0", "1"]


def test_columns_keep_their_order(tmp_path: Path) -> None:
    grown(tmp_path, 0)
    with opened(tmp_path) as again:
        again.add({"total": 0.7, "design": 1}, {".txt": lambda path: path.write_text("1") and None}, b"", [])
        assert again.rows()[1] == {"design": "1", "total": "0.7"}
        with pytest.raises(StoreError, match="has columns"):
            put(again, 2, extra=1.0)


@pytest.mark.parametrize(
    ("spec", "notes", "said"),
    [
        (SPEC | {"seed": 2}, NOTES, "seed=1, not 2"),
        (SPEC | {"more": 1}, NOTES, "more=None, not 1"),
        (SPEC, {"checkpoint": {"sha256": "cd"}}, "weights=ab, not cd"),
    ],
)
def test_another_run_is_refused(tmp_path: Path, spec: dict[str, Any], notes: dict[str, Any], said: str) -> None:
    grown(tmp_path, 0)
    with pytest.raises(StoreError, match=said), opened(tmp_path, spec, notes):
        pass
    with pytest.raises(StoreError, match=said):
        Run.examine(tmp_path, spec, notes)


def test_two_writers_are_one_too_many(tmp_path: Path) -> None:
    with opened(tmp_path) as run:
        with pytest.raises(BusyError, match="another process"), opened(tmp_path):
            pass
        assert run.in_use()
    assert not run.in_use()
    grown(tmp_path, 0)


DAMAGED = [b"", b"- 1\n- 2\n", b"{", b"\xff\xfe\x00", b"!!python/object:os.system\n", b"a,b\n1,2\n"]


@pytest.mark.parametrize("name", ["spec.yaml", "provenance.json", "scores.csv"])
@pytest.mark.parametrize("content", DAMAGED)
def test_a_damaged_run_is_refused_or_made_anew(tmp_path: Path, name: str, content: bytes) -> None:
    grown(tmp_path, 0)
    (tmp_path / name).write_bytes(content)
    if name == "scores.csv" and content.count(b"\n") < 2 and b"\xff" not in content:  # no rows are lost
        with opened(tmp_path) as again:
            assert again.finished() == set()
    else:
        with pytest.raises(StoreError, match=name), opened(tmp_path):
            pass


def test_a_strangers_folder_is_refused_and_left_alone(tmp_path: Path) -> None:
    (tmp_path / "thesis.txt").write_text("important")
    with pytest.raises(StoreError, match="not a run"), opened(tmp_path):
        pass
    assert [path.name for path in tmp_path.iterdir()] == ["thesis.txt"]


@pytest.mark.parametrize("name", ["x", "x/y", "a" * 300, "nul\0"])
def test_a_place_that_cannot_be_a_folder(tmp_path: Path, name: str) -> None:
    (tmp_path / "x").write_text("")
    with pytest.raises(StoreError, match=r"give a folder|give another out=DIR"), opened(tmp_path / name):
        pass


def test_pictures_and_words_are_kept_and_made_again(tmp_path: Path) -> None:
    grown(tmp_path, 0, 1)
    (tmp_path / "designs" / "000001.txt").unlink()
    with (tmp_path / "violations.jsonl").open("a") as file:
        file.write('{"design": 1, "violations": ["old"]}\nnonsense\n[1]\n{"design": "x"}\n')
    grown(tmp_path, 1)
    run = Run(tmp_path)
    assert run.violations() == {0: ["rule 0"], 1: ["rule 1"]}
    assert run.thumbnail_path(1).read_bytes() == b"<svg/>"
    assert run.formats() == [".txt"]


def test_only_the_last_events_are_read(tmp_path: Path) -> None:
    with opened(tmp_path) as run:
        for k in range(2000):
            run.event("step", k=k, filling="x" * 100)
        run.event("last")
    found = run.events()
    assert [event["k"] for event in found[:-1]] == list(range(2001 - len(found), 2000))
    assert found[-1]["event"] == "last"
    assert 100 < len(found) < 1000


def test_a_queued_run_is_new_and_can_be_opened(tmp_path: Path) -> None:
    Run.queue(tmp_path / "runs" / "one", SPEC)
    with pytest.raises(StoreError, match="is a run already"):
        Run.queue(tmp_path / "runs" / "one", SPEC)
    grown(tmp_path / "runs" / "one", 0)


def test_a_cancellation_is_heeded_once(tmp_path: Path) -> None:
    with opened(tmp_path) as run:
        run.heed_cancel()
        run.cancel()
        with pytest.raises(Cancelled, match="is kept"):
            run.heed_cancel()
        run.heed_cancel()
    assert run.events()[-1]["event"] == "cancelled"


def test_a_lock_ends_with_the_last_that_has_it(tmp_path: Path) -> None:
    """A child that inherits the file has the lock for as long as it lives."""
    run = Run.queue(tmp_path / "run", SPEC)
    with (run.path / "worker.log").open("ab") as log:
        assert locked(log)
        child = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE, stdout=log)
    assert run.in_use()
    child.kill()
    child.communicate()
    assert not run.in_use()


def test_a_run_is_found_by_folder_or_by_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FORESHAPE_HOME", str(tmp_path))
    run = Run.queue(tmp_path / "runs" / "one", SPEC)
    assert Run.find("one").path == Run.find(str(run.path)).path == run.path
    for name in ("two", "", "nul\0", "a" * 300):
        with pytest.raises(StoreError, match="no run"):
            Run.find(name)


def test_a_run_that_was_killed_before_its_spec_was_there_can_be_made(tmp_path: Path) -> None:
    """Whatever of its first files is there; a folder that holds anything else is left alone."""
    for names in (("events.jsonl",), ("events.jsonl", "violations.jsonl", ".spec.yaml.17")):
        for make in (lambda path: grown(path, 0), lambda path: Run.enlist(path, SPEC)):
            path = tmp_path / f"{len(list(tmp_path.iterdir()))}"
            (path / "designs").mkdir(parents=True)
            for name in names:
                (path / name).touch()
            make(path)
            assert Run(path).spec == SPEC
    (path / "designs" / "000000.txt").touch()
    (path / "spec.yaml").unlink()
    with pytest.raises(StoreError, match="not a run"):
        grown(path, 0)
