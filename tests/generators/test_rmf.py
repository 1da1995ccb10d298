"""Riemannian MeanFlow on problems whose answer is known."""

import json
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file

from data.noise import DesignNoise, StepNoise
from data.space import Angle, Categorical, Real, Space, State
from generators import rmf
from generators.base import GeneratorError, Resumable
from generators.rmf.generator import RiemannianMeanFlow
from generators.rmf.geometry import Geometry, Points, squared_error
from generators.rmf.objectives import flow_matching_loss, intervals, semigroup_loss, times
from generators.rmf.scheduler import FlowMapScheduler
from generators.rmf.training import Recipe

LETTERS = Space(6, {"base": Categorical(4)})
MIXED = Space(6, {"kind": Categorical(3), "place": Real(2, 10.0)})


def small(space: Space, **recipe: float) -> RiemannianMeanFlow:
    torch.manual_seed(0)
    return rmf.build(space, channels=32, depth=3, kernel=3, recipe=Recipe(**recipe))  # type: ignore[arg-type]


def shaken(space: Space) -> RiemannianMeanFlow:
    """A generator whose zero-initialised layers are not zero, so that its output depends on everything."""
    generator = small(space)
    with torch.no_grad():
        for parameter in generator.flow_map.parameters():
            parameter += 0.3 * torch.randn_like(parameter)
    return generator


def draw(generator: RiemannianMeanFlow, designs: list[int], steps: int = 3) -> State:
    return generator.sample(len(designs), steps, None, None, DesignNoise(7, designs), lambda step: None)


def one_hot(letters: torch.Tensor, n: int = 4) -> State:
    return {
        "base": torch.nn.functional.one_hot(letters, n).float(),
        "mask": torch.ones(letters.shape, dtype=torch.bool),
    }


@pytest.mark.parametrize("space", [LETTERS, MIXED], ids=["letters", "mixed"])
@pytest.mark.parametrize("steps", [1, 2, 7])
def test_samples_are_states_of_the_space(space: Space, steps: int) -> None:
    state = draw(shaken(space), [0, 1, 2], steps)
    space.check(state)
    for name, factor in space.factors.items():
        if isinstance(factor, Categorical):
            assert torch.allclose(state[name].sum(-1), torch.ones(3, 6), atol=1e-5)
            assert (state[name] >= 0).all()


@pytest.mark.parametrize("size", [1, 7, 16, 17])
def test_a_design_is_the_same_in_any_batch(size: int) -> None:
    generator = shaken(LETTERS)
    together = draw(generator, list(range(40)))["base"]
    pieces = [draw(generator, list(range(a, min(a + size, 40))))["base"] for a in range(0, 40, size)]
    assert torch.equal(torch.cat(pieces), together)


def test_a_design_is_the_same_on_any_number_of_threads() -> None:
    generator, before = shaken(LETTERS), torch.get_num_threads()
    found = []
    for threads in (1, 2):
        torch.set_num_threads(threads)
        found.append(draw(generator, [0, 1, 2])["base"])
    torch.set_num_threads(before)
    assert torch.equal(found[0], found[1])


class ExactMap(torch.nn.Module):
    """The flow map when all data is one point: x1 is that point, whatever x, s and t are."""

    def __init__(self, generator: RiemannianMeanFlow, target: Points) -> None:
        super().__init__()
        self.space, self.geometry, self.target = generator.space, generator.flow_map.geometry, target
        self.anchor, self.shortest = torch.nn.Parameter(torch.zeros(1)), 1 / 32

    def endpoint(self, x: Points, mask: torch.Tensor, s: torch.Tensor, t: torch.Tensor) -> Points:
        return {name: y.expand_as(x[name]) + 0 * self.anchor for name, y in self.target.items()}

    def jump(self, x: Points, mask: torch.Tensor, s: torch.Tensor, t: torch.Tensor) -> Points:
        return self.geometry.along(x, self.endpoint(x, mask, s, t), (t - s) / (1 - s))


