"""The closed forms of Jacobi fields against differences along geodesics and forward-mode differentiation."""

import math
from typing import Any

import pytest
import torch
from torch import Tensor

from data.noise import StepNoise
from generators.manifolds import jacobi
from generators.manifolds.base import Manifold
from generators.manifolds.centred_chains import CentredChains
from generators.manifolds.euclidean import Euclidean
from generators.manifolds.flat_torus import FlatTorus
from generators.manifolds.frames import frames
from generators.manifolds.poincare_ball import PoincareBall
from generators.manifolds.positive_orthant import PositiveOrthant
from generators.manifolds.product import Product
from generators.manifolds.rotations import Rotations
from generators.manifolds.sphere import Sphere

FORMS: list[tuple[Any, int]] = [
    (Euclidean(), 3),
    (Sphere(), 3),
    (Sphere(), 7),
    (PositiveOrthant(), 4),
    (CentredChains(), 3),
    (FlatTorus(), 3),
    (Rotations(), 9),
    (PoincareBall(), 3),
]
every_form = pytest.mark.parametrize(
    ("manifold", "width"), FORMS, ids=[f"{type(m).__name__}-{width}" for m, width in FORMS]
)
STEP = 1e-4


class Plain:
    """A manifold that tells nothing but what every manifold must."""

    def __init__(self, inner: Any) -> None:
        self.exp, self.log, self.square = inner.exp, inner.log, inner.square
        self.project, self.tangent, self.random = inner.project, inner.tangent, inner.random


class Derived(Plain):
    def __init__(self, inner: Any) -> None:
        super().__init__(inner)
        self.covariant = inner.covariant


def setting(manifold: Manifold, width: int, n: int = 30) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """x, w with Exp_x(w) = y, and two more tangents at x."""
    like = torch.empty(n, width, dtype=torch.float64)
    x, y = (manifold.project(manifold.random(like, StepNoise(k))) for k in (0, 1))
    if isinstance(manifold, PoincareBall):  # where the coordinates are not too small for differences of them
        x, y = 0.7 * x, 0.7 * y
    if isinstance(manifold, PositiveOrthant):  # well inside, so that differences do not cross a face
        x, y = manifold.project(x + 0.3), manifold.project(y + 0.3)
    v, u = (manifold.tangent(x, StepNoise(k).normal(n, width).double()) for k in (2, 3))
    return x, manifold.log(x, y), v, u


@every_form
def test_push_is_the_derivative_of_exp(manifold: Any, width: int) -> None:
    x, w, xi, _ = setting(manifold, width)
    pushed = jacobi.push(manifold, x, w, xi)
    differences = (manifold.exp(x, w + STEP * xi) - manifold.exp(x, w - STEP * xi)) / (2 * STEP)
    assert torch.allclose(pushed, differences, atol=1e-6)
    assert torch.allclose(pushed, jacobi.push(Plain(manifold), x, w, xi), atol=1e-10)
    assert torch.allclose(manifold.tangent(manifold.exp(x, w), pushed), pushed, atol=1e-12)


@every_form
def test_pull_undoes_push(manifold: Any, width: int) -> None:
    x, w, xi, _ = setting(manifold, width)
    eta = jacobi.push(manifold, x, w, xi)
    assert torch.allclose(jacobi.pull(manifold, x, w, eta), xi, atol=1e-9)
    assert torch.allclose(jacobi.pull(Plain(manifold), x, w, eta), xi, atol=1e-9)


@every_form
def test_hessian_is_that_of_half_the_squared_distance(manifold: Any, width: int) -> None:
    """As a quadratic form, by second differences along a geodesic; as a vector, by differentiating the log."""
    x, w, v, _ = setting(manifold, width)
    applied = jacobi.hessian(manifold, x, w, v)
    assert torch.allclose(applied, jacobi.hessian(Derived(manifold), x, w, v), atol=1e-9)
    if isinstance(manifold, CentredChains):
        return  # its squares are of sites that are not apart
    y, h = manifold.exp(x, w), 1e-3

    def half(p: Tensor) -> Tensor:
        return manifold.square(p, manifold.log(p, y)) / 2

    second = (half(manifold.exp(x, h * v)) + half(manifold.exp(x, -h * v)) - 2 * half(x)) / h**2
    form = (manifold.square(x, v + applied) - manifold.square(x, v - applied)) / 4
    assert torch.allclose(form, second, rtol=1e-4, atol=1e-4)


