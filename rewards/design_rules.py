"""How few places of a layout break design rules."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import torch

from domains.layout import Layout, rules
from domains.layout.cell import Cell
from rewards.base import RewardResult


class DesignRules:
    """1 / (1 + n) where n places break a rule, so 1 for a clean layout; 0 for one without rectangles."""

    domains: tuple[str, ...] = ("layout",)

    def __call__(self, designs: Sequence[Cell]) -> RewardResult:
        """Score cells; `parts` has the number of places by rule, and a cell without rectangles is not valid."""
        broken = [Counter(violation.rule for violation in rules.violations(design)) for design in designs]
        valid = torch.tensor([bool(design.shapes) for design in designs], dtype=torch.bool)
        places = torch.tensor([float(counts.total()) for counts in broken])
        parts = {rule: torch.tensor([float(counts[rule]) for counts in broken]) for rule in rules.NAMES}
        return RewardResult(valid / (1 + places), valid, parts)


def build(domain: Layout) -> DesignRules:
    """The reward of layouts that break few rules of the domain's technology."""
    return DesignRules()
