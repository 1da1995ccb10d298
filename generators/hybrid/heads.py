"""The heads of a unit: its categories and bins one after the other, its residuals by diffusion, and when to end."""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn

TIMES = 1000
"""Times of diffusion, from data (0) to noise (999)."""
TIME_WAVES = 32
REACH = 48
"""Bins to either side of an anchor that have logits of their own."""


class Fields(nn.Module):
    """A unit's fields in order, first the categories, then the bins, each with its place; each sees all before it.

    The state z of a unit begins as the transformer's, and each known field adds its embedding.
    """

    def __init__(self, channels: int, categories: list[int], slots: int, bins: int, places: int = 0) -> None:
        super().__init__()
        self.bins, self.reach = bins, min(REACH, bins - 1)
        self.category_embeddings = nn.ModuleList(nn.Embedding(n, channels) for n in categories)
        self.category_heads = nn.ModuleList(perceptron(channels, n + (i == 0)) for i, n in enumerate(categories))
        self.waves = Waves(bins)
        self.bin_embeddings = nn.ModuleList(nn.Linear(self.waves.width, channels, bias=False) for _ in range(slots))
        digits = slots if places > 1 else 0
        self.place_heads = nn.ModuleList(perceptron(channels, places) for _ in range(digits))
        self.place_embeddings = nn.ModuleList(nn.Embedding(places, channels) for _ in range(digits))
        relative = 2 * self.reach + 1
        self.bin_heads = nn.ModuleList(perceptron(channels, bins + (slots + k) * relative) for k in range(slots))

    def category_logits(self, z: Tensor, i: int) -> Tensor:
        """(M, channels) -> (M, n); the first categorical field has one class more, last, which ends the sequence."""
        logits: Tensor = self.category_heads[i](z).float()
        return logits

    def bin_logits(self, z: Tensor, k: int, anchors: Tensor, present: Tensor) -> Tensor:
        """(M, channels) -> (M, bins), the sum of absolute logits and of logits relative to each anchor.

        `anchors` (M, slots + k) are bins: those of the unit before, and the earlier ones of this unit. Distances to
        them are what geometry repeats (a width, a gap, a level line), and have the same logits wherever they occur.
        """
        raw: Tensor = self.bin_heads[k](z)
        absolute = raw[:, : self.bins].float()
        relative = raw[:, self.bins :].reshape(len(z), anchors.shape[1], -1)
        places = anchors[..., None] + torch.arange(relative.shape[-1], device=z.device)  # of bins, moved by `reach`
        around = absolute.new_zeros(len(z), self.bins + 2 * self.reach)
        around = around.scatter_add(1, places.flatten(1), (relative * present[..., None]).float().flatten(1))
        return absolute + around[:, self.reach : self.reach + self.bins]

    def place_logits(self, z: Tensor, k: int) -> Tensor:
        """(M, channels) -> (M, places) inside the bin of slot k, which z knows."""
        logits: Tensor = self.place_heads[k](z).float()
        return logits

    def with_category(self, z: Tensor, i: int, category: Tensor) -> Tensor:
        """z (M, channels) that knows categorical field i, given as (M,)."""
        known: Tensor = z + self.category_embeddings[i](category)
        return known

    def with_bin(self, z: Tensor, k: int, bins: Tensor, used: Tensor) -> Tensor:
        """z (M, channels) that knows the bin of slot k, given as (M,), where it is used (M,)."""
        known: Tensor = z + self.bin_embeddings[k](self.waves(bins)) * used[:, None]
        return known

    def with_place(self, z: Tensor, k: int, place: Tensor, used: Tensor) -> Tensor:
        """z (M, channels) that knows the place of slot k, given as (M,), where it is used (M,)."""
        known: Tensor = z + self.place_embeddings[k](place) * used[:, None]
        return known


