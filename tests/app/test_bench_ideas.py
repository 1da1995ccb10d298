"""The bench of IDEAS: its table, and the arithmetic of its goals."""

import json

import pytest

from app.benchmarks import ideas


def test_the_table_has_all_methods_on_the_same_start(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ideas, "TASKS", {"dna": ideas.TASKS["dna"]})
    monkeypatch.setattr(ideas, "ROUNDS", 2)
    monkeypatch.setattr(ideas, "QUICK_BUDGET", 40)
    found = json.loads(json.dumps(ideas.run(quick=True)))
    assert {"name", "seeds", "n", "reference", "rows", "goals"} == set(found)
    assert [row["method"] for row in found["rows"]] == list(ideas.METHODS)
    for row in found["rows"]:
        assert {"method", "steps", "nfe", "seconds", "metrics"} <= set(row)
        assert len(row["best_by_seed"]) == len(found["seeds"]) == 2
        assert all(1 < low <= high <= 2 for low, high in zip(row["top10_by_seed"], row["best_by_seed"], strict=True))
        assert 0 < row["metrics"]["diversity"] <= 256
    assert all(goal["met"] == (goal["value"] >= goal["goal"]) for goal in found["goals"].values())


def test_wins_are_counted_seed_by_seed() -> None:
    values = {"ideas": [1.0, 0.5, 0.9, 0.9, 0.9], "random_mutation": [0.9, 0.5, 0.8, 0.8, 0.8]}
    rows = [{"task": "dna", "method": method, "best_by_seed": found} for method, found in values.items()]
    assert ideas._goals(rows) == {"dna: seeds where ideas > random_mutation": {"value": 4, "goal": 4, "met": True}}


@pytest.mark.parametrize("task", list(ideas.TASKS))
def test_every_task_can_be_scored(task: str) -> None:
    scorer = ideas.scorer(task)
    pool = ideas.pool(scorer, 0)
    scorer.domain.space.check(pool)
    values = scorer.score(pool)
    assert values.shape == (ideas.POOL,)
    assert bool(((values >= 0) & (values <= len(scorer.rewards))).all())
    assert len(values.unique()) > 10
