"""Riemannian MeanFlow: few-step flow maps on manifolds."""

from __future__ import annotations

from pathlib import Path

import torch

from data.space import Angle, Categorical, Real, Rotation, Space
from generators import loading
from generators.rmf.flow_map import NEVER, FlowMap, frames
from generators.rmf.generator import RiemannianMeanFlow
from generators.rmf.scheduler import FlowMapScheduler
from generators.rmf.training import Recipe

__all__ = ["FACTORS", "build", "load"]

FACTORS = (Categorical, Real, Rotation, Angle)
DEFAULT = Recipe()
SHORTEST = 1 / 32
"""The shortest jump that the semigroup identity ties to two of half its length."""
STEPPER = {"renewal": 0.1, "power": 1.5, "cooling": 4.0}
"""How chains of frames are drawn, chosen by their bonds, torsions and content of helix; see `FlowMapScheduler`."""


def build(
    space: Space,
    channels: int = 128,
    depth: int = 10,
    kernel: int = 5,
    parameterisation: str = "x1",
    recipe: Recipe = DEFAULT,
) -> RiemannianMeanFlow:
    """An untrained generator for a space."""
    shortest = SHORTEST if recipe.objective == "semigroup" else 0.0
    if recipe.identity_weight == 0:
        shortest = NEVER
    flow_map = FlowMap(space.to_dict(), channels, depth, kernel, shortest, parameterisation=parameterisation)
    stepper = STEPPER if frames(space) else {}
    return RiemannianMeanFlow(flow_map, FlowMapScheduler(space.to_dict(), **stepper), recipe)


def load(folder: Path, device: torch.device) -> RiemannianMeanFlow:
    """The generator that `save` wrote into a folder; raises `GeneratorError` where it is damaged."""
    with loading.refusing(folder, "flow map"):
        flow_map = loading.network(folder, FlowMap)
        scheduler = FlowMapScheduler(**loading.settings(folder / "scheduler_config.json", FlowMapScheduler))
        if scheduler.config.space != flow_map.config.space:
            raise ValueError("scheduler_config.json is of another space than config.json")
    return RiemannianMeanFlow(flow_map.eval(), scheduler, DEFAULT).to(device)
