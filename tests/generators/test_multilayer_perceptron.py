"""Several small networks trained as one."""

import pytest
import torch

from data.noise import StepNoise
from generators.networks.multilayer_perceptron import MultilayerPerceptron

START, END = torch.linspace(0, 0.5, 12), torch.linspace(0.4, 1, 12)


def network(groups: int = 3) -> MultilayerPerceptron:
    return MultilayerPerceptron(2, 5, channels=16, depth=2, groups=groups, rng=StepNoise(0))


def test_a_group_sees_its_own_rows_only() -> None:
    made, x = network(), StepNoise(1).normal(12, 2)
    other = x.clone()
    other[1::3] = 9.0
    same, changed = made(x, START, END), made(other, START, END)
    assert same.shape == (12, 5)
    assert torch.equal(same[0::3], changed[0::3])
    assert torch.equal(same[2::3], changed[2::3])
    assert not torch.isclose(same[1::3], changed[1::3]).any()


def test_groups_have_weights_of_their_own() -> None:
    x = StepNoise(1).normal(1, 2).repeat(3, 1)
    made = network()(x, START[:1].repeat(3), END[:1].repeat(3))
    assert not torch.isclose(made[0], made[1]).any()


def test_a_group_is_a_network_of_one() -> None:
    many, one, x = network(), network(groups=1), StepNoise(1).normal(12, 2)
    for theirs, own in zip(many.parameters(), one.parameters(), strict=True):
        own.data = theirs.data[1:2]
    assert torch.allclose(one(x[1::3], START[1::3], END[1::3]), many(x, START, END)[1::3], atol=1e-6)


@pytest.mark.parametrize("which", [0, 1])
def test_both_times_matter(which: int) -> None:
    made, x = network(), StepNoise(1).normal(12, 2)
    times = [START, END]
    before = made(x, *times)
    times[which] = times[which] + 0.1
    assert (made(x, *times) - before).abs().max() > 1e-3


def test_every_weight_is_learned() -> None:
    made = network()
    made(StepNoise(1).normal(12, 2), START, END).square().sum().backward()
    assert all(weight.grad is not None and weight.grad.any() for weight in made.parameters())


def test_derivatives_by_time_are_exact() -> None:
    made, x = network().double(), StepNoise(1).normal(12, 2).double()
    start, end, one = START.double(), END.double(), torch.ones(12).double()
    slope = torch.func.jvp(lambda s, t: made(x, s, t), (start, end), (one, -one))[1]
    far = (made(x, start + 1e-5, end - 1e-5) - made(x, start - 1e-5, end + 1e-5)) / 2e-5
    assert torch.allclose(slope, far, atol=1e-6)
