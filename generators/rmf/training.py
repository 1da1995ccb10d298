"""Training of a flow map, whose moving average is also the teacher of the semigroup identity."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import torch
from torch import Tensor

from data.noise import Noise
from data.space import State
from generators.rmf.flow_map import FlowMap
from generators.rmf.objectives import flow_matching_loss, semigroup_loss
from generators.training import Descent, Limits, Rates


@dataclass(frozen=True, kw_only=True)
class Recipe(Rates):
    """How a flow map is trained. With `semigroup_weight` 0 it is plain Riemannian flow matching."""

    limits: ClassVar[Limits] = Rates.limits | {
        "flow_matching_steps": (0, 10**8),
        "semigroup_weight": (0, 1000),
        "semigroup_share": (0.01, 1),
    }
    steps: int = 5_000
    flow_matching_steps: int = 2_000
    """Steps at the start without the semigroup term: a teacher that knows no velocity has nothing to teach."""
    semigroup_weight: float = 1.0
    semigroup_share: float = 0.5
    """Part of each batch on which the semigroup term is computed; it costs three times flow matching."""


class Trainer:
    """A flow map in training, step by step; its state can be saved and taken up again."""

    def __init__(self, flow_map: FlowMap, recipe: Recipe) -> None:
        self.flow_map, self.recipe = flow_map, recipe
        self.descent = Descent(flow_map, recipe)
        self.lengths = torch.zeros(flow_map.space.length, dtype=torch.int64)
        """How many of the designs so far had 1, 2, ... sites."""

    @property
    def step(self) -> int:
        """How many steps are done."""
        return self.descent.step

    @property
    def average(self) -> FlowMap:
        """The moving average of the flow maps so far."""
        average: FlowMap = self.descent.average
        return average

    def advance(self, batch: State, rng: Noise) -> dict[str, float]:
        """One optimiser step; returns its losses. Raises `GeneratorError` when a loss is not finite."""
        recipe, device = self.recipe, batch["mask"].device.type
        self.lengths += torch.bincount(batch["mask"].sum(1).cpu() - 1, minlength=len(self.lengths))
        with torch.autocast(device, torch.bfloat16):
            loss = flow_matching_loss(self.flow_map, batch, rng.fork(0))
        _backward(loss)
        losses = {"flow_matching": loss.item()}
        if self.step >= recipe.flow_matching_steps and recipe.semigroup_weight > 0:
            part = {name: value[: math.ceil(len(value) * recipe.semigroup_share)] for name, value in batch.items()}
            with torch.autocast(device, torch.bfloat16):
                loss = semigroup_loss(self.flow_map, self.average, part, rng.fork(1))
            _backward(recipe.semigroup_weight * loss)
            losses["semigroup"] = loss.item()
        self.descent.take(losses)
        return losses

    def state_dict(self) -> dict[str, Any]:
        """Everything that the next step depends on."""
        return self.descent.state_dict() | {"lengths": self.lengths}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Take up what `state_dict` gave."""
        self.descent.load_state_dict(state)
        self.lengths = state["lengths"].clone()


def _backward(loss: Tensor) -> None:
    loss.backward()  # type: ignore[no-untyped-call]
