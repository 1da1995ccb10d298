"""Hybrid sequences: the parts against closed forms and brute force, sampling, training, and files."""

import itertools
import json
import math
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file
from torch import Tensor

from data.noise import DesignNoise, StepNoise
from data.space import Angle, Categorical, Real, Space, State
from generators import hybrid
from generators.base import GeneratorError, Holding, Resumable
from generators.hybrid.generator import Hybrid
from generators.hybrid.heads import REACH, EndAdjuster, Fields, Waves
from generators.hybrid.objectives import LATE, crps, losses
from generators.hybrid.sampling import choose, head_scheduler
from generators.hybrid.training import Recipe, cut
from generators.hybrid.units import UNIT, Vocabulary
from tests.generators.shake import shake

USED = ((True, True, True), (False, True, False), (False, False, False))
PATHS = Space(7, {"kind": Categorical(3), "place": Real(3, 2.0, given="kind", used=USED)})
LETTERS = Space(5, {"base": Categorical(4)})
MIXED = Space(6, {"tone": Categorical(2), "kind": Categorical(3), "size": Real(1), "place": Real(2, 10.0)})
SPACES = pytest.mark.parametrize("space", [PATHS, LETTERS, MIXED], ids=["paths", "letters", "mixed"])


def state(space: Space, lengths: list[int], seed: int = 0) -> State:
    """A random batch of the space with these lengths, zero where it is not in use."""
    rng, batch = torch.Generator().manual_seed(seed), len(lengths)
    made: State = {"mask": torch.arange(space.length) < torch.tensor(lengths)[:, None]}
    for name, factor in space.factors.items():
        shape = (batch, space.length)
        if isinstance(factor, Categorical):
            chosen = torch.randint(factor.n, shape, generator=rng)
            made[name] = torch.nn.functional.one_hot(chosen, factor.n).float() * made["mask"][..., None]
    for name, factor in space.factors.items():
        if isinstance(factor, Real):
            numbers = (2 * torch.rand(batch, space.length, factor.width, generator=rng) - 1) * factor.scale
            used = torch.tensor(factor.used)[made[factor.given].argmax(-1)] if factor.given else True
            made[name] = numbers * used * made["mask"][..., None]
    return made


def small(space: Space, **parameters: float) -> Hybrid:
    torch.manual_seed(0)
    recipe = {key: parameters.pop(key) for key in list(parameters) if key in Recipe.__dataclass_fields__}
    sizes = {"channels": 24, "depth": 2, "heads": 3, "bins": 9} | parameters
    return hybrid.build(space, **sizes, recipe=Recipe(**recipe))  # type: ignore[arg-type]


def shaken(space: Space, **parameters: float) -> Hybrid:
    """A generator whose zero-initialised weights are not zero, and that has seen all transitions."""
    return shake(small(space, **parameters))


def draw(generator: Hybrid, designs: list[int], steps: int = 3) -> State:
    return generator.sample(len(designs), steps, None, None, DesignNoise(7, designs), lambda step: None)


# Units


@SPACES
def test_units_give_the_state_back(space: Space) -> None:
    vocabulary, before = Vocabulary(space, 17, 1.0), state(space, [3, 5, 1])
    after = vocabulary.state(vocabulary.units(before))
    space.check(after)
    assert all(torch.allclose(before[name].float(), after[name].float(), atol=1e-5) for name in before)


def test_numbers_beyond_the_span_go_to_its_edge() -> None:
    space = Space(1, {"kind": Categorical(1), "x": Real(2, 2.0)})
    vocabulary = Vocabulary(space, 11, 1.5)  # centres from -3 to 3
    made = {"kind": torch.ones(1, 1, 1), "x": torch.tensor([[[50.0, -50.0]]]), "mask": torch.ones(1, 1).bool()}
    assert vocabulary.state(vocabulary.units(made))["x"].tolist() == [[[pytest.approx(3.3), pytest.approx(-3.3)]]]


