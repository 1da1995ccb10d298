"""The bench of manifolds: its table, the arithmetic of its goals, and what it says where a library is not there."""

import json

import pytest

from app.benchmarks import manifolds
from data.errors import InputError


def test_the_table_sets_libraries_side_by_side(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(manifolds, "BATCHES", (1, 4))
    monkeypatch.setattr(manifolds, "QUICK_ROUNDS", 1)
    monkeypatch.setattr(manifolds, "SECONDS", 0.0)
    found = json.loads(json.dumps(manifolds.run(quick=True)))
    assert {"name", "seeds", "n", "reference", "rows", "goals"} == set(found)
    libraries = {(row["operation"], row["library"]) for row in found["rows"]}
    assert {("SO(3) log", name) for name in ("ours", "roma", "geomstats")} <= libraries
    assert {("sphere log", name) for name in ("ours", "geoopt", "geomstats")} <= libraries
    for row in found["rows"]:
        assert {"method", "steps", "nfe", "seconds", "metrics"} <= set(row)
        assert row["metrics"]["microseconds"] > 0
        errors = [value for name, value in row["metrics"].items() if name.startswith("error")]
        assert len(errors) == (3 if row["n"] == 4 else 0)
        if row["library"] == "ours":
            assert row["metrics"]["ours_over_it"] == 1
            assert all(error < 1e-5 for error in errors)
    assert found["goals"] == {}


def test_goals_are_ratios_of_times() -> None:
    rows = [
        {"operation": "SO(3) log", "library": library, "n": 1000, "metrics": {"ours_over_it": ratio}}
        for library, ratio in (("roma", 1.1), ("geomstats", 0.02))
    ]
    assert manifolds._goals(rows) == {
        "SO(3) log at 1000: time / roma's <= 1.2": {"value": 1.1, "goal": 1.2, "met": True},
        "SO(3) log at 1000: geomstats's time / ours >= 100": {"value": 50.0, "goal": 100.0, "met": False},
    }


def test_what_to_install_is_said() -> None:
    with pytest.raises(InputError, match="compares with no_such, which is not installed: pip install no_such"):
        manifolds._library("no_such")
