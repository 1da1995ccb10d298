"""Hybrid sequences: categories and numbers of variable length, one unit after the other."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import torch
from diffusers import DDIMScheduler

from data.space import Categorical, Real, Space
from generators import loading
from generators.hybrid.generator import Hybrid
from generators.hybrid.model import HybridSequence
from generators.hybrid.sampling import head_scheduler
from generators.hybrid.training import Recipe

__all__ = ["FACTORS", "build", "load"]

FACTORS = (Categorical, Real)
DEFAULT = Recipe()


def build(
    space: Space,
    channels: int = 192,
    depth: int = 5,
    heads: int = 6,
    bins: int = 65,
    span: float = 1.0,
    places: int = 0,
    finer: int = 0,
    adjuster: bool = True,
    conditioned: bool = False,
    category_temperature: float = 1.0,
    bin_temperature: float = 1.0,
    top_p: float = 1.0,
    recipe: Recipe = DEFAULT,
) -> Hybrid:
    """An untrained generator for a space; `HybridSequence` says what the parameters mean.

    Where numbers lie on a grid, the bins should too: their width, 2 span scale / (bins - 1), a multiple of the grid.
    `conditioned`: whether it learns the conditions of the space.
    """
    model = HybridSequence(
        (space if conditioned else replace(space, conditions={})).to_dict(),
        channels,
        depth,
        heads,
        bins,
        span,
        category_temperature,
        bin_temperature,
        top_p,
        places,
        finer,
        adjuster,
    )
    return Hybrid(model, head_scheduler(), recipe)


def load(folder: Path, device: torch.device) -> Hybrid:
    """The generator that `save` wrote into a folder; raises `GeneratorError` where it is damaged."""
    with loading.refusing(folder, "hybrid network"):
        model, scheduler = loading.network(folder, HybridSequence), head_scheduler()
        found, wanted = loading.settings(folder / "scheduler_config.json", DDIMScheduler), dict(scheduler.config)
        for key in sorted(found.keys() | {key for key in wanted if not key.startswith("_")}):
            if found.get(key) != wanted.get(key):
                raise ValueError(f"scheduler_config.json has {key}={found.get(key)!r:.100}, not {wanted.get(key)!r}")
    return Hybrid(model.eval(), scheduler, DEFAULT).to(device)