def test_a_centred_factor_is_centred() -> None:
    space = Space(4, {"kind": Categorical(1), "x": Real(1, centred=True)})
    vocabulary, made = Vocabulary(space, 11, 1.0), state(space, [3])
    found = vocabulary.state(vocabulary.units(made))["x"]
    assert found.sum().abs() < 1e-6
    assert found[0, 3] == 0
    assert torch.allclose(found[0, 0] - found[0, 1], made["x"][0, 0] - made["x"][0, 1], atol=1e-5)


def test_bins_and_residuals_give_values_back() -> None:
    vocabulary = Vocabulary(MIXED, 9, 1.0)
    values = torch.linspace(-0.5, 8.5, 1001)
    bins, residuals = vocabulary.split(values)
    assert set(bins.tolist()) == set(range(9))
    assert torch.allclose(vocabulary.join(bins, residuals), values, atol=1e-6)
    assert residuals.abs().max() <= UNIT / 2 + 1e-5
    assert residuals.std().item() == pytest.approx(1, abs=0.01)
    assert vocabulary.split(torch.arange(9.0))[1].abs().max() == 0


@pytest.mark.parametrize(("bins", "places"), [(9, 1), (4, 5), (1, 3)])
def test_places_are_evenly_apart_and_the_nearest_one_is_taken(bins: int, places: int) -> None:
    vocabulary = Vocabulary(MIXED, bins, 1.0, places)
    values = torch.linspace(-0.4999, bins - 0.5001, 997)
    rounded = vocabulary.rounded(values)
    found = rounded.unique()
    assert len(found) == bins * places
    assert torch.allclose(found.diff(), torch.tensor(1 / places), atol=1e-5)
    assert (rounded - values).abs().max() <= 0.5 / places + 1e-5
    assert torch.allclose(vocabulary.rounded(rounded), rounded, atol=1e-5)


def test_odd_places_on_the_grid_lose_nothing() -> None:
    """Two digits, 17 bins of 25 places, hold every one of 401 points of a grid."""
    space = Space(401, {"kind": Categorical(1), "x": Real(1)})
    points = (torch.arange(401) - 200) / 128
    made = {"kind": torch.ones(1, 401, 1), "x": points[None, :, None], "mask": torch.ones(1, 401).bool()}
    vocabulary = Vocabulary(space, 17, 1.5625, 25)
    assert torch.allclose(vocabulary.state(vocabulary.units(made))["x"], made["x"], atol=1e-5)


def test_finer_waves_go_on_where_coarser_ones_end() -> None:
    x = torch.rand(50, generator=torch.Generator().manual_seed(0)) * 9
    finer, plain = Waves(9, 2), Waves(9)
    assert finer.width == plain.width + 4
    assert torch.allclose(finer(x)[:, 2:6], plain(x)[:, :4], atol=1e-4)
    assert torch.allclose(finer(x + 1)[:, 0], finer(x)[:, 0], atol=1e-4)  # the shortest is one bin long


def test_units_in_use_must_be_first() -> None:
    made = state(LETTERS, [3])
    made["mask"][0, 0] = False
    with pytest.raises(GeneratorError, match="in use to be first"):
        Vocabulary(LETTERS, 9, 1.0).units(made)


@pytest.mark.parametrize("factors", [{"turn": Angle(2), "base": Categorical(2)}, {"x": Real(2)}])
def test_a_space_that_it_cannot_make_is_refused(factors: dict[str, object]) -> None:
    with pytest.raises(GeneratorError, match="hybrid makes Categorical factors"):
        hybrid.build(Space(4, factors))  # type: ignore[arg-type]


# Losses


@pytest.mark.parametrize("length", [1, 4, 9])
def test_crps_is_the_sum_over_lengths(length: int) -> None:
    """Against the distribution of the length, written out from the hazards one by one."""
    hazards = torch.rand(3, 10, generator=torch.Generator().manual_seed(length))
    found = crps(hazards, torch.tensor([length] * 3))
    for row, value in zip(hazards.tolist(), found.tolist(), strict=True):
        chances = [math.prod(1 - h for h in row[:k]) * row[k] for k in range(10)]
        cumulated = [sum(chances[: k + 1]) for k in range(10)]
        early = sum(cumulated[k] ** 2 for k in range(length))
        assert value == pytest.approx((early + LATE * (1 - cumulated[length]) ** 2) / length, abs=1e-5)


