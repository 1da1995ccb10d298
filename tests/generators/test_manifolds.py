"""Laws that hold on every manifold, in float64, and agreement with geomstats where it has the space."""

import importlib
import math
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
import torch
from torch import Tensor

from data.noise import DesignNoise, StepNoise
from generators.manifolds import rotations
from generators.manifolds.base import Manifold
from generators.manifolds.centred_chains import STEP, CentredChains
from generators.manifolds.euclidean import Euclidean
from generators.manifolds.flat_torus import FlatTorus
from generators.manifolds.frames import frames
from generators.manifolds.geomstats_manifold import GeomstatsManifold, use_torch
from generators.manifolds.poincare_ball import PoincareBall
from generators.manifolds.positive_orthant import PositiveOrthant
from generators.manifolds.rotations import Rotations
from generators.manifolds.sphere import Sphere


@contextmanager
def torch_default(dtype: torch.dtype) -> Iterator[None]:
    before = torch.get_default_dtype()
    torch.set_default_dtype(dtype)
    yield
    torch.set_default_dtype(before)


def geomstats(module: str, space: str, *arguments: Any, **named: Any) -> Any:
    """A space of geomstats, which computes with torch."""
    use_torch()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return getattr(importlib.import_module(f"geomstats.geometry.{module}"), space)(*arguments, **named)


BUILT_IN: list[Any] = [
    Euclidean(),
    Sphere(),
    PositiveOrthant(),
    CentredChains(),
    FlatTorus(),
    Rotations(),
    PoincareBall(),
]
FOREIGN: list[Any] = [
    GeomstatsManifold(geomstats("hypersphere", "Hypersphere", 3)),
    GeomstatsManifold(geomstats("spd_matrices", "SPDMatrices", 2)),
]
every_manifold = pytest.mark.parametrize(
    "manifold", BUILT_IN + FOREIGN, ids=[type(m).__name__ for m in BUILT_IN] + ["Hypersphere", "SPDMatrices"]
)
built_in = pytest.mark.parametrize("manifold", BUILT_IN, ids=lambda m: type(m).__name__)
ANGLES = [1e-9, 1e-4, 1.0, math.pi - 1e-3, math.pi - 1e-6, math.pi]
AXES = [(1.0, 0.0, 0.0), (0.0, 1.0, 0.0), (0.0, 0.0, 1.0), (0.48, -0.6, 0.64)]


def noise(manifold: Manifold, *shape: int, seed: int) -> Tensor:
    """Ambient vectors; rotations have nine numbers whatever the shape says, and spaces of geomstats their own."""
    width = 9 if isinstance(manifold, Rotations) else getattr(manifold, "width", shape[-1])
    return StepNoise(seed).normal(*shape[:-1], width).double()


def points(manifold: Manifold, *shape: int, seed: int = 0) -> Tensor:
    return manifold.project(manifold.random(torch.empty_like(noise(manifold, *shape, seed=0)), StepNoise(seed)))


def length(manifold: Manifold, x: Tensor, v: Tensor) -> Tensor:
    return manifold.square(x, v).sqrt()


@every_manifold
@pytest.mark.parametrize("shape", [(50, 4), (3, 5, 2), (2, 2, 2, 7), (1, 3), (1, 1, 3), (0, 4), (2, 0, 4)])
def test_log_then_exp_arrives(manifold: Manifold, shape: tuple[int, ...]) -> None:
    x, y = points(manifold, *shape), points(manifold, *shape, seed=1)
    v = manifold.log(x, y)
    assert v.shape == x.shape
    assert torch.allclose(manifold.exp(x, v), y, atol=1e-12)
    assert torch.allclose(manifold.tangent(x, v), v, atol=1e-12)
    assert torch.allclose(length(manifold, x, v), length(manifold, y, manifold.log(y, x)), rtol=1e-9, atol=1e-12)


@every_manifold
def test_exp_then_log_returns(manifold: Manifold) -> None:
    x, y = points(manifold, 50, 4), points(manifold, 50, 4, seed=1)
    v = 0.3 * manifold.log(x, y)
    assert torch.allclose(manifold.log(x, manifold.exp(x, v)), v, atol=1e-11)


@every_manifold
@pytest.mark.parametrize(("dtype", "most"), [(torch.float64, 1e-12), (torch.float32, 1e-6)])
def test_exp_stays_on_the_manifold(manifold: Manifold, dtype: torch.dtype, most: float) -> None:
    x = points(manifold, 200, 4).to(dtype)
    v = manifold.tangent(x, noise(manifold, 200, 4, seed=1).to(dtype))
    y = manifold.exp(x, v)
    assert y.dtype == dtype
    assert (manifold.project(y) - y).abs().max() <= most * y.abs().max().clamp_min(1)


