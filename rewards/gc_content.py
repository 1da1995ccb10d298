"""How close the share of G and C in a sequence is to a wanted one."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from data.space import State
from domains.dna import Dna, letters
from rewards.base import RewardError, RewardResult

_IS_GC = torch.tensor([0.0, 1.0, 1.0, 0.0])


class GcContent:
    """1 where the share is the wanted one, falling evenly to 0 at the share furthest from it."""

    domains: tuple[str, ...] = ("dna",)

    def __init__(self, length: int, target: float) -> None:
        self.length = length
        self.target = target

    def __call__(self, designs: Sequence[str]) -> RewardResult:
        """Score sequences; letters other than A, C, G, T are left out of the share, and their design is not valid."""
        bases = letters.one_hot(letters.codes(designs, self.length))
        state = {"base": bases, "mask": bases.any(-1)}
        return RewardResult(self.relaxed(state), state["mask"].all(-1), {"gc": _share(state)})

    def relaxed(self, state: State) -> Tensor:
        """The value (B,) at the expected share of probabilities `base` (B, length, 4), over the sites in use."""
        return 1 - (_share(state) - self.target).abs() / max(self.target, 1 - self.target)


def _share(state: State) -> Tensor:
    bases, mask = state["base"], state["mask"]
    expected = (bases @ _IS_GC.to(bases)) * mask
    return expected.sum(-1) / mask.sum(-1).clamp(min=1)


def build(domain: Dna, target: float = 0.5) -> GcContent:
    """The reward of a share of G and C close to `target`, between 0 and 1."""
    if not 0 <= target <= 1:
        raise RewardError(f"target={target}; a share of G and C is between 0 and 1; choose e.g. 0.5")
    return GcContent(domain.length, target)
