"""Residual multilayer perceptrons that are told two times at every layer, several of them trained as one."""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn
from torch.nn import functional

from data.noise import Noise

PERIODS = (4.0, 2.0, 1.0, 0.5, 0.25)
"""Of the waves that tell a network the start of a jump, and how long it is."""


class MultilayerPerceptron(nn.Module):
    """(batch, width_in) -> (batch, width_out) by `groups` networks of the same shape and different weights.

    Row i is network i % groups's; the others see nothing of it. Small networks spend most of their time on the calls of
    operations, so several cost little more than one.
    """

    def __init__(self, width_in: int, width_out: int, channels: int, depth: int, groups: int, rng: Noise) -> None:
        super().__init__()
        self.groups, self.depth = groups, depth

        def layer(inputs: int, outputs: int) -> nn.Parameter:
            """Weights (groups, inputs, outputs) of a linear map, uniform as PyTorch's own are."""
            return nn.Parameter((2 * rng.uniform(groups, inputs, outputs) - 1) / inputs**0.5)

        self.frequencies: Tensor
        self.register_buffer("frequencies", _frequencies(), persistent=False)
        self.input = layer(width_in, channels)
        self.times = layer(self.frequencies.shape[1], (depth + 1) * channels)
        self.blocks = nn.ParameterList(layer(channels, channels) for _ in range(depth))
        self.output = layer(channels, width_out)

    def forward(self, x: Tensor, start: Tensor, end: Tensor) -> Tensor:
        """x (B, width_in) and times `start` and `end` (B,) in [0, 1], B a multiple of `groups` -> (B, width_out)."""
        angles = torch.stack([start, end - start, torch.ones_like(start)], dim=-1) @ self.frequencies
        first, *conditions = torch.bmm(self._apart(angles.sin()), self.times).chunk(self.depth + 1, dim=-1)
        hidden = functional.silu(first + torch.bmm(self._apart(x), self.input))
        for weight, condition in zip(self.blocks, conditions, strict=True):
            hidden = hidden + functional.silu(condition + torch.bmm(hidden, weight))
        return torch.bmm(hidden, self.output).transpose(0, 1).flatten(0, 1)

    def _apart(self, x: Tensor) -> Tensor:
        """Rows (B, width) by network, (groups, B / groups, width)."""
        return x.reshape(-1, self.groups, x.shape[-1]).transpose(0, 1)


def _frequencies() -> Tensor:
    """(3, waves): from (start, length, 1) to the angles whose sines a network is told; the last is 1, for the bias."""
    rates = 2 * math.pi / torch.tensor(PERIODS)
    zero, quarter = torch.zeros_like(rates), torch.full_like(rates, math.pi / 2)
    parts = [(rates, zero, zero), (rates, zero, quarter), (zero, rates, zero), (zero, rates, quarter)]
    waves = torch.cat([torch.stack(part) for part in parts], dim=1)
    return torch.cat([waves, torch.tensor([[0.0], [0.0], [math.pi / 2]])], dim=1)
