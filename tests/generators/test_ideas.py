"""IDEAS as a generator: what it promises whatever the score is, and that it finds what is there to be found."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
from collections.abc import Callable
from functools import partial
from itertools import pairwise
from pathlib import Path
from statistics import median
from typing import Any

import pytest
import torch
from torch import Tensor

from data.noise import DesignNoise, StepNoise
from data.space import Categorical, Real, Space, State
from generators import ideas
from generators.base import GeneratorError, Score
from generators.ideas.baselines import BASELINES
from generators.ideas.generator import Evolution

LETTERS = Space(16, {"base": Categorical(4)})
PAIRS = Space(5, {"kind": Categorical(3), "tone": Categorical(2)})
MOTIF = torch.tensor([1, 0, 3, 2, 1])


def rival(name: str, space: Space, budget: int = 256, start: int = 32) -> Evolution:
    return Evolution(space, budget, start, BASELINES[name])


RIVALS = [partial(rival, name) for name in BASELINES]


def states(space: Space, n: int, seed: int = 0, shortest: int | None = None) -> State:
    """Random designs, of random lengths from `shortest` where it is given."""
    rng = torch.Generator().manual_seed(seed)
    lengths = torch.randint(shortest or space.length, space.length + 1, (n,), generator=rng)
    mask = torch.arange(space.length) < lengths[:, None]
    made = {"mask": mask}
    for name, factor in space.factors.items():
        letters = torch.randint(factor.width, (n, space.length), generator=rng)
        made[name] = torch.nn.functional.one_hot(letters, factor.width).float() * mask[..., None]
    return made


def additive(state: State) -> Tensor:
    """Each site has a letter it likes, by an amount of its own."""
    sites = torch.arange(state["base"].shape[1])
    liked = state["base"][:, sites, (3 * sites + 1) % 4]
    return (liked * (1 + sites % 3)).sum(-1)


def planted(state: State) -> Tensor:
    """The best share of the motif's letters at any place."""
    windows = state["base"].argmax(-1).unfold(1, len(MOTIF), 1)
    return (windows == MOTIF).float().mean(-1).amax(-1)


def fitted(generator: Evolution, pool: State | None = None) -> Evolution:
    generator.fit([states(generator.space, 40) if pool is None else pool], StepNoise(0), lambda step, losses: None)
    return generator


def ours(space: Space = LETTERS, budget: int = 48, start: int = 16) -> Evolution:
    return fitted(ideas.build(space, budget, start))


def draw(generator: Evolution, ranks: range, score: Score = additive, seed: int = 3, rounds: int = 2) -> State:
    noise = DesignNoise(seed, ranks)
    return generator.sample(len(ranks), rounds, score, None, noise, lambda step: None)


class Counted:
    """A score that remembers how many designs it was asked about."""

    def __init__(self, score: Score) -> None:
        self.score, self.designs = score, 0

    def __call__(self, state: State) -> Tensor:
        self.designs += len(state["mask"])
        return self.score(state)


@pytest.mark.parametrize("build", [ideas.build, *RIVALS], ids=["ideas", *BASELINES])
@pytest.mark.parametrize(("budget", "start", "rounds"), [(40, 16, 3), (17, 16, 1), (20, 1, 19)])
def test_the_budget_is_spent_exactly_on_distinct_designs(
    build: Callable[..., Evolution], budget: int, start: int, rounds: int
) -> None:
    counted, pool = Counted(planted), states(LETTERS, 10)
    doubled = {name: torch.cat([value, value]) for name, value in pool.items()}
    generator = fitted(build(LETTERS, budget, start), doubled)
    state = draw(generator, range(budget), counted, rounds=rounds)
    LETTERS.check(state)
    assert counted.designs == budget
    assert len(torch.unique(state["base"], dim=0)) == budget


def test_ranks_are_the_best_measured_first() -> None:
    generator = ours()
    state = draw(generator, range(48))
    scores = additive(state).tolist()
    designs, values = generator.measured
    assert scores == sorted(values.tolist(), reverse=True)
    order = [int((designs["base"] == design).all((1, 2)).nonzero()) for design in state["base"]]
    assert all(a < b for (a, s), (b, t) in pairwise(zip(order, scores, strict=True)) if s == t)


