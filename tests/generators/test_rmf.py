"""Riemannian MeanFlow on problems whose answer is known."""

import json
import math
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file

from data.noise import DesignNoise, StepNoise
from data.space import Categorical, Real, Rotation, Space, State
from generators import rmf
from generators.base import GeneratorError, Resumable
from generators.guidance import lookahead
from generators.manifolds.rotations import from_quaternion
from generators.rmf.generator import RiemannianMeanFlow
from generators.rmf.geometry import Geometry, Points, scaled
from generators.rmf.mean_flow import MeanFlow
from generators.rmf.objectives import OBJECTIVES, flow_matching
from generators.rmf.scheduler import FlowMapScheduler
from generators.rmf.times import LATEST, SAMPLERS, intervals, moments, pairs, uniform
from generators.rmf.training import Recipe

LETTERS = Space(6, {"base": Categorical(4)})
MIXED = Space(6, {"kind": Categorical(3), "place": Real(2, 10.0)})
FRAMES = Space(9, {"position": Real(3, 10.0, centred=True), "rotation": Rotation()})
LENGTHS = [0, 0, 0, 3, 0, 0, 1, 0, 4]
"""Chains of 4, 7 and 9 frames."""


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


def shaken_frames() -> RiemannianMeanFlow:
    """The same for chains of frames of several lengths."""
    generator = small(FRAMES)
    with torch.no_grad():
        for parameter in generator.flow_map.parameters():
            parameter += 0.05 * torch.randn_like(parameter)
    generator.flow_map.register_to_config(lengths=LENGTHS)
    return generator


def chains(n: int, seed: int = 0) -> State:
    """Random chains of 4, 7 and 9 frames by turns, in the units of the space."""
    geometry, length = Geometry.of(FRAMES), torch.tensor([4, 7, 9])[torch.arange(n) % 3]
    mask = torch.arange(9).expand(n, 9) < length[:, None]
    like = {name: torch.empty(n, 9, width) for name, width in geometry.widths.items()}
    return geometry.state(geometry.manifold.random(like, StepNoise(seed), mask), mask)


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
@pytest.mark.parametrize("made", [lambda: shaken(LETTERS), shaken_frames], ids=["letters", "frames"])
def test_a_design_is_the_same_in_any_batch(size: int, made: Callable[[], RiemannianMeanFlow]) -> None:
    generator = made()
    together = draw(generator, list(range(20)))
    pieces = [draw(generator, list(range(a, min(a + size, 20)))) for a in range(0, 20, size)]
    for name, value in together.items():
        assert torch.equal(torch.cat([piece[name] for piece in pieces]), value)


def test_a_design_is_the_same_on_any_number_of_threads() -> None:
    generator, before = shaken(LETTERS), torch.get_num_threads()
    found = []
    for threads in (1, 2):
        torch.set_num_threads(threads)
        found.append(draw(generator, [0, 1, 2])["base"])
    torch.set_num_threads(before)
    assert torch.equal(found[0], found[1])


def exact_map(geometry: Geometry, target: Points) -> MeanFlow:
    """The flow map when all data is one point: x1 is that point, whatever x, s and t are."""

    def velocity(
        geometry: Geometry, raw: Points, x: Points, mask: torch.Tensor, s: torch.Tensor, t: torch.Tensor
    ) -> Points:
        return scaled(geometry.manifold.log(x, {name: y.expand_as(x[name]) for name, y in target.items()}), 1 / (1 - s))

    return MeanFlow(geometry, lambda x, mask, s, t: x, velocity, 1 / 32)


def losses(flow: MeanFlow, batch: State, objective: str = "semigroup", seed: int = 0) -> tuple[float, float]:
    """Of flow matching, and of an identity with the flow map as its own teacher."""
    ones, mask = flow.geometry.points(batch), batch["mask"]
    matching = flow_matching(flow, ones, mask, StepNoise(seed), uniform).mean()
    return matching.item(), OBJECTIVES[objective](flow, flow, ones, mask, StepNoise(seed), 100.0).mean().item()


