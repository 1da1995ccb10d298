"""The identities of Riemannian MeanFlow on flows whose maps are known, in float64."""

import math
from collections.abc import Callable
from dataclasses import dataclass

import pytest
import torch
from torch import Tensor

from data.noise import StepNoise
from data.space import Angle, Categorical, Real, Rotation, Space
from generators import rmf
from generators.manifolds import rotations
from generators.manifolds.base import Manifold
from generators.manifolds.euclidean import Euclidean
from generators.manifolds.flat_torus import FlatTorus
from generators.manifolds.poincare_ball import PoincareBall
from generators.manifolds.positive_orthant import PositiveOrthant
from generators.manifolds.product import Points
from generators.manifolds.rotations import Rotations
from generators.manifolds.sphere import Sphere
from generators.rmf.geometry import Chart, Geometry, scaled
from generators.rmf.mean_flow import MeanFlow
from generators.rmf.objectives import OBJECTIVES, eulerian, jacobi, lagrangian, semigroup
from generators.rmf.parameterisations import PARAMETERISATIONS, average_velocity
from generators.rmf.residuals import identity_residuals
from generators.rmf.stabilisers import adaptive, clipped, down_scale

N, EXACT = 40, float("inf")
Velocity = Callable[[Tensor, Tensor], Tensor]
"""(x (N, 1, d), s (N, 1, 1)) -> the velocity of the flow, (N, 1, d)."""
Map = Callable[[Tensor, Tensor, Tensor], Tensor]
"""(x, s, t) -> where the flow is at t that was in x at s."""


@dataclass(frozen=True)
class Flow:
    """A flow on a manifold with its map."""

    manifold: Manifold
    width: int
    velocity: Velocity
    reached: Map
    bends: bool = True
    """Whether its lines are no geodesics of curved ground, so that a wrong Hessian shows."""

    def points(self, seed: int = 0) -> Tensor:
        return self.manifold.random(torch.empty(N, 1, self.width, dtype=torch.float64), StepNoise(seed)).double()

    def mean_flow(self) -> MeanFlow:
        """The exact average velocity, told by a network that knows it."""
        chart = Chart(self.manifold, self.width, lambda raw, x, mask: raw, lambda y, mask: self.manifold.project(y))

        def raw(x: Points, mask: Tensor, s: Tensor, t: Tensor) -> Points:
            s, t = s[:, None, None], t[:, None, None]
            still = t == s
            whole = self.manifold.log(x["x"], self.reached(x["x"], s, t))
            here = self.velocity(x["x"], s)
            return {"x": torch.where(still, here, whole / torch.where(still, 1.0, t - s))}

        return MeanFlow(Geometry({"x": chart}), raw, average_velocity)


def cross(axis: list[float]) -> Tensor:
    return rotations.skew(torch.tensor(axis, dtype=torch.float64))


def gaussian() -> Flow:
    """From N(0, 1) to N(mean, spread^2) along straight lines: a linear flow."""
    mean, spread = torch.tensor([1.0, -2.0, 0.5]).double(), 0.3

    def size(s: Tensor) -> Tensor:
        return ((1 - s).square() + (s * spread).square()).sqrt()

    def velocity(x: Tensor, s: Tensor) -> Tensor:
        return mean + (s * spread**2 - (1 - s)) / size(s).square() * (x - s * mean)

    return Flow(Euclidean(), 3, velocity, lambda x, s, t: t * mean + size(t) / size(s) * (x - s * mean), bends=False)


def turning_sphere() -> Flow:
    """A globe that turns: circles of latitude, which are not geodesics."""
    spin = cross([0.4, -1.0, 1.3])
    return Flow(Sphere(), 3, lambda x, s: x @ spin.T, lambda x, s, t: (turn(spin, t - s) @ x[..., None])[..., 0])


def turn(spin: Tensor, time: Tensor) -> Tensor:
    """exp(time spin), (N, 1, 3, 3)."""
    return torch.linalg.matrix_exp(time[..., None] * spin)


def winding_torus() -> Flow:
    """A constant drift of more than half a turn, which the shortest way to the end would undo."""
    drift = torch.tensor([4.0, -7.0]).double()
    manifold = FlatTorus()
    return Flow(
        manifold, 2, lambda x, s: drift.expand_as(x), lambda x, s, t: manifold.exp(x, (t - s) * drift), bends=False
    )


def two_sided_rotations() -> Flow:
    """R turned from the left and from the right at once, which is no geodesic."""
    left, right = cross([0.6, 1.5, -1.0]), cross([-1.7, 0.5, 1.2])

    def velocity(x: Tensor, s: Tensor) -> Tensor:
        r = x.unflatten(-1, (3, 3))
        return (left @ r + r @ right).flatten(-2)

    def reached(x: Tensor, s: Tensor, t: Tensor) -> Tensor:
        return (turn(left, t - s) @ x.unflatten(-1, (3, 3)) @ turn(right, t - s)).flatten(-2)

    return Flow(Rotations(), 9, velocity, reached)


