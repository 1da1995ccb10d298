"""How close the share of the window that a layer covers is to a wanted one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

import torch

from data.known import Known
from domains.base import DesignError
from domains.layout import Layout, metrics, technology
from domains.layout.cell import Cell
from rewards.base import RewardError, RewardResult

LayerName = Annotated[str, Known(technology.layer_names)]


class Density:
    """1 where the share is the wanted one, falling evenly to 0 at the share furthest from it."""

    domains: tuple[str, ...] = ("layout",)

    def __init__(self, layer: int, target: float) -> None:
        self.layer = layer
        self.target = target

    def __call__(self, designs: Sequence[Cell]) -> RewardResult:
        """Score cells; overlapping rectangles count once, and a cell without rectangles is not valid."""
        share = torch.tensor([metrics.densities(design)[self.layer] for design in designs], dtype=torch.float32)
        valid = torch.tensor([bool(design.shapes) for design in designs], dtype=torch.bool)
        value = 1 - (share - self.target).abs() / max(self.target, 1 - self.target)
        return RewardResult(value, valid, {"density": share})


def build(domain: Layout, layer: LayerName = "li_or_met1", target: float = 0.5) -> Density:
    """The reward of a layer of this name that covers the share `target` of the window, between 0 and 1."""
    if not 0 <= target <= 1:
        raise RewardError(f"target={target}; a share of the window is between 0 and 1; choose e.g. 0.5")
    try:
        return Density(domain.technology.index(layer), target)
    except DesignError as error:
        raise RewardError(str(error)) from error
