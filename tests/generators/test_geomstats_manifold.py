"""Spaces of geomstats through the adapter, against our own closed forms."""

from typing import Any

import pytest
import torch
from torch import Tensor, nn

from data.noise import StepNoise
from generators.base import GeneratorError
from generators.manifolds import jacobi
from generators.manifolds.base import SpaceForm
from generators.manifolds.geomstats_manifold import GeomstatsManifold, use_torch
from generators.manifolds.poincare_ball import PoincareBall
from generators.manifolds.product import Product
from generators.manifolds.sphere import Sphere
from generators.networks.multilayer_perceptron import MultilayerPerceptron
from generators.rmf.geometry import Chart, Geometry, Points
from generators.rmf.mean_flow import MeanFlow
from generators.rmf.parameterisations import x1
from generators.rmf.training import Recipe, Trainer
from tests.generators.test_manifolds import geomstats

SPACES: list[tuple[Any, Any]] = [
    (GeomstatsManifold(geomstats("hypersphere", "Hypersphere", 3)), Sphere()),
    (GeomstatsManifold(geomstats("poincare_ball", "PoincareBall", 4)), PoincareBall()),
]
both = pytest.mark.parametrize(("theirs", "ours"), SPACES, ids=["sphere", "ball"])


@both
def test_derivatives_agree_with_closed_forms(theirs: Any, ours: Any) -> None:
    like = torch.empty(6, 2, 4, dtype=torch.float64)
    x, y = (0.8 * theirs.random(like, StepNoise(k)) for k in (0, 1))
    x, y = (ours.project(p / p.norm(dim=-1, keepdim=True)) if isinstance(ours, Sphere) else p for p in (x, y))
    w, v = ours.log(x, y), ours.tangent(x, StepNoise(2).normal(6, 2, 4).double())
    assert torch.allclose(theirs.log(x, y), w, atol=1e-9)
    for operation in (jacobi.hessian, jacobi.push):
        assert torch.allclose(operation(theirs, x, w, v), operation(ours, x, w, v), atol=1e-6)
    eta = jacobi.push(ours, x, w, v)
    assert torch.allclose(jacobi.pull(theirs, x, w, eta), jacobi.pull(ours, x, w, eta), atol=1e-6)
    assert torch.allclose(theirs.covariant(x, v, w, v), ours.covariant(x, v, w, v), atol=1e-6)
    steps = (0.1 * w, 0.1 * ours.transport(x, 0.1 * w, v))
    assert torch.allclose(jacobi.compose(theirs, x, *steps), jacobi.compose(ours, x, *steps), atol=1e-9)


@both
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_it_leaves_dtypes_alone(theirs: Any, ours: Any, dtype: torch.dtype) -> None:
    before = torch.get_default_dtype()
    x, y = (theirs.random(torch.empty(3, 4, dtype=dtype), StepNoise(k)) for k in (0, 1))
    results = (x, theirs.exp(x, theirs.log(x, y)), theirs.square(x, y), theirs.project(x), theirs.tangent(x, y))
    assert all(result.dtype == dtype for result in results)
    assert torch.get_default_dtype() == before


def test_points_of_matrix_shape_are_rows_of_numbers() -> None:
    """The distance of positive definite matrices is that of the logarithms of their joint eigenvalues."""
    manifold = GeomstatsManifold(geomstats("spd_matrices", "SPDMatrices", 2))
    like = torch.empty(5, 3, 4, dtype=torch.float64)
    x, y = manifold.random(like, StepNoise(0)), manifold.random(like, StepNoise(1))
    ratios = torch.linalg.eigvals(torch.linalg.solve(x.unflatten(-1, (2, 2)), y.unflatten(-1, (2, 2)))).real
    assert torch.allclose(manifold.square(x, manifold.log(x, y)), ratios.log().square().sum(-1))
    pushed = jacobi.push(manifold, x, manifold.log(x, y), y)
    assert torch.allclose(jacobi.pull(manifold, x, manifold.log(x, y), pushed), y, atol=1e-9)


def test_empty_batches_are_empty() -> None:
    manifold, _ = SPACES[0]
    x = torch.empty(0, 4)
    assert manifold.exp(x, x).shape == manifold.log(x, x).shape == manifold.random(x, StepNoise(0)).shape == (0, 4)
    assert manifold.square(x, x).shape == (0,)


def test_it_has_no_transport() -> None:
    manifold, _ = SPACES[0]
    assert not isinstance(manifold, SpaceForm)
    x = {"a": torch.eye(4)}
    with pytest.raises(GeneratorError, match="factor a, GeomstatsManifold, has no parallel transport"):
        Product({"a": manifold}).transport(x, x, x)


def test_a_space_without_a_metric_is_refused() -> None:
    with pytest.raises(GeneratorError, match="object has no metric with exp and log"):
        GeomstatsManifold(object())


def test_another_backend_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    import geomstats.backend as backend

    monkeypatch.setattr(backend, "__name__", "geomstats.numpy")
    with pytest.raises(GeneratorError, match="geomstats computes with numpy; it must compute with pytorch"):
        use_torch()


class OnGeomstats(nn.Module):
    """A small flow map on a sphere of geomstats."""

    def __init__(self, manifold: GeomstatsManifold) -> None:
        super().__init__()
        self.chart = Chart(
            manifold,
            manifold.width,
            toward=lambda raw, x, mask: manifold.log(x, manifold.project(raw)),
            near=lambda y, mask: manifold.project(y),
        )
        self.network = MultilayerPerceptron(manifold.width, manifold.width, 32, 2, 1, StepNoise(0))

    @property
    def flow(self) -> MeanFlow:
        def raw(x: Points, mask: Tensor, s: Tensor, t: Tensor) -> Points:
            return {"x": self.network(x["x"][:, 0], s, t)[:, None]}

        return MeanFlow(Geometry({"x": self.chart}), raw, x1, 1 / 32)


@pytest.mark.parametrize("objective", ["semigroup", "eulerian"])
def test_a_flow_map_learns_on_a_space_of_geomstats(objective: str) -> None:
    """All data is near one pole; one step of the map leads there from anywhere."""
    manifold = GeomstatsManifold(geomstats("hypersphere", "Hypersphere", 2))
    recipe = Recipe(
        steps=60, flow_matching_steps=10, learning_rate=2e-2, warm_up=5, decay=0.9, objective=objective, bfloat16=False
    )
    model, mask = OnGeomstats(manifold), torch.ones(32, 1, dtype=torch.bool)
    trainer = Trainer(model, recipe, length=1)
    for step in range(recipe.steps):
        noise = StepNoise(step)
        ones = torch.nn.functional.normalize(torch.tensor([0.0, 0.0, 1.0]) + 0.1 * noise.normal(32, 1, 3), dim=-1)
        trainer.advance({"x": ones, "mask": mask}, noise.fork(0))
    start = {"x": manifold.random(torch.empty(32, 1, 3), StepNoise(7))}
    with torch.no_grad():
        end = trainer.average.flow.jump(start, mask, torch.zeros(32), torch.ones(32))["x"]
    assert torch.allclose(end.norm(dim=-1), torch.ones(32, 1), atol=1e-5)
    assert start["x"][..., 2].mean() < 0.3
    assert end[..., 2].mean() > 0.9
