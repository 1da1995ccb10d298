"""A network for chains of frames that does not care how space is turned: invariant point attention and frame updates.

Every site has a place and a rotation, whose columns are its local axes. All that the network sees is local: where other
frames are, seen from each frame (invariant point attention, Jumper et al. 2021, supplement, algorithm 22); all that it
does is local too: moves and turns of each frame along its own axes, and pulls between the points of neighbouring
frames along the lines that join them. So its output moves rigidly with its input.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor, nn
from torch.nn import functional

from generators.networks.waves import waves

TIME_WAVES, PLACE_WAVES = 32, 16
LONGEST = 160.0
"""Period, in sites, of the slowest of the waves that tell how far the ends of the chain are."""
REACH = 4
NEAR_IN = 12 * (2 * REACH + 1)
FARTHEST = 32
"""Sites along the chain from which on pairs are all alike."""
HEADS, KEYS, POINTS, PAIR = 4, 16, 4, 32
RANGES = (0.4, 0.55, 0.7, 0.9, 1.2, 1.6, 2.2)
PAIR_IN = len(RANGES) + 9
BOND_WAVES, LONGEST_BOND, SHORTEST_BOND = 5, 1.6, 0.1
"""How many waves tell the length of a bond, and their periods: short ones, so that small changes of it stand out."""
UNIT = 0.3
"""Local vectors are measured in this, so that those between neighbours are of size 1."""


class FrameAttention(nn.Module):
    """Places (batch, length, 3) and rotations (batch, length, 9) -> the same, moved and turned.

    Places are in units in which a whole chain has size 1 or so. The frames start as the input, with the places shrunk
    by what is noise in them, and are updated by each block. What a block says is scaled by the noise too, so that it
    has only fine corrections to make near time 1 (the preconditioning of Karras et al., arXiv 2206.00364).
    """

    def __init__(self, channels: int, depth: int, kernel: int, body: Sequence[Sequence[float]] = ()) -> None:
        """`body` are the points of each frame, along its axes, between which neighbours are bonded; it may be empty."""
        super().__init__()
        self.body = torch.tensor(body).reshape(-1, 3)
        self.place = nn.Linear(4 * PLACE_WAVES, channels)
        self.times = nn.Sequential(
            nn.Linear(4 * TIME_WAVES, channels), nn.SiLU(), nn.Linear(channels, channels), nn.SiLU()
        )
        self.blocks = nn.ModuleList(Block(channels, kernel, len(body), looks=i % 2 == 0) for i in range(depth))

    def forward(self, place: Tensor, turn: Tensor, mask: Tensor, start: Tensor, end: Tensor) -> tuple[Tensor, Tensor]:
        """place (B, L, 3), turn (B, L, 9) row by row, mask (B, L) bool, times (B,) in [0, 1] -> new place and turn."""
        times = torch.cat([waves(time, 4.0, 1 / 64, TIME_WAVES) for time in (start, end - start)], dim=-1)
        condition = self.times(times)  # (B, C)
        size = (start.square() + (1 - start).square()).sqrt()[:, None, None]
        kept, noise = start[:, None, None] / size.square(), (1 - start)[:, None, None] / size
        body = self.body.to(place)
        frames = Frames(kept * place, turn.reshape(*turn.shape[:2], 3, 3), mask, body)
        hidden, pair = self.place(ends(mask)), None
        for block in self.blocks:
            hidden, frames, pair = block(hidden, frames, pair, condition, noise)
        return frames.place, frames.turn.flatten(-2)


class Frames:
    """Places (B, L, 3) and rotations (B, L, 3, 3) of the sites in a mask (B, L), in float32, seen from inside.

    Each has the points (P, 3) of `body` in its own axes.
    """

    def __init__(self, place: Tensor, turn: Tensor, mask: Tensor, body: Tensor) -> None:
        self.place, self.turn, self.mask, self.body = place, turn, mask, body

    def neighbours(self) -> Tensor:
        """(B, L, NEAR_IN): how the frames up to `REACH` sites away lie; zero where there are none."""
        both = torch.cat([self.place[..., None] / UNIT, self.turn], dim=-1).flatten(-2)  # (B, L, 12)
        there = _split(functional.pad(both, (0, 0, REACH, REACH)).unfold(1, 2 * REACH + 1, 1), 2, 3, 4)
        away = torch.cat([there[..., :1, :] - self.place[..., None, None] / UNIT, there[..., 1:, :]], dim=-2)
        used = functional.pad(self.mask, (REACH, REACH)).unfold(1, 2 * REACH + 1, 1)[:, :, None]
        inside = _split(self.turn.mT @ away.flatten(-2), -1, 4, -1)  # (B, L, 3, 4, n)
        return (inside * used[..., None, :]).flatten(2)

    def pairs(self) -> Tensor:
        """(B, L, L, PAIR_IN): distance of frames i and j, their ways to each other, and j's first axis in i."""
        away = self.place[:, None] - self.place[:, :, None]  # (B, i, j, 3)
        square = away.square().sum(-1, keepdim=True)
        near = 1 / (1 + square / square.new_tensor(RANGES).square())
        way = (away * (square + 1e-4).rsqrt()) @ self.turn
        axis = _split(self.turn.mT.flatten(1, 2) @ self.turn[..., 0].mT, 1, -1, 3).transpose(2, 3)
        return torch.cat([near, way, way.transpose(1, 2), axis], dim=-1)

    def updated(self, step: Tensor, link: Tensor, turn: Tensor) -> Frames:
        """Each frame moved by `step`, it and all behind it by `link`, turned by the quaternion (1, turn): (B, L, 3)."""
        step, link = (torch.stack([step, link], dim=2) @ self.turn.mT).unbind(2)
        keep = self.mask[..., None]
        behind = (link * keep).cumsum(1)
        behind = behind - (behind * keep).sum(1, keepdim=True) / keep.sum(1, keepdim=True).clamp_min(1)
        return Frames(self.place + step + behind, self.turn @ quaternion_turn(turn), self.mask, self.body)

    def bonds(self) -> tuple[Tensor, Tensor]:
        """From each point of a body to each of the next one: unit vectors (B, L, P, P, 3), lengths (B, L, P, P).

        Both are zero where there is no next one.
        """
        points = self._arms() + self.place[:, :, None]
        away = points[:, 1:, None, :] - points[:, :-1, :, None]
        length = (away.square().sum(-1) + 1e-6).sqrt()
        linked = (self.mask[:, 1:] & self.mask[:, :-1])[..., None, None]
        return _behind((away / length[..., None]) * linked[..., None]), _behind(length * linked)

    def pulled(self, strength: Tensor) -> Frames:
        """Each frame moved and turned by what the points of neighbours pull with at each other, (B, L, P, P)."""
        forces = strength[..., None] * self.bonds()[0]
        on = forces.sum(3) - functional.pad(forces.sum(2), (0, 0, 0, 0, 1, -1))  # (B, L, P, 3)
        torque = torch.linalg.cross(self._arms(), on).sum(2, keepdim=True) / UNIT**2
        turn = quaternion_turn((torque @ self.turn).squeeze(2))
        return Frames(self.place + on.sum(2), self.turn @ turn, self.mask, self.body)

    def _arms(self) -> Tensor:
        """(B, L, P, 3): from the places to the points of the bodies."""
        return self.body @ self.turn.mT