def test_crps_is_least_for_the_true_length_and_grows_with_the_distance() -> None:
    hazards = torch.eye(8) * 0.9998 + 0.0001
    scores = crps(hazards, torch.full((8,), 4))
    assert scores.argmin() == 4
    assert (scores[:4].diff() < 0).all()


def test_the_end_adjuster_starts_at_zero() -> None:
    assert EndAdjuster(8, 10)(torch.randn(3, 5, 8), torch.arange(5)).abs().max() == 0


def test_relative_logits_move_with_their_anchor() -> None:
    """Only the relative tables are there: shifting an anchor shifts the logits; absent anchors add nothing."""
    torch.manual_seed(0)
    fields, z = Fields(8, [2], 1, 120), torch.randn(1, 8)
    with torch.no_grad():
        fields.bin_heads[0][3].weight[:120] = 0
        fields.bin_heads[0][3].bias[:120] = 0
        at = {a: fields.bin_logits(z, 0, torch.tensor([[a]]), torch.tensor([[True]]))[0] for a in (15, 18)}
        assert torch.allclose(at[15][: 15 + REACH + 1], at[18][3 : 18 + REACH + 1])
        assert at[15][: 15 + REACH + 1].abs().min() > 0
        assert at[15][15 + REACH + 1 :].abs().max() == 0
        assert fields.bin_logits(z, 0, torch.tensor([[15]]), torch.tensor([[False]])).abs().max() == 0


@SPACES
def test_losses_do_not_look_at_what_is_not_in_use(space: Space) -> None:
    generator, clean = shaken(space), state(space, [3, 5])
    junk = {name: value.clone() for name, value in clean.items()}
    for name in space.factors:
        junk[name][0, 3:] = torch.rand(junk[name][0, 3:].shape)
    if space is PATHS:
        junk["place"][1][clean["place"][1] == 0] = 9.0
    found = []
    for made in (clean, junk):
        units = generator.model.vocabulary.units(made)
        found.append(losses(generator.model, head_scheduler(), units, 0.0, StepNoise(0)))
    for name, value in found[0].items():
        assert value.item() == pytest.approx(found[1][name].item(), rel=1e-4), name
        assert value.item() >= 0


def test_the_losses_of_chance_are_the_logarithms_of_the_choices() -> None:
    """With all last layers zero: log 5 for one of 4 letters or the end, (n + 1) / n of them a unit; log 9 for a bin."""
    generator, lengths = small(PATHS), [4, 4]
    for head in (*generator.model.fields.category_heads, *generator.model.fields.bin_heads):
        torch.nn.init.zeros_(head[3].weight)
        torch.nn.init.zeros_(head[3].bias)
    made = state(PATHS, lengths)
    units = generator.model.vocabulary.units(made)
    found = losses(generator.model, head_scheduler(), units, 0.0, StepNoise(0))
    assert found["categories"].item() == pytest.approx(math.log(4) * 10 / 8, rel=1e-5)
    assert found["bins"].item() == pytest.approx(math.log(9) * units.used.sum().item() / 8, rel=1e-5)


def test_a_batch_is_cut_to_what_it_uses() -> None:
    space = Space(30, {"base": Categorical(4)})
    assert cut(state(space, [3, 9]))["base"].shape == (2, 16, 4)
    assert cut(state(space, [30, 9]))["mask"].shape == (2, 30)
    assert cut(state(space, [0, 0]))["mask"].shape == (2, 8)


