"""What the training of every network here has in common: optimiser, warm-up, cosine decay, average of the weights."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import torch
from torch import Tensor, nn
from torch.optim.swa_utils import AveragedModel

from generators.base import GeneratorError
from generators.muon import Muon

Tensors = tuple[Tensor, ...] | list[Tensor]
OPTIMISERS = ("adamw", "muon")
WIDE = 64
"""Muon is for matrices with so many rows and columns; narrower ones, such as those at the end, are AdamW's."""
Limits = dict[str, tuple[float, float]]
"""Name of a number -> the least and the most that it may be."""


@dataclass(frozen=True, kw_only=True)
class Rates:
    """The part of a recipe that says how fast the weights move."""

    limits: ClassVar[Limits] = {
        "steps": (1, 10**8),
        "learning_rate": (1e-8, 1),
        "warm_up": (1, 10**8),
        "weight_decay": (0, 10),
        "decay": (0, 1),
    }
    steps: int
    learning_rate: float = 1e-3
    warm_up: int = 200
    weight_decay: float = 0.01
    decay: float = 0.999
    """Of the moving average, per step; at step k no more than (1 + k) / (10 + k)."""
    optimiser: str = "adamw"
    """`adamw`, or `muon` for the wide matrices of linear layers and AdamW for what else there is."""

    def __post_init__(self) -> None:
        for name, (least, most) in self.limits.items():
            value = getattr(self, name)
            if not least <= value <= most:
                raise GeneratorError(f"recipe.{name} is {value}; it must be from {least:g} to {most:g}")
        if self.optimiser not in OPTIMISERS:
            wanted = ", ".join(OPTIMISERS)
            raise GeneratorError(f"recipe.optimiser is {self.optimiser!r:.50}; it must be one of {wanted}")


class Descent:
    """A network on its way down a loss, step by step; its state can be saved and taken up again."""

    def __init__(self, network: nn.Module, rates: Rates, **adamw: Any) -> None:
        self.network, self.rates, self.step = network, rates, 0
        self._average = AveragedModel(network, multi_avg_fn=self._mix)
        how: dict[str, Any] = {"lr": rates.learning_rate, "weight_decay": rates.weight_decay}
        matrices = _matrices(network) if rates.optimiser == "muon" else []
        others = [weight for weight in network.parameters() if not any(weight is matrix for matrix in matrices)]
        self._optimisers: list[torch.optim.Optimizer] = [torch.optim.AdamW(others, **how, **adamw)]
        if matrices:
            self._optimisers.append(Muon(matrices, **how))
        self._schedules = [torch.optim.lr_scheduler.LambdaLR(one, self._rate) for one in self._optimisers]

    @property
    def average(self) -> Any:
        """The moving average of the networks so far, a network of the same class."""
        return self._average.module

    def take(self, losses: Mapping[str, float]) -> None:
        """One step along the gradients that are there; raises `GeneratorError` where a loss is not finite."""
        if not all(map(math.isfinite, losses.values())):
            raise GeneratorError(f"training diverged at step {self.step}: {dict(losses)}; lower the learning rate")
        torch.nn.utils.clip_grad_norm_(self.network.parameters(), 1.0)
        for optimiser, schedule in zip(self._optimisers, self._schedules, strict=True):
            optimiser.step()
            optimiser.zero_grad(set_to_none=True)
            schedule.step()
        self._average.update_parameters(self.network)
        self.step += 1

    def state_dict(self) -> dict[str, Any]:
        """Everything that the next step depends on."""
        return {"step": self.step} | {name: part.state_dict() for name, part in self._parts().items()}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Take up what `state_dict` gave."""
        self.step = state["step"]
        for name, part in self._parts().items():
            part.load_state_dict(state[name])

    def _parts(self) -> dict[str, Any]:
        parts: dict[str, Any] = {"network": self.network, "average": self._average}
        for i, (optimiser, schedule) in enumerate(zip(self._optimisers, self._schedules, strict=True)):
            parts |= {f"optimiser {i}": optimiser, f"schedule {i}": schedule}
        return parts

    def _mix(self, average: Tensors, current: Tensors, count: Tensor | int) -> None:
        decay = min(self.rates.decay, (1 + int(count)) / (10 + int(count)))
        torch._foreach_lerp_(average, current, 1 - decay)

    def _rate(self, step: int) -> float:
        warm = min(1.0, (step + 1) / self.rates.warm_up)
        return warm * 0.5 * (1 + math.cos(math.pi * min(1.0, step / self.rates.steps)))


def _matrices(network: nn.Module) -> list[nn.Parameter]:
    layers = [layer for layer in network.modules() if isinstance(layer, nn.Linear)]
    weights = [weight for layer in layers for name, weight in layer.named_parameters() if name == "weight"]
    return [weight for weight in weights if min(weight.shape) >= WIDE]


def has_bfloat16(device: torch.device) -> bool:
    """Whether bfloat16 is faster than float32 there: on GPUs, and on processors with instructions for it."""
    return device.type != "cpu" or bool(torch.ops.mkldnn._is_mkldnn_bf16_supported())
