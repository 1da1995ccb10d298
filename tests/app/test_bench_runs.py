"""The bench of the run store: its parts at a small size, and goals that can be missed."""

from pathlib import Path

import pytest

from app.benchmarks import runs
from app.benchmarks.runs import claims, commands, kills


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("FORESHAPE_HOME", str(tmp_path))
    return tmp_path


def test_processes_race_for_all_shards(home: Path) -> None:
    found = claims.raced(f"sqlite:///{home}/foreshape.db", 60)
    assert (found["lost"], found["claimed twice"]) == (0, 0)
    assert found["shards/s"] > 0


def test_a_crowd_is_simulated(home: Path) -> None:
    found = claims.crowd(f"sqlite:///{home}/foreshape.db", 8, 1)
    assert found["claimed twice"] == 0
    assert 0 < found["late, median (s)"] <= found["late, 99 % (s)"]
    assert found["most workers"] > 8


def test_a_run_survives_a_kill() -> None:
    found = kills.survived(1, 16, 0)
    assert {name: found[name] for name in ("differ", "wrong number", "rests")} == {
        "differ": 0,
        "wrong number": 0,
        "rests": 0,
    }


def test_a_command_that_fails_is_told() -> None:
    with pytest.raises(RuntimeError, match="ended with 2"):
        commands.foreshape("generate", "n=0")


def test_goals_are_met_or_missed() -> None:
    rows = [{"method": "kills", "metrics": {"differ": 0, "wrong number": 1, "rests": 0}}]
    assert [goal["met"] for goal in runs.goals(rows).values()] == [True, False, True]