@pytest.mark.parametrize("places", [1, 5])
def test_the_losses_of_places_by_chance(places: int) -> None:
    """A second digit of n places adds log n for each number; the centre of a bin adds nothing."""
    generator = small(PATHS, places=places)
    for head in (*generator.model.fields.bin_heads, *generator.model.fields.place_heads):
        torch.nn.init.zeros_(head[3].weight)
        torch.nn.init.zeros_(head[3].bias)
    units = generator.model.vocabulary.units(state(PATHS, [4, 4]))
    found = losses(generator.model, head_scheduler(), units, 0.0, StepNoise(0))
    assert found["bins"].item() == pytest.approx(math.log(9 * places) * units.used.sum().item() / 8, rel=1e-5)
    assert found["residual"].item() == 0


# Sampling


@SPACES
@pytest.mark.parametrize("steps", [1, 4])
def test_samples_are_states_of_the_space(space: Space, steps: int) -> None:
    made = draw(shaken(space), list(range(20)), steps)
    space.check(made)
    again = Vocabulary(space, 9, 1.0)
    assert again.units(made).lengths.unique().numel() > 1
    for name, factor in space.factors.items():
        if isinstance(factor, Categorical):
            assert torch.equal(made[name].sum(-1), made["mask"].float())
    if space is PATHS:
        used = torch.tensor(USED)[made["kind"].argmax(-1)] & made["mask"][..., None]
        assert (made["place"][~used] == 0).all()
        assert (made["place"][used] != 0).all()


@pytest.mark.parametrize("size", [1, 7, 16, 17])
def test_a_design_is_the_same_in_any_batch(size: int) -> None:
    generator = shaken(PATHS, places=size % 3)
    together = draw(generator, list(range(40)))
    pieces = [draw(generator, list(range(a, min(a + size, 40)))) for a in range(0, 40, size)]
    for name, value in together.items():
        assert torch.equal(torch.cat([piece[name] for piece in pieces]), value), name


def test_a_design_is_the_same_on_any_number_of_threads() -> None:
    generator, before = shaken(MIXED), torch.get_num_threads()
    found = []
    for threads in (1, 2):
        torch.set_num_threads(threads)
        found.append(draw(generator, [0, 1, 2])["place"])
    torch.set_num_threads(before)
    assert torch.equal(found[0], found[1])


@SPACES
def test_the_cache_gives_what_the_whole_sequence_gives(space: Space) -> None:
    model = shaken(space).model
    units = model.vocabulary.units(state(space, [space.length] * 3))
    whole, cache, x = model.hidden(units), model.transformer.cache(3), model.begin.expand(3, -1)
    for i in range(space.length + 1):
        assert torch.allclose(model.transformer.step(x, cache), whole[:, i], atol=1e-5)
        if i < space.length:
            x = model.embed(units.categories[:, i], units.values[:, i], units.used[:, i])


def test_the_network_does_not_see_the_future() -> None:
    model = shaken(PATHS).model
    made = state(PATHS, [7])
    before = model.hidden(model.vocabulary.units(made))
    made["kind"][0, 4] = made["kind"][0, 4].roll(1)
    after = model.hidden(model.vocabulary.units(made))
    assert torch.equal(before[:, :5], after[:, :5])
    assert not torch.allclose(before[:, 5:], after[:, 5:])


def test_only_transitions_that_were_seen_are_drawn() -> None:
    generator = shaken(LETTERS)
    generator.model.transitions.zero_()
    seen = {"base": torch.eye(4)[torch.tensor([[0, 1, 2, 1, 2], [3, 3, 0, 0, 0]])]}
    seen["mask"] = torch.tensor([[True] * 5, [True, True, False, False, False]])
    generator.model.observe(generator.model.vocabulary.units(seen))
    table = {(a, b) for a, b in generator.model.transitions.nonzero().tolist()}
    assert table == {(4, 0), (0, 1), (1, 2), (2, 1), (2, 4), (4, 3), (3, 3), (3, 4)}
    made = draw(generator, list(range(60)))
    lengths = made["mask"].sum(-1)
    for letters, n in zip(made["base"].argmax(-1).tolist(), lengths.tolist(), strict=True):
        path = [4, *letters[:n]] + ([4] if n < 5 else [])
        assert set(itertools.pairwise(path)) <= table
    assert lengths.max() == 5
    assert (lengths < 5).any()


