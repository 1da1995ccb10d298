"""Conditions of hybrid sequences: embedding, learning them, asking for them, guidance that leaves the end alone."""

from pathlib import Path

import pytest
import torch

from data.conditions import Label, Level, Subset, codes
from data.errors import InputError
from data.noise import DesignNoise, StepNoise
from data.space import CONDITIONS, Categorical, Real, Space, State
from generators import hybrid
from generators.base import Conditioned, GeneratorError
from generators.hybrid.conditions import KNOTS, Asked, ConditionEmbedding, forgotten
from generators.hybrid.generator import Hybrid
from generators.hybrid.sampling import Sampler, head_scheduler
from generators.hybrid.training import Recipe
from tests.generators.shake import shake

ASKED = {"share": Level(0.0, 1.0), "style": Label(("round", "square")), "tones": Subset("tone", ("a", "b", "c"))}
SPACE = Space(6, {"tone": Categorical(3), "size": Real(1)}, conditions=ASKED)


def made(conditioned: bool = True, **recipe: float) -> Hybrid:
    torch.manual_seed(0)
    sizes = {"channels": 24, "depth": 2, "heads": 3, "bins": 9}
    return hybrid.build(SPACE, **sizes, conditioned=conditioned, recipe=Recipe(**recipe))  # type: ignore[arg-type]


def shaken() -> Hybrid:
    return shake(made())


def draw(generator: Hybrid, n: int = 32) -> State:
    return generator.sample(n, 3, None, None, DesignNoise(7, range(n)), lambda step: None)


def same(one: State, other: State) -> bool:
    return all(torch.equal(one[name], other[name]) for name in one)


def perturbed(embedding: ConditionEmbedding) -> ConditionEmbedding:
    rng = torch.Generator().manual_seed(0)
    for table in embedding.tables:
        table.data.copy_(torch.randn(table.shape, generator=rng))
    return embedding


def test_the_embedding_is_zero_before_training_and_the_sum_of_what_is_known() -> None:
    row = codes(SPACE.conditions, {"share": 0.3, "style": "square", "tones": ["b"]})
    assert not ConditionEmbedding(SPACE.conditions, 8)(row).any()
    embedding = perturbed(ConditionEmbedding(SPACE.conditions, 8))
    each = [embedding(codes(SPACE.conditions, {k: v})) for k, v in
            {"share": 0.3, "style": "square", "tones": "b"}.items()]  # fmt: skip
    assert torch.allclose(sum(each), embedding(row), atol=1e-5)
    assert not embedding(codes(SPACE.conditions, {})).any()
    share, style, tones = embedding.tables
    assert torch.allclose(each[1][0], style[1])
    assert torch.allclose(each[2][0], tones[1] - tones[0] - tones[2], atol=1e-6)
    place = 0.3 * (KNOTS - 1)
    below, part = int(place), place - int(place)
    assert torch.allclose(each[0][0], (1 - part) * share[below] + part * share[below + 1], atol=1e-5)


def test_levels_beyond_the_last_knot_are_the_last() -> None:
    embedding = perturbed(ConditionEmbedding({"share": Level(0.0, 1.0)}, 8))
    assert torch.equal(embedding(torch.tensor([[1.7]])), embedding(torch.tensor([[1.0]])))


def test_conditions_are_forgotten_together_and_one_by_one() -> None:
    kept = ~forgotten(torch.zeros(4000, 1, 3), StepNoise(0)).isnan()
    assert kept.float().mean().item() == pytest.approx(0.5, abs=0.02)
    counts = kept.sum((1, 2)).bincount() / 4000  # a uniform chance makes every number of them as likely
    assert torch.allclose(counts, torch.full((4,), 0.25), atol=0.03)
    assert forgotten(torch.full((5, 1, 3), torch.nan), StepNoise(0)).isnan().all()


def test_an_untrained_condition_changes_nothing_and_a_trained_one_does() -> None:
    generator = shaken()
    tables = [table.detach().clone() for table in generator.model.condition_input.tables]
    for table in generator.model.condition_input.tables:
        torch.nn.init.zeros_(table)
    free = draw(generator)
    generator.ask({}, {"share": 0.5}, 1.0)
    assert same(draw(generator), free)
    for table, before in zip(generator.model.condition_input.tables, tables, strict=True):
        table.data.copy_(before)
    assert not same(draw(generator), free)
    generator.ask({}, {}, 1.0)
    assert same(draw(generator), free)


def test_no_category_is_drawn_that_is_not_asked_for() -> None:
    generator = shaken()
    assert draw(generator)["tone"].sum((0, 1)).all()
    for weight in (1.0, 2.0):
        generator.ask({}, {"tones": ["a", "c"]}, weight)
        found = draw(generator)["tone"].sum((0, 1))
        assert found[1] == 0
        assert found[[0, 2]].all()
    generator.model.transitions.zero_()
    generator.model.transitions[-1, 1] = 1.0  # training has seen nothing but what is not asked for
    assert draw(generator)["tone"].sum((0, 1))[1] == 0


