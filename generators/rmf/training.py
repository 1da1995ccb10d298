"""Training of a flow map on flow matching and one identity; its moving average is the teacher, where there is one."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, cast

import torch
from torch import Tensor, nn

from data.noise import Noise
from data.space import State
from generators.base import GeneratorError
from generators.rmf.mean_flow import MeanFlow
from generators.rmf.objectives import OBJECTIVES, flow_matching
from generators.rmf.stabilisers import NEAR_END, adaptive
from generators.rmf.times import SAMPLERS
from generators.training import Descent, Limits, Rates, has_bfloat16


@dataclass(frozen=True, kw_only=True)
class Recipe(Rates):
    """How a flow map is trained. With `identity_weight` 0 it is plain Riemannian flow matching."""

    limits: ClassVar[Limits] = Rates.limits | {
        "flow_matching_steps": (0, 10**8),
        "identity_weight": (0, 1000),
        "identity_share": (0.01, 1),
        "tangent_clip": (1e-3, math.inf),
        "adaptive_power": (0, 1),
        "near_end": (1e-3, 1),
    }
    steps: int = 5_000
    flow_matching_steps: int = 2_000
    """Steps at the start without the identity: before the velocity is known there is nothing to be tied to."""
    objective: str = "semigroup"
    """The identity, one of `OBJECTIVES`."""
    identity_weight: float = 1.0
    identity_share: float = 0.5
    """Part of each batch on which the identity is asked for; it costs two to three times flow matching."""
    times: str = "uniform"
    """The law of the times of flow matching, one of `SAMPLERS`."""
    near_end: float = NEAR_END
    """Flow matching counts less in this last part of time; the smaller, the finer details are learned."""
    tangent_clip: float = 100.0
    """The most that a derivative of the network may be at a site."""
    adaptive_power: float = 0.0
    """See `stabilisers.adaptive`."""
    bfloat16: bool = True
    """Whether the trunk of the network is computed in bfloat16, where that is faster."""

    def __post_init__(self) -> None:
        super().__post_init__()
        for key, known in (("objective", OBJECTIVES), ("times", SAMPLERS)):
            if getattr(self, key) not in known:
                wanted = ", ".join(known)
                raise GeneratorError(f"recipe.{key} is {getattr(self, key)!r:.50}; it must be one of {wanted}")


class Trainer:
    """A flow map in training, step by step; its state can be saved and taken up again.

    `model.flow` is the `MeanFlow` that the network tells.
    """

    def __init__(self, model: nn.Module, recipe: Recipe, length: int) -> None:
        self.model, self.recipe = model, recipe
        self.descent = Descent(model, recipe)
        self.lengths = torch.zeros(length, dtype=torch.int64)
        """How many of the designs so far had 1, 2, ... sites."""

    @property
    def step(self) -> int:
        """How many steps are done."""
        return self.descent.step

    @property
    def average(self) -> Any:
        """The moving average of the models so far, one of the same class."""
        return self.descent.average

    def advance(self, batch: State, rng: Noise) -> dict[str, float]:
        """One optimiser step; returns its losses. Raises `GeneratorError` when a loss is not finite."""
        recipe, mask = self.recipe, batch["mask"]
        self.lengths += torch.bincount(mask.sum(1).cpu() - 1, minlength=len(self.lengths))
        flow = cast(MeanFlow, self.model.flow)
        ones = flow.geometry.points(batch)
        with self._precision(mask):
            loss = flow_matching(flow, ones, mask, rng.fork(0), SAMPLERS[recipe.times], recipe.near_end)
        losses = {"flow_matching": self._backward(loss, 1.0)}
        if self.step >= recipe.flow_matching_steps and recipe.identity_weight > 0:
            some = math.ceil(len(mask) * recipe.identity_share)
            part = {name: value[:some] for name, value in ones.items()}
            teacher, objective = self.average.flow, OBJECTIVES[recipe.objective]
            with self._precision(mask):
                loss = objective(flow, teacher, part, mask[:some], rng.fork(1), recipe.tangent_clip)
            losses[recipe.objective] = self._backward(loss, recipe.identity_weight)
        self.descent.take(losses)
        return losses

    def state_dict(self) -> dict[str, Any]:
        """Everything that the next step depends on."""
        return self.descent.state_dict() | {"lengths": self.lengths}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Take up what `state_dict` gave."""
        self.descent.load_state_dict(state)
        self.lengths = state["lengths"].clone()

    def _precision(self, mask: Tensor) -> torch.autocast:
        enabled = self.recipe.bfloat16 and has_bfloat16(mask.device)
        return torch.autocast(mask.device.type, torch.bfloat16, enabled=enabled)

    def _backward(self, losses: Tensor, weight: float) -> float:
        """Gradients of the weighted mean over designs are added to what is there; returns the plain mean."""
        (weight * adaptive(losses, self.recipe.adaptive_power).mean()).backward()  # type: ignore[no-untyped-call]
        return losses.mean().item()