def turning_disc() -> Flow:
    """The Poincare disc turned about its centre."""
    spin = torch.tensor([[0.0, -1.2], [1.2, 0.0]], dtype=torch.float64)

    def reached(x: Tensor, s: Tensor, t: Tensor) -> Tensor:
        angle = 1.2 * (t - s)
        a, b = x.unbind(-1)
        c, d = angle.cos()[..., 0], angle.sin()[..., 0]
        return torch.stack([c * a - d * b, d * a + c * b], dim=-1)

    return Flow(PoincareBall(), 2, lambda x, s: x @ spin.T, reached)


def integrated(manifold: Manifold, width: int, seed: int) -> Flow:
    """A smooth field without symmetries; its map by Runge-Kutta's fourth-order method."""
    mix = 0.6 * StepNoise(seed).normal(width, width).double()
    wave = StepNoise(seed + 1).normal(width, width).double()

    def velocity(x: Tensor, s: Tensor) -> Tensor:
        ambient = (1 + s) * x @ mix.T + 0.4 * (x @ wave.T + 2 * s).sin()
        inside = 1 - x.square().sum(-1, keepdim=True) if isinstance(manifold, PoincareBall) else 1.0
        return 0.5 * manifold.tangent(x, inside * ambient)

    def reached(x: Tensor, s: Tensor, t: Tensor) -> Tensor:
        steps = 40
        h = (t - s) / steps
        for k in range(steps):
            now = s + k * h
            a = velocity(x, now)
            b = velocity(x + h / 2 * a, now + h / 2)
            c = velocity(x + h / 2 * b, now + h / 2)
            d = velocity(x + h * c, now + h)
            x = manifold.exp(x, manifold.log(x, manifold.project(x + h / 6 * (a + 2 * b + 2 * c + d))))
        return x

    return Flow(manifold, width, velocity, reached)


FLOWS: dict[str, Callable[[], Flow]] = {
    "gaussian": gaussian,
    "turning sphere": turning_sphere,
    "winding torus": winding_torus,
    "two-sided rotations": two_sided_rotations,
    "turning disc": turning_disc,
    "field on a sphere": lambda: integrated(Sphere(), 4, 5),
    "field on a disc": lambda: integrated(PoincareBall(), 2, 3),
}


def known(name: str) -> tuple[Flow, MeanFlow, Points, Tensor, Tensor, Tensor]:
    """A flow, its average velocity, points, their mask, and times s < t."""
    flow = FLOWS[name]()
    s = 0.6 * StepNoise(8).uniform(N).double()
    return flow, flow.mean_flow(), {"x": flow.points()}, torch.ones(N, 1, dtype=torch.bool), s, s + 0.35


def greatest(v: Points) -> float:
    return v["x"].abs().max().item()


every_flow = pytest.mark.parametrize("name", FLOWS)
# The log of a drift of more than half a turn has lost the turns; see `test_windings_are_kept`.
every_flow_in_reach = pytest.mark.parametrize("name", [name for name in FLOWS if name != "winding torus"])


@every_flow_in_reach
def test_exact_flows_keep_every_identity(name: str) -> None:
    flow, mean, x, mask, s, t = known(name)
    v = {"x": flow.velocity(x["x"], s[:, None, None])}
    assert greatest(eulerian.residual(mean, x, mask, s, t, v, EXACT)[1]) < 1e-6
    assert greatest(jacobi.residual(mean, x, mask, s, t, v)[2]) < 1e-6
    assert greatest(lagrangian.push_residual(mean, x, mask, s, t)[1]) < 1e-6
    assert greatest(lagrangian.pull_residual(mean, x, mask, s, t)) < 1e-6
    assert greatest(semigroup.residual(mean, mean, x, mask, s, (s + t) / 2, t)[1]) < 1e-6


@every_flow
def test_without_the_hessian_the_eulerian_identity_fails_on_curved_ground(name: str) -> None:
    flow, mean, x, mask, s, t = known(name)
    v = {"x": flow.velocity(x["x"], s[:, None, None])}
    u, missed = eulerian.residual(mean, x, mask, s, t, v, EXACT)
    bent = mean.geometry.manifold.hessian(x, scaled(u, t - s), v)
    naive = {"x": missed["x"] - bent["x"] + v["x"]}
    assert (greatest(naive) > 1e-3) == flow.bends


