"""Muon: steps that are orthogonal matrices of AdamW's size, and a descent that can be taken up again."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from generators.base import GeneratorError
from generators.muon import Muon, orthogonal
from generators.training import Descent, Rates


@pytest.mark.parametrize("shape", [(8, 8), (8, 20), (20, 8)])
def test_singular_values_become_one(shape: tuple[int, int]) -> None:
    torch.manual_seed(0)
    matrix = torch.randn(shape)
    values = torch.linalg.svdvals(orthogonal(matrix))
    assert 0.6 < values.min() < values.max() < 1.3
    ideal = torch.linalg.svd(matrix, full_matrices=False)
    nearest = ideal.U @ ideal.Vh
    assert (orthogonal(matrix) * nearest).sum() / nearest.norm() / orthogonal(matrix).norm() > 0.95


def test_a_step_does_not_depend_on_the_size_of_the_gradient() -> None:
    moved = []
    for size in (1e-6, 1e3):
        weight = nn.Parameter(torch.zeros(6, 10))
        weight.grad = size * torch.arange(60.0).reshape(6, 10).sin()
        Muon([weight], lr=0.1, weight_decay=0.0).step()
        moved.append(weight.detach())
    assert torch.allclose(*moved, atol=1e-3)
    assert 0.01 < moved[0].square().mean().sqrt() < 0.03  # 0.2 of the rate, as AdamW's


def test_weights_decay_by_the_rate() -> None:
    weight = nn.Parameter(torch.ones(2, 2))
    weight.grad = torch.zeros(2, 2)
    Muon([weight], lr=0.1, weight_decay=0.5).step()
    assert torch.allclose(weight, torch.full((2, 2), 0.95))


def _descended(steps: int, state: dict[str, object] | None = None) -> tuple[Descent, float]:
    torch.manual_seed(0)
    network = nn.Sequential(nn.Linear(64, 64), nn.SiLU(), nn.Linear(64, 1))
    descent = Descent(network, Rates(steps=60, warm_up=1, learning_rate=3e-2, optimiser="muon"))
    if state is not None:
        descent.load_state_dict(state)
    x = torch.randn(64, 64, generator=torch.Generator().manual_seed(1))
    loss = torch.zeros(())
    while descent.step < steps:
        loss = (network(x)[:, 0] - x[:, 0] * x[:, 1]).square().mean()
        loss.backward()  # type: ignore[no-untyped-call]
        descent.take({"loss": loss.item()})
    return descent, loss.item()


def test_it_goes_down_and_can_be_taken_up_again() -> None:
    assert _descended(60)[1] < 0.5 * _descended(1)[1]
    half, _ = _descended(30)
    assert _descended(60, half.state_dict())[1] == _descended(60)[1]


def test_an_unknown_optimiser_is_refused() -> None:
    with pytest.raises(GeneratorError, match="adamw, muon"):
        Rates(steps=1, optimiser="sgd")
