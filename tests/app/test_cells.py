"""Which form of a domain a generator is given, and what guidance and generator refuse each other."""

import itertools
import re
from pathlib import Path

import pytest
import torch

from app import cells, cli, service
from app.composition import composed
from app.spec import Choice, RunSpec, from_plain
from data.errors import InputError
from data.noise import DesignNoise


def test_a_generator_gets_the_first_form_that_it_can_make() -> None:
    assert set(cells.domain(Choice("protein", {}), "rmf").space.factors) == {"position", "rotation"}
    assert set(cells.domain(Choice("protein", {}), "ideas").space.factors) == {"residue"}
    assert set(cells.domain(Choice("protein", {"form": "sequence"}), "rmf").space.factors) == {"residue"}


def test_a_domain_that_it_cannot_make_is_refused() -> None:
    with pytest.raises(InputError, match=r"ideas makes Categorical, and layout is .*Real.*choose another generator"):
        cells.domain(Choice("layout", {}), "ideas")


@pytest.mark.parametrize(
    ("overrides", "message"),
    [
        (["domain=protein", "rewards.density.weight=1"], "reward density scores layout, not protein"),
        (["domain=dna", "rewards.protparam.weight=1"], "reward protparam scores protein, not dna"),
        (["domain=protein", "generator=ideas", "guidance=lookahead"], "climbs the rewards itself.*guidance=free"),
        (["domain=dna", "generator=ideas", "~rewards.gc_content"], "no rewards to climb"),
        (["domain=svg", "generator=hybrid", "guidance=lookahead"], "cannot be steered.*best_of_n"),
        (["domain=dna", "generator=ideas", "generator.budget=64", "n=65"], "n is 65; ideas takes at most 64"),
        (["domain=dna", "generator=ideas", "steps=300"], "steps is 300; ideas takes at most 224"),
        (["domain=svg", "generator=hybrid", "steps=5000"], "steps is 5000; hybrid takes at most 1000"),
        (["domain=dna", "generator=ideas", "checkpoint=dna-rmf"], "needs none; leave it out"),
        (["domain=dna", "guidance=best_of_n", "guidance.candidates=0"], "candidates is 0; it must be from 1"),
        (["domain=dna", "guidance=best_of_n", "~rewards.gc_content"], "no rewards to climb"),
    ],
)
def test_what_does_not_fit_together_is_said(
    overrides: list[str], message: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    assert cli.run(["generate", "n=1", *overrides, f"out={tmp_path / 'run'}"]) == 2
    error = capfd.readouterr().err
    assert len(error.splitlines()) == 1
    assert re.search(message, error)
    assert not (tmp_path / "run").exists()


def prepared(arguments: list[str], *more: str) -> tuple[service.Prepared, RunSpec]:
    spec = from_plain(RunSpec, composed("generate", [*arguments, *more]))
    return service.prepare(spec), spec


def test_best_of_n_keeps_each_designs_best_candidate(arguments: list[str]) -> None:
    ready, spec = prepared(arguments, "guidance=best_of_n", "guidance.candidates=3")
    kept = service.draw(ready, spec, range(5), lambda what, done, total: None)
    rng = DesignNoise(spec.seed, range(5))
    drawn = [
        ready.domain.decode(ready.generator.sample(5, spec.steps, None, None, noise, lambda step: None))
        for noise in (rng, rng.fork(1), rng.fork(2))
    ]
    best = torch.tensor([[float(row["total"]) for row in ready.scorer.rows(designs)] for designs in drawn]).argmax(0)
    assert kept == [drawn[k][i] for i, k in enumerate(best.tolist())]
    assert len(set(best.tolist())) > 1


def test_more_candidates_score_no_worse(arguments: list[str]) -> None:
    scores = []
    for candidates in (1, 2, 4):
        ready, spec = prepared(arguments, "guidance=best_of_n", f"guidance.candidates={candidates}")
        designs = service.draw(ready, spec, range(5), lambda what, done, total: None)
        scores.append([float(row["total"]) for row in ready.scorer.rows(designs)])
    assert all(a <= b for few, more in itertools.pairwise(scores) for a, b in zip(few, more, strict=True))
    assert scores[0] != scores[2]


def test_one_candidate_is_no_guidance(arguments: list[str]) -> None:
    ready, spec = prepared(arguments, "guidance=best_of_n", "guidance.candidates=1")
    free, free_spec = prepared(arguments, "guidance=free")
    assert service.draw(ready, spec, range(5), lambda *_: None) == service.draw(
        free, free_spec, range(5), lambda *_: None
    )