@every_flow
def test_a_wrong_map_breaks_every_identity(name: str) -> None:
    flow, mean, x, mask, s, t = known(name)

    def late(x: Points, mask: Tensor, s: Tensor, t: Tensor) -> Points:
        """The right velocity, carried on for too long."""
        return scaled(mean.raw(x, mask, s, t), 1 + 0.3 * (t - s) * (1 + s))

    wrong = MeanFlow(mean.geometry, late, average_velocity)
    v = {"x": flow.velocity(x["x"], s[:, None, None])}
    assert greatest(eulerian.residual(wrong, x, mask, s, t, v, EXACT)[1]) > 0.01
    assert greatest(jacobi.residual(wrong, x, mask, s, t, v)[2]) > 0.01
    assert greatest(lagrangian.push_residual(wrong, x, mask, s, t)[1]) > 0.01
    assert greatest(lagrangian.pull_residual(wrong, x, mask, s, t)) > 0.01
    assert greatest(semigroup.residual(wrong, wrong, x, mask, s, (s + t) / 2, t)[1]) > 0.001


def test_windings_are_kept() -> None:
    """A drift of more than half a turn keeps every identity where displacements are lifted."""
    flow, shape, x, mask, s, _ = known("winding torus")
    drift = MeanFlow(shape.geometry, lambda x, mask, s, t: {"x": flow.velocity(x["x"], s)}, average_velocity)
    t = s + 0.39 + 0 * s
    v = {"x": flow.velocity(x["x"], s)}
    assert greatest(eulerian.residual(drift, x, mask, s, t + 0.5, v, EXACT)[1]) < 1e-12
    assert greatest(lagrangian.push_residual(drift, x, mask, s, t + 0.5)[1]) < 1e-12
    r = s + 0.3
    assert greatest(semigroup.residual(drift, drift, x, mask, s, r, t + 0.5)[1]) < 1e-12
    slow = MeanFlow(shape.geometry, lambda x, mask, s, t: {"x": v["x"] * 0}, average_velocity)
    turns = 2 * math.pi / (t - s)[:, None, None]
    round_once = MeanFlow(shape.geometry, lambda x, mask, s, t: {"x": turns.expand_as(x["x"])}, average_velocity)
    apart = semigroup.residual(round_once, slow, x, mask, s, r, t)[1]
    assert torch.allclose(apart["x"].abs(), torch.full_like(apart["x"], 2 * math.pi))  # and not 0, as on the circle


@every_flow
def test_one_step_of_an_exact_map_is_many(name: str) -> None:
    _, mean, x, mask, s, t = known(name)
    once, twice = mean.jump(x, mask, s, t), x
    for k in range(5):
        twice = mean.jump(twice, mask, s + k * (t - s) / 5, s + (k + 1) * (t - s) / 5)
    back = mean.jump(once, mask, t, s)
    for found, wanted in ((twice, once), (back, x)):
        assert mean.geometry.manifold.log(wanted, found)["x"].abs().max() < 1e-6


@every_flow_in_reach
def test_residuals_of_an_exact_map_vanish(name: str) -> None:
    flow, mean, _, mask, _, _ = known(name)
    found = identity_residuals(mean, {"x": flow.points(1)}, mask, StepNoise(3))
    assert set(found) == set(OBJECTIVES)
    limit = 0.05 if name.startswith("field") else 1e-5  # forty steps of Runge-Kutta for jumps of any length
    assert max(found.values()) < limit


# Parameterisations


SPACES = {
    "letters": Space(5, {"base": Categorical(4)}),
    "places": Space(5, {"place": Real(2, 3.0)}),
    "angles": Space(5, {"angle": Angle(2)}),
    "turns": Space(5, {"turn": Rotation()}),
    "frames": Space(5, {"position": Real(3, centred=True), "rotation": Rotation()}),
}
every_space = pytest.mark.parametrize("space", SPACES.values(), ids=SPACES)
every_parameterisation = pytest.mark.parametrize("parameterisation", PARAMETERISATIONS)


def shaken(space: Space, parameterisation: str) -> MeanFlow:
    torch.manual_seed(0)
    flow_map = rmf.build(space, 16, 2, 3, parameterisation).flow_map
    with torch.no_grad():
        for parameter in flow_map.parameters():
            parameter += 0.1 * torch.randn_like(parameter)
        if space is SPACES["angles"]:
            flow_map.network.output.bias += 1  # the angle of a vector near 0 turns too fast for differences
    flow: MeanFlow = flow_map.flow
    return MeanFlow(flow.geometry, flow.raw, flow.parameterisation)


def anywhere(flow: MeanFlow, n: int = 6, seed: int = 0) -> tuple[Points, Tensor]:
    mask = torch.ones(n, 5, dtype=torch.bool)
    like = {name: torch.empty(n, 5, width) for name, width in flow.geometry.widths.items()}
    return flow.geometry.manifold.random(like, StepNoise(seed), mask), mask