def test_losses_vanish_on_the_exact_map() -> None:
    """With one data point the velocity is Log_x(x1) / (1 - s) exactly, and every jump is on the geodesic to it."""
    batch = one_hot(torch.tensor([[0, 1, 2, 3, 3, 0]]).expand(32, 6))
    exact = ExactMap(small(LETTERS), Geometry(LETTERS).points({k: v[:1] for k, v in batch.items()}))
    assert flow_matching_loss(exact, batch, StepNoise(0)) < 1e-8  # type: ignore[arg-type]
    assert semigroup_loss(exact, exact, batch, StepNoise(0)) < 1e-6  # type: ignore[arg-type]


def test_losses_notice_a_wrong_map() -> None:
    batch = one_hot(torch.tensor([[0, 1, 2, 3, 3, 0]]).expand(32, 6))
    wrong = shaken(LETTERS).flow_map
    assert flow_matching_loss(wrong, batch, StepNoise(0)) > 0.1
    assert semigroup_loss(wrong, wrong, batch, StepNoise(0)) > 1e-3


def test_the_teacher_gets_no_gradient() -> None:
    student, teacher = shaken(LETTERS).flow_map, shaken(LETTERS).flow_map
    batch = one_hot(torch.zeros(4, 6, dtype=torch.long))
    semigroup_loss(student, teacher, batch, StepNoise(0)).backward()  # type: ignore[no-untyped-call]
    assert all(p.grad is None for p in teacher.parameters())
    assert any(p.grad is not None and p.grad.abs().max() > 0 for p in student.parameters())


def test_sites_out_of_use_do_not_count() -> None:
    mask = torch.tensor([[True, True, False]])
    a = {"x": torch.tensor([[[1.0], [3.0], [100.0]]])}
    assert squared_error(a, {"x": torch.zeros(1, 3, 1)}, mask).item() == pytest.approx((1 + 9) / 2)


def test_short_jumps_follow_the_velocity() -> None:
    """Below `shortest` the end time is not looked at; a flow map of flow matching alone never looks at it."""
    flow_map, plain = shaken(LETTERS).flow_map, small(LETTERS, semigroup_weight=0.0).flow_map
    x = flow_map.geometry.random({"base": torch.empty(2, 6, 4)}, StepNoise(0))
    mask, s = torch.ones(2, 6, dtype=torch.bool), torch.full((2,), 0.1)
    ends = {gap: flow_map.endpoint(x, mask, s, s + gap)["base"] for gap in (0.0, 0.03, 0.04)}
    assert torch.equal(ends[0.0], ends[0.03])
    assert not torch.allclose(ends[0.0], ends[0.04])
    late = torch.full((2,), 0.5)
    decided = [flow_map.endpoint(x, mask, late, late + gap)["base"] for gap in (0.0, 0.5)]
    assert torch.equal(*decided)
    plain.load_state_dict(flow_map.state_dict())
    assert torch.equal(plain.endpoint(x, mask, s, s + 0.9)["base"], ends[0.0])


@pytest.mark.parametrize("decided", [0.5, 1.0])
def test_training_times_are_ordered_and_cover_the_ends(decided: float) -> None:
    s, r, t = intervals(4000, decided, 1 / 32, StepNoise(0))
    assert (t - s > 1 / 33).all()
    assert (s < r).all()
    assert (r < t).all()
    assert (r <= decided).all()
    assert ((s == 0).float().mean() - 0.25).abs() < 0.03
    last = t == 1
    assert (last.float().mean() - 0.5).abs() < 0.03
    assert torch.equal(r[last], ((s + 1) / 2)[last].clamp_max(decided))
    assert torch.allclose(r[~last], (s + t)[~last] / 2)
    flow = times(4000, decided, StepNoise(1))
    assert flow.min() >= 0
    assert flow.max() < 1


@pytest.mark.parametrize("letters", [2, 4, 20])
def test_a_letter_is_decided_half_way(letters: int) -> None:
    """The claim behind `decided`: beyond s = 1/2 the end of a path is its largest coordinate, wherever it began."""
    space = Space(50, {"base": Categorical(letters)})
    geometry = Geometry(space)
    assert geometry.decided == 0.5
    ends = torch.arange(50).remainder(letters).expand(100, 50)
    ones = geometry.points(one_hot(ends, letters))
    start = geometry.random(ones, StepNoise(0))
    middle = geometry.along(start, ones, torch.full((100,), 0.5))["base"]
    earlier = geometry.along(start, ones, torch.full((100,), 0.3))["base"]
    assert torch.equal(middle.argmax(-1), ends)
    assert not torch.equal(earlier.argmax(-1), ends)


