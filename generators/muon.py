"""Muon: steepest descent for the matrices of a network, in the spectral norm (Jordan et al. 2024, Muon)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn

QUINTIC = (3.4445, -4.7750, 2.0315)
ROUNDS = 5
ADAM_SIZE = 0.2
"""Root mean square of a step of AdamW, in learning rates; with steps of that size both can have one rate
(Liu et al., arXiv 2502.16982)."""


class Muon(torch.optim.Optimizer):
    """The momentum of each matrix is made nearly orthogonal: all its singular values become about 1.

    torch.optim.Muon does that in bfloat16, which costs more than the network itself on processors without it.
    """

    def __init__(self, matrices: list[nn.Parameter], lr: float, weight_decay: float, momentum: float = 0.95) -> None:
        super().__init__(matrices, {"lr": lr, "weight_decay": weight_decay, "momentum": momentum})

    @torch.no_grad()
    def step(self, closure: Callable[[], float] | None = None) -> None:  # type: ignore[override]
        """One step for every matrix that has a gradient."""
        del closure
        for group in self.param_groups:
            for weight in group["params"]:
                if weight.grad is not None:
                    self._move(weight, weight.grad, group)

    def _move(self, weight: nn.Parameter, gradient: Tensor, group: dict[str, Any]) -> None:
        kept = self.state[weight].setdefault("momentum", torch.zeros_like(weight))
        kept.lerp_(gradient, 1 - group["momentum"])
        ahead = gradient.lerp(kept, group["momentum"])
        weight.mul_(1 - group["lr"] * group["weight_decay"])
        weight.sub_(orthogonal(ahead), alpha=group["lr"] * ADAM_SIZE * max(weight.shape) ** 0.5)


def orthogonal(matrix: Tensor) -> Tensor:
    """A matrix (m, n) with the same singular vectors and singular values between 0.7 and 1.2, all but tiny ones."""
    wide = matrix if matrix.shape[0] <= matrix.shape[1] else matrix.T
    wide = wide / wide.norm().clamp_min(1e-7)
    a, b, c = QUINTIC
    for _ in range(ROUNDS):
        gram = wide @ wide.T
        wide = torch.addmm(wide, torch.addmm(gram, gram, gram, beta=b, alpha=c), wide, beta=a)
    return wide if matrix.shape[0] <= matrix.shape[1] else wide.T