@every_space
@every_parameterisation
def test_velocities_are_tangent_and_go_on_to_their_limit(space: Space, parameterisation: str) -> None:
    flow = shaken(space, parameterisation)
    x, mask = anywhere(flow)
    for start in (0.0, 0.4, 0.99):
        s = torch.full((6,), start)
        still, soon = (flow.velocity(x, mask, s, s + gap) for gap in (0.0, 1e-3))
        for name, value in still.items():
            assert value.isfinite().all()
            manifold = flow.geometry.charts[name].manifold
            tangent = manifold.tangent(x[name], value, mask)
            assert torch.allclose(tangent, value, atol=1e-4 * (1 + value.abs().max().item()))
            ends = [manifold.exp(x[name], (1 - start) * velocity) for velocity in (value, soon[name])]
            assert manifold.log(*ends).abs().max() < 0.1
        whole = flow.jump(x, mask, s, torch.ones(6))
        space.check(flow.geometry.state(whole, mask))


@every_space
@every_parameterisation
@pytest.mark.parametrize("objective", OBJECTIVES)
def test_every_objective_trains_every_parameterisation(space: Space, parameterisation: str, objective: str) -> None:
    """Losses are finite, and the target gets no gradient: it is that of the same loss with the target frozen."""
    flow = shaken(space, parameterisation)
    ones, mask = anywhere(flow, seed=1)
    value = OBJECTIVES[objective](flow, flow, ones, mask, StepNoise(2), 100.0)
    assert value.shape == (6,)
    assert value.isfinite().all()
    assert (value >= 0).all()


@every_space
def test_derivatives_along_the_flow_are_those_of_finite_differences(space: Space) -> None:
    """The Jacobian-vector product of whole networks, by points moved along geodesics."""
    flow = shaken(space, "x1")
    x, mask = anywhere(flow)
    manifold, h = flow.geometry.manifold, 5e-4  # networks are told of times by waves as short as 1/64
    v = flow.velocity(x, mask, torch.full((6,), 0.3), torch.full((6,), 0.3))
    s, t, ones = torch.full((6,), 0.3), torch.full((6,), 0.8), torch.ones(6)
    _, change = torch.func.jvp(lambda x, s: flow.velocity(x, mask, s, t), (x, s), (v, ones))
    ahead, behind = (flow.velocity(manifold.exp(x, scaled(v, k * h * ones)), mask, s + k * h, t) for k in (1.0, -1.0))
    for name, value in change.items():
        differences = (ahead[name] - behind[name]) / (2 * h)
        assert torch.allclose(value, differences, rtol=0.05, atol=0.02 * differences.abs().max().item())


# Stabilisers


def test_down_scale_takes_back_the_division_near_the_end() -> None:
    s = torch.tensor([0.0, 0.5, 0.9, 0.95, 0.99])
    assert torch.allclose(down_scale(s), torch.tensor([1.0, 1.0, 1.0, 0.25, 0.01]), atol=1e-5)


def test_clipped_tangents_keep_their_direction() -> None:
    v = {"x": torch.tensor([[[3.0, 4.0], [0.3, 0.4], [0.0, 0.0]]])}
    found = clipped(v, 1.0)["x"]
    assert torch.allclose(found, torch.tensor([[[0.6, 0.8], [0.3, 0.4], [0.0, 0.0]]]))
    assert clipped(v, EXACT)["x"] is v["x"]


@pytest.mark.parametrize(("power", "wanted"), [(0.0, 0.3), (0.5, 0.01500), (1.0, 0.000429)])
def test_adaptive_weights_leave_the_mean(power: float, wanted: float) -> None:
    """Of targets that are 1 three times in ten, a power of 0 finds the mean; others find what is near their mode.

    The gradient is zero where 0.3 (1 - g) / ((1 - g)^2 + 0.001)^p = 0.7 g / (g^2 + 0.001)^p.
    """
    targets = (torch.arange(10) < 3).double()
    low, high = 0.0, 0.31
    for _ in range(50):
        guess = torch.tensor((low + high) / 2, dtype=torch.float64, requires_grad=True)
        (slope,) = torch.autograd.grad(adaptive((guess - targets).square(), power).mean(), guess)
        low, high = (low, guess.item()) if slope > 0 else (guess.item(), high)
    assert low == pytest.approx(wanted, rel=0.01)


def test_orthant_flows_stay_in_the_orthant() -> None:
    flow = shaken(SPACES["letters"], "average_velocity")
    x, mask = anywhere(flow)
    y = flow.jump(x, mask, torch.zeros(6), torch.ones(6))["base"]
    assert (y >= 0).all()
    assert torch.allclose(y.square().sum(-1), torch.ones(6, 5), atol=1e-5)
    assert isinstance(flow.geometry.charts["base"].manifold, PositiveOrthant)