def test_no_category_of_any_factor_is_drawn_that_is_not_asked_for() -> None:
    factors = {"kind": Categorical(2), "tone": Categorical(3)}
    torch.manual_seed(0)
    conditions = {"tones": Subset("tone", ("a", "b", "c"))}
    generator = hybrid.build(Space(6, factors, conditions=conditions), 24, 1, 2, conditioned=True)
    generator.model.transitions.fill_(1.0)
    assert draw(generator)["tone"].sum((0, 1)).all()
    generator.ask({}, {"tones": "b"}, 1.0)
    assert draw(generator)["tone"].sum((0, 1)).bool().tolist() == [False, True, False]


def test_guidance_of_equal_conditions_or_weight_one_is_no_guidance() -> None:
    generator, row = shaken(), codes(SPACE.conditions, {"style": "round"})
    generator._asked = Asked(row, row, 3.0)
    twice = draw(generator)
    generator.ask({"style": "round"}, {}, 3.0)
    once = draw(generator)
    assert all(torch.allclose(twice[name].float(), once[name].float(), atol=1e-4) for name in once)


def test_guidance_leaves_the_chance_of_the_end_alone() -> None:
    """With all uniform numbers the same, the share that ends is where the chance of the end says it is."""
    generator = shaken()
    model, uniform = generator.model, (torch.arange(2000) + 0.5) / 2000
    hidden, previous = torch.randn(1, 24).expand(2000, -1), torch.zeros(2000, dtype=torch.long)
    other = torch.randn(1, 24).expand(2000, -1)
    found, tones = [], []
    for weight in (1.0, 1.5, 4.0):
        asked = Asked(codes(ASKED, {"style": "round"}), codes(ASKED, {}), weight)
        sampler = Sampler(model, head_scheduler(), None, asked)
        both = hidden if weight == 1 else torch.cat([hidden, other])
        drawn = sampler._first(both, 2, previous, uniform)
        found.append((drawn == 3).float().mean().item())
        tones.append((drawn == 0).float().mean().item())
    assert found == [pytest.approx(found[0], abs=1e-3)] * 3
    assert 0.01 < found[0] < 0.99
    assert len(set(tones)) == 3


def lessons(n: int, seed: int) -> State:
    """Round designs are a a b, square ones c c c c c; half of them are not told apart."""
    rng = torch.Generator().manual_seed(seed)
    square = torch.rand(n, generator=rng) < 0.5
    tones = torch.where(square[:, None], torch.full((n, 6), 2), torch.tensor([0, 0, 1, 0, 0, 0]))
    mask = torch.arange(6) < torch.where(square, 5, 3)[:, None]
    told = torch.full((n, 1, 3), torch.nan)
    told[:, 0, 1] = square.float()
    one_hot = torch.nn.functional.one_hot(tones, 3).float() * mask[..., None]
    return {"tone": one_hot, "size": torch.zeros(n, 6, 1), "mask": mask, CONDITIONS: told}


def test_conditions_are_learned_and_without_them_both_kinds_are_drawn() -> None:
    generator = made(steps=80, learning_rate=5e-3, warm_up=10, decay=0.9)
    generator.fit([lessons(16, k) for k in range(80)], StepNoise(0), lambda step, parts: None)
    lengths = draw(generator)["mask"].sum(-1)
    assert {3, 5} <= set(lengths.tolist())
    for style, length in (("round", 3), ("square", 5)):
        generator.ask({}, {"style": style}, 1.5)
        assert (draw(generator)["mask"].sum(-1) == length).float().mean() > 0.9


def test_a_design_is_the_same_in_any_batch_under_guidance() -> None:
    generator = shaken()
    generator.ask({"style": "round"}, {"share": 0.2}, 2.0)
    whole = draw(generator, 20)
    part = generator.sample(2, 3, None, None, DesignNoise(7, [17, 4]), lambda step: None)
    assert all(torch.equal(part[name], whole[name][[17, 4]]) for name in part)


def test_what_cannot_be_asked_is_refused() -> None:
    assert isinstance(made(), Conditioned)
    with pytest.raises(GeneratorError, match=r"condition.share: this network has learned no conditions"):
        made(conditioned=False).ask({}, {"share": 0.5}, 1.0)
    made(conditioned=False).ask({"style": "round"}, {}, 1.0)
    for asked, weight, said in (({"share": 7}, 1.0, "from 0 to 1"), ({}, 99.0, "cfg is 99"), ({"x": 1}, 1.0, "'x'")):
        with pytest.raises(InputError, match=said):
            made().ask({}, asked, weight)


def test_conditions_survive_a_file_and_a_start_from_a_network_without_them(tmp_path: Path) -> None:
    generator = shaken()
    generator.save(tmp_path / "with")
    again = hybrid.load(tmp_path / "with", torch.device("cpu"))
    assert again.space.conditions == ASKED
    for one in (generator, again):
        one.ask({}, {"style": "square", "tones": "a,b"}, 1.5)
    assert same(draw(generator), draw(again))

    plain = made(conditioned=False)
    plain.save(tmp_path / "without")
    begun = made()
    for weight in begun.model.parameters():
        weight.data.add_(1.0)
    for table in begun.model.condition_input.tables:
        torch.nn.init.zeros_(table)
    begun.begin_from(tmp_path / "without")
    theirs = plain.model.state_dict()
    assert all(torch.equal(value, theirs[name]) for name, value in begun.model.state_dict().items() if name in theirs)
    assert not any(table.any() for table in begun.model.condition_input.tables)
    with pytest.raises(GeneratorError):
        made(conditioned=False).begin_from(tmp_path / "with")