def test_a_sequence_without_an_end_is_as_long_as_the_space() -> None:
    generator = shaken(PATHS)
    generator.model.transitions[:, -1] = 0
    assert draw(generator, [0, 1, 2])["mask"].all()


def test_an_end_at_once_is_an_empty_design() -> None:
    generator = shaken(PATHS)
    generator.model.transitions[-1] = torch.tensor([0.0, 0.0, 0.0, 1.0])
    made = draw(generator, [0, 1, 2])
    PATHS.check(made)
    assert not made["mask"].any()


def test_choices_follow_the_distribution() -> None:
    logits = torch.tensor([1.0, -torch.inf, 0.0, 2.0])
    n = 4000
    chosen = choose(logits.expand(n, 4), (torch.arange(n) + 0.5) / n, 1.0, 1.0)
    assert torch.allclose(chosen.bincount(minlength=4) / n, logits.softmax(-1), atol=1e-3)
    cold = choose(logits.expand(n, 4), (torch.arange(n) + 0.5) / n, 0.5, 1.0)
    assert torch.allclose(cold.bincount(minlength=4) / n, (2 * logits).softmax(-1), atol=1e-3)
    nucleus = choose(logits.expand(n, 4), (torch.arange(n) + 0.5) / n, 1.0, 0.7)  # probabilities .67 .24 .09
    assert set(nucleus.tolist()) == {3, 0}
    last = torch.tensor([1 - 2**-24])
    assert choose(logits[None], last, 1.0, 1.0).item() == 2


def test_guidance_is_refused() -> None:
    with pytest.raises(GeneratorError, match="best_of_n"):
        shaken(PATHS).sample(1, 1, lambda made: torch.zeros(1), None, DesignNoise(0, [0]), lambda step: None)


@pytest.mark.parametrize("steps", [0, 1001])
def test_steps_out_of_bounds_are_refused(steps: int) -> None:
    with pytest.raises(GeneratorError, match=f"steps is {steps}"):
        draw(shaken(PATHS), [0], steps)


def test_an_untrained_network_draws_nothing() -> None:
    with pytest.raises(GeneratorError, match="train it"):
        draw(small(PATHS), [0])


def test_progress_is_heard_of_each_tile() -> None:
    heard: list[int] = []
    shaken(PATHS).sample(20, 3, None, None, DesignNoise(0, range(20)), heard.append)
    assert heard == [48, 60]


# Locks


def lock_of(made: State, sites: list[int]) -> State:
    """The lock that holds these sites of a batch of one."""
    mask = torch.zeros_like(made["mask"])
    mask[0, sites] = True
    return {name: value * mask[..., None] for name, value in made.items() if name != "mask"} | {"mask": mask}


def drawn_with(generator: Hybrid, lock: State, designs: list[int]) -> State:
    return generator.sample(len(designs), 3, None, None, DesignNoise(7, designs), lambda step: None, lock)


@SPACES
@pytest.mark.parametrize("sites", [[0, 1], [3], [1, 4]])
@pytest.mark.parametrize("places", [0, 1])
def test_locked_sites_have_their_values_to_the_last_bit(space: Space, sites: list[int], places: int) -> None:
    generator, lock = shaken(space, places=places), lock_of(state(space, [5]), sites)
    made = drawn_with(generator, lock, list(range(20)))
    space.check(made)
    assert (made["mask"].sum(-1) > sites[-1]).all()
    for name in space.factors:
        assert torch.equal(made[name][:, sites], lock[name][:, sites].expand(20, -1, -1))
        assert len(made[name][:, :3].flatten(1).unique(dim=0)) > 1 or sites == [0, 1]
    again = drawn_with(generator, lock, [4, 2])
    assert all(torch.equal(again[name], made[name][[4, 2]]) for name in again)


