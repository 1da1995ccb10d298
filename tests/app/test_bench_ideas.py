"""The bench of IDEAS: measures on curves known by hand, pieces that are the same in any process, and a small run."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
import torch

from app.benchmarks import ideas
from app.benchmarks.ideas import findings, methods, work
from app.benchmarks.ideas.landscapes import landscape
from app.benchmarks.ideas.truth import Truth, Watched
from app.benchmarks.ideas.work import Piece
from data import corpora
from data.noise import StepNoise
from generators.ideas.alphabet import Alphabet


def test_calls_to_a_level() -> None:
    curve = findings.running_best([None, 1.0, 0.5, 3.0, 2.0])
    assert curve.tolist() == [-np.inf, 1, 1, 3, 3]
    assert [findings.hit(curve, level, 5) for level in (1.0, 2.0, 3.5)] == [2, 4, 6]


def test_area_of_known_curves() -> None:
    start = [0.0] * 2
    assert findings.area(findings.running_best([*start, *[1.0] * 14]), 1.0) == 1
    assert findings.area(findings.running_best([*start, *[0.0] * 7, *[1.0] * 7]), 1.0) == pytest.approx(0.5)


def test_fronts_and_volumes() -> None:
    points = {"a": np.array([1.0, 0, 0]), "b": np.array([0, 1.0, 1.0]), "c": np.array([0, 0.5, 0.5])}
    assert [findings.on_front(points, name) for name in points] == [True, True, False]
    assert findings.volume(points | {"d": np.array([1.0, 1.0, 1.0])}, "d") == 1


def test_acceleration_counts_runs_that_never_arrive() -> None:
    """Half the calls on one landscape and as many on the other: the square root of two; equal seeds, no interval."""
    calls = {"ideas": np.array([[10.0, 10], [129, 129]]), "random": np.array([[20.0, 20], [129, 129]])}
    found = findings.Findings((("x", 128), ("y", 128)), calls, {})
    assert found.acceleration("ideas", "random") == pytest.approx((2**0.5,) * 3)
    assert found.acceleration("ideas", "random", found.rows_of(["y"])) == (1, 1, 1)


def test_what_a_result_depends_on_is_there() -> None:
    for method in methods.METHODS:
        assert all((work.ROOT / part).exists() for part in methods.code(method))


@pytest.mark.parametrize("method", methods.METHODS)
def test_a_piece_is_the_same_again_and_spends_the_budget(method: str) -> None:
    piece = Piece("ehrlich_32", method, 48, 0)
    first, again = work.lines(piece), work.lines(piece)
    values = [line.get("values") for line in first]
    assert values == [line.get("values") for line in again]
    assert sum(map(len, values[:-1])) == 48


def test_all_start_alike() -> None:
    starts = [work.lines(Piece("jaspar_100", method, 32, 1))[0]["values"] for method in ("ideas", "random", "cma_es")]
    assert starts[0] == starts[1] == starts[2]


def test_a_small_run_is_resumed(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("FORESHAPE_HOME", str(tmp_path))
    monkeypatch.setattr(ideas, "QUICK_BUDGETS", (32,))
    found = json.loads(json.dumps(ideas.run(quick=True)))
    assert {row["method"] for row in found["rows"]} == set(methods.METHODS)
    assert found["goals"]
    assert all(set(goal) == {"value", "goal", "met"} for goal in found["goals"].values())
    assert "| ideas |" in ideas.table(found)
    monkeypatch.setattr(work, "lines", lambda piece: pytest.fail("made again"))
    assert ideas.run(quick=True) == found


def test_the_landscape_is_explained_by_trying() -> None:
    """Sites of AAV add up, so what a letter adds is the difference of two effects, and criticality is exact."""
    oracle = landscape("aav_90")
    alphabet, designs = Alphabet(oracle.space), oracle.best[None]
    effects = Truth(oracle)(torch.flatten, alphabet, designs)
    arrays = corpora.load("aav_liver_90.npz")
    scale = 2 * arrays["effects"].max(-1).sum()
    wanted = torch.from_numpy(arrays["effects"]) / scale
    present = wanted[None].gather(-1, designs)
    assert torch.allclose(effects, wanted - present, atol=1e-5)


def test_faithfulness_is_of_the_first_explanation_of_a_round() -> None:
    oracle = landscape("aav_90")
    alphabet, designs = Alphabet(oracle.space), oracle.start(5, StepNoise(0))
    answers = iter([Truth(oracle)(torch.flatten, alphabet, designs)] + [torch.zeros(5, 90, 20)] * 2)
    watched = Watched(lambda model, alphabet, letters: next(answers))
    for k in (0, 0, 2):
        watched.round = k
        watched(torch.flatten, alphabet, designs)
    assert watched.faithfulness(oracle, 4) == [1.0, None, 0.0, None]


def test_the_upper_bound_is_faithful() -> None:
    told = work.lines(Piece("tfbind8_six6", "ideas_oracle", 64, 0))[-1]["faithfulness"]
    assert len(told) == work.ROUNDS - 1
    assert {x for x in told if x is not None} == {1.0}


def test_faithfulness_by_round_is_the_mean_of_the_seeds_that_have_one() -> None:
    rounds = {"faithfulness": np.array([[[0.5, np.nan, np.nan], [0.25, 1.0, np.nan]]])}
    found = findings.Findings((("x", 128),), {}, {"ideas": rounds, "random": {}})
    line = {"landscape": "x", "budget": 128, "method": "ideas", "rounds": [0.375, 1.0, None]}
    assert findings.faithfulness(found) == [line]