class Block(nn.Module):
    """Attention between frames, a convolution along the chain, an update of the frames.

    One that `looks` first measures the frames anew; the next one goes by the same pairs.
    """

    def __init__(self, channels: int, kernel: int, points: int, looks: bool) -> None:
        super().__init__()
        self.looks = Looks(channels) if looks else None
        self.modulation = nn.Linear(channels, 4 * channels)
        self.norms = nn.ModuleList(nn.LayerNorm(channels, elementwise_affine=False) for _ in range(2))
        self.attention = PointAttention(channels, 0 if looks else HEADS)
        self.convolution = nn.Conv2d(channels, channels, (1, kernel), padding=(0, kernel // 2))
        self.mix = nn.Linear(channels, channels)
        self.bonds = Bonds(points, channels) if points else None
        last = nn.Linear(channels, 9 + points**2)
        self.update = nn.Sequential(nn.LayerNorm(channels), last)
        for zeroed in (self.modulation, self.mix, last):
            nn.init.zeros_(zeroed.weight)
            nn.init.zeros_(zeroed.bias)

    def forward(
        self, hidden: Tensor, frames: Frames, pair: Tensor | None, condition: Tensor, noise: Tensor
    ) -> tuple[Tensor, Frames, Tensor | None]:
        """hidden (B, L, C), pair (B, L, L, PAIR), condition (B, C), noise (B, 1, 1) -> hidden, frames, pair."""
        if self.looks is not None:
            seen, pair = self.looks(frames)
            hidden = hidden + seen
        if self.bonds is not None:
            hidden = hidden + self.bonds(frames)
        scales = self.modulation(condition)[:, None].to(hidden.dtype).chunk(4, dim=-1)
        normed = torch.addcmul(scales[1], self.norms[0](hidden), 1 + scales[0])
        hidden = hidden + self.attention(normed, frames, pair)
        normed = torch.addcmul(scales[3], self.norms[1](hidden), 1 + scales[2]) * frames.mask[..., None]
        image = normed.transpose(1, 2).unsqueeze(2)  # (B, C, 1, L), channels last in memory
        hidden = hidden + self.mix(functional.silu(self.convolution(image)).squeeze(2).transpose(1, 2))
        with torch.autocast(hidden.device.type, enabled=False):
            said = noise * self.update(hidden.float())
            frames = frames.updated(said[..., :3], UNIT * said[..., 3:6], said[..., 6:9])
            if self.bonds is not None:
                points = len(frames.body)
                frames = frames.pulled(UNIT * _split(said[..., 9:], -1, points, points))
        return hidden, frames, pair


class Looks(nn.Module):
    """What the frames look like: (B, L, C) of each one's neighbours along the chain, (B, L, L, PAIR) of all pairs."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.neighbours = nn.Sequential(nn.Linear(NEAR_IN, channels), nn.SiLU(), nn.Linear(channels, channels))
        self.pairs = nn.Linear(PAIR_IN, PAIR)
        self.separation = nn.Embedding(2 * FARTHEST + 1, PAIR)
        self.mix = nn.Linear(PAIR, PAIR)

    def forward(self, frames: Frames) -> tuple[Tensor, Tensor]:
        """The two, of float32 frames: neighbours in float32, for bonds want more digits than bfloat16 has."""
        with torch.autocast(frames.place.device.type, enabled=False):
            near = self.neighbours(frames.neighbours())
            pairs = frames.pairs()
        index = torch.arange(pairs.shape[1], device=pairs.device)
        apart = (index - index[:, None]).clamp(-FARTHEST, FARTHEST) + FARTHEST
        hidden = self.pairs(pairs)
        return near, self.mix(functional.silu(hidden + self.separation(apart).to(hidden.dtype)))


class Bonds(nn.Module):
    """How long the bonds of each frame to its two neighbours are: (B, L, C), in float32 as `Looks.neighbours`."""

    def __init__(self, points: int, channels: int) -> None:
        super().__init__()
        told = 2 * points**2 * 2 * BOND_WAVES
        last = nn.Linear(channels, channels)
        self.layers = nn.Sequential(nn.Linear(told, channels), nn.SiLU(), last)
        nn.init.zeros_(last.weight)
        nn.init.zeros_(last.bias)

    def forward(self, frames: Frames) -> Tensor:
        """Of the frames."""
        with torch.autocast(frames.place.device.type, enabled=False):
            told = waves(frames.bonds()[1], LONGEST_BOND, SHORTEST_BOND, BOND_WAVES).flatten(2)
            before = functional.pad(told, (0, 0, 1, -1))
            seen: Tensor = self.layers(torch.cat([told, before], dim=-1))
        return seen


class PointAttention(nn.Module):
    """Invariant point attention: by content, by pair, and by the distance of points that each frame puts in space."""

    def __init__(self, channels: int, bias: int) -> None:
        super().__init__()
        self.bias = slice(bias, bias + HEADS)
        self.content = nn.Linear(channels, HEADS * 3 * KEYS)
        self.points = nn.Linear(channels, HEADS * 3 * POINTS * 3)
        self.sharpness = nn.Parameter(torch.zeros(HEADS))
        self.output = nn.Linear(HEADS * (KEYS + 4 * POINTS + PAIR), channels)

    def forward(self, hidden: Tensor, frames: Frames, pair: Tensor) -> Tensor:
        """hidden (B, L, C), pair (B, L, L, PAIR), of which HEADS are biases of this attention -> (B, L, C)."""
        content = _split(self.content(hidden).float(), -1, HEADS, 3, KEYS)
        local = _split(self.points(hidden).float(), -1, -1, 3)
        with torch.autocast(hidden.device.type, enabled=False):
            outside = local @ frames.turn.mT + frames.place[:, :, None]
            spread = _split(outside, 2, HEADS, 3, POINTS).flatten(4)
            query, key, value = torch.cat([content, spread], dim=-1).permute(3, 0, 2, 1, 4)  # (B, H, L, n)
            weights = self._weights(query, key, pair[..., self.bias].permute(0, 3, 1, 2), frames.mask)
            said = (weights @ value).transpose(1, 2)  # (B, L, H, n), n = KEYS + 3 POINTS
            there = _split(said[..., KEYS:], -1, POINTS, 3) - frames.place[:, :, None, None]
            inside = there.flatten(2, 3) @ frames.turn  # (B, L, H POINTS, 3)
            far = (inside.square().sum(-1) + 1e-6).sqrt()
        pairs = weights.transpose(1, 2).to(pair.dtype) @ pair  # (B, L, H, PAIR)
        parts = [part.to(hidden.dtype).flatten(2) for part in (said[..., :KEYS], inside, far, pairs)]
        output: Tensor = self.output(torch.cat(parts, dim=-1))
        return output

    def _weights(self, query: Tensor, key: Tensor, bias: Tensor, mask: Tensor) -> Tensor:
        """Attention (B, H, L, L): |q - k|^2 of the points without |q|^2, which softmax would take out again."""
        sharp = functional.softplus(self.sharpness)[:, None, None] / POINTS**0.5
        scaled = torch.cat([query[..., :KEYS] / KEYS**0.5, 2 * sharp * query[..., KEYS:]], dim=-1)
        of_key = (sharp * key[..., KEYS:].square()).sum(-1) + torch.where(mask, 0.0, 1e9)[:, None]
        weights: Tensor = (scaled @ key.mT + bias - of_key[:, :, None]).softmax(-1)
        return weights


def quaternion_turn(q: Tensor) -> Tensor:
    """The rotations (..., 3, 3) of quaternions (1, q), for q (..., 3): none where q = 0, half a turn at infinity."""
    a, b, c = q.unbind(-1)
    zero = torch.zeros_like(a)
    cross = _split(torch.stack([zero, -c, b, c, zero, -a, -b, a, zero], dim=-1), -1, 3, 3)
    square = (1 + q.square().sum(-1))[..., None, None]
    turn: Tensor = torch.eye(3, dtype=q.dtype, device=q.device) + 2 / square * (cross + cross @ cross)
    return turn


def ends(mask: Tensor) -> Tensor:
    """(B, L, 4 PLACE_WAVES): how far each site is from the two ends of its chain."""
    index = torch.arange(mask.shape[1], device=mask.device).expand(mask.shape)
    both = torch.stack([index, mask.sum(1, keepdim=True) - 1 - index], dim=-1)
    told: Tensor = waves(both, LONGEST, 12.0, PLACE_WAVES).flatten(-2) / PLACE_WAVES**0.5
    return told


def _behind(x: Tensor) -> Tensor:
    """x (B, L - 1, ...) with zeros for the last site."""
    return torch.cat([x, torch.zeros_like(x[:, :1])], dim=1)


def _split(x: Tensor, dim: int, *sizes: int) -> Tensor:
    """x with one dimension made several."""
    made: Tensor = torch.unflatten(x, dim, sizes)
    return made
