"""Labels, presets, and what designs come from: said on the command line, kept in folders, found again from them."""

import json
import shutil
from pathlib import Path

import pytest
import yaml

from app import cli
from app.composition import composed
from app.spec import RunSpec, from_plain
from data.store import Run, StoreError
from data.store.database import LABELS, LINEAGE, PRESETS, Database
from data.store.files import home


@pytest.fixture
def words(arguments: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Of a small run, without its place, in a home of its own."""
    monkeypatch.setenv("FORESHAPE_HOME", str(tmp_path / "home"))
    return arguments[:-1]


def at(name: str) -> str:
    return f"out={home() / 'runs' / name}"


def said(capsys: pytest.CaptureFixture[str], *words: str) -> str:
    assert cli.run(words) == 0, capsys.readouterr().err
    return capsys.readouterr().out


def refused(capsys: pytest.CaptureFixture[str], *words: str) -> str:
    assert cli.run(words) == 2
    caught = capsys.readouterr()
    assert (caught.out, caught.err.count("\n")) == ("", 1)
    return caught.err


def tables() -> dict[str, list[tuple]]:
    with Database().reading() as connection:
        return {
            table.name: [tuple(row) for row in connection.execute(table.select())]
            for table in (LABELS, PRESETS, LINEAGE)
        }


def forget_store() -> None:
    for path in home().glob("foreshape.db*"):
        path.unlink()


def test_labels_are_given_found_and_taken(words: list[str], capsys) -> None:
    for name in ("one", "two"):
        said(capsys, "generate", *words, at(name))
        said(capsys, "runs", "label", name, "for the lab")
    said(capsys, "runs", "label", "one", "for the lab")
    said(capsys, "runs", "label", "one", "ünïcode")
    assert said(capsys, "runs", "labelled", "for the lab").split() == ["one", "two"]
    listed = {entry["run"]: entry["labels"] for entry in json.loads(said(capsys, "runs", "--json"))["runs"]}
    assert listed == {"one": ["for the lab", "ünïcode"], "two": ["for the lab"]}
    assert "[for the lab]" in said(capsys, "runs")
    said(capsys, "runs", "unlabel", "two", "for the lab")
    assert said(capsys, "runs", "labelled", "for the lab").split() == ["one"]
    assert "for the lab" in refused(capsys, "runs", "unlabel", "two", "for the lab")
    forget_store()
    said(capsys, "reindex")
    assert said(capsys, "runs", "labelled", "for the lab").split() == ["one"]
    said(capsys, "generate", *words, at("one"), "n=6")
    assert Run(home() / "runs" / "one").labels() == ["for the lab", "ünïcode"]


def test_a_preset_is_the_run_again(words: list[str], tmp_path: Path, capsys) -> None:
    said(capsys, "generate", *words, at("one"), "guidance=lookahead")
    said(capsys, "runs", "preset", "one", "good")
    said(capsys, "runs", "preset", "one", "good")
    folder = Path(said(capsys, "generate", "preset=good", f"out={tmp_path / 'again'}").splitlines()[-1])
    assert (folder / "scores.csv").read_bytes() == (home() / "runs" / "one" / "scores.csv").read_bytes()
    other = Path(said(capsys, "generate", "preset=good", "seed=9", f"out={tmp_path / 'other'}").splitlines()[-1])
    assert Run(other).spec == Run(folder).spec | {"seed": 9}
    before = tables()["presets"]
    assert [(name, yaml.safe_load(spec)) for name, spec in before] == [("good", Run(folder).spec)]
    forget_store()
    said(capsys, "reindex")
    assert tables()["presets"] == before
    said(capsys, "generate", *words, "seed=8", at("two"))
    assert "differs" in refused(capsys, "runs", "preset", "two", "good")


def test_designs_of_a_locked_design_know_where_they_come_from(tmp_path: Path, capsys, monkeypatch) -> None:
    monkeypatch.setenv("FORESHAPE_HOME", str(tmp_path / "home"))
    protein = ["domain=protein", "n=2", "steps=1", "repair=false", "domain.length=48", "domain.shortest=44"]
    said(capsys, "generate", *protein, at("parent"))
    parent = home() / "runs" / "parent" / "designs" / "000001.pdb"
    lock = [f"lock.file={parent}", "lock.residues=A5-A12", "lock.at=[9]"]
    said(capsys, "generate", *protein, "seed=2", *lock, at("child"))
    found = Run(home() / "runs" / "child").provenance["lineage"]
    assert (found["operator"], found["sites"]) == ("rmf", list(range(8, 16)))
    for _ in range(2):
        told = said(capsys, "runs", "lineage", "child").splitlines()
        assert "8 sites" in told[0]
        assert told[1].split() == ["from", "parent", "000001"]
        assert said(capsys, "runs", "lineage", "parent").split() == ["to", "child", "by", "000001"]
        before = tables()["lineage"]
        forget_store()
        said(capsys, "reindex")
        assert tables()["lineage"] == before
    assert [(run, json.loads(mask)) for run, _, mask, _ in before] == [("child", list(range(8, 16)))]
    shutil.copy(parent.with_name("000000.pdb"), parent)
    assert "lock.file" in refused(capsys, "generate", *protein, "seed=2", *lock, at("child"), "n=4")


def test_designs_of_their_own_come_from_none(words: list[str], capsys) -> None:
    said(capsys, "generate", *words, at("one"))
    assert "from no design" in said(capsys, "runs", "lineage", "one")
    said(capsys, "generate", *words, "lock.text=TATAAA", "lock.at=-31", at("held"))
    assert "held at 6 sites of the spec" in said(capsys, "runs", "lineage", "held")
    assert "parent" not in said(capsys, "runs", "lineage", "held")


def test_a_run_that_waits_has_no_designs_that_come_from_any(words: list[str], capsys) -> None:
    said(capsys, "submit", *words, at("one"))
    assert "from no design" in said(capsys, "runs", "lineage", "one")


@pytest.mark.parametrize(
    ("line", "told"),
    [
        (["runs", "label", "one"], "a label"),
        (["runs", "label", "nowhere", "x"], "nowhere"),
        (["runs", "label", "one", ""], "label"),
        (["runs", "label", "one", "x", "y"], "quote"),
        (["runs", "label", "one", "a\nb"], "label"),
        (["runs", "label", "one", "x" * 101], "label"),
        (["runs", "labelled", "nothing"], "nothing"),
        (["runs", "labelled"], "one name"),
        (["runs", "preset", "one", "../x"], "name of a preset"),
        (["runs", "preset", "one", ""], "name of a preset"),
        (["runs", "lineage"], "one name"),
        (["generate", "preset=nothing"], "no preset"),
        (["generate", "preset=../../etc/passwd"], "no preset"),
        (["train", "preset=good"], "preset"),
    ],
)
def test_bad_words_are_one_line(words: list[str], line: list[str], told: str, capsys) -> None:
    Run.queue(home() / "runs" / "one", from_plain(RunSpec, composed("generate", words)).identity())
    assert told in refused(capsys, *line)


@pytest.mark.parametrize("content", ["", "{}", "[1]", "[" * 100_000])
def test_damaged_labels_are_told(words: list[str], content: str) -> None:
    run = Run.queue(home() / "runs" / "one", {"n": 1})
    (run.path / "labels.json").write_text(content)
    with pytest.raises(StoreError, match=r"labels\.json"):
        run.labels()