@pytest.mark.parametrize("objective", OBJECTIVES)
def test_losses_vanish_on_the_exact_map(objective: str) -> None:
    """With one data point the velocity is Log_x(x1) / (1 - s) exactly, and every jump is on the geodesic to it."""
    batch = one_hot(torch.tensor([[0, 1, 2, 3, 3, 0]]).expand(32, 6))
    geometry = Geometry.of(LETTERS)
    exact = exact_map(geometry, geometry.points({k: v[:1] for k, v in batch.items()}))
    matching, identity = losses(exact, batch, objective)
    assert matching < 1e-8
    assert identity < 1e-6


@pytest.mark.parametrize("objective", OBJECTIVES)
def test_losses_notice_a_wrong_map(objective: str) -> None:
    batch = one_hot(torch.tensor([[0, 1, 2, 3, 3, 0]]).expand(32, 6))
    matching, identity = losses(shaken(LETTERS).flow_map.flow, batch, objective)
    assert matching > 0.1
    assert identity > 1e-3


@pytest.mark.parametrize("objective", OBJECTIVES)
def test_the_teacher_gets_no_gradient(objective: str) -> None:
    student, teacher = shaken(LETTERS).flow_map, shaken(LETTERS).flow_map
    ones, mask = {"base": one_hot(torch.zeros(4, 6, dtype=torch.long))["base"]}, torch.ones(4, 6, dtype=torch.bool)
    loss = OBJECTIVES[objective](student.flow, teacher.flow, ones, mask, StepNoise(0), 100.0)
    loss.mean().backward()  # type: ignore[no-untyped-call]
    assert all(p.grad is None for p in teacher.parameters())
    assert any(p.grad is not None and p.grad.abs().max() > 0 for p in student.parameters())


def test_sites_out_of_use_do_not_count() -> None:
    mask = torch.tensor([[True, True, False]])
    a = {"x": torch.tensor([[[1.0], [3.0], [100.0]]])}
    geometry = Geometry.of(Space(3, {"x": Real(1)}))
    assert geometry.square({"x": torch.zeros(1, 3, 1)}, a, mask).item() == pytest.approx((1 + 9) / 2)


def test_short_jumps_follow_the_velocity() -> None:
    """Below `shortest` the end time is not looked at; a flow map of flow matching alone never looks at it."""
    flow_map, plain = shaken(LETTERS).flow_map, small(LETTERS, identity_weight=0.0).flow_map
    flow = flow_map.flow
    x = flow_map.geometry.manifold.random(
        {"base": torch.empty(2, 6, 4)}, StepNoise(0), torch.ones(2, 6, dtype=torch.bool)
    )
    mask, s = torch.ones(2, 6, dtype=torch.bool), torch.full((2,), 0.1)
    ends = {gap: flow.velocity(x, mask, s, s + gap)["base"] for gap in (0.0, 0.03, 0.04)}
    assert torch.equal(ends[0.0], ends[0.03])
    assert not torch.allclose(ends[0.0], ends[0.04])
    for late in (0.47, 0.49, 0.5):  # no training jump starts there, see `intervals`
        s_late = torch.full((2,), late)
        ends_late = [flow.velocity(x, mask, s_late, s_late + gap)["base"] for gap in (0.0, 1 - late)]
        assert torch.equal(*ends_late)
    plain.load_state_dict(flow_map.state_dict())
    assert torch.equal(plain.flow.velocity(x, mask, s, s + 0.9)["base"], ends[0.0])


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
    for sampler in SAMPLERS.values():
        flow = moments(4000, decided, sampler, StepNoise(1))
        assert flow.min() >= 0
        assert flow.max() < 1
    s, t = pairs(4000, decided, StepNoise(2))
    assert ((s < t).float().mean() - 0.5).abs() < 0.03
    assert torch.stack([s, t]).max() <= LATEST


