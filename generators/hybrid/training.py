"""Training of a hybrid network by its recipe."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import torch
from torch import Tensor

from data.noise import Noise
from data.space import CONDITIONS, State
from generators.hybrid.model import HybridSequence
from generators.hybrid.objectives import losses
from generators.hybrid.sampling import head_scheduler
from generators.training import Descent, Limits, Rates, has_bfloat16

MULTIPLE = 8
"""Batches are cut to a length that is a multiple of it."""


@dataclass(frozen=True, kw_only=True)
class Recipe(Rates):
    """How a hybrid network is trained."""

    limits: ClassVar[Limits] = Rates.limits | {
        "residual_weight": (0, 1000),
        "length_weight": (0, 1000),
        "blurred": (0, 1),
    }
    steps: int = 6_000
    residual_weight: float = 1.0
    length_weight: float = 0.1
    blurred: float = 0.15
    """Share of the input numbers with noise on them."""


class Trainer:
    """A network in training, step by step; its state can be saved and taken up again."""

    def __init__(self, model: HybridSequence, recipe: Recipe) -> None:
        self.model, self.recipe = model, recipe
        self.descent = Descent(model, recipe, betas=(0.9, 0.98), fused=True)
        self.scheduler = head_scheduler()

    @property
    def step(self) -> int:
        """How many steps are done."""
        return self.descent.step

    @property
    def average(self) -> HybridSequence:
        """The moving average of the networks so far."""
        average: HybridSequence = self.descent.average
        return average

    def advance(self, batch: State, rng: Noise) -> dict[str, float]:
        """One optimiser step; returns its losses. Raises `GeneratorError` when a loss is not finite."""
        units = self.model.vocabulary.units(cut(batch))
        self.model.observe(units)
        device = units.mask.device
        with torch.autocast(device.type, torch.bfloat16, enabled=has_bfloat16(device)):
            parts = losses(self.model, self.scheduler, units, self.recipe.blurred, rng, batch.get(CONDITIONS))
        weights = {"residual": self.recipe.residual_weight, "length": self.recipe.length_weight}
        total: Tensor = sum((weights.get(name, 1.0) * part for name, part in parts.items()), torch.zeros(()))
        total.backward()  # type: ignore[no-untyped-call]
        found = {name: part.item() for name, part in parts.items()}
        self.descent.take(found)
        return found

    def state_dict(self) -> dict[str, Any]:
        """Everything that the next step depends on."""
        return self.descent.state_dict()

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Take up what `state_dict` gave."""
        self.descent.load_state_dict(state)


def cut(batch: State) -> State:
    """The batch without the sites that none of its designs uses, up to a multiple of `MULTIPLE`."""
    longest = int(batch["mask"].sum(-1).max())
    length = min(batch["mask"].shape[1], max(MULTIPLE, math.ceil(longest / MULTIPLE) * MULTIPLE))
    return {name: value[:, :length] for name, value in batch.items()}
