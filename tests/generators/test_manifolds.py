"""Laws that hold on every manifold, in float64, and agreement with geomstats where it has the space."""

import math
import warnings
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from data.noise import StepNoise
from generators.manifolds import rotations
from generators.manifolds.base import Manifold
from generators.manifolds.centred_chains import STEP, CentredChains
from generators.manifolds.euclidean import Euclidean
from generators.manifolds.positive_orthant import PositiveOrthant
from generators.manifolds.rotations import Rotations

MANIFOLDS = [Euclidean(), PositiveOrthant(), CentredChains(), Rotations()]
IDS = ["euclidean", "positive_orthant", "centred_chains", "rotations"]
every_manifold = pytest.mark.parametrize("manifold", MANIFOLDS, ids=IDS)
ANGLES = [1e-9, 1e-4, 1.0, math.pi - 1e-3, math.pi - 1e-6, math.pi]
AXES = [(1.0, 0.0, 0.0), (0.0, 1.0, 0.0), (0.0, 0.0, 1.0), (0.48, -0.6, 0.64)]


def noise(manifold: Manifold, *shape: int, seed: int) -> Tensor:
    """Ambient vectors; rotations have nine numbers whatever the shape says."""
    width = 9 if isinstance(manifold, Rotations) else shape[-1]
    return StepNoise(seed).normal(*shape[:-1], width).double()


def points(manifold: Manifold, *shape: int, seed: int = 0) -> Tensor:
    return manifold.project(manifold.random(torch.empty_like(noise(manifold, *shape, seed=0)), StepNoise(seed)))


@every_manifold
@pytest.mark.parametrize("shape", [(50, 4), (3, 5, 2), (2, 2, 2, 7)])
def test_log_then_exp_arrives(manifold: Manifold, shape: tuple[int, ...]) -> None:
    x, y = points(manifold, *shape), points(manifold, *shape, seed=1)
    v = manifold.log(x, y)
    assert torch.allclose(manifold.exp(x, v), y, atol=1e-12)
    assert torch.allclose(manifold.tangent(x, v), v, atol=1e-12)
    assert torch.allclose(v.norm(dim=-1), manifold.log(y, x).norm(dim=-1), atol=1e-12)


@every_manifold
def test_exp_then_log_returns(manifold: Manifold) -> None:
    x, y = points(manifold, 50, 4), points(manifold, 50, 4, seed=1)
    v = 0.3 * manifold.log(x, y)
    assert torch.allclose(manifold.log(x, manifold.exp(x, v)), v, atol=1e-12)


@every_manifold
def test_projections_are_idempotent(manifold: Manifold) -> None:
    x = manifold.project(noise(manifold, 40, 4, seed=2))
    v = manifold.tangent(x, noise(manifold, 40, 4, seed=3))
    assert torch.allclose(manifold.project(x), x, atol=1e-14)
    assert torch.allclose(manifold.tangent(x, v), v, atol=1e-14)


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
    assert gradient.isfinite().all()


@every_manifold
@pytest.mark.parametrize("distance", [1e-4, 1e-3, 1e-2])
def test_float32_is_exact_near_coincidence(manifold: Manifold, distance: float) -> None:
    x = points(manifold, 200, 4)
    v = manifold.log(x, points(manifold, 200, 4, seed=5))
    y = manifold.exp(x, distance * v / v.norm(dim=-1, keepdim=True))
    measured = manifold.log(x.float(), y.float()).norm(dim=-1).double()
    rounding = 3e-7  # of the coordinates themselves, which are near 1
    assert ((measured - distance).abs() < 1e-5 * distance + rounding).all()


@pytest.mark.parametrize(
    ("manifold", "expected"), [(Euclidean(), 1.0), (PositiveOrthant(), 1 / 4), (Rotations(), 1 / 6)], ids=str
)
def test_the_law_of_the_prior(manifold: Manifold, expected: float) -> None:
    x = points(manifold, 200_000, 4).double()
    second = (x.T @ x / len(x)).diagonal()
    assert torch.allclose(second, torch.full_like(second, expected), atol=0.01)
    if isinstance(manifold, PositiveOrthant):  # Dirichlet(1/2): Var p = (1/4)(3/4) / 3
        assert torch.allclose(x.square().var(0), torch.full_like(second, 1 / 16), atol=0.002)
        assert (x >= 0).all()