@pytest.mark.parametrize("letters", [2, 4, 20])
def test_a_letter_is_decided_half_way(letters: int) -> None:
    """The claim behind `decided`: beyond s = 1/2 the end of a path is its largest coordinate, wherever it began."""
    space = Space(50, {"base": Categorical(letters)})
    geometry = Geometry.of(space)
    assert geometry.decided == 0.5
    ends = torch.arange(50).remainder(letters).expand(100, 50)
    ones = geometry.points(one_hot(ends, letters))
    start = geometry.manifold.random(ones, StepNoise(0), torch.ones(100, 50, dtype=torch.bool))
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
    """With a fixed end, to which all velocities point, 1 step and 5 steps arrive at the same point."""
    scheduler = FlowMapScheduler(MIXED.to_dict())
    geometry = scheduler.geometry
    like = {"kind": torch.empty(3, 6, 3), "place": torch.empty(3, 6, 2)}
    mask = torch.ones(3, 6, dtype=torch.bool)
    start, end = geometry.manifold.random(like, StepNoise(0), mask), geometry.manifold.random(like, StepNoise(1), mask)
    reached = {}
    for steps in (1, 5):
        scheduler.set_timesteps(steps)
        x = start
        for s, t in zip(scheduler.timesteps.tolist(), scheduler.ends.tolist(), strict=True):
            velocity = scaled(geometry.manifold.log(x, end), torch.full((3,), 1 / (1 - s)))
            x = scheduler.step(velocity, s, x, t).prev_sample
        reached[steps] = x
    for name in start:
        assert torch.allclose(reached[1][name], end[name], atol=1e-5)
        assert torch.allclose(reached[5][name], end[name], atol=1e-5)


def test_a_renewed_step_is_on_the_path_from_fresh_noise() -> None:
    scheduler, state = FlowMapScheduler(FRAMES.to_dict(), 0.25), chains(3)
    geometry, mask = scheduler.geometry, state["mask"]
    end = geometry.points(state)
    before, fresh = (geometry.manifold.random(end, StepNoise(seed), mask) for seed in (1, 2))
    velocity = scaled(geometry.manifold.log(before, end), torch.full((3,), 1 / (1 - 0.5)))
    reached = scheduler.step(velocity, 0.5, before, 0.75, fresh).prev_sample
    for name, expected in geometry.along(fresh, end, torch.full((3,), 0.75)).items():
        assert torch.allclose(reached[name], expected, atol=1e-5)


def test_steps_are_renewed_from_a_time_on_but_for_the_last() -> None:
    scheduler = FlowMapScheduler(FRAMES.to_dict(), 0.25)
    scheduler.set_timesteps(4)
    times = list(zip(scheduler.timesteps.tolist(), scheduler.ends.tolist(), strict=True))
    assert [scheduler.renews(s, t) for s, t in times] == [False, True, True, False]
    assert not any(FlowMapScheduler(FRAMES.to_dict()).renews(s, t) for s, t in times)
    assert small(FRAMES).scheduler.config.renewal == rmf.STEPPER["renewal"]
    assert small(LETTERS).scheduler.config.renewal == 1.0


def test_a_power_makes_the_last_steps_the_finest() -> None:
    scheduler = FlowMapScheduler(FRAMES.to_dict(), power=2.0)
    scheduler.set_timesteps(4)
    assert scheduler.timesteps.tolist() == pytest.approx([0, 7 / 16, 12 / 16, 15 / 16])
    assert scheduler.ends[-1] == 1