@pytest.mark.parametrize(("space", "decided"), [(LETTERS, 0.5), (MIXED, 1.0)], ids=["letters", "mixed"])
@pytest.mark.parametrize("steps", [1, 4])
def test_the_scheduler_covers_the_whole_time(space: Space, decided: float, steps: int) -> None:
    scheduler = FlowMapScheduler(space.to_dict())
    scheduler.set_timesteps(steps)
    assert len(scheduler.timesteps) == steps
    assert scheduler.timesteps[0] == 0
    assert scheduler.ends[-1] == 1
    assert torch.equal(scheduler.timesteps[1:], scheduler.ends[:-1])
    assert scheduler.timesteps[-1] == pytest.approx(decided * (steps - 1) / steps)


def test_steps_compose_on_a_geodesic() -> None:
    """With a fixed end, 1 step and 5 steps arrive at the same point."""
    scheduler = FlowMapScheduler(MIXED.to_dict())
    geometry = scheduler.geometry
    like = {"kind": torch.empty(3, 6, 3), "place": torch.empty(3, 6, 2)}
    start, end = geometry.random(like, StepNoise(0)), geometry.random(like, StepNoise(1))
    reached = {}
    for steps in (1, 5):
        scheduler.set_timesteps(steps)
        x = start
        for s, t in zip(scheduler.timesteps.tolist(), scheduler.ends.tolist(), strict=True):
            x = scheduler.step(end, s, x, t).prev_sample
        reached[steps] = x
    for name in start:
        assert torch.allclose(reached[1][name], end[name], atol=1e-5)
        assert torch.allclose(reached[5][name], end[name], atol=1e-5)


def one_step_letters(semigroup_weight: float) -> torch.Tensor:
    """Samples (200, 6) in one step, after training on data of which half is all-0 and half is all-1."""
    recipe = {"steps": 300, "flow_matching_steps": 100, "learning_rate": 3e-3, "warm_up": 20, "decay": 0.98}
    generator = small(LETTERS, **recipe, semigroup_weight=semigroup_weight)
    rng = StepNoise(0)
    batches = [one_hot(rng.integers(2, 64)[:, None].expand(64, 6)) for _ in range(300)]
    generator.fit(batches, rng, lambda step, losses: None)
    return draw(generator, list(range(200)), steps=1)["base"].argmax(-1)


def test_one_step_is_learned_from_the_semigroup() -> None:
    """One step of a flow map is one of the two sequences, each about as often; one step of flow matching is a blend."""
    pure = {}
    for weight in (0.0, 1.0):
        letters = one_step_letters(weight)
        pure[weight] = ((letters == letters[:, :1]).all(-1) & (letters[:, 0] < 2)).float().mean()
    assert pure[1.0] > 0.75
    assert pure[0.0] < 0.5
    assert 0.3 < (letters[:, 0] == 0).float().mean() < 0.7


def test_a_resumed_training_is_the_same_training() -> None:
    batches = [one_hot(StepNoise(k).integers(4, 8)[:, None].expand(8, 6)) for k in range(6)]
    recipe = {"steps": 6, "flow_matching_steps": 2, "warm_up": 2}
    whole = small(LETTERS, **recipe)
    whole.fit(batches, StepNoise(1), lambda step, losses: None)
    first, second = small(LETTERS, **recipe), small(LETTERS, **recipe)
    first.fit(batches[:3], StepNoise(1), lambda step, losses: None)
    first = small(LETTERS, **recipe)
    for batch in batches[:3]:
        first.trainer.advance(batch, StepNoise(1).fork(first.trainer.step))
    assert isinstance(second, Resumable)
    assert second.resume(first.training_state()) == 3
    second.fit(batches[3:], StepNoise(1), lambda step, losses: None)
    for a, b in zip(whole.flow_map.parameters(), second.flow_map.parameters(), strict=True):
        assert torch.equal(a, b)


