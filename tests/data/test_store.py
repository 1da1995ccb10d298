"""A run folder is a target: it can be continued, and it never mixes two runs."""

from pathlib import Path

import pytest

from data.store import Run, StoreError

SPEC = {"domain": {"name": "dna"}, "seed": 1, "n": 2}


def put(run: Run, index: int) -> None:
    run.add({"design": index, "total": 0.5}, {".txt": lambda path: path.write_text(str(index)) and None})


def test_rows_and_files_come_back_sorted(tmp_path: Path) -> None:
    run = Run.open(tmp_path / "run", SPEC)
    for index in (2, 0, 1):
        put(run, index)
    again = Run.open(tmp_path / "run", SPEC | {"n": 5})
    assert [row["design"] for row in again.rows()] == ["0", "1", "2"]
    assert again.finished() == {0, 1, 2}
    assert again.design_path(2, ".txt").read_text() == "2"
    assert again.spec["n"] == 5


@pytest.mark.parametrize("torn", ["1,0.", "1", "design,tot"])
def test_a_torn_row_is_made_again(tmp_path: Path, torn: str) -> None:
    run = Run.open(tmp_path, SPEC)
    if torn[0] != "d":
        put(run, 0)
    with (tmp_path / "scores.csv").open("a") as file:
        file.write(torn)
    again = Run.open(tmp_path, SPEC)
    before = again.finished()
    put(again, 1)
    assert again.finished() == before | {1}


def test_another_run_is_refused(tmp_path: Path) -> None:
    Run.open(tmp_path, SPEC)
    with pytest.raises(StoreError, match="seed=1, not 2"):
        Run.open(tmp_path, SPEC | {"seed": 2})


def test_a_strangers_folder_is_refused_and_left_alone(tmp_path: Path) -> None:
    (tmp_path / "thesis.txt").write_text("important")
    with pytest.raises(StoreError, match="not a run"):
        Run.open(tmp_path, SPEC)
    assert [path.name for path in tmp_path.iterdir()] == ["thesis.txt"]


def test_a_file_is_not_a_folder(tmp_path: Path) -> None:
    (tmp_path / "x").write_text("")
    with pytest.raises(StoreError, match="is a file"):
        Run.open(tmp_path / "x", SPEC)


def test_a_place_that_cannot_be_written(tmp_path: Path) -> None:
    (tmp_path / "x").write_text("")
    with pytest.raises(StoreError, match="cannot be written"):
        Run.open(tmp_path / "x" / "y", SPEC)