def test_what_a_lock_is_told_first_decides_what_follows() -> None:
    """A network that saw 0 0 0 0 and 1 1 1 1 alone completes either."""
    letters = torch.tensor([[0, 0, 0, 0, 0], [1, 1, 1, 1, 1]])
    both = {"base": torch.eye(4)[letters], "mask": torch.ones(2, 5).bool()}
    generator = small(LETTERS, steps=60, learning_rate=5e-3, warm_up=10, decay=0.9)
    generator.fit([both] * 60, StepNoise(0), lambda step, parts: None)
    for k in (0, 1):
        one = {name: value[k : k + 1] for name, value in both.items()}
        made = drawn_with(generator, lock_of(one, [0]), list(range(8)))
        assert (made["base"].argmax(-1) == k).all()


def test_a_lock_of_all_that_is_drawn_changes_nothing() -> None:
    """With the first units of a design held, the same noise draws the rest as it was."""
    generator = shaken(PATHS)
    free = draw(generator, [3], 3)
    count = int(free["mask"].sum())
    held = drawn_with(generator, lock_of(free, list(range(count - 1))), [3])
    assert all(torch.allclose(held[name].float(), free[name].float(), atol=1e-4) for name in free)


def test_before_the_last_locked_site_nothing_ends() -> None:
    """Even where training has seen nothing but the end after some category."""
    generator = shaken(LETTERS)
    generator.model.transitions.zero_()
    generator.model.transitions[4, 2] = generator.model.transitions[2, 4] = 1
    made = drawn_with(generator, lock_of(state(LETTERS, [5]), [3]), list(range(6)))
    assert (made["mask"].sum(-1) >= 4).all()


def test_a_lock_that_no_design_has_is_refused() -> None:
    generator, good = shaken(PATHS), lock_of(state(PATHS, [5]), [1])
    two = {name: torch.cat([value, value]) for name, value in good.items()}
    with pytest.raises(GeneratorError, match="2 designs"):
        generator.check_lock(two)
    with pytest.raises(GeneratorError, match="0 sites"):
        generator.check_lock(good | {"mask": torch.zeros(1, 7).bool()})
    with pytest.raises(GeneratorError, match="kind of a locked site is not one category"):
        generator.check_lock(good | {"kind": good["kind"] / 2})
    with pytest.raises(GeneratorError, match="place of a locked site goes beyond"):
        generator.check_lock(good | {"place": good["place"] + 9})
    centred = Space(4, {"kind": Categorical(1), "x": Real(1, centred=True)})
    with pytest.raises(GeneratorError, match="from their mean"):
        shaken(centred).check_lock(lock_of(state(centred, [3]), [0]))
    assert isinstance(generator, Holding)


# Training


def four_sequences() -> State:
    """Lengths 7, 2, 4 and 5, numbers on and off the centres of the bins."""
    return state(PATHS, [7, 2, 4, 5], seed=3)


def test_four_sequences_are_learned_by_heart() -> None:
    wanted = four_sequences()
    generator = small(PATHS, channels=48, steps=110, learning_rate=4e-3, warm_up=10, decay=0.9, blurred=0.1)
    found: list[dict[str, float]] = []
    generator.fit([wanted] * 110, StepNoise(0), lambda step, parts: found.append(parts))
    assert set(found[-1]) == {"categories", "bins", "residual", "length"}
    assert found[-1]["bins"] < 0.1
    made = draw(generator, list(range(48)), steps=10)
    right, seen = 0, set()
    for i in range(48):
        for k in range(4):
            same = torch.equal(made["mask"][i], wanted["mask"][k]) and torch.equal(made["kind"][i], wanted["kind"][k])
            if same and torch.allclose(made["place"][i], wanted["place"][k], atol=0.5):  # the width of a bin
                right, seen = right + 1, seen | {k}
    assert seen == {0, 1, 2, 3}
    assert right >= 42