def test_saved_and_loaded_samples_are_equal(tmp_path: Path) -> None:
    generator = shaken(MIXED)
    generator.save(tmp_path)
    again = rmf.load(tmp_path, torch.device("cpu"))
    assert again.space.to_dict() == MIXED.to_dict()
    before, after = draw(generator, [0, 1]), draw(again, [0, 1])
    assert all(torch.equal(before[name], after[name]) for name in before)
    assert not list(tmp_path.glob("*.bin")) + list(tmp_path.glob("*.pt"))


@pytest.mark.parametrize("name", ["config.json", "diffusion_pytorch_model.safetensors"])
def test_a_damaged_checkpoint_is_one_clear_error(tmp_path: Path, name: str) -> None:
    small(LETTERS).save(tmp_path)
    (tmp_path / name).write_bytes((tmp_path / name).read_bytes()[:50])
    with pytest.raises(GeneratorError, match="restore it"):
        rmf.load(tmp_path, torch.device("cpu"))


def change_weights(folder: Path, change) -> None:
    path = folder / "diffusion_pytorch_model.safetensors"
    weights = load_file(path)
    change(weights)
    save_file(weights, path)


def change_config(folder: Path, name: str, **values: object) -> None:
    path = folder / name
    path.write_text(json.dumps(json.loads(path.read_text()) | values))


def without_one(weights: dict[str, torch.Tensor]) -> None:
    del weights["network.output.weight"]


def with_one_more(weights: dict[str, torch.Tensor]) -> None:
    weights["x"] = torch.zeros(1)


def of_another_type(weights: dict[str, torch.Tensor]) -> None:
    weights["network.output.weight"] = weights["network.output.weight"].to(torch.int8)


def of_another_shape(weights: dict[str, torch.Tensor]) -> None:
    weights["network.output.weight"] = torch.zeros(5, 5)


def not_finite(weights: dict[str, torch.Tensor]) -> None:
    weights["network.output.weight"][0, 0] = float("nan")


@pytest.mark.parametrize("change", [without_one, with_one_more, of_another_type, of_another_shape, not_finite])
def test_weights_that_do_not_fit_are_refused(tmp_path: Path, change) -> None:
    small(LETTERS).save(tmp_path)
    change_weights(tmp_path, change)
    with pytest.raises(GeneratorError, match="holds no flow map"):
        rmf.load(tmp_path, torch.device("cpu"))


@pytest.mark.parametrize(
    ("name", "values"),
    [
        ("config.json", {"_class_name": "Evil"}),
        ("config.json", {"depth": 10**9}),
        ("config.json", {"depth": 2}),
        ("config.json", {"channels": 0}),
        ("config.json", {"kernel": 4}),
        ("config.json", {"space": {"length": 3}}),
        ("scheduler_config.json", {"_class_name": "DDIMScheduler"}),
        ("scheduler_config.json", {"space": MIXED.to_dict()}),
    ],
)
def test_a_config_that_does_not_fit_is_refused(tmp_path: Path, name: str, values: dict[str, object]) -> None:
    small(LETTERS).save(tmp_path)
    change_config(tmp_path, name, **values)
    with pytest.raises(GeneratorError, match="holds no flow map"):
        rmf.load(tmp_path, torch.device("cpu"))


@pytest.mark.parametrize(
    ("name", "value"), [("steps", 0), ("warm_up", 0), ("learning_rate", -1.0), ("semigroup_share", 2.0), ("decay", 2.0)]
)
def test_a_recipe_out_of_bounds_is_refused(name: str, value: float) -> None:
    with pytest.raises(GeneratorError, match=f"recipe.{name} is {value}"):
        Recipe(**{name: value})  # type: ignore[arg-type]


def test_a_factor_without_a_manifold_is_refused() -> None:
    with pytest.raises(GeneratorError, match="Angle"):
        rmf.build(Space(4, {"turn": Angle(2)}))


def test_divergence_is_noticed() -> None:
    generator = small(LETTERS)
    with torch.no_grad():
        generator.flow_map.network.input.weight.fill_(float("nan"))
    with pytest.raises(GeneratorError, match="diverged at step 0"):
        generator.fit([one_hot(torch.zeros(2, 6, dtype=torch.long))], StepNoise(0), lambda step, losses: None)
