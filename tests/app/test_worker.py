"""Runs as jobs: queued, made by a worker process, cancelled, lost, resumed; and exports."""

import json
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import pytest

from app import cli, jobs, service, worker
from app.composition import composed
from app.spec import RunSpec, from_plain
from data.errors import InputError
from data.store import LOG, Cancelled, Run, StoreError, locked


@pytest.fixture
def asked(arguments: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """The plain spec of a small run, in a home of its own."""
    monkeypatch.setenv("FORESHAPE_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    return composed("generate", [word for word in arguments if not word.startswith("out=")])


@pytest.fixture
def queued(asked: dict[str, Any], tmp_path: Path) -> Run:
    """That run, waiting for a worker."""
    run = Run.queue(tmp_path / "home" / "runs" / "one", from_plain(RunSpec, asked).identity())
    run.event("queued")
    return run


def wait_for(run: Run, *states: str) -> jobs.Status:
    end = time.monotonic() + 180
    while (status := jobs.status(run)).state not in states:
        assert time.monotonic() < end, status
        time.sleep(0.05)
    return status


def interrupted(run: Run, after: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Make the run up to so many designs, then cancel it between two steps."""
    add = Run.add

    def cancelling(self: Run, *values: Any) -> None:
        add(self, *values)
        if len(self.finished()) == after:
            self.cancel()

    monkeypatch.setattr(Run, "add", cancelling)
    with pytest.raises(Cancelled):
        worker.work(run.path)
    monkeypatch.setattr(Run, "add", add)


def test_a_killed_worker_is_lost_keeps_its_designs_and_is_resumed(asked: dict[str, Any]) -> None:
    """SIGKILL leaves no word behind; a run that nobody is at work on, and that has no end, is lost."""
    run = jobs.submit(asked | {"n": 4000, "batch": 1})
    try:
        assert jobs.status(run).active
        wait_for_designs(run, 1)
        assert (jobs.status(run).state, jobs.status(run).n) == (jobs.RUNNING, 4000)
        os.kill(process_of(run), signal.SIGKILL)
        kept = wait_for(run, jobs.LOST).kept
        assert 1 <= kept < 4000
        jobs.start(run)
        assert jobs.status(run).active
        wait_for_designs(run, kept + 1)
        run.cancel()
        assert wait_for(run, jobs.CANCELLED).kept > kept
    finally:
        run.cancel()


def wait_for_designs(run: Run, least: int) -> None:
    end = time.monotonic() + 180
    while len(run.finished()) < least:
        assert time.monotonic() < end, (run.path / LOG).read_text()
        time.sleep(0.05)


def process_of(run: Run) -> int:
    return int(next(event["process"] for event in reversed(run.events()) if event["event"] == "preparing"))


def test_a_worker_makes_what_the_command_line_makes(queued: Run, arguments: list[str], tmp_path: Path) -> None:
    worker.work(queued.path)
    assert jobs.status(queued) == jobs.Status(jobs.DONE, 5, 5, 1.0, None, "")
    assert [event["event"] for event in queued.events() if event["event"] not in ("progress", "designs")] == [
        "queued",
        "preparing",
        "started",
        "finished",
    ]
    assert cli.run(["generate", *arguments]) == 0
    by_hand = tmp_path / "run"
    assert (queued.path / "scores.csv").read_bytes() == (by_hand / "scores.csv").read_bytes()
    assert contents(queued.path / "thumbnails") == contents(by_hand / "thumbnails")


def contents(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def test_violations_are_kept_in_words(queued: Run) -> None:
    worker.work(queued.path)
    words = queued.violations()
    assert {int(row["design"]): int(row["violations"]) for row in queued.rows()} == {
        k: len(v) for k, v in words.items()
    }


def test_cancelling_keeps_what_is_finished_and_going_on_makes_the_rest(
    queued: Run, asked: dict[str, Any], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    whole = Run.queue(tmp_path / "home" / "runs" / "whole", queued.spec | {"batch": 2})
    worker.work(whole.path)
    queued._write("spec.yaml", (whole.path / "spec.yaml").read_text())
    interrupted(queued, 2, monkeypatch)
    status = jobs.status(queued)
    assert (status.state, status.kept, status.n) == (jobs.CANCELLED, 2, 5)
    assert not (queued.path / "cancel").exists()
    worker.work(queued.path)
    assert jobs.status(queued).state == jobs.DONE
    assert (queued.path / "scores.csv").read_bytes() == (whole.path / "scores.csv").read_bytes()


def test_a_run_on_the_command_line_can_be_cancelled_too(
    arguments: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    heed = Run.heed_cancel
    monkeypatch.setattr(Run, "heed_cancel", lambda self: (self.cancel(), heed(self)))
    assert cli.run(["generate", *arguments]) == 130
    assert "what is finished is kept" in capsys.readouterr().err
    monkeypatch.setattr(Run, "heed_cancel", heed)
    assert cli.run(["generate", *arguments]) == 0
    assert len(Run(tmp_path / "run").finished()) == 5


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"checkpoint": "nowhere"}, "no checkpoint 'nowhere'"),
        ({"rewards": {"gc_content": {"weight": 1.0, "target": 7.0}}}, "target=7.0"),
        ({"guidance": {"name": "free", "strength": 3}}, "strength"),
        ({"n": 0}, "n is 0"),
        ({"domain": {"name": "rna"}}, "rna"),
    ],
)
def test_wrong_specs_end_as_failed_with_one_line(queued: Run, change: dict[str, Any], said: str) -> None:
    spec = queued.spec | change
    (queued.path / "spec.yaml").write_text(json.dumps(spec))
    with pytest.raises(InputError):
        worker.work(queued.path)
    if spec["n"]:
        status = jobs.status(queued)
        assert status.state == jobs.FAILED
        assert said in status.message
    assert said in queued.events()[-1]["message"]


def test_what_breaks_is_told(queued: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: Any) -> None:
        raise RuntimeError("out of memory")

    monkeypatch.setattr(service, "draw", broken)
    with pytest.raises(RuntimeError):
        worker.work(queued.path)
    assert jobs.status(queued).message == "broke with RuntimeError: out of memory"


def test_workers_take_turns_and_can_be_cancelled_while_they_wait(queued: Run) -> None:
    outcome: list[BaseException] = []

    def wait() -> None:
        try:
            with worker.turn(queued):
                pass
        except Cancelled as error:
            outcome.append(error)

    with worker.turn(queued):
        thread = threading.Thread(target=wait)
        thread.start()
        time.sleep(0.3)
        assert thread.is_alive()
        queued.cancel()
        thread.join(20)
    assert len(outcome) == 1
    assert jobs.status(queued).state == jobs.CANCELLED


def test_states_come_from_the_folder_alone(queued: Run) -> None:
    assert jobs.status(queued).state == jobs.LOST  # queued, and nobody is there
    with (queued.path / LOG).open("ab") as log:
        assert locked(log)
        assert jobs.status(queued).state == jobs.QUEUED
        assert not other_process_can_lock(queued.path / LOG)
        queued.event("started", n=5, missing=5)
        queued.event("progress", done=0, batch=4, steps=1, total=2)
        status = jobs.status(queued)
        assert (status.state, status.share) == (jobs.RUNNING, pytest.approx(0.4))
        assert status.left == pytest.approx(1.5, abs=4)  # a second for 0.4 of the run, or little more
        queued.event("finished", seconds=1)
        assert jobs.status(queued).state == jobs.DONE
    assert jobs.status(queued).state == jobs.DONE


def other_process_can_lock(path: Path) -> bool:
    code = "import sys; from data.store import locked; sys.exit(not locked(open(sys.argv[1], 'ab')))"
    return subprocess.run([sys.executable, "-c", code, str(path)], check=False).returncode == 0


def test_a_second_worker_is_not_started(queued: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    def none(*_: Any, **__: Any) -> None:
        raise AssertionError("a second worker")

    monkeypatch.setattr(subprocess, "Popen", none)
    before = queued.events()
    with (queued.path / LOG).open("ab") as log:
        assert locked(log)
        jobs.start(queued)
    assert queued.events() == before


@pytest.mark.parametrize(
    "damage",
    [
        {"spec.yaml": "n: many\n"},
        {"spec.yaml": "- 1\n"},
        {"scores.csv": "a,b\n1,2\n"},
        {"events.jsonl": '{"event": "progress"}\n'},
        {"events.jsonl": '{"event": "progress", "batch": [], "steps": 1, "total": 2}\n'},
    ],
)
def test_damage_is_told(queued: Run, damage: dict[str, str]) -> None:
    for name, content in damage.items():
        (queued.path / name).write_text(content)
    with pytest.raises(StoreError, match=next(iter(damage))):
        jobs.status(queued)


def test_export_copies_one_format_or_all(queued: Run, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    worker.work(queued.path)
    for words, count in (([], 10), (["--format", "gb"], 5), (["--format", ".gb"], 5)):
        folder = tmp_path / f"to{len(words)}"
        assert cli.run(["export", "one", "--to", str(folder), *words]) == 0
        assert len(list(folder.iterdir())) == count
        assert str(count) in capsys.readouterr().out
    sources = sorted((queued.path / "designs").iterdir())
    assert [path.read_bytes() for path in sources] == [
        path.read_bytes() for path in sorted((tmp_path / "to0").iterdir())
    ]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ([], "--to"),
        (["one"], "--to"),
        (["none", "--to", "X"], "none"),
        (["one", "--to", "X", "--format", "pdb"], ".pdb"),
        (["one", "--to", "FILE"], "FILE"),
        (["one", "--to", "FULL"], "000000.fasta"),
        (["one", "--to", "X", "--like", "that"], "--like"),
        (["nul\0", "--to", "X"], "nul"),
        (["one", "--to", "nul\0"], "nul"),
    ],
)
def test_bad_exports_are_one_line(
    queued: Run, tmp_path: Path, capsys: pytest.CaptureFixture[str], words: list[str], said: str
) -> None:
    for name in ("000000.fasta", "000001.fasta"):
        (queued.path / "designs").mkdir(exist_ok=True)
        (queued.path / "designs" / name).write_text(name)
    (queued.path / "scores.csv").write_text("design,total\n0,1\n1,1\n")
    (tmp_path / "FILE").write_text("")
    (tmp_path / "FULL").mkdir()
    (tmp_path / "FULL" / "000000.fasta").write_text("a treasure")
    words = [str(tmp_path / word) if word in ("X", "FILE", "FULL") else word for word in words]
    assert cli.run(["export", *words]) == 2
    caught = capsys.readouterr()
    assert (caught.out, caught.err.count("\n")) == ("", 1)
    assert said in caught.err
    assert not (tmp_path / "X").exists()
    assert (tmp_path / "FULL" / "000000.fasta").read_text() == "a treasure"
    assert len(list((tmp_path / "FULL").iterdir())) == 1


@pytest.mark.parametrize(
    "words", [["ui", "--port", "many"], ["ui", "--port", "-1"], ["worker", "none"], ["worker", "--device", "tpu"]]
)
def test_bad_words_are_one_line(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.run(words) == 2
    assert capsys.readouterr().err.count("\n") == 1