@every_manifold
@pytest.mark.parametrize("distance", [1e-5, 1e-4, 1e-3, 1e-2])
def test_gradients_of_near_points_are_right_in_float32(manifold: Manifold, distance: float) -> None:
    """That of d(x, y)^2 / 2 at y has the length d: an arc cosine near 1 would give infinity."""
    x = points(manifold, 500, 4)
    v = manifold.log(x, points(manifold, 500, 4, seed=6))
    v = distance * v / length(manifold, x, v)[..., None]
    y = manifold.exp(x, v).float().requires_grad_()
    near = manifold.square(x.float(), manifold.log(x.float(), y))
    (gradient,) = torch.autograd.grad(near.sum() / 2, y)
    assert gradient.isfinite().all()
    if not isinstance(
        manifold, CentredChains | PoincareBall | GeomstatsManifold
    ):  # whose metric is not the dot product
        rounding = 2e-7 / distance
        assert torch.allclose(gradient.norm(dim=-1) / distance, torch.ones(500), atol=1e-2 + 4 * rounding)


@built_in
def test_a_point_is_rounded_alike_wherever_it_stands(manifold: Manifold) -> None:
    """Or a design would depend on its company: the ends of a tensor are computed without vector instructions."""
    x, y = (points(manifold, 5, 9, 3, seed=seed).float() for seed in (0, 1))
    v = manifold.log(x, y)
    turned = [1, 2, 3, 4, 0]
    assert torch.equal(manifold.log(x[turned], y[turned]), v[turned])
    assert torch.equal(manifold.exp(x[turned], v[turned]), manifold.exp(x, v)[turned])


@every_manifold
def test_a_batch_is_its_points_one_by_one(manifold: Manifold) -> None:
    x, y = points(manifold, 6, 3, 4), points(manifold, 6, 3, 4, seed=1)
    v = manifold.log(x, y)
    assert torch.allclose(v, torch.stack([manifold.log(a, b) for a, b in zip(x, y, strict=True)]), atol=1e-13)
    alone = torch.stack([manifold.exp(a, b) for a, b in zip(x, v, strict=True)])
    assert torch.allclose(manifold.exp(x, v), alone, atol=1e-13)


@every_manifold
def test_the_same_noise_gives_the_same_points(manifold: Manifold) -> None:
    like = torch.empty_like(noise(manifold, 5, 3, 4, seed=0))
    whole = manifold.random(like, DesignNoise(3, range(5)))
    assert torch.equal(whole, manifold.random(like, DesignNoise(3, range(5))))
    assert torch.equal(whole[2:3], manifold.random(like[2:3], DesignNoise(3, [2])))
    assert not torch.equal(whole, manifold.random(like, DesignNoise(4, range(5))))


@every_manifold
def test_projections_are_idempotent(manifold: Manifold) -> None:
    x = manifold.project(noise(manifold, 40, 4, seed=2))
    v = manifold.tangent(x, noise(manifold, 40, 4, seed=3))
    assert torch.allclose(manifold.project(x), x, atol=1e-13)
    assert torch.allclose(manifold.tangent(x, v), v, atol=1e-13)


@every_manifold
def test_coincident_points_have_finite_exact_derivatives(manifold: Manifold) -> None:
    x = points(manifold, 10, 4)
    v = manifold.tangent(x, noise(manifold, 10, 4, seed=4))
    assert manifold.log(x, x).abs().max() < 1e-14
    _, along_log = torch.func.jvp(lambda y: manifold.log(x, y), (x.clone(),), (v,))
    _, along_exp = torch.func.jvp(lambda w: manifold.exp(x, w), (torch.zeros_like(x),), (v,))
    assert torch.allclose(along_log, v, atol=1e-9)
    assert torch.allclose(along_exp, v, atol=1e-9)
    y = x.clone().requires_grad_()
    (gradient,) = torch.autograd.grad(manifold.log(x, y).square().sum(), y)
    assert (gradient == 0).all()
    (gradient,) = torch.autograd.grad((manifold.log(x, y) * v).sum(), y)
    assert torch.allclose(manifold.tangent(x, gradient), v, atol=1e-9)