def test_cooling_goes_back_less_far_towards_fresh_noise_by_the_length_of_the_step() -> None:
    """By half in a step of 0.1: to where the time is 0.8, not 0.6."""
    state = chains(3)
    full, part = (FlowMapScheduler(FRAMES.to_dict(), 0.25, cooling=rate) for rate in (0.0, 10 * math.log(2)))
    end = full.geometry.points(state)
    fresh = full.geometry.manifold.random(end, StepNoise(2), state["mask"])
    still = {name: torch.zeros_like(value) for name, value in end.items()}
    here, there = part.step(still, 0.5, end, 0.6, fresh).prev_sample, full.step(still, 0.5, end, 0.8, fresh).prev_sample
    for name, value in here.items():
        assert torch.allclose(value, there[name], atol=1e-6)


def test_renewed_samples_differ_and_depend_on_the_seed_alone() -> None:
    generator = shaken_frames()
    first, again = (draw(generator, [0, 1, 2], steps=6)["position"] for _ in range(2))
    assert torch.equal(first, again)
    generator.scheduler.register_to_config(renewal=1.0)
    assert not torch.allclose(first, draw(generator, [0, 1, 2], steps=6)["position"])


def one_step_letters(identity_weight: float) -> torch.Tensor:
    """Samples (200, 6) in one step, after training on data of which half is all-0 and half is all-1."""
    recipe = {"steps": 300, "flow_matching_steps": 100, "learning_rate": 3e-3, "warm_up": 20, "decay": 0.98}
    generator = small(LETTERS, **recipe, identity_weight=identity_weight)
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
    assert pure[0.0] < 0.65
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


@pytest.mark.parametrize("steps", [1, 2, 7])
def test_sampled_chains_are_centred_frames_of_known_lengths(steps: int) -> None:
    state = draw(shaken_frames(), list(range(30)), steps)
    FRAMES.check(state)
    mask, position = state["mask"], state["position"]
    used = mask.sum(1)
    assert set(used.tolist()) == {4, 7, 9}
    assert torch.equal(mask, torch.arange(9) < used[:, None])
    assert position.sum(1).abs().max() < 1e-4
    assert (position[~mask] == 0).all()
    r = state["rotation"].unflatten(-1, (3, 3))
    assert torch.allclose(r.mT @ r, torch.eye(3).expand_as(r), atol=1e-5)
    assert torch.allclose(torch.linalg.det(r), torch.ones(30, 9), atol=1e-5)


def test_lengths_are_as_frequent_as_in_training() -> None:
    used = draw(shaken_frames(), list(range(320)), steps=1)["mask"].sum(1)
    shares = torch.bincount(used, minlength=10)[1:] / 320
    assert torch.allclose(shares, torch.tensor(LENGTHS) / 8, atol=0.06)


def test_lengths_are_counted_saved_and_resumed(tmp_path: Path) -> None:
    recipe = {"steps": 3, "flow_matching_steps": 2, "warm_up": 1}
    generator, batches = small(FRAMES, **recipe), [chains(6, seed) for seed in range(3)]
    first = small(FRAMES, **recipe)
    first.fit(batches[:1], StepNoise(1), lambda step, losses: None)
    generator.resume(first.training_state())
    generator.fit(batches[1:], StepNoise(1), lambda step, losses: None)
    generator.save(tmp_path)
    again = rmf.load(tmp_path, torch.device("cpu"))
    assert again.flow_map.config.lengths == [0, 0, 0, 6, 0, 0, 6, 0, 6]
    before, after = draw(generator, [0, 1]), draw(again, [0, 1])
    assert all(torch.equal(before[name], after[name]) for name in before)


def test_chains_of_one_length_need_no_lengths() -> None:
    generator = small(LETTERS, steps=1)
    generator.fit([one_hot(torch.zeros(2, 6, dtype=torch.long))], StepNoise(0), lambda step, losses: None)
    assert generator.flow_map.config.lengths is None