@every_form
def test_transport_keeps_lengths_and_the_velocity(manifold: Any, width: int) -> None:
    x, w, v, u = setting(manifold, width)
    y = manifold.exp(x, w)
    a, b = manifold.transport(x, w, v), manifold.transport(x, w, u)
    assert torch.allclose(manifold.square(y, a), manifold.square(x, v), rtol=1e-9)
    assert torch.allclose(manifold.square(y, a + b), manifold.square(x, v + u), rtol=1e-9)
    assert torch.allclose(manifold.transport(x, w, w), -manifold.log(y, x), atol=1e-9)
    assert torch.allclose(manifold.tangent(y, a), a, atol=1e-12)
    assert torch.allclose(manifold.transport(y, -manifold.transport(x, w, w), a), v, atol=1e-9)


@every_form
def test_transport_agrees_with_a_pole_ladder(manifold: Any, width: int) -> None:
    """Which knows exp and log only, and is exact on symmetric spaces (Guigui & Pennec 2022)."""
    x, w, v, _ = setting(manifold, width)
    w, v = 0.5 * w, 0.1 * v / manifold.square(x, v).sqrt().unsqueeze(-1).clamp_min(1)
    y, middle = manifold.exp(x, w), manifold.exp(x, 0.5 * w)
    mirrored = manifold.exp(middle, -manifold.log(middle, manifold.exp(x, v)))
    assert torch.allclose(manifold.transport(x, w, v), -manifold.log(y, mirrored), atol=1e-8)


@every_form
def test_covariant_is_the_derivative_of_transport_back(manifold: Any, width: int) -> None:
    """Of a field that is not constant in any sense: the logs to a fixed point, times a function."""
    x, w, v, _ = setting(manifold, width)
    y = manifold.exp(x, w)

    def field(p: Tensor) -> Tensor:
        return (1 + p[..., :1].square()) * manifold.log(p, y)

    u, du = torch.func.jvp(field, (x,), (v,))
    found = manifold.covariant(x, v, u, du)

    def back(step: float) -> Tensor:
        p = manifold.exp(x, step * v)
        return manifold.transport(p, manifold.log(p, x), field(p))

    assert torch.allclose(found, (back(STEP) - back(-STEP)) / (2 * STEP), atol=1e-5)


def test_a_field_that_is_carried_along_does_not_change() -> None:
    manifold = PoincareBall()
    x, _, v, u = setting(manifold, 3)
    ahead = manifold.transport(x, STEP * v, u) - manifold.transport(x, -STEP * v, u)
    assert manifold.covariant(x, v, u, ahead / (2 * STEP)).abs().max() < 1e-4


def test_to_leave_out_the_curvature_is_seen() -> None:
    x, w, v, _ = setting(Sphere(), 3)
    assert (jacobi.hessian(Sphere(), x, w, v) - v).abs().max() > 0.5


@every_form
def test_no_displacement_changes_nothing(manifold: Any, width: int) -> None:
    x, _, v, _ = setting(manifold, width)
    zero = torch.zeros_like(x)
    for operation in (jacobi.hessian, jacobi.push, jacobi.pull):
        assert torch.allclose(operation(manifold, x, zero, v), v, atol=1e-14)
    small = zero.clone().requires_grad_()
    (gradient,) = torch.autograd.grad(jacobi.hessian(manifold, x, small, v).square().sum(), small)
    assert gradient.isfinite().all()


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
@pytest.mark.parametrize("off", [0.0, 1e-9, 1e-5, 1e-2])
def test_factors_are_capped_at_the_antipode(off: float, dtype: torch.dtype) -> None:
    x = torch.tensor([1.0, 0.0, 0.0], dtype=dtype)
    w, v = ((math.pi + sign * off) * torch.tensor([0.0, 1.0, 0.0], dtype=dtype) for sign in (-1, 1))
    across = torch.tensor([0.0, 0.3, 1.0], dtype=dtype)
    for w_ in (w, v):
        for operation in (jacobi.hessian, jacobi.push, jacobi.pull):
            found = operation(Sphere(), x, w_, across)
            assert found.isfinite().all()
            assert found.norm() <= 1.1 / jacobi.CLOSEST
    if off == 1e-2:
        expected = (math.pi - off) / math.tan(math.pi - off)
        assert jacobi.hessian(Sphere(), x, w, across)[2].item() == pytest.approx(expected, rel=1e-3)


