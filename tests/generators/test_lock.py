"""Laws of locks: what is held stays, in any pose, batch and number of steps, and the others know of it."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch

from data.errors import InputError
from data.noise import DesignNoise, StepNoise
from data.space import Real, Space, State
from generators import hybrid, ideas
from generators.base import Flight, GeneratorError, Holding, Score
from generators.guidance import lookahead
from generators.manifolds.rotations import from_quaternion
from generators.rmf.generator import RiemannianMeanFlow
from generators.rmf.lock import Lock
from tests.generators.test_rmf import FRAMES, LETTERS, MIXED, chains, one_hot, shaken, shaken_frames, small

SITES = [1, 2, 5]


def lock_of(space: Space, sites: list[int] = SITES, seed: int = 3) -> State:
    """Values of one design, random ones, at some sites."""
    geometry = small(space).flow_map.geometry
    like = {name: torch.empty(1, space.length, width) for name, width in geometry.widths.items()}
    mask = torch.zeros(1, space.length, dtype=torch.bool)
    mask[0, sites] = True
    state = geometry.state(geometry.manifold.random(like, StepNoise(seed), mask), mask)
    return state | {name: one_hot(x.argmax(-1), x.shape[-1])["base"] for name, x in state.items() if name in CATEGORIES}


CATEGORIES = ("base", "kind")
MADE = {
    "letters": (lambda: shaken(LETTERS), LETTERS),
    "mixed": (lambda: shaken(MIXED), MIXED),
    "frames": (shaken_frames, FRAMES),
}
EACH = pytest.mark.parametrize("name", MADE)


def made(name: str) -> tuple[RiemannianMeanFlow, State]:
    build, space = MADE[name]
    return build(), lock_of(space)


def draw(
    generator: RiemannianMeanFlow,
    designs: list[int],
    lock: State | None,
    steps: int = 5,
    score: Score | None = None,
    guidance: Callable[..., State] | None = None,
) -> State:
    noise = DesignNoise(7, designs)
    return generator.sample(len(designs), steps, score, guidance, noise, lambda step: None, lock)  # type: ignore[arg-type]


def spread(state: State) -> torch.Tensor:
    """A score with a gradient at every site and factor."""
    return sum((x.sin().flatten(1).mean(1) for key, x in state.items() if key != "mask"), torch.zeros(()))


def seen(name: str, steps: int = 4) -> list[Flight]:
    """The flights of a locked sample, before each step."""
    generator, lock = made(name)
    flights: list[Flight] = []

    def watch(flight: Flight, score: Score, rng: object) -> State:
        flights.append(flight)
        return flight.x

    draw(generator, list(range(16)), lock, steps, spread, watch)
    return flights


def relative(state: State, sites: list[int]) -> torch.Tensor:
    """Places and rotations of frames as the first of the sites sees them, which no rigid motion changes."""
    place, turn = state["position"][:, sites], state["rotation"][:, sites].unflatten(-1, (3, 3))
    inside = (place - place[:, :1]) @ turn[:, 0]
    return torch.cat([inside, (turn[:, :1].mT @ turn).flatten(-2)], dim=-1)


def assert_held(state: State, lock: State) -> None:
    if "rotation" in lock:
        expected = relative(lock, SITES)
        assert torch.allclose(relative(state, SITES), expected.expand(len(state["mask"]), -1, -1), atol=2e-4)
        return
    for key in set(lock) - {"mask"}:
        assert torch.equal(state[key][:, SITES], lock[key][:, SITES].expand(len(state["mask"]), -1, -1))


@EACH
@pytest.mark.parametrize("steps", [1, 2, 7])
@pytest.mark.parametrize("strength", [None, 3.0])
def test_designs_have_what_is_locked(name: str, steps: int, strength: float | None) -> None:
    generator, lock = made(name)
    steering = (None, None) if strength is None else (spread, lookahead.build(strength))
    state = draw(generator, [0, 1, 2], lock, steps, *steering)
    generator.space.check(state)
    assert_held(state, lock)
    free = draw(generator, [0, 1, 2], None, steps)
    with pytest.raises(AssertionError):
        assert_held(free, lock)


@EACH
def test_the_others_know_of_it(name: str) -> None:
    """Another value of one site changes the other sites too."""
    generator, lock = made(name)
    others = [site for site in range(generator.space.length) if site not in SITES]
    other = lock_of(generator.space, seed=4)
    first, second = (draw(generator, [0, 1, 2], x) for x in (lock, other))
    key = next(key for key in first if key != "mask")
    assert not torch.allclose(first[key][:, others], second[key][:, others], atol=1e-4)


@EACH
@pytest.mark.parametrize(("size", "strength"), [(7, None), (17, None), (7, 1.0)])
def test_a_locked_design_is_the_same_in_any_batch(name: str, size: int, strength: float | None) -> None:
    generator, lock = made(name)
    steering = (None, None) if strength is None else (spread, lookahead.build(strength))
    together = draw(generator, list(range(20)), lock, 2, *steering)
    pieces = [draw(generator, list(range(a, min(a + size, 20))), lock, 2, *steering) for a in range(0, 20, size)]
    for key, value in together.items():
        assert torch.equal(torch.cat([piece[key] for piece in pieces]), value)


def test_the_pose_of_locked_frames_does_not_matter() -> None:
    generator, lock = made("frames")
    turn = from_quaternion(torch.tensor([0.3, -0.5, 0.7, 0.1]))
    moved = {
        "position": torch.where(lock["mask"][..., None], lock["position"] @ turn.mT + 20.0, 0.0),
        "rotation": (turn @ lock["rotation"].unflatten(-1, (3, 3))).flatten(-2),
        "mask": lock["mask"],
    }
    first, second = (draw(generator, [0, 1, 2], x) for x in (lock, moved))
    for key in ("position", "rotation"):
        assert torch.allclose(first[key], second[key], atol=5e-3)
    assert first["position"].sum(1).abs().max() < 1e-4


@EACH
def test_a_locked_site_is_on_the_way_from_its_noise_to_its_value(name: str) -> None:
    """In the steps that draw no fresh noise; frames up to the motion that the pose needs."""
    flights = seen(name)
    generator, lock = made(name)
    geometry, start = generator.flow_map.geometry, flights[0].x
    assert flights[0].t == 0
    for flight in flights[1:2] if name == "frames" else flights[1:]:
        if name == "frames":
            turns = flight.x["rotation"][:, SITES], start["rotation"][:, SITES]
            end = geometry.charts["rotation"].manifold
            way = end.log(turns[1], turns[0])
            reached = end.exp(turns[1], way / flight.t) * 2**0.5  # where the geodesic leads at time 1
            given = lock["rotation"][:, SITES].unflatten(-1, (3, 3))
            reached = reached.unflatten(-1, (3, 3))
            assert torch.allclose(reached[:, :1].mT @ reached, (given[:, :1].mT @ given).expand_as(reached), atol=1e-3)
        else:
            ends = geometry.points({key: x.expand(16, *x.shape[1:]) for key, x in lock.items()})
            expected = geometry.along(start, ends, torch.full((16,), flight.t))
            for key, x in flight.x.items():
                assert torch.allclose(x[:, SITES], expected[key][:, SITES], atol=1e-5)


@EACH
def test_guidance_moves_no_locked_site(name: str) -> None:
    for flight in seen(name):
        with torch.enable_grad():
            leaves = {key: x.detach().requires_grad_() for key, x in flight.x.items()}
            slope = torch.autograd.grad(spread(flight.finish(leaves)).sum(), list(leaves.values()))
        assert all(part[:, SITES].abs().max() == 0 for part in slope)
        assert any(part.abs().max() > 0 for part in slope)
        moved = flight.move(flight.x, {key: StepNoise(0).normal(*x.shape) for key, x in flight.x.items()})
        for key, x in flight.x.items():
            assert torch.equal(moved[key][:, SITES], x[:, SITES])
            assert not torch.allclose(moved[key], x, atol=1e-2)


@EACH
def test_the_look_ahead_has_what_is_locked(name: str) -> None:
    _, lock = made(name)
    for flight in seen(name):
        finished = flight.finish(flight.x)
        if name == "frames":
            assert_held(finished, lock)
        else:
            for key in set(lock) - {"mask"}:
                assert torch.allclose(finished[key][:, SITES], lock[key][:, SITES].expand(16, -1, -1), atol=1e-5)


# Chains


def test_designs_are_long_enough_for_what_is_locked() -> None:
    generator = shaken_frames()  # of 4, 7 and 9 sites
    for last, lengths in ((3, {4, 7, 9}), (4, {7, 9}), (7, {9})):
        state = draw(generator, list(range(40)), lock_of(FRAMES, [1, last]), 1)
        assert set(state["mask"].sum(1).tolist()) == lengths
    generator.flow_map.register_to_config(lengths=[0, 0, 0, 3, 0, 0, 1, 0, 0])
    with pytest.raises(GeneratorError, match="site 8 is locked, and designs have at most 7"):
        generator.check_lock(lock_of(FRAMES, [7]))
    generator.check_lock(lock_of(FRAMES, [6]))


@pytest.mark.parametrize("sites", [[4], [0], [8], [2, 6], [0, 8], [1, 2, 5], list(range(9))])
def test_the_chain_follows_by_straight_lines(sites: list[int]) -> None:
    """An independent way to say it: linear interpolation of the ways of the held sites, constant beyond the ends."""
    from numpy import interp

    generator, state = shaken_frames(), chains(3)
    state = {key: x[2:] for key, x in state.items()}  # 9 sites
    lock = Lock(FRAMES, generator.flow_map.geometry, lock_of(FRAMES, sites))
    end = generator.flow_map.geometry.points(state)
    fitted = lock.onto(end, state["mask"])["position"]
    ways = fitted - end["position"]
    for axis in range(3):
        expected = interp(range(9), sites, ways[0, sites, axis].numpy())
        assert ways[0, :, axis].tolist() == pytest.approx(expected.tolist(), abs=1e-5)
    assert fitted.sum(1).abs().max() < 1e-5


def test_the_pose_is_the_nearest_one() -> None:
    """Locked frames that are a moved copy of the end's own are put onto them."""
    generator, state = shaken_frames(), chains(6)
    geometry = generator.flow_map.geometry
    turn = from_quaternion(torch.tensor([0.1, 0.5, -0.7, 0.4]))
    end = geometry.points(state)
    copy = {
        "position": state["position"][2:3] @ turn.mT + 5,
        "rotation": (turn @ state["rotation"][2:3].unflatten(-1, (3, 3))).flatten(-2),
        "mask": torch.arange(9)[None] % 2 == 0,
    }
    fitted = Lock(FRAMES, geometry, copy).onto(end, state["mask"])
    for key in end:
        assert torch.allclose(fitted[key][2], end[key][2], atol=1e-5)
        assert not torch.allclose(fitted[key][5], end[key][5], atol=1e-2)