class Waves(nn.Module):
    """Numbers (...) in units of a bin -> (..., width): waves by octaves, to twice as long as all the bins.

    The shortest is 4 bins long, or `finer` octaves less.
    """

    turns: Tensor

    def __init__(self, bins: int, finer: int = 0) -> None:
        super().__init__()
        octaves = torch.arange(2 - finer, max(1, math.ceil(math.log2(bins))) + 2)
        self.width = 2 * len(octaves)
        self.register_buffer("turns", 2 * math.pi / 2.0**octaves, persistent=False)

    def forward(self, x: Tensor) -> Tensor:
        """Sines and cosines."""
        angles = x.float()[..., None] * self.turns
        return torch.cat([angles.sin(), angles.cos()], dim=-1)


class EndAdjuster(nn.Module):
    """What is added to the logit of the end, from the transformer's state and how many units there are.

    Zero before training, so that training starts at the plain model.
    """

    def __init__(self, channels: int, length: int) -> None:
        super().__init__()
        self.length = length
        last = nn.Linear(channels // 2, 1)
        nn.init.zeros_(last.weight)
        nn.init.zeros_(last.bias)
        self.layers = nn.Sequential(nn.Linear(channels + 2, channels // 2), nn.SiLU(), last)

    def forward(self, hidden: Tensor, count: Tensor) -> Tensor:
        """hidden (..., channels) and the number of units so far (...) -> (...)."""
        count = count.to(hidden.dtype).expand(hidden.shape[:-1])
        facts = torch.stack([count.log1p(), count / self.length], dim=-1)
        adjustment: Tensor = self.layers(torch.cat([hidden, facts], dim=-1))[..., 0]
        return adjustment


class Denoiser(nn.Module):
    """The velocity of noisy residuals (M, slots) at times (M,), given z (M, channels), all slots together.

    Residual blocks whose norm is scaled and shifted by time and condition, as in MAR (Li et al., arXiv 2406.11838).
    """

    turns: Tensor

    def __init__(self, slots: int, condition: int, channels: int, depth: int) -> None:
        super().__init__()
        self.input = nn.Linear(2 * slots, channels)
        self.condition = nn.Linear(condition, channels)
        self.time = nn.Sequential(nn.Linear(2 * TIME_WAVES, channels), nn.SiLU(), nn.Linear(channels, channels))
        self.blocks = nn.ModuleList(DenoiserBlock(channels) for _ in range(depth))
        self.norm = nn.LayerNorm(channels)
        self.output = nn.Linear(channels, slots)
        nn.init.zeros_(self.output.weight)
        nn.init.zeros_(self.output.bias)
        turns = math.pi / 2.0 ** torch.linspace(0, 10, TIME_WAVES)
        self.register_buffer("turns", turns, persistent=False)

    def forward(self, x: Tensor, time: Tensor, z: Tensor, used: Tensor) -> Tensor:
        """`used` (M, slots) says which of the residuals there are; the others are not looked at."""
        angles = time.float()[:, None] * self.turns
        condition = self.condition(z) + self.time(torch.cat([angles.sin(), angles.cos()], dim=-1))
        hidden = self.input(torch.cat([x * used, used.to(x.dtype)], dim=-1))
        for block in self.blocks:
            hidden = block(hidden, condition)
        velocity: Tensor = self.output(self.norm(hidden)).float()
        return velocity


class DenoiserBlock(nn.Module):
    """Norm, scale and shift, two linear maps with SiLU between; gated and added to its input."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(channels, elementwise_affine=False)
        self.modulation = nn.Linear(channels, 3 * channels)
        self.layers = nn.Sequential(nn.Linear(channels, channels), nn.SiLU(), nn.Linear(channels, channels))
        nn.init.zeros_(self.modulation.weight)
        nn.init.zeros_(self.modulation.bias)

    def forward(self, x: Tensor, condition: Tensor) -> Tensor:
        """x and condition (M, channels)."""
        scale, shift, gate = self.modulation(nn.functional.silu(condition)).chunk(3, dim=-1)
        result: Tensor = x + gate * self.layers(self.norm(x) * (1 + scale) + shift)
        return result


def perceptron(channels: int, out: int) -> nn.Sequential:
    """Norm, one hidden layer with SiLU, one linear map."""
    return nn.Sequential(nn.LayerNorm(channels), nn.Linear(channels, channels), nn.SiLU(), nn.Linear(channels, out))
