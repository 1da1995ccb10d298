"""A residual network of dilated convolutions over sites, modulated by two times and by the place in the sequence."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional

from generators.networks.waves import waves

DILATIONS = (1, 2, 4, 8, 16)
TIME_WAVES, PLACE_WAVES = 32, 16


class DilatedConvolutions(nn.Module):
    """(batch, length, width_in) -> (batch, length, width_out), for any length up to the one that it is made for.

    The trunk runs in bfloat16 under autocast: convolutions are 1 x k over channels-last images, which is the layout
    that a CPU's matrix units want. Dilations repeat 1, 2, 4, 8, 16, so ten blocks of kernel 5 see 249 sites.
    """

    places: Tensor

    def __init__(self, length: int, width_in: int, width_out: int, channels: int, depth: int, kernel: int) -> None:
        super().__init__()
        self.input = nn.Linear(width_in, channels)
        # Waves of length 1 in total: at full size, the noise of their many weights drowns what the place says.
        places = waves(torch.arange(length), 2.0 * length, 12.0, PLACE_WAVES) / PLACE_WAVES**0.5
        self.register_buffer("places", places, persistent=False)
        self.place = nn.Linear(2 * PLACE_WAVES, channels)
        self.times = nn.Sequential(
            nn.Linear(4 * TIME_WAVES, channels), nn.SiLU(), nn.Linear(channels, channels), nn.SiLU()
        )
        self.blocks = nn.ModuleList(Block(channels, kernel, DILATIONS[i % len(DILATIONS)]) for i in range(depth))
        self.norm = nn.LayerNorm(channels)
        self.output = nn.Linear(channels, width_out)
        nn.init.zeros_(self.output.weight)

    def forward(self, x: Tensor, mask: Tensor, start: Tensor, end: Tensor) -> Tensor:
        """x (B, L, width_in), mask (B, L) bool, times `start` and `end` (B,) in [0, 1] -> (B, L, width_out) float32."""
        times = torch.cat([waves(time, 4.0, 1 / 64, TIME_WAVES) for time in (start, end - start)], dim=-1)
        condition, places = self.times(times), self.places[: x.shape[1]]  # (B, C), (L, 2 * PLACE_WAVES)
        keep = None if bool(mask.all()) else mask[..., None]
        hidden = self.input(x) + self.place(places)  # (B, L, C)
        if torch.is_autocast_enabled(x.device.type):
            hidden = hidden.to(torch.get_autocast_dtype(x.device.type))
        for block in self.blocks:
            hidden = block(hidden, condition, places, keep)
        with torch.autocast(x.device.type, enabled=False):
            output: Tensor = self.output(self.norm(hidden.float()))
        return output


class Block(nn.Module):
    """Norm, scale and shift by time and place, one dilated convolution, SiLU, one linear map; added to its input."""

    def __init__(self, channels: int, kernel: int, dilation: int) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(channels, elementwise_affine=False)
        self.by_time = nn.Linear(channels, 2 * channels)
        self.by_place = nn.Linear(2 * PLACE_WAVES, 2 * channels, bias=False)
        padding = (0, dilation * (kernel // 2))
        self.convolution = nn.Conv2d(channels, channels, (1, kernel), padding=padding, dilation=(1, dilation))
        self.mix = nn.Linear(channels, channels)
        for zeroed in (self.by_time, self.by_place, self.mix):
            nn.init.zeros_(zeroed.weight)
            if zeroed.bias is not None:
                nn.init.zeros_(zeroed.bias)

    def forward(self, x: Tensor, condition: Tensor, places: Tensor, keep: Tensor | None) -> Tensor:
        """x (B, L, C), condition (B, C), places (L, 2 * PLACE_WAVES), keep (B, L, 1) bool or None -> (B, L, C)."""
        modulation = self.by_time(condition)[:, None] + self.by_place(places)  # (B, L, 2 C)
        scale, shift = modulation.to(x.dtype).chunk(2, dim=-1)
        hidden = torch.addcmul(shift, self.norm(x), 1 + scale)
        if keep is not None:
            hidden = hidden * keep
        image = hidden.transpose(1, 2).unsqueeze(2)  # (B, C, 1, L), channels last in memory
        hidden = functional.silu(self.convolution(image)).squeeze(2).transpose(1, 2)
        result: Tensor = x + self.mix(hidden)
        return result
