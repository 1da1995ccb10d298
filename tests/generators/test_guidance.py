"""Laws of guidance: nothing to gain changes nothing, and what is gained is gained by the look-ahead itself."""

import pytest
import torch

from data.noise import DesignNoise, StepNoise
from data.space import State
from generators.base import Flight, GeneratorError, Guidance, Score
from generators.guidance import free, lookahead
from tests.generators.test_rmf import LETTERS, shaken


def sample(guidance: Guidance | None, score: Score | None, n: int = 20, steps: int = 4) -> State:
    return shaken(LETTERS).sample(n, steps, score, guidance, DesignNoise(0, range(n)), lambda step: None)


def first_letter(state: State) -> torch.Tensor:
    return state["base"][..., 0].mean(-1)


def constant(state: State) -> torch.Tensor:
    return 0 * state["base"].sum((1, 2)) + 3


@pytest.mark.parametrize(
    ("guidance", "score"),
    [(lookahead.build(0.0), first_letter), (lookahead.build(2.0), constant)],
    ids=["no strength", "nothing to gain"],
)
def test_samples_as_without_guidance(guidance: Guidance, score: Score) -> None:
    assert torch.equal(sample(guidance, score)["base"], sample(None, None)["base"])


def test_free_is_no_guidance() -> None:
    assert free.build() is None  # type: ignore[func-returns-value]


@pytest.mark.parametrize("steps", [1, 4, 16])
def test_lookahead_raises_the_score(steps: int) -> None:
    free_score = first_letter(sample(None, None, steps=steps))
    steered = first_letter(sample(lookahead.build(1.0), first_letter, steps=steps))
    assert (steered > free_score).float().mean() > 0.5
    assert (steered - free_score).mean() > 0.003


@pytest.mark.parametrize("steps", [1, 5, 40])
def test_all_moves_together_have_the_strength_and_the_late_ones_are_small(steps: int) -> None:
    """On flat ground, with a score that is the mean of all numbers, by the length of each move."""
    x = {"place": torch.zeros(2, 6, 3)}
    moved = []
    for k in range(steps):
        flight = Flight(x, (k + 0.5) / steps, 1 / steps, lambda y: y, lambda y, v: {"place": y["place"] + v["place"]})
        new = lookahead.build(3.0)(flight, lambda state: state["place"].mean((1, 2)), StepNoise(0))
        moved.append(new["place"].square().sum(-1).mean(-1).sqrt()[0].item())
    assert sum(moved) == pytest.approx(3.0)
    assert moved == sorted(moved, reverse=True)
    assert moved[-1] == pytest.approx(2 * 3.0 * (0.5 / steps) / steps)


def test_lookahead_never_leaves_the_space() -> None:
    state = sample(lookahead.build(10.0), first_letter)
    LETTERS.check(state)
    assert torch.allclose(state["base"].sum(-1), torch.ones(20, 6), atol=1e-5)


def test_each_design_is_steered_alone() -> None:
    together = sample(lookahead.build(1.0), first_letter, n=20)["base"]
    alone = sample(lookahead.build(1.0), first_letter, n=3)["base"]
    assert torch.equal(together[:3], alone)


def test_a_score_without_gradient_is_refused_with_the_remedy() -> None:
    with pytest.raises(GeneratorError, match="guidance=free"):
        sample(lookahead.build(1.0), lambda state: first_letter(state).detach())


@pytest.mark.parametrize("strength", [-1.0, float("nan")])
def test_a_bad_strength_is_refused(strength: float) -> None:
    with pytest.raises(GeneratorError, match="strength"):
        lookahead.build(strength)
