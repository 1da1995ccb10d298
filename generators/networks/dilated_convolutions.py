"""A residual network of dilated convolutions over sites, modulated by two times."""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn
from torch.nn import functional

DILATIONS = (1, 2, 4, 8, 16)


class DilatedConvolutions(nn.Module):
    """(batch, length, width_in) -> (batch, length, width_out), with learned positions.

    The trunk runs in bfloat16 under autocast: convolutions are 1 x k over channels-last images, which is the layout
    that a CPU's matrix units want. Dilations repeat 1, 2, 4, 8, 16, so ten blocks of kernel 5 see 249 sites.
    """

    def __init__(self, length: int, width_in: int, width_out: int, channels: int, depth: int, kernel: int) -> None:
        super().__init__()
        self.input = nn.Linear(width_in, channels)
        self.positions = nn.Parameter(0.02 * torch.randn(length, channels))
        self.times = nn.Sequential(nn.Linear(2 * 2 * 32, channels), nn.SiLU(), nn.Linear(channels, channels), nn.SiLU())
        self.blocks = nn.ModuleList(Block(channels, kernel, DILATIONS[i % len(DILATIONS)]) for i in range(depth))
        self.norm = nn.LayerNorm(channels)
        self.output = nn.Linear(channels, width_out)
        nn.init.zeros_(self.output.weight)

    def forward(self, x: Tensor, mask: Tensor, start: Tensor, end: Tensor) -> Tensor:
        """x (B, L, width_in), mask (B, L) bool, times `start` and `end` (B,) in [0, 1] -> (B, L, width_out) float32."""
        condition = self.times(torch.cat([_fourier(start), _fourier(end - start)], dim=-1))  # (B, C)
        keep = None if bool(mask.all()) else mask[..., None]
        hidden = self.input(x) + self.positions  # (B, L, C)
        if torch.is_autocast_enabled(x.device.type):
            hidden = hidden.to(torch.get_autocast_dtype(x.device.type))
        for block in self.blocks:
            hidden = block(hidden, condition, keep)
        with torch.autocast(x.device.type, enabled=False):
            output: Tensor = self.output(self.norm(hidden.float()))
        return output


class Block(nn.Module):
    """Norm, scale and shift from the condition, one dilated convolution, SiLU, one linear map; added to its input."""

    def __init__(self, channels: int, kernel: int, dilation: int) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(channels, elementwise_affine=False)
        self.modulation = nn.Linear(channels, 2 * channels)
        padding = (0, dilation * (kernel // 2))
        self.convolution = nn.Conv2d(channels, channels, (1, kernel), padding=padding, dilation=(1, dilation))
        self.mix = nn.Linear(channels, channels)
        for zeroed in (self.modulation, self.mix):
            nn.init.zeros_(zeroed.weight)
            nn.init.zeros_(zeroed.bias)

    def forward(self, x: Tensor, condition: Tensor, keep: Tensor | None) -> Tensor:
        """x (B, L, C), condition (B, C), keep (B, L, 1) bool or None -> (B, L, C)."""
        scale, shift = self.modulation(condition)[:, None].to(x.dtype).chunk(2, dim=-1)
        hidden = torch.addcmul(shift, self.norm(x), 1 + scale)
        if keep is not None:
            hidden = hidden * keep
        image = hidden.transpose(1, 2).unsqueeze(2)  # (B, C, 1, L), channels last in memory
        hidden = functional.silu(self.convolution(image)).squeeze(2).transpose(1, 2)
        result: Tensor = x + self.mix(hidden)
        return result


def _fourier(time: Tensor) -> Tensor:
    """32 sines and 32 cosines of times (B,), with periods from 4 down to 1/64."""
    frequencies = 2 * math.pi * torch.logspace(-2, 6, 32, base=2, device=time.device)
    angles = time.float()[:, None] * frequencies
    return torch.cat([angles.sin(), angles.cos()], dim=-1)
