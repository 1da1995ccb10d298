"""What is asked of a whole design, as the network sees it and as sampling follows it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from data.conditions import Condition, Label, Level, Subset
from data.noise import Noise

KNOTS = 17
"""Of the piecewise linear map of a level."""


class ConditionEmbedding(nn.Module):
    """Codes of conditions (..., conditions) -> (..., channels), the sum over those that are known.

    Zero before training, so that a network that has learned without them goes on from where it is.
    """

    def __init__(self, conditions: Mapping[str, Condition], channels: int) -> None:
        super().__init__()
        self.conditions = dict(conditions)
        widths = [_width(one) for one in self.conditions.values()]
        self.tables = nn.ParameterList(nn.Parameter(torch.zeros(width, channels)) for width in widths)

    def forward(self, codes: Tensor) -> Tensor:
        """One row of weights for each condition, nothing where it is not known."""
        parts = zip(self.conditions.values(), codes.unbind(-1), self.tables, strict=True)
        embedded: Tensor = torch.stack([_weights(*part[:2]) @ part[2] for part in parts]).sum(0)
        return embedded


def _width(condition: Condition) -> int:
    return KNOTS if isinstance(condition, Level) else len(condition.names)


def _weights(condition: Condition, code: Tensor) -> Tensor:
    """Codes (...) -> weights (..., width): one-hot, shared by the two knots beside it, or a sign for each category."""
    known, code = ~code.isnan(), code.nan_to_num()
    if isinstance(condition, Subset):
        weights = 2 * contents(condition, code).float() - 1
    else:
        place = code if isinstance(condition, Label) else _place(condition, code)
        weights = (1 - (place[..., None] - torch.arange(_width(condition), device=code.device)).abs()).clamp_min(0)
    return weights * known[..., None]


def _place(level: Level, code: Tensor) -> Tensor:
    """Numbers as places between the knots; what is beyond the last is moved there."""
    return (KNOTS - 1) * ((code - level.least) / (level.most - level.least)).clamp(0, 1)


def contents(subset: Subset, code: Tensor) -> Tensor:
    """Codes (...) -> (..., categories) bool: which of them are in the subset."""
    bits = torch.arange(len(subset.names), device=code.device)
    return (code.long()[..., None] >> bits) % 2 == 1


def forgotten(codes: Tensor, rng: Noise) -> Tensor:
    """Codes (B, 1, conditions), each kept with a chance that each design draws for itself: often all, often none."""
    chance, drawn = rng.fork(0).uniform(len(codes), 1, 1), rng.fork(1).uniform(*codes.shape)
    return codes.where((drawn < chance).to(codes.device), torch.nan)


@dataclass(frozen=True)
class Asked:
    """What every design of a sample is to have.

    With a `weight` other than 1, what the network says under `codes` is moved away from what it says under `base`
    (classifier-free guidance, Ho and Salimans, arXiv 2207.12598), of all but when to end.
    """

    codes: Tensor
    """(1, conditions)."""
    base: Tensor
    weight: float = 1.0

    @property
    def rows(self) -> Tensor:
        """(branches, conditions): `codes`, and `base` where it is looked at."""
        return self.codes if self.weight == 1 else torch.cat([self.codes, self.base])

    def to(self, device: torch.device) -> Asked:
        """The same on a device."""
        return Asked(self.codes.to(device), self.base.to(device), self.weight)

    def allowed(self, conditions: Mapping[str, Condition], factor: str, n: int) -> Tensor:
        """(n,) bool: the categories of a factor that are not ruled out."""
        allowed = torch.ones(n, dtype=torch.bool, device=self.codes.device)
        for one, code in zip(conditions.values(), self.codes[0], strict=True):
            if isinstance(one, Subset) and one.of == factor and not code.isnan():
                allowed &= contents(one, code)
        return allowed
