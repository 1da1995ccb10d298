"""Rewards of promoters: closed forms, independent scans, equality of exact and relaxed, gradients."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
import torch
from Bio.motifs import jaspar
from Bio.Seq import Seq
from Bio.SeqUtils import gc_fraction
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from data.space import State
from domains import dna
from domains.dna import motifs
from rewards import gc_content, motif
from rewards.base import Differentiable, RewardError, RewardResult

DOMAIN = dna.build(128)
BASES = st.text("ACGT", min_size=128, max_size=128)
Built = gc_content.GcContent | motif.Motif
ALL: dict[str, Callable[[], Built]] = {
    "gc 0.5": lambda: gc_content.build(DOMAIN),
    "gc 0.9": lambda: gc_content.build(DOMAIN, target=0.9),
    "tata": lambda: motif.build(DOMAIN),
    "dref near": lambda: motif.build(DOMAIN, "Dref", start=-60, end=-20),
    "pattern": lambda: motif.build(DOMAIN, "CACGTG"),
}


@pytest.fixture(params=list(ALL))
def reward(request: pytest.FixtureRequest) -> Built:
    return ALL[request.param]()


def _half_finished(seed: int, n: int = 3) -> State:
    rng = torch.Generator().manual_seed(seed)
    base = torch.softmax(3 * torch.randn(n, 128, 4, generator=rng, dtype=torch.float64), -1)
    return {"base": base, "mask": torch.ones(n, 128, dtype=torch.bool)}


def test_values_are_in_range_and_shapes_are_those_of_a_batch(reward: Built) -> None:
    result: RewardResult = reward(DOMAIN.corpus("val")[:50])
    assert isinstance(reward, Differentiable)
    assert reward.domains == ("dna",)
    assert result.value.shape == result.valid.shape == (50,)
    assert bool(((result.value >= 0) & (result.value <= 1)).all())
    assert bool(result.valid.all())
    assert all(part.shape == (50,) for part in result.parts.values())


def test_exact_is_relaxed_at_finished_states(reward: Built) -> None:
    designs = DOMAIN.corpus("val")[:50]
    assert torch.equal(reward(designs).value, reward.relaxed(DOMAIN.encode(designs)))


def test_an_empty_batch_gives_empty_scores(reward: Built) -> None:
    assert reward([]).value.shape == (0,)


def test_other_letters_make_a_design_invalid_but_finite(reward: Built) -> None:
    result = reward(["N" * 128, "ACGT" * 32, "N" + "CACGTG" * 21 + "A"])
    assert result.valid.tolist() == [False, True, False]
    assert bool(result.value.isfinite().all())


def test_unused_sites_do_not_matter(reward: Built) -> None:
    state = _half_finished(0)
    state["mask"][:, 100:110] = False
    before = reward.relaxed(state)
    state["base"][:, 100:110] = torch.tensor([0.0, 1.0, 0.0, 0.0])
    assert torch.equal(before, reward.relaxed(state))


@pytest.mark.parametrize("seed", range(3))
def test_gradients_are_those_of_finite_differences(reward: Built, seed: int) -> None:
    state = _half_finished(seed)
    base = state["base"].requires_grad_()
    (slope,) = torch.autograd.grad(reward.relaxed(state).sum(), base)
    step = 1e-6 * torch.randn(base.shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)

    def moved(sign: int) -> Tensor:
        return reward.relaxed({**state, "base": base.detach() + sign * step}).sum()

    assert (moved(1) - moved(-1)).item() / 2 == pytest.approx((slope * step).sum().item(), rel=1e-4)
    assert slope.abs().sum() > 0


def test_climbing_the_gradient_raises_the_score(reward: Built) -> None:
    logits = torch.log(_half_finished(1)["base"]).requires_grad_()
    mask = torch.ones(3, 128, dtype=torch.bool)
    climber = torch.optim.Adam([logits], lr=0.1)
    before = reward.relaxed({"base": logits.softmax(-1), "mask": mask}).detach()
    for _ in range(40):
        climber.zero_grad()
        (-reward.relaxed({"base": logits.softmax(-1), "mask": mask}).sum()).backward()
        climber.step()
    after = reward.relaxed({"base": logits.softmax(-1), "mask": mask}).detach()
    assert bool((after > before).all())
    assert float(after.min()) > 0.7


@settings(max_examples=40, deadline=None)
@given(design=BASES, target=st.floats(0, 1))
def test_gc_content_is_biopythons_fraction(design: str, target: float) -> None:
    result = gc_content.build(DOMAIN, target)([design])
    gc = gc_fraction(Seq(design))
    assert result.parts["gc"].item() == pytest.approx(gc, abs=1e-6)
    assert result.value.item() == pytest.approx(1 - abs(gc - target) / max(target, 1 - target), abs=1e-5)


@pytest.mark.parametrize(("target", "low", "high"), [(0, 1, 0), (1, 0, 1), (0.5, 0, 0), (0.25, 2 / 3, 0)])
def test_gc_content_at_the_ends(target: float, low: float, high: float) -> None:
    value = gc_content.build(DOMAIN, target)(["A" * 128, "G" * 128]).value
    assert value.tolist() == pytest.approx([low, high], abs=1e-6)


@pytest.mark.parametrize("target", [-0.01, 1.01, float("nan")])
def test_gc_targets_are_shares(target: float) -> None:
    with pytest.raises(RewardError, match=r"target=.*between 0 and 1"):
        gc_content.build(DOMAIN, target)


@pytest.mark.parametrize("name", list(motifs.core_motifs()))
@pytest.mark.parametrize(("start", "end"), [(None, None), (-50, -20), (-15, 0), (-128, -113)])
def test_motif_scores_are_biopythons(name: str, start: int | None, end: int | None) -> None:
    with motifs._FILE.open() as file:
        matrix = next(m for m in jaspar.read(file, "jaspar") if m.name == name)
    pssm = matrix.counts.normalize(jaspar.calculate_pseudocounts(matrix)).log_odds()
    designs = DOMAIN.corpus("val")[:5]
    result = motif.build(DOMAIN, name, start, end)(designs)
    first, last = 128 + (-128 if start is None else start), 128 + (end or 0)
    for i, design in enumerate(designs):
        part = Seq(design[first:last])
        either = np.maximum(*(np.atleast_1d(m.calculate(part)) for m in (pssm, pssm.reverse_complement())))
        assert result.parts["best_log_odds"][i].item() == pytest.approx(either.max(), abs=1e-3)
        assert either[result.parts["position"][i].item() + 128 - first] == pytest.approx(either.max(), abs=1e-3)
        scaled = (either.max() - pssm.min) / (pssm.max - pssm.min)
        assert result.value[i].item() == pytest.approx(scaled, abs=1e-4)


@pytest.mark.parametrize("word", ["TATAAAAG", "CTTTTATA"])
@pytest.mark.parametrize("place", [0, 57, 120])
def test_a_planted_motif_is_found_on_either_strand(word: str, place: int) -> None:
    design = ("C" * place + word).ljust(128, "C")
    result = motif.build(DOMAIN, "TATAWAAR")([design])
    assert result.value.item() == pytest.approx(1, abs=1e-6)
    assert result.parts["position"].tolist() == [place - 128]
    assert result.per_position is not None
    assert result.per_position[0].nonzero().flatten().tolist() == list(range(place, place + 8))


@settings(max_examples=20, deadline=None)
@given(design=BASES)
def test_site_shares_add_up_to_the_value(design: str) -> None:
    result = motif.build(DOMAIN)([design])
    assert result.per_position is not None
    assert result.per_position.shape == (1, 128)
    assert result.per_position.sum().item() == pytest.approx(result.value.item(), abs=1e-5)


def test_a_motif_outside_the_window_does_not_count() -> None:
    design = ("C" * 20 + "TATAAA").ljust(128, "C")
    inside, outside = (motif.build(DOMAIN, "TATAAA", s, e)([design]).value.item() for s, e in ((-108, -102), (-107, 0)))
    assert inside == pytest.approx(1, abs=1e-6)
    assert outside < 0.8


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"name": "tata"}, "no motif 'tata'; there are TATA-Box, Trl, .*pattern"),
        ({"name": "NN"}, "not all N"),
        ({"start": -129}, "start=-129 end=0.*from -128 to 0"),
        ({"end": 1}, "end=1"),
        ({"start": -30, "end": -16}, "window of 15 or more"),
        ({"start": -10, "end": -30}, "start=-10 end=-30"),
        ({"name": "A" * 129}, "motif of 129 bases"),
    ],
)
def test_impossible_motif_rewards_are_refused(arguments: dict[str, object], words: str) -> None:
    with pytest.raises(RewardError, match=words):
        motif.build(DOMAIN, **arguments)