@pytest.mark.parametrize("objective", OBJECTIVES)
def test_losses_of_chains_vanish_on_the_exact_map(objective: str) -> None:
    batch = {name: value[2:3].expand(32, *value.shape[1:]) for name, value in chains(3).items()}
    geometry = Geometry.of(FRAMES)
    exact = exact_map(geometry, geometry.points({k: v[:1] for k, v in batch.items()}))
    matching, identity = losses(exact, batch, objective)
    assert matching < 1e-6
    assert identity < 1e-4


def test_errors_of_frames_are_in_units_of_the_prior_and_radians() -> None:
    """A frame turned by an angle is wrong by its square; one moved is wrong by its place and by its two links."""
    geometry = Geometry.of(FRAMES)
    state = {name: value[:1] for name, value in chains(3).items()} | {"mask": torch.ones(1, 9, dtype=torch.bool)}
    x = geometry.points(state)
    half = from_quaternion(torch.tensor([0.9, 0.3, 0.1, -0.2]))
    turned = {"position": x["position"], "rotation": (half @ x["rotation"].unflatten(-1, (3, 3))).flatten(-2)}
    still = {name: torch.zeros_like(value) for name, value in x.items()}
    angle = 2 * torch.acos(torch.tensor(0.9) / 0.95**0.5)
    error = geometry.square(x, geometry.manifold.log(x, turned), state["mask"])
    assert error.item() == pytest.approx(angle.square().item(), rel=1e-4)
    moved = still | {"position": torch.zeros(1, 9, 3)}
    moved["position"][0, 4, 0] = 0.22
    error = geometry.square(x, moved, state["mask"])
    assert error.item() == pytest.approx((0.22**2 + 2) / 9, rel=1e-4)


def rigidly_moved(x: Points) -> Points:
    turn = from_quaternion(torch.tensor([0.3, -1.0, 0.5, 2.0]))
    return {
        "position": x["position"] @ turn.T,
        "rotation": (turn @ x["rotation"].unflatten(-1, (3, 3))).flatten(-2),
    }


@pytest.mark.parametrize("end", [0.3, 0.8, 1.0])
def test_jumps_turn_with_the_chain(end: float) -> None:
    flow_map, state = shaken_frames().flow_map, chains(6)
    x, mask, s, t = flow_map.geometry.points(state), state["mask"], torch.full((6,), 0.3), torch.full((6,), end)
    before = rigidly_moved(flow_map.flow.jump(x, mask, s, t))
    after = flow_map.flow.jump(rigidly_moved(x), mask, s, t)
    for name in x:
        assert torch.allclose(before[name][mask], after[name][mask], atol=2e-5)


class Turned:
    """Noise whose rotations and steps are turned with the data."""

    def __init__(self, seed: int) -> None:
        self.noise = StepNoise(seed)

    def uniform(self, *shape: int) -> torch.Tensor:
        return self.noise.uniform(*shape)

    def normal(self, *shape: int) -> torch.Tensor:
        turn, drawn = torch.tensor([0.3, -1.0, 0.5, 2.0]), self.noise.normal(*shape)
        if shape[-1] == 3:
            return drawn @ from_quaternion(turn).T
        a, b = turn / turn.norm(), drawn  # the quaternion a b
        real = a[0] * b[..., :1] - (a[1:] * b[..., 1:]).sum(-1, keepdim=True)
        imaginary = a[0] * b[..., 1:] + b[..., :1] * a[1:] + torch.linalg.cross(a[1:].expand_as(b[..., 1:]), b[..., 1:])
        return torch.cat([real, imaginary], dim=-1)


@pytest.mark.parametrize("objective", OBJECTIVES)
def test_losses_do_not_depend_on_how_the_chain_is_turned(objective: str) -> None:
    flow, batch = shaken_frames().flow_map.flow, chains(6)
    ones, mask = flow.geometry.points(batch), batch["mask"]
    found = []
    for points, noise in ((ones, StepNoise), (rigidly_moved(ones), Turned)):
        matching = flow_matching(flow, points, mask, noise(0), uniform)
        found.append((matching, OBJECTIVES[objective](flow, flow, points, mask, noise(0), 100.0)))
    for before, after in zip(*found, strict=True):
        assert torch.allclose(before, after, rtol=2e-4)


