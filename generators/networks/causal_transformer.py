"""A causal transformer over a sequence of vectors, with a cache so that sampling looks at each position once."""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn
from torch.nn import functional


class Cache:
    """Keys and values of the positions so far, for every block; `filled` of them."""

    def __init__(self, depth: int, batch: int, heads: int, length: int, width: int, device: torch.device) -> None:
        self.filled = 0
        self.pairs = torch.zeros(depth, 2, batch, heads, length, width, device=device)

    def extend(self, block: int, keys: Tensor, values: Tensor) -> tuple[Tensor, Tensor]:
        """Keep the keys and values (B, heads, 1, width) of the next position; returns those of all positions."""
        place = self.filled
        self.pairs[block, 0, :, :, place], self.pairs[block, 1, :, :, place] = keys[:, :, 0], values[:, :, 0]
        return self.pairs[block, 0, :, :, : place + 1], self.pairs[block, 1, :, :, : place + 1]


class CausalTransformer(nn.Module):
    """(B, L, channels) -> (B, L, channels); position i sees positions 0 .. i.

    Learned positions, pre-norm blocks of attention and SwiGLU (Shazeer, arXiv 2002.05202), and a norm at the end. Under
    autocast all between them is in its type.
    """

    def __init__(self, length: int, channels: int, depth: int, heads: int) -> None:
        super().__init__()
        self.length, self.heads, self.width = length, heads, channels // heads
        self.places = nn.Parameter(torch.randn(length, channels) / math.sqrt(channels))
        self.blocks = nn.ModuleList(Block(channels, heads) for _ in range(depth))
        self.norm = nn.LayerNorm(channels)

    def forward(self, x: Tensor) -> Tensor:
        """All positions at once."""
        x = x + self.places[: x.shape[1]]
        if torch.is_autocast_enabled(x.device.type):
            x = x.to(torch.get_autocast_dtype(x.device.type))
        for block in self.blocks:
            x = block(x)
        hidden: Tensor = self.norm(x)
        return hidden

    def step(self, x: Tensor, cache: Cache) -> Tensor:
        """The next position alone, x (B, channels) -> (B, channels); the cache knows the earlier ones."""
        x = (x + self.places[cache.filled])[:, None]
        for i, block in enumerate(self.blocks):
            x = block(x, (cache, i))
        cache.filled += 1
        hidden: Tensor = self.norm(x[:, 0])
        return hidden

    def cache(self, batch: int) -> Cache:
        """An empty cache."""
        return Cache(len(self.blocks), batch, self.heads, self.length, self.width, self.norm.weight.device)


class Block(nn.Module):
    """Attention, then SwiGLU, each added to its input."""

    def __init__(self, channels: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        hidden = 8 * channels // 3 // 32 * 32 + 32
        self.attention_norm, self.feed_norm = nn.LayerNorm(channels), nn.LayerNorm(channels)
        self.attention_in, self.attention_out = nn.Linear(channels, 3 * channels), nn.Linear(channels, channels)
        self.feed_in, self.feed_out = nn.Linear(channels, 2 * hidden), nn.Linear(hidden, channels)

    def forward(self, x: Tensor, place: tuple[Cache, int] | None = None) -> Tensor:
        """x (B, L, channels); `place` is a cache and the number of this block in it, where L is 1."""
        parts = self.attention_in(self.attention_norm(x)).unflatten(-1, (3, self.heads, -1))
        queries, keys, values = parts.permute(2, 0, 3, 1, 4)  # (B, heads, L, width) each
        if place is not None:
            cache, block = place
            keys, values = cache.extend(block, keys, values)
        mixed = attention(queries, keys, values)
        x = x + self.attention_out(mixed.transpose(1, 2).flatten(-2))
        gate, feed = self.feed_in(self.feed_norm(x)).chunk(2, dim=-1)
        result: Tensor = x + self.feed_out(functional.silu(gate) * feed)
        return result


def attention(queries: Tensor, keys: Tensor, values: Tensor) -> Tensor:
    """Causal attention (B, heads, L, width) of the last queries to all keys up to their own."""
    # Not fused: on a CPU the backward pass of the fused kernel takes four times as long at these lengths.
    scores = queries @ keys.transpose(-1, -2) / math.sqrt(queries.shape[-1])
    seen = torch.ones(scores.shape[-2:], dtype=torch.bool, device=scores.device)
    seen = seen.tril(keys.shape[-2] - queries.shape[-2])
    return scores.masked_fill(~seen, -torch.inf).softmax(-1).to(values.dtype) @ values
