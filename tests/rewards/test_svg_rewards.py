"""Rewards of icons: closed forms, equality of exact and relaxed, gradients."""

from __future__ import annotations

import math
from collections.abc import Callable

import pytest
import torch

from data.space import State
from domains.svg.icon import Icon
from rewards import ink, symmetry
from rewards.base import Differentiable, RewardError
from tests.domains.test_svg_domain import CORPUS, DOMAIN, icon, junk

VAL = CORPUS["val"]
Built = ink.Ink | symmetry.Symmetry
ALL: dict[str, Callable[[], Built]] = {
    "ink": lambda: ink.build(DOMAIN),
    "ink 0.1": lambda: ink.build(DOMAIN, target=0.1),
    "symmetry": lambda: symmetry.build(DOMAIN),
}


@pytest.fixture(params=list(ALL))
def reward(request: pytest.FixtureRequest) -> Built:
    return ALL[request.param]()


def lopsided() -> State:
    """Real icons that are neither symmetric nor of the usual ink, in float64 and between pixels."""
    state = DOMAIN.encode(VAL[10:13])
    arguments = state["arguments"].double()
    shift = 0.02 * torch.randn(arguments.shape, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    return state | {"arguments": arguments + 0.013 + shift}


def test_values_are_in_range_and_shapes_are_those_of_a_batch(reward: Built) -> None:
    designs = [*VAL[:40], *DOMAIN.decode(junk(0, n=10))]
    result = reward(designs)
    assert isinstance(reward, Differentiable)
    assert reward.domains == ("svg",)
    assert result.value.shape == result.valid.shape == (50,)
    assert bool(((result.value >= 0) & (result.value <= 1)).all())
    assert bool(result.valid[:40].all())
    assert all(part.shape == (50,) for part in result.parts.values())


def test_exact_is_relaxed_at_finished_states(reward: Built) -> None:
    designs = [*VAL[:50], *DOMAIN.decode(junk(1, n=20))]
    assert torch.allclose(reward(designs).value, reward.relaxed(DOMAIN.encode(designs)), atol=1e-6)


def test_a_bare_canvas_scores_nothing_and_is_not_valid(reward: Built) -> None:
    result = reward([Icon(()), icon("M 3 3"), icon("M 30 30", "L 33 33"), VAL[0]])
    assert result.value[:3].tolist() == [0, 0, 0]
    assert result.valid.tolist() == [False, False, False, True]
    assert reward([]).value.shape == (0,)


def test_an_icon_may_have_more_segments_than_the_domain(reward: Built) -> None:
    long = icon("M 2 2", *[f"L {2 + i % 20} 9" for i in range(60)])
    assert reward([long, VAL[0]]).value[1] == reward([VAL[0]]).value[0]


def test_unused_units_and_numbers_do_not_matter(reward: Built) -> None:
    state = DOMAIN.encode(VAL[:5])
    before = reward.relaxed(state)
    used = torch.tensor(DOMAIN.space.factors["arguments"].used)[state["command"].argmax(-1)] & state["mask"][..., None]
    state["arguments"] = torch.where(used, state["arguments"], 9.0)
    assert torch.equal(before, reward.relaxed(state))


def test_gradients_are_those_of_finite_differences(reward: Built) -> None:
    state = lopsided()
    arguments = state["arguments"].requires_grad_()
    (slope,) = torch.autograd.grad(reward.relaxed(state).sum(), arguments)
    step = 1e-6 * torch.randn(arguments.shape, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
    higher, lower = (reward.relaxed(state | {"arguments": arguments.detach() + sign * step}).sum() for sign in (1, -1))
    assert (higher - lower).item() / 2 == pytest.approx((slope * step).sum().item(), rel=1e-3)
    assert slope.abs().sum() > 0


def test_climbing_the_gradient_raises_the_score(reward: Built) -> None:
    state = lopsided()
    arguments = state["arguments"].requires_grad_()
    before = reward.relaxed(state).detach()
    climber = torch.optim.Adam([arguments], lr=0.01)
    for _ in range(25):
        climber.zero_grad()
        (-reward.relaxed(state).sum()).backward()
        climber.step()
    after = reward.relaxed(state).detach()
    assert bool((after > before).all())
    assert float((after - before).mean()) > 0.1


def test_junk_has_finite_gradients(reward: Built) -> None:
    state = junk(2)
    arguments = state["arguments"].requires_grad_()
    reward.relaxed(state).sum().backward()
    assert arguments.grad is not None
    assert bool(arguments.grad.isfinite().all())


def test_ink_is_the_area_over_the_target() -> None:
    line = icon("M 6 12", "L 18 12")  # 24 + pi of 576
    share = (24 + math.pi) / 576
    result = ink.build(DOMAIN, target=0.1)([line])
    assert result.parts["share"].item() == pytest.approx(share, rel=0.02)
    assert result.value.item() == pytest.approx(share / 0.1, rel=0.02)
    assert ink.build(DOMAIN, target=0.02)([line]).value.item() == pytest.approx(0.02 / share, rel=0.02)
    assert ink.build(DOMAIN, target=result.parts["share"].item())([line]).value.item() == pytest.approx(1)


def test_the_usual_ink_is_that_of_real_icons() -> None:
    share = ink.build(DOMAIN)(CORPUS["train"][::12]).parts["share"]
    assert share.median().item() == pytest.approx(ink.USUAL, abs=0.01)


@pytest.mark.parametrize("target", [0, 1, -0.1, float("nan")])
def test_ink_targets_are_shares(target: float) -> None:
    with pytest.raises(RewardError, match=r"target=.*above 0 and below 1"):
        ink.build(DOMAIN, target)


@pytest.mark.parametrize(
    ("words", "value"),
    [
        (["M 4 12", "L 20 12"], 1),
        (["M 4 4", "L 12 20", "L 20 4"], 1),
        (["M 12 3", "L 12 20"], 1),
        (["M 3 3", "L 3 20"], 0),
        (["M 3 3", "L 3 20", "M 21 3", "L 21 20"], 1),
        (["M 3 3", "L 3 20", "M 20 3", "L 20 20"], 1 / 2),  # half of each pen meets the other's image
    ],
)
def test_symmetry_is_the_share_of_ink_that_meets_its_image(words: list[str], value: float) -> None:
    result = symmetry.build(DOMAIN)([icon(*words)])
    assert result.value.item() == pytest.approx(value, abs=1e-3)
    assert result.parts["unmatched"].item() == pytest.approx(
        (1 - value) * ink.build(DOMAIN)([icon(*words)]).parts["share"].item() * 576, abs=0.1
    )


def test_a_mirrored_icon_is_as_symmetric() -> None:
    def mirrored(design: Icon) -> Icon:
        words = (
            [s.command, *(24 - c if i % 2 == 0 else c for i, c in enumerate(s.coordinates))] for s in design.segments
        )
        return icon(*(" ".join(f"{w:.2f}" if isinstance(w, float) else w for w in word) for word in words))

    both = symmetry.build(DOMAIN)([VAL[12], mirrored(VAL[12])]).value
    assert both[0].item() == pytest.approx(both[1].item(), abs=1e-4)
    assert both[0] < 0.95