def test_a_design_is_the_same_in_any_batch_and_costs_nothing_twice() -> None:
    counted, generator = Counted(additive), ours()
    together = draw(generator, range(20), counted)["base"]
    pieces = [draw(generator, range(a, a + 5), counted)["base"] for a in range(0, 20, 5)]
    alone = draw(ours(), range(7, 9), additive)["base"]
    assert torch.equal(torch.cat(pieces), together)
    assert torch.equal(alone, together[7:9])
    assert counted.designs == 48


def test_another_score_seed_or_corpus_is_another_evolution() -> None:
    generator = ours()
    first = draw(generator, range(48))
    assert float(planted(draw(generator, range(1), planted))) >= float(planted(first).max())
    assert not torch.equal(draw(generator, range(48), seed=4)["base"], first["base"])
    fitted(generator, states(LETTERS, 40, seed=9))
    assert not torch.equal(draw(generator, range(48))["base"], first["base"])


def fingerprint() -> str:
    return hashlib.sha256(draw(ours(), range(48))["base"].numpy().tobytes()).hexdigest()


def test_same_designs_in_another_process() -> None:
    code = "from tests.generators.test_ideas import fingerprint; print(fingerprint())"
    other = "2" if os.environ.get("PYTHONHASHSEED") == "1" else "1"
    found = subprocess.run(
        [sys.executable, "-c", code],
        env=os.environ | {"PYTHONHASHSEED": other},
        capture_output=True,
        text=True,
        check=True,
        cwd=Path(__file__).parents[2],
    )
    assert found.stdout.strip() == fingerprint()


@pytest.mark.parametrize(
    "space", [Space(3, {"base": Categorical(2)}), Space(1, {"a": Categorical(3), "b": Categorical(2)})]
)
@pytest.mark.parametrize("build", [ideas.build, *RIVALS], ids=["ideas", *BASELINES])
def test_a_small_space_is_measured_whole(build: Callable[..., Evolution], space: Space) -> None:
    size = 8 if space.length == 3 else 6
    generator = fitted(build(space, 64, 4), states(space, 2))

    def first(state: State) -> Tensor:
        return next(iter(state.values()))[:, 0, 0]

    state = draw(generator, range(size), first)
    letters = generator.alphabet.letters(state)
    assert len(torch.unique(letters, dim=0)) == size
    with pytest.raises(GeneratorError, match=f"design {size} .* {size} are measured of a budget of 64.*n={size}"):
        draw(generator, range(size + 1), first)


def test_lengths_and_factors_are_those_of_the_pool() -> None:
    pool = states(PAIRS, 30, shortest=2)
    generator = fitted(ideas.build(PAIRS, 60, 20), pool)

    def score(state: State) -> Tensor:
        wanted = state["kind"][..., 2] + 2 * state["tone"][..., 1]
        return wanted.sum(-1) / state["mask"].sum(-1)

    state = draw(generator, range(60), score)
    PAIRS.check(state)
    assert {tuple(row) for row in state["mask"].tolist()} <= {tuple(row) for row in pool["mask"].tolist()}
    assert len(torch.unique(state["mask"], dim=0)) > 1
    for name in ("kind", "tone"):
        assert torch.equal(state[name].sum(-1), state["mask"].float())
    assert score(state).max() > score(pool).max()


@pytest.mark.parametrize("score", [lambda state: torch.zeros(len(state["mask"])), lambda state: -additive(state) - 1e6])
def test_plateaus_and_scores_below_zero(score: Score) -> None:
    state = draw(ours(), range(48), score)
    assert len(torch.unique(state["base"], dim=0)) == 48


def test_one_design_to_start_from() -> None:
    generator = fitted(ideas.build(LETTERS, 30, 1), states(LETTERS, 1))
    assert additive(draw(generator, range(1), rounds=4)) > additive(states(LETTERS, 1))


def best(build: Callable[..., Evolution], score: Score, seed: int) -> float:
    generator = fitted(build(LETTERS, 112, 32), states(LETTERS, 40, seed))
    return float(score(draw(generator, range(1), score, seed, rounds=5)))


@pytest.mark.parametrize("score", [additive, planted])
def test_finds_more_than_random_search(score: Score) -> None:
    seeds = range(5)
    mine = median(best(ideas.build, score, seed) for seed in seeds)
    assert mine >= median(best(RIVALS[1], score, seed) for seed in seeds)
    assert mine > median(best(RIVALS[0], score, seed) for seed in seeds)


