"""Training of a hybrid network: AdamW, warm-up and cosine decay, an exponential moving average of the weights."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch.optim.swa_utils import AveragedModel

from data.noise import Noise
from data.space import State
from generators.base import GeneratorError
from generators.hybrid.model import HybridSequence
from generators.hybrid.objectives import losses
from generators.hybrid.sampling import head_scheduler

Tensors = tuple[Tensor, ...] | list[Tensor]

LIMITS: dict[str, tuple[float, float]] = {
    "steps": (1, 10**8),
    "residual_weight": (0, 1000),
    "length_weight": (0, 1000),
    "blurred": (0, 1),
    "learning_rate": (1e-8, 1),
    "warm_up": (1, 10**8),
    "weight_decay": (0, 10),
    "decay": (0, 1),
}
"""The least and the most that a number of a recipe may be."""
MULTIPLE = 8
"""Batches are cut to a length that is a multiple of it."""


@dataclass(frozen=True)
class Recipe:
    """How a hybrid network is trained."""

    steps: int = 6_000
    residual_weight: float = 1.0
    length_weight: float = 0.1
    blurred: float = 0.15
    """Share of the input numbers with noise on them."""
    learning_rate: float = 1e-3
    warm_up: int = 200
    weight_decay: float = 0.01
    decay: float = 0.999
    """Of the moving average, per step; at step k no more than (1 + k) / (10 + k)."""

    def __post_init__(self) -> None:
        for name, (least, most) in LIMITS.items():
            value = getattr(self, name)
            if not least <= value <= most:
                raise GeneratorError(f"recipe.{name} is {value}; it must be from {least:g} to {most:g}")


class Trainer:
    """A network in training, step by step; its state can be saved and taken up again."""

    def __init__(self, model: HybridSequence, recipe: Recipe) -> None:
        self.model, self.recipe, self.step = model, recipe, 0
        self.scheduler = head_scheduler()
        self.average = AveragedModel(model, multi_avg_fn=self._average)
        self.optimiser = torch.optim.AdamW(
            model.parameters(), lr=recipe.learning_rate, betas=(0.9, 0.98), weight_decay=recipe.weight_decay, fused=True
        )
        self.schedule = torch.optim.lr_scheduler.LambdaLR(self.optimiser, self._rate)

    def advance(self, batch: State, rng: Noise) -> dict[str, float]:
        """One optimiser step; returns its losses. Raises `GeneratorError` when a loss is not finite."""
        units = self.model.vocabulary.units(cut(batch))
        self.model.observe(units)
        self.optimiser.zero_grad(set_to_none=True)
        with torch.autocast(units.mask.device.type, torch.bfloat16):
            parts = losses(self.model, self.scheduler, units, self.recipe.blurred, rng)
        weights = {"residual": self.recipe.residual_weight, "length": self.recipe.length_weight}
        total: Tensor = sum((weights.get(name, 1.0) * part for name, part in parts.items()), torch.zeros(()))
        total.backward()  # type: ignore[no-untyped-call]
        found = {name: part.item() for name, part in parts.items()}
        if not all(map(math.isfinite, found.values())):
            raise GeneratorError(f"training diverged at step {self.step}: {found}; lower the learning rate")
        torch.nn.utils.clip_grad_norm_(self.model.parameters(), 1.0)
        self.optimiser.step()
        self.schedule.step()
        self.average.update_parameters(self.model)
        self.step += 1
        return found

    @property
    def averaged(self) -> HybridSequence:
        """The moving average of the networks so far."""
        average: HybridSequence = self.average.module  # type: ignore[assignment]
        return average

    def state_dict(self) -> dict[str, Any]:
        """Everything that the next step depends on."""
        return {"step": self.step} | {name: part.state_dict() for name, part in self._parts().items()}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Take up what `state_dict` gave."""
        self.step = state["step"]
        for name, part in self._parts().items():
            part.load_state_dict(state[name])

    def _parts(self) -> dict[str, Any]:
        return {
            "model": self.model,
            "average": self.average,
            "optimiser": self.optimiser,
            "schedule": self.schedule,
        }

    def _average(self, average: Tensors, current: Tensors, count: Tensor | int) -> None:
        decay = min(self.recipe.decay, (1 + int(count)) / (10 + int(count)))
        torch._foreach_lerp_(average, current, 1 - decay)

    def _rate(self, step: int) -> float:
        warm = min(1.0, (step + 1) / self.recipe.warm_up)
        return warm * 0.5 * (1 + math.cos(math.pi * min(1.0, step / self.recipe.steps)))


def cut(batch: State) -> State:
    """The batch without the sites that none of its designs uses, up to a multiple of `MULTIPLE`."""
    longest = int(batch["mask"].sum(-1).max())
    length = min(batch["mask"].shape[1], max(MULTIPLE, math.ceil(longest / MULTIPLE) * MULTIPLE))
    return {name: value[:, :length] for name, value in batch.items()}