@built_in
def test_coincident_points_can_be_derived_twice(manifold: Manifold) -> None:
    """Reverse over forward, where a guard that looks only at values gives NaN."""
    x = points(manifold, 10, 4)
    v = manifold.tangent(x, noise(manifold, 10, 4, seed=4))
    for operation, at in ((manifold.log, x), (manifold.exp, torch.zeros_like(x))):
        second = torch.func.grad(lambda a, f=operation: torch.func.jvp(lambda b: f(x, b), (a,), (v,))[1].sum())(at)
        assert second.isfinite().all()


@built_in
@pytest.mark.parametrize("distance", [1e-4, 1e-3, 1e-2])
def test_float32_is_exact_near_coincidence(manifold: Manifold, distance: float) -> None:
    """Against float64 on the very same points: what float32 makes of the coordinates is not the manifold's doing."""
    x = points(manifold, 200, 4)
    v = manifold.log(x, points(manifold, 200, 4, seed=5))
    y = manifold.exp(x, distance * v / v.norm(dim=-1, keepdim=True)).float()
    x = x.float()
    wanted = manifold.log(x.double(), y.double())
    measured = manifold.log(x, y).double()
    error = (measured - wanted).norm(dim=-1) / wanted.norm(dim=-1)
    assert error.max() < 1e-5
    moved = manifold.exp(x, wanted.float()).double()
    assert (moved - manifold.exp(x.double(), wanted.float().double())).abs().max() < 1e-6


@pytest.mark.parametrize(
    ("manifold", "expected"),
    [(Euclidean(), 1.0), (Sphere(), 1 / 4), (PositiveOrthant(), 1 / 4), (FlatTorus(), 3.29), (Rotations(), 1 / 6)],
    ids=lambda value: type(value).__name__,
)
def test_the_law_of_the_prior(manifold: Manifold, expected: float) -> None:
    x = points(manifold, 50_000, 4).double()
    second = (x.T @ x / len(x)).diagonal()
    assert torch.allclose(second, torch.full_like(second, expected), atol=0.03 * expected)
    if isinstance(manifold, PositiveOrthant):  # Dirichlet(1/2): Var p = (1/4)(3/4) / 3
        assert torch.allclose(x.square().var(0), torch.full_like(second, 1 / 16), atol=0.002)
        assert (x >= 0).all()


@every_manifold
def test_square_is_a_squared_length(manifold: Manifold) -> None:
    """It is quadratic, and of one site alone where sites are apart."""
    x = points(manifold, 6, 4)
    v = manifold.tangent(x, noise(manifold, 6, 4, seed=1))
    assert torch.allclose(manifold.square(x, -3 * v), 9 * manifold.square(x, v))
    if not isinstance(manifold, CentredChains):
        assert torch.allclose(manifold.square(x, v)[2], manifold.square(x[2], v[2]))


def test_the_prior_of_the_ball_is_normal_at_the_centre() -> None:
    """The squared distance from the centre is chi-squared."""
    x = points(PoincareBall(), 50_000, 3)
    centre = torch.zeros_like(x)
    square = PoincareBall().square(centre, PoincareBall().log(centre, x))
    assert square.mean().item() == pytest.approx(3, rel=0.03)
    assert square.var().item() == pytest.approx(6, rel=0.05)


def test_a_chain_is_a_walk_with_mean_zero() -> None:
    like, mask = torch.empty(4000, 12, 3), torch.arange(12).expand(4000, 12) < 7
    x = CentredChains().random(like, StepNoise(0), mask)
    assert x[:, :7].mean(1).abs().max() < 1e-6
    assert (x[:, 7:] == 0).all()
    links = x[:, 1:7] - x[:, :6]
    assert links.std().item() == pytest.approx(STEP, rel=0.02)
    assert (links[:, 1:] * links[:, :-1]).mean().abs() < 0.001
    longer = CentredChains().random(like, StepNoise(0), torch.ones_like(mask))
    assert torch.allclose((longer[:, 1:7] - longer[:, :6]), links, atol=1e-6)


def test_a_chain_feels_its_links_but_none_to_sites_out_of_use() -> None:
    v = torch.tensor([[[0.0], [1.0], [1.0], [50.0]]])
    mask = torch.tensor([[True, True, True, False]])
    square = CentredChains().square(v, v, mask)
    assert torch.allclose(square[0, :3], torch.tensor([0.0, 1 + 1 / STEP**2, 1.0]))
    tangent = CentredChains().tangent(v, v, mask)
    assert torch.allclose(tangent[..., 0], torch.tensor([[-2 / 3, 1 / 3, 1 / 3, 0]]))


