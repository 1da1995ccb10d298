"""`foreshape evaluate`: one JSON object whose goals follow from its rows."""

import json
from pathlib import Path

import numpy as np
import pytest

from app import cells, cli
from app.evaluation import table
from app.goals import GOALS, Goal, goals
from app.spec import Choice
from data import corpora
from domains import dna


@pytest.fixture(scope="module")
def result(tiny: Path, tmp_path_factory: pytest.TempPathFactory) -> dict:
    """An evaluation against a file nobody trained on: 60 of the yeast windows."""
    arrays = corpora.load("yeast_promoters_560.npz")
    path = tmp_path_factory.mktemp("reference") / "yeast60.npz"
    np.savez(path, bits=arrays["bits"][:60], shape=np.array([60, 560]))
    capture: list[str] = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("builtins.print", lambda *text, **_: capture.extend(map(str, text)))
        arguments = [f"checkpoint={tiny}", "domain.length=128", "n=20", "steps=[1,2]", f"reference={path}"]
        assert cli.run(["evaluate", *arguments]) == 0
    return json.loads(capture[-1])


def test_the_object_has_its_parts(result: dict) -> None:
    assert set(result) >= {"name", "seeds", "n", "reference", "rows", "goals"}
    assert result["reference"] == "yeast60.npz"
    methods = [(row["method"], row["steps"]) for row in result["rows"]]
    assert methods == [("floor", 0), ("uniform", 0), ("independent", 0), ("markov3", 0), ("rmf", 1), ("rmf", 2)]
    for row in result["rows"]:
        assert set(row["metrics"]) == set(dna.build(128).metric_names)
        assert row["nfe"] == row["steps"]


def test_every_metric_is_in_the_table(result: dict) -> None:
    lines = table(result, ["kmer6_js", "gc_error"]).splitlines()
    assert len(lines) == 2 + len(result["rows"])
    assert f"{result['rows'][0]['metrics']['kmer6_js']:.4g}" in lines[2]


def test_rows_of_several_domains_share_a_table() -> None:
    found = [{"method": m, "steps": 1, "n": 2, "metrics": {m: 0.5}} for m in ("a", "b")]
    assert table({"rows": found}).splitlines()[2:] == ["| a | 1 | 2 | 0.5 |  |", "| b | 1 | 2 |  | 0.5 |"]


def rows(js: float) -> dict[tuple[str, int], dict[str, float]]:
    """The rows the goals ask for; `js` is that of RMF in 4 steps, twice that in 1."""
    rest = {"tata_enrichment": 2.5, "exact_copies": 0.0, "near_copies": 0.0}
    values = {("rmf", 4): js, ("rmf", 1): 2 * js, ("flow_matching", 100): 0.01, ("independent", 0): 0.03}
    values |= {("markov3", 0): 0.008, ("floor", 0): 0.005}
    return {row: {"kmer6_js": value} | rest for row, value in values.items()}


@pytest.mark.parametrize(("js", "met"), [(0.005, True), (0.02, False)])
def test_goals_follow_from_the_rows(js: float, met: bool) -> None:
    found = goals("dna", "rmf", rows(js))
    few = [goal["met"] for name, goal in found.items() if "kmer6_js" in name and "independent" not in name]
    assert few == [met, met, met]
    assert found["kmer6_js: rmf 4 <= 1.1 x flow_matching 100"]["goal"] == pytest.approx(0.011)
    assert found["exact_copies: rmf 4 <= 1 x floor"]["met"]
    assert found["tata_enrichment: rmf 4 >= 2"]["met"]


def test_a_goal_without_its_rows_is_not_there() -> None:
    assert goals("dna", "rmf", {("rmf", 4): rows(0.01)["rmf", 4]}).keys() == {"tata_enrichment: rmf 4 >= 2"}
    assert goals("dna", "no such generator", rows(0.01)) == {}


@pytest.mark.parametrize(("cell", "goal"), [(cell, goal) for cell, goals in GOALS.items() for goal in goals])
def test_goals_name_metrics_of_their_domain(cell: tuple[str, str], goal: Goal) -> None:
    assert goal.metric in cells.domain(Choice(cell[0], {}), cell[1]).metric_names