def test_numbers_without_bins_are_learned_by_diffusion_alone() -> None:
    """One bin as wide as the span: two equally likely numbers come back as one or the other, not as their mean."""
    space = Space(1, {"kind": Categorical(1), "x": Real(1)})
    numbers = torch.tensor([-0.5, 0.7]).repeat(64)
    made = {"kind": torch.ones(128, 1, 1), "x": numbers[:, None, None], "mask": torch.ones(128, 1).bool()}
    generator = small(space, bins=1, finer=3, steps=200, learning_rate=5e-3, warm_up=10, decay=0.95)
    generator.fit([made] * 200, StepNoise(0), lambda step, parts: None)
    found = draw(generator, list(range(64)), steps=20)["x"].flatten()
    error = torch.stack([found + 0.5, found - 0.7]).abs().min(0).values
    assert error.quantile(0.9) < 0.1
    assert 0.25 < (found < 0).float().mean() < 0.75


@pytest.mark.parametrize(("bins", "places"), [(9, 1), (4, 5)])
def test_places_are_learned_and_drawn(bins: int, places: int) -> None:
    space = Space(1, {"kind": Categorical(1), "x": Real(1)})
    vocabulary, value = Vocabulary(space, bins, 1.0, places), torch.full((64, 1, 1), 0.37)
    made = {"kind": torch.ones(64, 1, 1), "x": value, "mask": torch.ones(64, 1).bool()}
    sizes = {"bins": bins, "places": places, "steps": 60, "learning_rate": 5e-3, "warm_up": 10, "decay": 0.9}
    generator = small(space, **sizes)
    generator.fit([made] * 60, StepNoise(0), lambda step, parts: None)
    wanted = vocabulary.state(vocabulary.units(made))["x"][0]
    assert torch.allclose(draw(generator, list(range(16)))["x"], wanted.expand(16, 1, 1), atol=1e-5)


def test_residuals_are_learned() -> None:
    """A number that is always 0.3 bins above a centre comes back far finer than a bin."""
    space = Space(1, {"kind": Categorical(1), "x": Real(1)})
    made = {"kind": torch.ones(64, 1, 1), "x": torch.full((64, 1, 1), 0.3 / 4), "mask": torch.ones(64, 1).bool()}
    generator = small(space, steps=80, learning_rate=5e-3, warm_up=10, decay=0.9)
    generator.fit([made] * 80, StepNoise(0), lambda step, parts: None)
    found = 4 * draw(generator, list(range(32)), steps=10)["x"]
    assert (found - 0.3).abs().quantile(0.9) < 0.05


def test_a_resumed_training_is_the_same_training() -> None:
    batches = [state(PATHS, [3, 5, 7, 2], seed=k) for k in range(6)]
    recipe = {"steps": 6, "warm_up": 2}
    whole = small(PATHS, **recipe)
    whole.fit(batches, StepNoise(1), lambda step, parts: None)
    first, second = small(PATHS, **recipe), small(PATHS, **recipe)
    for batch in batches[:3]:
        first.trainer.advance(batch, StepNoise(1).fork(first.trainer.step))
    assert isinstance(second, Resumable)
    assert second.resume(first.training_state()) == 3
    second.fit(batches[3:], StepNoise(1), lambda step, parts: None)
    again = second.model.state_dict()
    assert all(torch.equal(value, again[name]) for name, value in whole.model.state_dict().items())
    assert again["transitions"].any()


def test_divergence_is_noticed() -> None:
    generator = small(PATHS)
    with torch.no_grad():
        generator.model.begin.fill_(float("nan"))
    with pytest.raises(GeneratorError, match="diverged at step 0"):
        generator.fit([state(PATHS, [3])], StepNoise(0), lambda step, parts: None)


