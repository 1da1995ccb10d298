"""Queued runs on the command line: submitted, made, paused, cancelled, found again; and what can go wrong."""

import errno
import json
import shutil
import threading
from pathlib import Path
from typing import Any

import pytest

from app import cli, devices, service
from app.composition import composed
from app.spec import RunSpec, from_plain
from data.store import Run, runs_folder
from data.store.files import home


@pytest.fixture
def words(arguments: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Of a small run in a home of its own."""
    monkeypatch.setenv("FORESHAPE_HOME", str(tmp_path / "home"))
    return [*arguments[:-1], "batch=2", f"out={tmp_path / 'home' / 'runs' / 'one'}"]


def said(capsys: pytest.CaptureFixture[str], *words: str) -> str:
    assert cli.run(words) == 0, capsys.readouterr().err
    return capsys.readouterr().out


def states(capsys: pytest.CaptureFixture[str]) -> dict[str, str]:
    return {entry["run"]: entry["state"] for entry in json.loads(said(capsys, "runs", "--json"))["runs"]}


def contents(folder: Path) -> dict[str, bytes]:
    kept = [*(folder / "designs").iterdir(), *(folder / "thumbnails").iterdir(), folder / "scores.csv"]
    return {str(path.relative_to(folder)): path.read_bytes() for path in kept}


def test_a_submitted_run_is_what_generate_makes(
    words: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = Path(said(capsys, "submit", *words).strip())
    assert states(capsys) == {"one": "queued"}
    said(capsys, "submit", *words)
    said(capsys, "worker", "--drain")
    assert states(capsys) == {"one": "done"}
    said(capsys, "generate", *words[:-1], f"out={tmp_path / 'inline'}")
    assert contents(folder) == contents(tmp_path / "inline")
    assert (folder / "report.html").exists()
    before = contents(folder)
    said(capsys, "submit", *words)
    said(capsys, "worker", "--drain")
    assert contents(folder) == before
    said(capsys, "submit", *words[:-1], "n=7", words[-1])
    assert states(capsys) == {"one": "queued"}
    said(capsys, "worker", "--drain")
    grown = contents(folder)
    assert len(Run(folder).finished()) == 7
    assert all(grown[name] == content for name, content in before.items() if name != "scores.csv")


def test_a_run_that_is_asked_for_again_stays_done(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    for _ in range(2):
        said(capsys, "generate", *words)
        assert states(capsys) == {"one": "done"}


@pytest.mark.parametrize(("stop", "state", "go_on"), [("pause", "paused", "resume"), ("cancel", "cancelled", "retry")])
def test_a_waiting_run_can_be_stopped_and_goes_on(
    words: list[str], capsys: pytest.CaptureFixture[str], stop: str, state: str, go_on: str
) -> None:
    folder = said(capsys, "submit", *words).strip()
    assert "1 shards" in said(capsys, "runs", stop, "one")
    assert states(capsys) == {"one": state}
    said(capsys, "worker", "--drain")
    assert Run(Path(folder)).rows() == []
    said(capsys, "runs", go_on, folder)
    assert states(capsys) == {"one": "queued"}
    said(capsys, "worker", "--drain")
    assert states(capsys) == {"one": "done"}


def test_the_best_of_all_runs_are_found_and_the_index_comes_back_from_the_folders(
    words: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    said(capsys, "generate", *words)
    said(capsys, "generate", *words[:-1], "seed=4", words[-1][:-3] + "two")
    rows = {(name, f"{int(row['design']):06d}"): row for name in ("one", "two") for row in rows_of(name)}
    for score in ("total", "gc_content"):
        lines = [line.split() for line in said(capsys, "runs", "best", score).splitlines()]
        values = sorted((float(row[score]) for row in rows.values()), reverse=True)
        assert [float(value) for value, _, _ in lines] == pytest.approx(values, rel=1e-5)
        assert all(float(value) == pytest.approx(float(rows[run, k][score]), rel=1e-5) for value, run, k in lines)
    before = said(capsys, "runs", "best", "total")
    for path in home().glob("foreshape.db*"):
        path.unlink()
    assert said(capsys, "reindex").count("5 designs") == 2
    assert said(capsys, "runs", "best", "total") == before
    shutil.rmtree(runs_folder() / "two")
    assert "forgotten" in said(capsys, "reindex")
    assert "two" not in said(capsys, "runs", "best", "total")


def rows_of(name: str) -> list[dict[str, str]]:
    return Run(runs_folder() / name).rows()


def test_a_batch_too_large_for_the_memory_is_halved_and_the_designs_are_the_same(
    words: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    said(capsys, "generate", *words[:-1], "batch=4", words[-1])
    draw, sizes = service.draw, list[int]()

    def small(ready: Any, spec: Any, batch: Any, progress: Any) -> list[Any]:
        sizes.append(len(batch))
        if len(batch) > 1:
            raise MemoryError("too many")
        return draw(ready, spec, batch, progress)

    monkeypatch.setattr(service, "draw", small)
    said(capsys, "generate", *words[:-1], "batch=4", f"out={tmp_path / 'small'}")
    assert sizes == [4, 2, 1, 1, 1, 1, 1]
    assert contents(tmp_path / "small") == contents(runs_folder() / "one")
    halved = [event["batch"] for event in Run(tmp_path / "small").events() if event["event"] == "out of memory"]
    assert halved == [2, 1]


def test_what_has_no_room_for_one_design_breaks(
    words: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def never(*_: Any) -> list[Any]:
        raise MemoryError("too large")

    monkeypatch.setattr(service, "draw", never)
    assert cli.run(["generate", *words]) == 1
    assert "too large" in capsys.readouterr().err.splitlines()[-1]
    assert not devices.is_out_of_memory(RuntimeError("shapes do not match"))


def test_a_full_disk_is_one_line_and_what_is_finished_is_kept(
    words: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    add, room = Run.add, iter(range(3))

    def full(self: Run, *values: Any) -> None:
        if next(room, None) is None:
            raise OSError(errno.ENOSPC, "No space left on device")
        add(self, *values)

    monkeypatch.setattr(Run, "add", full)
    said(capsys, "submit", *words)
    assert cli.run(["worker", "--drain"]) == 0
    listed = json.loads(said(capsys, "runs", "--json"))["runs"]
    assert (listed[0]["state"], listed[0]["designs"]) == ("failed", 3)
    assert "No space left on device" in listed[0]["message"]
    assert "\n" not in listed[0]["message"]
    monkeypatch.setattr(Run, "add", add)
    said(capsys, "runs", "retry", "one")
    said(capsys, "worker", "--drain")
    assert states(capsys) == {"one": "done"}
    assert len(rows_of("one")) == 5


def test_a_checkpoint_that_is_gone_fails_one_run_and_not_the_others(
    words: list[str], tiny: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    shutil.copytree(tiny, tmp_path / "passing")
    said(
        capsys,
        "submit",
        *(f"checkpoint={tmp_path / 'passing'}" if word.startswith("checkpoint") else word for word in words),
    )
    said(capsys, "submit", *words[:-1], words[-1][:-3] + "two")
    shutil.rmtree(tmp_path / "passing")
    said(capsys, "worker", "--drain")
    assert states(capsys) == {"one": "failed", "two": "done"}
    (message,) = (e["message"] for e in json.loads(said(capsys, "runs", "--json"))["runs"] if e["run"] == "one")
    assert "passing" in message


def test_two_who_make_the_same_run_at_once_lose_nothing(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    spec = from_plain(RunSpec, composed("generate", words) | {"n": 12})
    outcomes: list[str] = []

    def make() -> None:
        try:
            service.generate(spec, lambda *_: None)
            outcomes.append("made")
        except ValueError as error:
            outcomes.append(str(error))

    threads = [threading.Thread(target=make) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert outcomes.count("made") >= 1
    assert all(outcome == "made" or "being written by another process" in outcome for outcome in outcomes)
    assert [int(row["design"]) for row in rows_of("one")] == list(range(12))


@pytest.mark.parametrize(
    ("line", "said"),
    [
        (["runs", "resume"], "one name"),
        (["runs", "resume", "nowhere"], "nowhere"),
        (["runs", "stop", "one"], "stop"),
        (["runs", "best", "beauty"], "beauty"),
        (["reindex", "all"], "all"),
        (["submit", "n=0"], "n is 0"),
        (["worker", "--device", "tpu"], "tpu"),
        (["worker", "--drain", "nowhere"], "nowhere"),
    ],
)
def test_bad_words_are_one_line(
    line: list[str], said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("FORESHAPE_HOME", str(tmp_path))
    assert cli.run(line) == 2
    caught = capsys.readouterr()
    assert (caught.out, caught.err.count("\n")) == ("", 1)
    assert said in caught.err


def test_a_store_that_cannot_be_reached_is_one_line(
    words: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("FORESHAPE_STORE", "postgresql://nobody:secret@127.0.0.1:1/none")
    assert cli.run(["submit", *words]) == 2
    caught = capsys.readouterr().err
    assert caught.count("\n") == 1
    assert "secret" not in caught


@pytest.mark.parametrize(
    "change",
    ["checkpoint=nowhere", "rewards.gc_content.target=7", "domain.length=129", "out=FILE", "guidance.strength=3"],
)
def test_what_is_wrong_is_told_when_it_is_submitted(
    words: list[str], change: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "FILE").write_text("a treasure")
    assert cli.run(["submit", *words, change.replace("FILE", str(tmp_path / "FILE"))]) == 2
    assert capsys.readouterr().err.count("\n") == 1
    assert not runs_folder().exists()
    assert (tmp_path / "FILE").read_text() == "a treasure"