# What is refused


def test_who_can_hold_says_so() -> None:
    assert isinstance(shaken(LETTERS), Holding)
    icons = Space(6, {"kind": MIXED.factors["kind"], "place": Real(2, 10.0)})
    assert isinstance(hybrid.build(icons), Holding)
    assert isinstance(ideas.build(LETTERS), Holding)


@pytest.mark.parametrize(
    ("space", "change", "message"),
    [
        (LETTERS, lambda x: {key: y.expand(2, *y.shape[1:]) for key, y in x.items()}, "a lock of 2 designs"),
        (LETTERS, lambda x: x | {"mask": torch.zeros(1, 6, dtype=torch.bool)}, "0 sites"),
        (LETTERS, lambda x: x | {"base": 2 * x["base"]}, "base are no probabilities"),
        (LETTERS, lambda x: x | {"base": x["base"] - 0.5}, "base are no probabilities"),
        (LETTERS, lambda x: x | {"base": x["base"] * float("nan")}, "not finite"),
        (LETTERS, lambda x: {"mask": x["mask"]}, "this space wants"),
        (LETTERS, lambda x: {key: y[:, :4] for key, y in x.items()}, "must be bool"),
        (FRAMES, lambda x: x | {"rotation": -x["rotation"]}, "rotation are no rotations"),
        (FRAMES, lambda x: x | {"rotation": 0 * x["rotation"]}, "rotation are no rotations"),
    ],
)
def test_a_lock_that_no_design_has_is_refused(space: Space, change: Callable[[State], State], message: str) -> None:
    generator = small(space)
    with pytest.raises(InputError, match=message):
        draw(generator, [0], change(lock_of(space)))
    with pytest.raises(InputError, match=message):
        generator.check_lock(change(lock_of(space)))


def test_places_without_a_pose_are_refused() -> None:
    space = Space(6, {"place": Real(3, 10.0, centred=True)})
    with pytest.raises(GeneratorError, match="place has mean zero"):
        draw(small(space), [0], lock_of(space))