def test_uniform_rotations_have_the_angles_of_haar() -> None:
    """The angle has the density (1 - cos a) / pi: mean square pi^2 / 3 + 2. No direction is preferred."""
    manifold = Rotations()
    x, y = points(manifold, 40_000, 9), points(manifold, 40_000, 9, seed=1)
    angle = manifold.square(x, manifold.log(x, y))
    assert angle.mean().item() == pytest.approx(math.pi**2 / 3 + 2, rel=0.02)
    assert x.mean(0).abs().max() < 0.01


@pytest.mark.parametrize("axis", AXES)
@pytest.mark.parametrize("angle", ANGLES)
def test_rotations_by_any_angle(axis: tuple[float, ...], angle: float) -> None:
    """The length of a log is the angle in radians, right up to pi, where either of two directions will do."""
    manifold, x = Rotations(), points(Rotations(), 20, 9)
    w = angle * torch.tensor(axis, dtype=torch.float64).expand(20, 3)
    v = rotations.points(rotations.product(rotations.matrices(x), rotations.skew(w)))
    assert torch.allclose(manifold.square(x, v).sqrt(), torch.full((20,), angle, dtype=torch.float64), rtol=1e-12)
    y = manifold.exp(x, v)
    found = manifold.log(x, y)
    assert torch.allclose(manifold.square(x, found).sqrt(), manifold.square(x, v).sqrt(), rtol=1e-7, atol=1e-14)
    assert torch.allclose(manifold.exp(x, found), y, atol=1e-12)
    if angle < math.pi:
        assert torch.allclose(found, v, rtol=1e-7, atol=1e-12)
    near = manifold.log(x.float(), y.float()).double()
    assert torch.allclose(manifold.square(x, near).sqrt(), manifold.square(x, v).sqrt(), rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("angle", [0.0, *ANGLES])
def test_rotations_have_finite_gradients_at_any_angle(angle: float) -> None:
    manifold, x = Rotations(), points(Rotations(), 5, 9)
    v = rotations.points(rotations.matrices(x) @ rotations.skew(torch.tensor([0.0, angle, 0.0], dtype=torch.float64)))
    v = v.requires_grad_()
    y = manifold.exp(x, v)
    for value in (y.sum(), manifold.square(x, manifold.log(x, y)).sum(), manifold.log(x, y).sum()):
        (gradient,) = torch.autograd.grad(value, v, retain_graph=True)
        assert gradient.isfinite().all()


def test_rotations_stay_rotations() -> None:
    manifold, x = Rotations(), points(Rotations(), 10, 9)
    for k in range(1000):
        x = manifold.exp(x, manifold.tangent(x, noise(manifold, 10, 9, seed=k)))
    r = rotations.matrices(x)
    assert torch.allclose(r.mT @ r, torch.eye(3, dtype=torch.float64).expand(10, 3, 3), atol=1e-12)
    assert torch.allclose(torch.linalg.det(r), torch.ones(10, dtype=torch.float64))


def test_rotations_do_not_mind_autocast() -> None:
    manifold, x, y = Rotations(), *(points(Rotations(), 50, 9, seed=k).float() for k in (0, 1))
    with torch.autocast("cpu", torch.bfloat16):
        v = manifold.log(x, y)
        assert torch.equal(v, Rotations().log(x, y))
        assert torch.allclose(manifold.exp(x, v), y, atol=1e-6)


def test_gram_schmidt_leaves_rotations_alone() -> None:
    raw = StepNoise(0).normal(50, 3, 3).double()
    r = rotations.orthonormal(raw)
    assert torch.allclose(r.mT @ r, torch.eye(3, dtype=torch.float64).expand(50, 3, 3), atol=1e-12)
    assert torch.allclose(torch.linalg.det(r), torch.ones(50, dtype=torch.float64))
    assert torch.allclose(rotations.orthonormal(2 * r), r, atol=1e-14)


@pytest.mark.parametrize("angle", ANGLES)
def test_rotations_agree_with_geomstats(angle: float) -> None:
    """Its exp in the ambient space, and its rotation vectors, which near pi are good to 2e-5 only."""
    group = geomstats("special_orthogonal", "SpecialOrthogonal", 3)
    vectors = geomstats("special_orthogonal", "SpecialOrthogonal", 3, point_type="vector")
    manifold, x = Rotations(), points(Rotations(), 20, 9)
    r = rotations.matrices(x)
    w = angle * torch.nn.functional.normalize(StepNoise(3).normal(20, 3).double(), dim=-1)
    velocity = r @ rotations.skew(w)
    reached = rotations.matrices(manifold.exp(x, rotations.points(velocity)))
    assert torch.allclose(reached, group.exp(velocity, r), atol=1e-9)
    with torch_default(torch.float64):
        theirs = torch.stack([vectors.rotation_vector_from_matrix(one) for one in r.mT @ reached])
    ours = rotations.rotation_vector(r.mT @ reached)
    apart = torch.minimum((ours - theirs).norm(dim=-1), (ours + theirs).norm(dim=-1) + (0 if angle > 3.1 else 9))
    assert apart.max() < (1e-4 if angle > 3.1 else 1e-9)


def test_orthant_distances_are_angles_between_roots() -> None:
    """Vertices are pi/2 apart, and the arc between two letters is the Fisher-Rao geodesic of a coin."""
    corners = torch.eye(4, dtype=torch.float64)
    manifold = PositiveOrthant()
    apart = manifold.log(corners[:1], corners[1:]).norm(dim=-1)
    assert torch.allclose(apart, torch.full_like(apart, math.pi / 2))
    third = manifold.exp(corners[0], manifold.log(corners[0], corners[1]) / 3)
    assert torch.allclose(third.square(), torch.tensor([0.75, 0.25, 0, 0], dtype=torch.float64))


def test_a_path_out_of_the_orthant_is_reflected() -> None:
    manifold = PositiveOrthant()
    x = torch.tensor([math.cos(0.1), math.sin(0.1)], dtype=torch.float64)
    v = 0.3 * torch.tensor([math.sin(0.1), -math.cos(0.1)], dtype=torch.float64)
    assert torch.allclose(manifold.exp(x, v), torch.tensor([math.cos(0.2), math.sin(0.2)], dtype=torch.float64))


@pytest.mark.parametrize("width", [2, 4, 20])
@pytest.mark.parametrize("manifold", [Sphere(), PositiveOrthant()], ids=lambda m: type(m).__name__)
def test_spheres_agree_with_geomstats(manifold: Manifold, width: int) -> None:
    metric = geomstats("hypersphere", "Hypersphere", width - 1).metric
    x, y = points(manifold, 100, width), points(manifold, 100, width, seed=1)
    v = manifold.log(x, y)
    exact = v.norm(dim=-1) < 3  # theirs is by acos
    assert torch.allclose(v[exact], metric.log(y, x)[exact], atol=1e-5)
    assert torch.allclose(manifold.exp(x, 0.4 * v), metric.exp(0.4 * v, x), atol=1e-7)


def test_the_ball_agrees_with_geomstats() -> None:
    """Whose exp and log move by the same Mobius addition, and whose distance is by acosh."""
    manifold, metric = PoincareBall(), geomstats("poincare_ball", "PoincareBall", 3).metric
    x, y = (0.9 * points(manifold, 100, 3, seed=k) for k in (0, 1))
    v = manifold.log(x, y)
    with torch_default(torch.float64):
        assert torch.allclose(v, metric.log(y, x), atol=1e-9)
        assert torch.allclose(manifold.exp(x, 0.4 * v), metric.exp(0.4 * v, x), atol=1e-9)
        assert torch.allclose(length(manifold, x, v), metric.dist(x, y), atol=1e-7)


def test_the_ball_keeps_inside() -> None:
    """However far a way is, in float32 too; near the boundary distances are still those of float64."""
    manifold = PoincareBall()
    x = points(manifold, 100, 3).float()
    far = manifold.exp(x, 1e3 * noise(manifold, 100, 3, seed=1).float())
    assert (far.norm(dim=-1) < 1).all()
    assert manifold.log(x, far).isfinite().all()
    assert manifold.square(far, torch.ones_like(far)).isfinite().all()
    edge = torch.tensor([[0.9999, 0.0], [0.0, 0.9999]])
    apart = length(manifold, edge[:1], manifold.log(edge[:1], edge[1:])).item()
    exact = length(manifold, edge[:1].double(), manifold.log(edge[:1].double(), edge[1:].double())).item()
    assert apart == pytest.approx(exact, rel=1e-5)


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
@pytest.mark.parametrize("width", [2, 3, 8])
def test_the_log_of_the_antipode_is_pi_long(width: int, dtype: torch.dtype) -> None:
    manifold, unit = Sphere(), torch.eye(width, dtype=dtype)
    x = torch.cat([manifold.random(torch.empty(50, width, dtype=dtype), StepNoise(0)), unit, -unit])
    rounding = 16 * torch.finfo(dtype).eps
    for y in (-x, manifold.project(-x + 1e-8)):
        v = manifold.log(x, y)
        assert (v.norm(dim=-1) - math.pi).abs().max() < rounding + 1e-7
        assert (v * x).sum(-1).abs().max() < rounding
        assert torch.equal(v, manifold.log(x, y))
    start = x.clone().requires_grad_()
    (gradient,) = torch.autograd.grad(manifold.log(start, -x).square().sum(), start)
    _, change = torch.func.jvp(lambda p: manifold.log(p, -x), (x,), (manifold.tangent(x, torch.ones_like(x)),))
    assert gradient.isfinite().all()
    assert change.isfinite().all()


def test_angles_wrap() -> None:
    manifold, pi = FlatTorus(), math.pi
    angle = torch.tensor([-pi, pi, 0.0, 3 * pi, -3 * pi, pi - 1e-9, -pi - 1e-16, 1e-9], dtype=torch.float64)
    wrapped = manifold.project(angle)
    assert ((wrapped >= -pi) & (wrapped < pi)).all()
    assert torch.allclose(wrapped.cos(), angle.cos())
    assert wrapped[-1] == 1e-9  # every digit is kept
    x, y = points(manifold, 50, 3), points(manifold, 50, 3, seed=1)
    for turns in (-2, 1):
        assert torch.allclose(manifold.log(x, y + 2 * pi * turns), manifold.log(x, y), atol=1e-12)
        assert torch.allclose(manifold.exp(x, manifold.log(x, y) + 2 * pi * turns), y, atol=1e-12)
    assert manifold.log(torch.zeros(1), torch.full((1,), pi)).abs().item() == pytest.approx(pi)
    single = torch.tensor([-pi, pi, 3 * pi, 100.0])
    assert ((manifold.project(single) >= -pi) & (manifold.project(single) < single[1])).all()


def test_the_torus_adds_squares() -> None:
    """The distance of the product is the root of the sum of squares, not the sum."""
    x, y = torch.zeros(1, 2), torch.tensor([[3.0, -4.0 + 2 * math.pi]])
    manifold = FlatTorus()
    expected = math.hypot(3, 2 * math.pi - 4) if 2 * math.pi - 4 < math.pi else 5.0
    assert length(manifold, x, manifold.log(x, y)).item() == pytest.approx(expected, rel=1e-6)


def test_frames_turn_and_shift_together() -> None:
    """One rotation from the left of all places and turns commutes with log and exp; distances stay the same."""
    product, shape = frames(), (4, 6)
    like = {"place": torch.empty(*shape, 3).double(), "turn": torch.empty(*shape, 9).double()}
    mask = torch.arange(6).expand(shape) < torch.tensor([[6], [5], [1], [3]])
    x, y = (product.random(like, StepNoise(k), mask) for k in (0, 1))
    turn = rotations.matrices(points(Rotations(), 1, 9))[0]

    def turned(p: dict[str, Tensor]) -> dict[str, Tensor]:
        return {"place": p["place"] @ turn.T, "turn": (turn @ p["turn"].unflatten(-1, (3, 3))).flatten(-2)}

    v = product.log(x, y)
    moved = product.log(turned(x), turned(y))
    for name, wanted in turned(v).items():
        assert torch.allclose(moved[name], wanted, atol=1e-12)
    assert torch.allclose(product.square(turned(x), moved, mask), product.square(x, v, mask))
    end = product.exp(x, v)
    count = mask.sum(-1)[:, None]
    assert (end["place"].sum(1) / count).abs().max() < 1e-12
    assert (product.tangent(x, like | {"place": torch.ones(*shape, 3).double()}, mask)["place"].abs() < 1e-12).all()
    assert (end["place"][~mask] == 0).all()


def test_sites_out_of_use_do_not_count() -> None:
    """Neither in the squared length nor in a derivative of it."""
    manifold, mask = CentredChains(), torch.tensor([[True, True, False, False]])
    x, v = (noise(manifold, 1, 4, 3, seed=k) for k in (0, 1))

    def total(a: Tensor) -> Tensor:
        return (manifold.square(x, manifold.tangent(x, a, mask), mask) * mask).sum()

    junk = torch.where(mask[..., None], 0.0, noise(manifold, 1, 4, 3, seed=2))
    assert total(v + junk) == total(v)
    assert torch.func.jvp(total, (v,), (junk,))[1] == 0