def test_explains_what_the_score_likes() -> None:
    """Sites weigh 1, 2, 3, 1, 2, 3 …; only designs with the letters they like are asked about."""
    generator = ours(budget=200, start=120)
    fitted(generator, states(LETTERS, 200))
    draw(generator, range(1))
    liked = states(LETTERS, 1)
    sites = torch.arange(16)
    liked["base"] = torch.nn.functional.one_hot((3 * sites + 1) % 4, 4).float()[None]
    (criticality,), (motif,) = generator.explain(liked)
    assert criticality.shape == motif.shape == (16,)
    assert (criticality[motif] > 0).all()
    assert criticality[sites % 3 == 2].mean() > criticality[sites % 3 == 0].mean() > 0


def test_progress_ends_with_all_steps() -> None:
    heard: list[int] = []
    generator = ours()
    for _ in range(2):
        generator.sample(5, 3, additive, None, DesignNoise(0, range(5)), heard.append)
    assert heard == [5, 10, 15, 15, 15]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"budget": 1}, "budget is 1; it is from 2 to 2048"),
        ({"budget": 5000}, "budget is 5000"),
        ({"start": 0}, "start is 0; it is from 1 to budget - 1 = 255"),
        ({"budget": 20, "start": 20}, "start is 20"),
        ({"members": 0}, "members is 0; an ensemble has 1 to 16"),
    ],
)
def test_impossible_parameters_are_refused(arguments: dict[str, int], words: str) -> None:
    with pytest.raises(GeneratorError, match=words):
        ideas.build(LETTERS, **arguments)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"score": None}, "add rewards"),
        ({"guidance": object()}, "guidance=free"),
        ({"steps": 0}, "steps is 0.* 1 to 32"),
        ({"steps": 33}, "steps is 33.* 1 to 32"),
        ({"score": lambda state: torch.full((len(state["mask"]),), torch.nan)}, "16 not finite"),
        ({"score": lambda state: torch.zeros(())}, r"shape \(\)"),
    ],
)
def test_impossible_runs_are_refused(arguments: dict[str, Any], words: str) -> None:
    given: dict[str, Any] = {"n": 1, "steps": 2, "score": additive, "guidance": None}
    with pytest.raises(GeneratorError, match=words):
        ours().sample(**given | arguments, rng=DesignNoise(0, [0]), on_step=lambda step: None)


def test_ranks_beyond_the_budget_cost_nothing() -> None:
    counted = Counted(additive)
    with pytest.raises(
        GeneratorError, match=r"design 48 was asked for and 48 are measured.*n=48 or fewer, or raise budget"
    ):
        draw(ours(), range(49), counted)
    assert counted.designs == 0


def test_what_it_cannot_do_yet_is_said(tmp_path: Path) -> None:
    generator = ideas.build(LETTERS)
    with pytest.raises(GeneratorError, match="call fit"):
        draw(generator, range(1))
    with pytest.raises(GeneratorError, match="call sample"):
        generator.explain(states(LETTERS, 1))
    with pytest.raises(GeneratorError, match="give a corpus"):
        generator.fit([], StepNoise(0), lambda step, losses: None)
    with pytest.raises(GeneratorError, match="no weights"):
        generator.save(tmp_path)
    with pytest.raises(GeneratorError, match="Categorical"):
        ideas.build(Space(4, {"place": Real(2)}))


def lock(space: Space, sites: slice) -> State:
    """The letters of one design at some sites."""
    held, mask = states(space, 1, seed=7), torch.zeros(1, space.length, dtype=torch.bool)
    mask[0, sites] = True
    return held | {"mask": mask}


@pytest.mark.parametrize("build", [ideas.build, *RIVALS], ids=["ideas", *BASELINES])
def test_locked_letters_never_change(build: Callable[..., Evolution]) -> None:
    generator, held, noise = fitted(build(LETTERS, 48, 8)), lock(LETTERS, slice(3, 7)), DesignNoise(3, range(48))
    generator.sample(48, 2, additive, None, noise, lambda step: None, held)
    designs, _ = generator.measured
    assert torch.equal(designs["base"][:, 3:7], held["base"][:, 3:7].expand(48, -1, -1))
    assert len(torch.unique(designs["base"], dim=0)) == 48
    free = draw(generator, range(48))["base"]
    assert torch.equal(free, draw(fitted(build(LETTERS, 48, 8)), range(48))["base"])