@pytest.mark.parametrize("angle", [0.0, 1e-9, 1e-4, 1.0, math.pi - 1e-6, math.pi])
def test_rotations_have_the_jacobians_of_the_group(angle: float) -> None:
    """In the frame: H v = v_along + (a/2) cot(a/2) v_across, finite at pi, for the conjugate point is at 2 pi."""
    manifold = Rotations()
    x, _, v, _ = setting(manifold, 9)
    direction = manifold.tangent(x, StepNoise(7).normal(*x.shape).double())
    direction = direction / direction.norm(dim=-1, keepdim=True)
    half = angle / 2
    factor = 1.0 if angle == 0 else half / math.tan(half)
    along = (direction * v).sum(-1, keepdim=True) * direction
    assert torch.allclose(jacobi.hessian(manifold, x, angle * direction, v), along + factor * (v - along), atol=1e-12)


def test_composition_keeps_windings() -> None:
    torus, x = FlatTorus(), torch.tensor([[3.0, -3.0]])
    w = torch.tensor([[5.0, -4.0]])
    assert torch.equal(jacobi.compose(torus, x, w, w), 2 * w)
    assert torch.allclose(torus.exp(x, 2 * w), torus.exp(torus.exp(x, w), w), atol=1e-6)


@every_form
def test_composition_leads_there(manifold: Any, width: int) -> None:
    x, w, v, _ = setting(manifold, width)
    y = manifold.exp(x, 0.3 * w)
    there = manifold.exp(y, 0.2 * manifold.tangent(y, v))
    composed = jacobi.compose(manifold, x, 0.3 * w, 0.2 * manifold.tangent(y, v))
    assert torch.allclose(manifold.exp(x, composed), there, atol=1e-9)


def test_a_product_does_it_factor_by_factor() -> None:
    parts = {"ball": (PoincareBall(), 3), "sphere": (Sphere(), 4)}
    product = Product({name: manifold for name, (manifold, _) in parts.items()})
    x, w, v, u = ({name: setting(*part)[k] for name, part in parts.items()} for k in range(4))
    for name, (manifold, _) in parts.items():
        a, b, c = x[name], w[name], v[name]
        assert torch.equal(product.hessian(x, w, v)[name], jacobi.hessian(manifold, a, b, c))
        assert torch.equal(product.push(x, w, v)[name], jacobi.push(manifold, a, b, c))
        assert torch.equal(product.pull(x, w, product.push(x, w, v))[name].isfinite(), torch.ones_like(a).bool())
        assert torch.equal(product.compose(x, w, w)[name], jacobi.compose(manifold, a, b, b))
        assert torch.equal(product.transport(x, w, v)[name], manifold.transport(a, b, c))
        assert torch.equal(product.covariant(x, v, u, w)[name], manifold.covariant(a, c, u[name], b))
    total = sum(m.square(x[name], v[name]) for name, (m, _) in parts.items())
    assert torch.allclose(product.square(x, v), torch.as_tensor(total))


def test_frames_have_the_identity_as_hessian_of_their_places() -> None:
    product = frames()
    like = {"place": torch.empty(2, 5, 3).double(), "turn": torch.empty(2, 5, 9).double()}
    x, y = (product.random(like, StepNoise(k)) for k in (0, 1))
    w = product.log(x, y)
    assert torch.equal(product.hessian(x, w, w)["place"], w["place"])
    assert torch.allclose(product.hessian(x, w, w)["turn"], w["turn"], atol=1e-12)  # along the geodesic