@every_manifold
def test_square_is_a_squared_length(manifold: Manifold) -> None:
    """It is quadratic, and of one site alone where sites are apart."""
    x = points(manifold, 6, 4)
    v = manifold.tangent(x, noise(manifold, 6, 4, seed=1))
    assert torch.allclose(manifold.square(-3 * v), 9 * manifold.square(v))
    if not isinstance(manifold, CentredChains):
        assert torch.allclose(manifold.square(v), v.norm(dim=-1).square())


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
    square = CentredChains().square(v, mask)
    assert torch.allclose(square[0, :3], torch.tensor([0.0, 1 + 1 / STEP**2, 1.0]))
    tangent = CentredChains().tangent(v, v, mask)
    assert torch.allclose(tangent[..., 0], torch.tensor([[-2 / 3, 1 / 3, 1 / 3, 0]]))


def test_uniform_rotations_have_the_angles_of_haar() -> None:
    """The angle has the density (1 - cos a) / pi: mean square pi^2 / 3 + 2. No direction is preferred."""
    manifold = Rotations()
    x, y = points(manifold, 100_000, 9), points(manifold, 100_000, 9, seed=1)
    angle = manifold.square(manifold.log(x, y))
    assert angle.mean().item() == pytest.approx(math.pi**2 / 3 + 2, rel=0.01)
    assert x.mean(0).abs().max() < 0.01


@pytest.mark.parametrize("axis", AXES)
@pytest.mark.parametrize("angle", ANGLES)
def test_rotations_by_any_angle(axis: tuple[float, ...], angle: float) -> None:
    """The length of a log is the angle in radians, right up to pi, where either of two directions will do."""
    manifold, x = Rotations(), points(Rotations(), 20, 9)
    w = angle * torch.tensor(axis, dtype=torch.float64).expand(20, 3)
    v = rotations.points(rotations.product(rotations.matrices(x), rotations.skew(w)))
    assert torch.allclose(manifold.square(v).sqrt(), torch.full((20,), angle, dtype=torch.float64), rtol=1e-12)
    y = manifold.exp(x, v)
    found = manifold.log(x, y)
    assert torch.allclose(manifold.square(found).sqrt(), manifold.square(v).sqrt(), rtol=1e-7, atol=1e-14)
    assert torch.allclose(manifold.exp(x, found), y, atol=1e-12)
    if angle < math.pi:
        assert torch.allclose(found, v, rtol=1e-7, atol=1e-12)
    near = manifold.log(x.float(), y.float()).double()
    assert torch.allclose(manifold.square(near).sqrt(), manifold.square(v).sqrt(), rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("angle", [0.0, *ANGLES])
def test_rotations_have_finite_gradients_at_any_angle(angle: float) -> None:
    manifold, x = Rotations(), points(Rotations(), 5, 9)
    v = rotations.points(rotations.matrices(x) @ rotations.skew(torch.tensor([0.0, angle, 0.0], dtype=torch.float64)))
    v = v.requires_grad_()
    y = manifold.exp(x, v)
    for value in (y.sum(), manifold.square(manifold.log(x, y)).sum(), manifold.log(x, y).sum()):
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


def geomstats_rotations() -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from geomstats.geometry.special_orthogonal import SpecialOrthogonal
    return SpecialOrthogonal(3), SpecialOrthogonal(3, point_type="vector")


@pytest.mark.parametrize("angle", ANGLES)
def test_rotations_agree_with_geomstats(angle: float) -> None:
    """Its exp in the ambient space, and its rotation vectors, which near pi are good to 2e-5 only."""
    group, vectors = geomstats_rotations()
    manifold, x = Rotations(), points(Rotations(), 20, 9)
    r = rotations.matrices(x)
    w = angle * torch.nn.functional.normalize(StepNoise(3).normal(20, 3).double(), dim=-1)
    velocity = r @ rotations.skew(w)
    reached = rotations.matrices(manifold.exp(x, rotations.points(velocity)))
    assert torch.allclose(reached, torch.as_tensor(group.exp(velocity.numpy(), r.numpy())), atol=1e-9)
    theirs = torch.as_tensor(np.stack([vectors.rotation_vector_from_matrix(one) for one in (r.mT @ reached).numpy()]))
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
def test_orthant_agrees_with_geomstats(width: int) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from geomstats.geometry.hypersphere import Hypersphere
    manifold = PositiveOrthant()
    metric = Hypersphere(width - 1).metric
    x, y = points(manifold, 100, width), points(manifold, 100, width, seed=1)
    v = manifold.log(x, y)
    assert torch.allclose(v, torch.as_tensor(metric.log(y.numpy(), x.numpy())), atol=1e-7)
    assert torch.allclose(manifold.exp(x, 0.4 * v), torch.as_tensor(metric.exp(0.4 * v.numpy(), x.numpy())), atol=1e-7)