def test_a_lock_of_what_is_there_anyway_holds_it() -> None:
    one = states(LETTERS, 1)
    generator, held = fitted(ideas.build(LETTERS, 48, 8), one), one | {"mask": torch.arange(16)[None] < 4}
    assert not torch.equal(draw(generator, range(48))["base"][:, :4], one["base"][:, :4].expand(48, -1, -1))
    found = generator.sample(48, 2, additive, None, DesignNoise(3, range(48)), lambda step: None, held)
    assert torch.equal(found["base"][:, :4], one["base"][:, :4].expand(48, -1, -1))


def test_what_is_locked_has_room_and_is_one_letter() -> None:
    generator = fitted(ideas.build(PAIRS, 20, 4), states(PAIRS, 8, shortest=2))
    held = lock(PAIRS, slice(1, 4))
    found = generator.sample(5, 2, lambda x: x["kind"][..., 0].sum(-1), None, DesignNoise(0, range(5)), print, held)
    assert found["mask"][:, :4].all()
    with pytest.raises(GeneratorError, match="kind of a locked site is not one letter"):
        generator.check_lock(held | {"kind": held["kind"] / 2})
    with pytest.raises(GeneratorError, match="a lock has 1 designs, 0 sites"):
        generator.check_lock(lock(PAIRS, slice(0, 0)))
    short = states(PAIRS, 3) | {"mask": torch.arange(5)[None].expand(3, -1) < 2}
    short = {name: x * short["mask"][..., None] if name != "mask" else x for name, x in short.items()}
    with pytest.raises(GeneratorError, match="site 4 is locked, and no design to start from has more than 2"):
        fitted(ideas.build(PAIRS, 20, 4), short).check_lock(held)


@pytest.mark.parametrize("build", [ideas.build, *RIVALS], ids=["ideas", *BASELINES])
@pytest.mark.parametrize("share", [0.5, 1.0])
def test_designs_that_cannot_be_made_are_recorded_and_charged(build: Callable[..., Evolution], share: float) -> None:
    def score(state: State) -> Tensor:
        broken = state["base"][:, 0].argmax(-1) < 4 * share
        return additive(state).masked_fill(broken, -torch.inf)

    generator = fitted(build(LETTERS, 48, 16))
    draw(generator, range(48), score)
    _, values = generator.measured
    assert len(values) == 48
    assert (values == -torch.inf).any()
    assert share < 1 or (values == -torch.inf).all()


class Failing:
    """A score that raises once, when it has been asked so many times."""

    def __init__(self, after: int) -> None:
        self.left, self.designs = after, 0

    def __call__(self, state: State) -> Tensor:
        self.left -= 1
        if self.left == -1:
            raise RuntimeError("the oracle is down")
        self.designs += len(state["mask"])
        return additive(state)


@pytest.mark.parametrize("build", [ideas.build, *RIVALS], ids=["ideas", *BASELINES])
@pytest.mark.parametrize("after", [0, 1, 2])
def test_what_was_measured_is_kept_when_the_score_raises(build: Callable[..., Evolution], after: int) -> None:
    score, generator = Failing(after), fitted(build(LETTERS, 48, 16))
    with pytest.raises(RuntimeError, match="down"):
        draw(generator, range(48), score)
    assert len(generator.measured[1]) == 16 * after == score.designs
    again = draw(generator, range(48), score)
    assert score.designs == 48
    assert torch.equal(again["base"], draw(fitted(build(LETTERS, 48, 16)), range(48))["base"])


def test_no_number_is_recorded_as_what_cannot_be_made() -> None:
    def score(state: State) -> Tensor:
        values = additive(state)
        values[::2] = torch.nan
        return values

    generator = ours()
    draw(generator, range(48), score)
    values = generator.measured[1]
    assert len(values) == 48
    assert int((values == -torch.inf).sum()) == 24


def test_all_locked_but_a_site_leaves_four_designs() -> None:
    held = lock(LETTERS, slice(0, 15))
    with pytest.raises(GeneratorError, match=r"design 4 was asked for and 4 are measured.*n=4 or fewer, or lock fewer"):
        ours().sample(5, 2, additive, None, DesignNoise(0, range(5)), lambda step: None, held)
