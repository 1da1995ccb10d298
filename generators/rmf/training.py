"""Training of a flow map: AdamW, warm-up and cosine decay, an exponential moving average that is also the teacher."""

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
from generators.rmf.flow_map import FlowMap
from generators.rmf.objectives import flow_matching_loss, semigroup_loss

Tensors = tuple[Tensor, ...] | list[Tensor]

LIMITS: dict[str, tuple[float, float]] = {
    "steps": (1, 10**8),
    "flow_matching_steps": (0, 10**8),
    "semigroup_weight": (0, 1000),
    "semigroup_share": (0.01, 1),
    "learning_rate": (1e-8, 1),
    "warm_up": (1, 10**8),
    "weight_decay": (0, 10),
    "decay": (0, 1),
}
"""The least and the most that a number of a recipe may be."""


@dataclass(frozen=True)
class Recipe:
    """How a flow map is trained. With `semigroup_weight` 0 it is plain Riemannian flow matching."""

    steps: int = 5_000
    flow_matching_steps: int = 2_000
    """Steps at the start without the semigroup term: a teacher that knows no velocity has nothing to teach."""
    semigroup_weight: float = 1.0
    semigroup_share: float = 0.5
    """Part of each batch on which the semigroup term is computed; it costs three times flow matching."""
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
    """A flow map in training, step by step; its state can be saved and taken up again."""

    def __init__(self, flow_map: FlowMap, recipe: Recipe) -> None:
        self.flow_map, self.recipe, self.step = flow_map, recipe, 0
        self.average = AveragedModel(flow_map, multi_avg_fn=self._average)
        self.optimiser = torch.optim.AdamW(
            flow_map.parameters(), lr=recipe.learning_rate, weight_decay=recipe.weight_decay
        )
        self.schedule = torch.optim.lr_scheduler.LambdaLR(self.optimiser, self._rate)

    def advance(self, batch: State, rng: Noise) -> dict[str, float]:
        """One optimiser step; returns its losses. Raises `GeneratorError` when a loss is not finite."""
        recipe, losses = self.recipe, {}
        self.optimiser.zero_grad(set_to_none=True)
        with torch.autocast(batch["mask"].device.type, torch.bfloat16):
            loss = flow_matching_loss(self.flow_map, batch, rng.fork(0))
        loss.backward()  # type: ignore[no-untyped-call]
        losses["flow_matching"] = loss.item()
        if self.step >= recipe.flow_matching_steps and recipe.semigroup_weight > 0:
            part = {name: value[: math.ceil(len(value) * recipe.semigroup_share)] for name, value in batch.items()}
            with torch.autocast(batch["mask"].device.type, torch.bfloat16):
                loss = semigroup_loss(self.flow_map, self.teacher, part, rng.fork(1))
            (recipe.semigroup_weight * loss).backward()  # type: ignore[no-untyped-call]
            losses["semigroup"] = loss.item()
        if not all(map(math.isfinite, losses.values())):
            raise GeneratorError(f"training diverged at step {self.step}: {losses}; lower the learning rate")
        torch.nn.utils.clip_grad_norm_(self.flow_map.parameters(), 1.0)
        self.optimiser.step()
        self.schedule.step()
        self.average.update_parameters(self.flow_map)
        self.step += 1
        return losses

    @property
    def teacher(self) -> FlowMap:
        """The moving average of the flow maps so far."""
        average: FlowMap = self.average.module  # type: ignore[assignment]
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
            "flow_map": self.flow_map,
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