@pytest.mark.parametrize("objective", OBJECTIVES)
def test_sites_out_of_use_change_no_loss(objective: str) -> None:
    flow, batch = shaken_frames().flow_map.flow, chains(6)
    other = {name: torch.where(batch["mask"][..., None], batch[name], 7.0) for name in ("position", "rotation")}
    before, after = (losses(flow, state, objective) for state in (batch, other | {"mask": batch["mask"]}))
    assert before == pytest.approx(after, rel=1e-4)


def test_guidance_pulls_a_chain_together() -> None:
    """The gradient of the look-ahead reaches the places through every frame, and steered chains stay in the space."""

    def small_and_aligned(state: State) -> torch.Tensor:
        spread = (state["position"].square().sum(-1) * state["mask"]).sum(-1) / state["mask"].sum(-1)
        return -spread / 100 + (state["rotation"][..., 0] * state["mask"]).mean(-1)

    found = {}
    for strength in (0.0, 3.0):
        guided = shaken_frames().sample(
            20, 5, small_and_aligned, lookahead.build(strength), DesignNoise(0, range(20)), lambda step: None
        )
        FRAMES.check(guided)
        assert guided["position"].sum(1).abs().max() < 1e-4
        found[strength] = small_and_aligned(guided)
    assert (found[3.0] > found[0.0]).float().mean() > 0.8


@pytest.mark.parametrize("lengths", [[1, 2], [0] * 9, [-1] * 8 + [10], [0.5] * 9])
def test_lengths_that_do_not_fit_are_refused(tmp_path: Path, lengths: list[float]) -> None:
    small(FRAMES).save(tmp_path)
    change_config(tmp_path, "config.json", lengths=lengths)
    with pytest.raises(GeneratorError, match="holds no flow map"):
        rmf.load(tmp_path, torch.device("cpu"))


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
        ("scheduler_config.json", {"renewal": 2.0}),
        ("scheduler_config.json", {"power": 0.5}),
        ("scheduler_config.json", {"cooling": -0.1}),
    ],
)
def test_a_config_that_does_not_fit_is_refused(tmp_path: Path, name: str, values: dict[str, object]) -> None:
    small(LETTERS).save(tmp_path)
    change_config(tmp_path, name, **values)
    with pytest.raises(GeneratorError, match="holds no flow map"):
        rmf.load(tmp_path, torch.device("cpu"))


@pytest.mark.parametrize(
    ("name", "value"), [("steps", 0), ("warm_up", 0), ("learning_rate", -1.0), ("identity_share", 2.0), ("decay", 2.0)]
)
def test_a_recipe_out_of_bounds_is_refused(name: str, value: float) -> None:
    with pytest.raises(GeneratorError, match=f"recipe.{name} is {value}"):
        Recipe(**{name: value})  # type: ignore[arg-type]


@pytest.mark.parametrize(("name", "value"), [("objective", "naive"), ("times", "never")])
def test_an_unknown_method_is_refused(name: str, value: str) -> None:
    with pytest.raises(GeneratorError, match=f"recipe.{name} is '{value}'; it must be one of"):
        Recipe(**{name: value})  # type: ignore[arg-type]
    with pytest.raises(GeneratorError, match="parameterisation is 'x2'; it must be one of x1, xt, average_velocity"):
        rmf.build(LETTERS, parameterisation="x2")


def test_divergence_is_noticed() -> None:
    generator = small(LETTERS)
    with torch.no_grad():
        generator.flow_map.network.input.weight.fill_(float("nan"))
    with pytest.raises(GeneratorError, match="diverged at step 0"):
        generator.fit([one_hot(torch.zeros(2, 6, dtype=torch.long))], StepNoise(0), lambda step, losses: None)
