"""Laws that hold on every manifold, in float64, and agreement with geomstats where it has the space."""

import math
import warnings

import pytest
import torch
from torch import Tensor

from data.noise import StepNoise
from generators.manifolds.base import Manifold
from generators.manifolds.euclidean import Euclidean
from generators.manifolds.positive_orthant import PositiveOrthant

MANIFOLDS = [Euclidean(), PositiveOrthant()]
IDS = ["euclidean", "positive_orthant"]
every_manifold = pytest.mark.parametrize("manifold", MANIFOLDS, ids=IDS)


def points(manifold: Manifold, *shape: int, seed: int = 0) -> Tensor:
    return manifold.project(manifold.random(torch.empty(*shape, dtype=torch.float64), StepNoise(seed)))


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
    raw = StepNoise(2).normal(40, 4).double()
    x = manifold.project(raw)
    v = manifold.tangent(x, StepNoise(3).normal(40, 4).double())
    assert torch.allclose(manifold.project(x), x, atol=1e-14)
    assert torch.allclose(manifold.tangent(x, v), v, atol=1e-14)


@every_manifold
def test_coincident_points_have_finite_exact_derivatives(manifold: Manifold) -> None:
    x = points(manifold, 10, 4)
    v = manifold.tangent(x, StepNoise(4).normal(10, 4).double())
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


@every_manifold
def test_the_law_of_the_prior(manifold: Manifold) -> None:
    x = points(manifold, 200_000, 4).double()
    second = (x.T @ x / len(x)).diagonal()
    expected = 0.25 if isinstance(manifold, PositiveOrthant) else 1.0
    assert torch.allclose(second, torch.full_like(second, expected), atol=0.01)
    if isinstance(manifold, PositiveOrthant):  # Dirichlet(1/2): Var p = (1/4)(3/4) / 3
        assert torch.allclose(x.square().var(0), torch.full_like(second, 1 / 16), atol=0.002)
        assert (x >= 0).all()


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
