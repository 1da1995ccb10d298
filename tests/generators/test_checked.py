"""What is not on a manifold is refused with its place and by how much."""

import math

import pytest
import torch

from data.noise import StepNoise
from generators.base import GeneratorError
from generators.manifolds import jacobi
from generators.manifolds.base import SpaceForm
from generators.manifolds.checked import checked
from generators.manifolds.flat_torus import FlatTorus
from generators.manifolds.geomstats_manifold import GeomstatsManifold
from generators.manifolds.rotations import Rotations
from generators.manifolds.sphere import Sphere
from tests.generators.test_manifolds import BUILT_IN, Manifold, geomstats, noise, points

SPHERE = checked(Sphere())
X = torch.eye(3).repeat(2, 1)


@pytest.mark.parametrize("manifold", BUILT_IN, ids=lambda m: type(m).__name__)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_what_is_legal_passes_unchanged(manifold: Manifold, dtype: torch.dtype) -> None:
    guarded = checked(manifold)
    x, y = (manifold.project(points(manifold, 20, 4, seed=k).to(dtype)) for k in (0, 1))
    v = manifold.tangent(x, noise(manifold, 20, 4, seed=2).to(dtype))
    assert torch.equal(guarded.log(x, y), manifold.log(x, y))
    assert torch.equal(guarded.exp(x, v), manifold.exp(x, v))
    assert torch.equal(guarded.square(x, v), manifold.square(x, v))
    assert torch.equal(guarded.tangent(x, y), manifold.tangent(x, y))
    assert torch.equal(guarded.random(x, StepNoise(0)), manifold.random(x, StepNoise(0)))
    assert isinstance(guarded, SpaceForm)
    assert torch.equal(jacobi.hessian(guarded, x, v, v), jacobi.hessian(manifold, x, v, v))
    assert guarded.log(x[:0], y[:0]).shape == x[:0].shape


def test_a_point_off_the_manifold_is_named() -> None:
    y = X.clone()
    y[4] *= 1.25
    with pytest.raises(GeneratorError, match=r"point \(4,\) of y is 0.25 off the manifold; at most 1e-05: project it"):
        SPHERE.log(X, y)
    y = X.reshape(2, 3, 3).clone()
    y[1, 2] *= 0.5
    with pytest.raises(GeneratorError, match=r"point \(1, 2\) of x is 0.5 off"):
        SPHERE.exp(y, torch.zeros_like(y))


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
def test_numbers_that_are_not_finite_are_named(value: float) -> None:
    bad = X.clone()
    bad[3, 1] = value
    for name, call in (
        ("y", lambda: SPHERE.log(X, bad)),
        ("x", lambda: SPHERE.log(bad, X)),
        ("v", lambda: SPHERE.exp(X, bad)),
        ("v", lambda: SPHERE.tangent(X, bad)),
        ("x", lambda: SPHERE.project(bad)),
    ):
        with pytest.raises(GeneratorError, match=rf"{name} has {value} at \(3, 1\)"):
            call()


def test_a_vector_that_is_not_tangent_is_named() -> None:
    v = torch.zeros_like(X)
    v[5] = X[5] / 2
    for call in (SPHERE.exp, SPHERE.square, lambda x, w: SPHERE.transport(x, w, w)):
        with pytest.raises(GeneratorError, match=r"vector \(5,\) of [vw] is 0.5 of its length off tangent"):
            call(X, v)


def test_mixed_kinds_are_named() -> None:
    with pytest.raises(GeneratorError, match=r"mixed dtypes: x has torch.float32, y has torch.float64"):
        SPHERE.log(X, X.double())
    with pytest.raises(GeneratorError, match=r"mixed devices: x has cpu, v has meta"):
        SPHERE.exp(X, X.to("meta"))
    with pytest.raises(GeneratorError, match=r"mixed widths: x has 3, y has 4"):
        SPHERE.log(X, torch.eye(4))
    with pytest.raises(GeneratorError, match=r"x has shape \(6, 4\), which Rotations does not take"):
        checked(Rotations()).project(torch.zeros(6, 4))


def test_antipodes_have_the_limit() -> None:
    assert torch.allclose(SPHERE.log(X, -X).norm(dim=-1), torch.tensor(math.pi))


def test_an_angle_out_of_range_is_off_the_torus() -> None:
    torus = checked(FlatTorus())
    with pytest.raises(GeneratorError, match=r"point \(1,\) of x is 6.28 off"):
        torus.exp(torch.tensor([[0.0], [4.0]]), torch.zeros(2, 1))
    assert torus.exp(torch.zeros(1, 1), torch.tensor([[10.0]])).isfinite().all()  # windings are legal


def test_a_manifold_of_no_known_curvature_stays_one() -> None:
    manifold = GeomstatsManifold(geomstats("hypersphere", "Hypersphere", 2))
    assert not isinstance(checked(manifold), SpaceForm)
    with pytest.raises(GeneratorError, match=r"point \(0,\) of y is 1 off"):
        checked(manifold).log(X, 2 * X)
