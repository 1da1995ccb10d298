"""`foreshape evaluate`: one JSON object whose goals follow from its rows."""

import json
from pathlib import Path

import numpy as np
import pytest
import torch

from app import cells, cli
from app.evaluation import table
from app.goals import GOALS, Expected, goals
from app.spec import Choice
from data import corpora
from domains import dna, protein
from domains.protein import metrics
from generators import rmf


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


def test_repaired_designs_have_rows_and_goals_of_their_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture
) -> None:
    torch.manual_seed(1)
    rmf.build(protein.build(length=40).space, channels=16, depth=1).save(tmp_path / "tiny")
    monkeypatch.setattr(metrics.similarity, "closest", lambda made, known: np.zeros(1))
    cell = ["domain=protein", "domain.length=40", f"checkpoint={tmp_path / 'tiny'}"]
    assert cli.run(["evaluate", *cell, "n=4", "steps=[10]", "reference=val", "repair=true"]) == 0
    found = json.loads(capsys.readouterr().out)
    raw, mended = (row["metrics"] for row in found["rows"][-2:])
    assert [row["method"] for row in found["rows"][-2:]] == ["rmf", "rmf+repair"]
    assert mended["bond_error"] < raw["bond_error"]
    assert found["goals"]["clash_free: rmf 10 >= 0.9"]["value"] == raw["clash_free"]
    assert found["goals"]["clash_free: rmf 10 >= 0.9, repaired"]["value"] == mended["clash_free"]


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
def test_goals_name_metrics_of_their_domain(cell: tuple[str, str], goal: Expected) -> None:
    assert goal.metrics <= set(cells.domain(Choice(cell[0], {}), cell[1]).metric_names)


# Goals of other kinds: of seven metrics, the first `better` are a tenth of the twin's, the others ten times as much.

SEVEN = ("bond_error", "clash_free", "rama_outliers", "rg_error", "ss_error", "mpnn_nll", "frechet")


def beside(better: int, steps: int, its_steps: int) -> dict[tuple[str, int], dict[str, float]]:
    """Rows of ours and of the twin; for `clash_free` more is better."""
    ratios = [0.1 if i < better else 10 for i in range(7)]
    ours = {name: 1 / r if name == "clash_free" else r for name, r in zip(SEVEN, ratios, strict=True)}
    return {("rmf", steps): ours, ("flow_matching", its_steps): dict.fromkeys(SEVEN, 1.0)}


@pytest.mark.parametrize(("better", "met"), [(7, True), (5, True), (4, False), (0, False)])
def test_five_of_seven_are_enough_at_ten_steps(better: int, met: bool) -> None:
    found = goals("protein", "rmf", beside(better, 10, 100))["rmf 10 no worse than flow_matching 100: 5 of 7"]
    assert found == {"value": better, "goal": 5, "met": met}


@pytest.mark.parametrize(("better", "met"), [(7, True), (6, False)])
def test_at_one_step_all_seven_count(better: int, met: bool) -> None:
    found = goals("protein", "rmf", beside(better, 1, 5))["rmf 1 better than flow_matching 5: 7 of 7"]
    assert (found["value"], found["met"]) == (better, met)


def test_equal_is_no_worse_and_not_better() -> None:
    same = dict.fromkeys(SEVEN, 1.0)
    by = {("rmf", 10): same, ("rmf", 1): same, ("flow_matching", 100): same, ("flow_matching", 5): same}
    found = goals("protein", "rmf", by)
    assert found["rmf 10 no worse than flow_matching 100: 5 of 7"]["value"] == 7
    assert found["rmf 1 better than flow_matching 5: 7 of 7"]["value"] == 0


def test_several_are_not_counted_where_one_is_absent() -> None:
    rows = beside(7, 10, 100)
    del rows["flow_matching", 100]["frechet"]
    assert not any("5 of 7" in name for name in goals("protein", "rmf", rows))


@pytest.mark.parametrize(("nll", "met"), [(1.9, True), (1.2, True), (2.0, False), (2.6, False)])
def test_nearer_to_real_chains_than_to_noised_ones(nll: float, met: bool) -> None:
    by = {("rmf", 10): {"mpnn_nll": nll}, ("floor", 0): {"mpnn_nll": 1.5}, ("native_noised", 0): {"mpnn_nll": 2.5}}
    found = goals("protein", "rmf", by)["mpnn_nll: rmf 10 nearer to floor than to native_noised"]
    assert found["met"] is met
    assert found["value"] == pytest.approx(abs(nll - 1.5))
    del by["native_noised", 0]
    assert goals("protein", "rmf", by) == {}