@pytest.mark.parametrize(
    ("name", "value"), [("steps", 0), ("warm_up", 0), ("learning_rate", -1.0), ("blurred", 2.0), ("decay", 2.0)]
)
def test_a_recipe_out_of_bounds_is_refused(name: str, value: float) -> None:
    with pytest.raises(GeneratorError, match=f"recipe.{name} is {value}"):
        Recipe(**{name: value})  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("name", "value"), [("channels", 0), ("depth", 10**9), ("bins", 0), ("span", 0.0), ("top_p", 2.0), ("heads", 5)]
)
def test_a_parameter_out_of_bounds_is_refused(name: str, value: float) -> None:
    with pytest.raises(GeneratorError, match=f"{name if name != 'heads' else 'channels'} is "):
        small(PATHS, **{name: value})


# Files


def test_saved_and_loaded_samples_are_equal(tmp_path: Path) -> None:
    generator = shaken(MIXED, bin_temperature=0.7, top_p=0.9)
    generator.save(tmp_path)
    again = hybrid.load(tmp_path, torch.device("cpu"))
    assert again.space.to_dict() == MIXED.to_dict()
    before, after = draw(generator, [0, 1]), draw(again, [0, 1])
    assert all(torch.equal(before[name], after[name]) for name in before)
    names = {path.name for path in tmp_path.iterdir()}
    assert names == {"config.json", "diffusion_pytorch_model.safetensors", "scheduler_config.json"}


@pytest.mark.parametrize("name", ["config.json", "diffusion_pytorch_model.safetensors", "scheduler_config.json"])
def test_a_damaged_checkpoint_is_one_clear_error(tmp_path: Path, name: str) -> None:
    small(LETTERS).save(tmp_path)
    (tmp_path / name).write_bytes((tmp_path / name).read_bytes()[:50])
    with pytest.raises(GeneratorError, match="restore it"):
        hybrid.load(tmp_path, torch.device("cpu"))
    (tmp_path / name).unlink()
    with pytest.raises(GeneratorError, match="restore it"):
        hybrid.load(tmp_path, torch.device("cpu"))


def without_one(weights: dict[str, Tensor]) -> None:
    del weights["begin"]


def with_one_more(weights: dict[str, Tensor]) -> None:
    weights["x"] = torch.zeros(1)


def of_another_type(weights: dict[str, Tensor]) -> None:
    weights["begin"] = weights["begin"].to(torch.int8)


def of_another_shape(weights: dict[str, Tensor]) -> None:
    weights["begin"] = torch.zeros(5, 5)


def not_finite(weights: dict[str, Tensor]) -> None:
    weights["begin"][0] = float("nan")


@pytest.mark.parametrize("change", [without_one, with_one_more, of_another_type, of_another_shape, not_finite])
def test_weights_that_do_not_fit_are_refused(tmp_path: Path, change) -> None:
    small(LETTERS).save(tmp_path)
    path = tmp_path / "diffusion_pytorch_model.safetensors"
    weights = load_file(path)
    change(weights)
    save_file(weights, path)
    with pytest.raises(GeneratorError, match="holds no hybrid network"):
        hybrid.load(tmp_path, torch.device("cpu"))


@pytest.mark.parametrize(
    ("name", "values"),
    [
        ("config.json", {"_class_name": "FlowMap"}),
        ("config.json", {"depth": 10**9}),
        ("config.json", {"depth": 1}),
        ("config.json", {"bins": 17}),
        ("config.json", {"channels": 23}),
        ("config.json", {"bin_temperature": 0.0}),
        ("config.json", {"span": "wide"}),
        ("config.json", {"space": {"length": 3}}),
        ("config.json", {"space": PATHS.to_dict()}),
        ("scheduler_config.json", {"_class_name": "DDPMScheduler"}),
        ("scheduler_config.json", {"num_train_timesteps": 10**12}),
        ("scheduler_config.json", {"clip_sample": False}),
    ],
)
def test_a_config_that_does_not_fit_is_refused(tmp_path: Path, name: str, values: dict[str, object]) -> None:
    small(MIXED).save(tmp_path)
    path = tmp_path / name
    path.write_text(json.dumps(json.loads(path.read_text()) | values))
    with pytest.raises(GeneratorError, match="holds no hybrid network"):
        hybrid.load(tmp_path, torch.device("cpu"))
