"""Riemannian MeanFlow: few-step flow maps on manifolds."""

from __future__ import annotations

import json
from pathlib import Path

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file

from data.space import Categorical, Real, Rotation, Space
from generators.base import GeneratorError
from generators.rmf.flow_map import NEVER, SHORTEST, FlowMap, frames
from generators.rmf.generator import RiemannianMeanFlow
from generators.rmf.scheduler import FlowMapScheduler
from generators.rmf.training import Recipe

__all__ = ["FACTORS", "build", "load"]

FACTORS = (Categorical, Real, Rotation)
DEFAULT = Recipe()
RENEWAL = 0.25
"""Chains of frames: before this time there is no shape yet whose errors fresh noise could mend."""


def build(
    space: Space, channels: int = 128, depth: int = 10, kernel: int = 5, recipe: Recipe = DEFAULT
) -> RiemannianMeanFlow:
    """An untrained generator for a space."""
    shortest = SHORTEST if recipe.semigroup_weight > 0 else NEVER
    flow_map = FlowMap(space.to_dict(), channels, depth, kernel, shortest)
    renewal = RENEWAL if frames(space) else 1.0
    return RiemannianMeanFlow(flow_map, FlowMapScheduler(space.to_dict(), renewal), recipe)


def load(folder: Path, device: torch.device) -> RiemannianMeanFlow:
    """The generator that `save` wrote into a folder; raises `GeneratorError` where it is damaged."""
    try:
        flow_map, scheduler = _read(folder)
    except (OSError, KeyError, TypeError, ValueError, RuntimeError, RecursionError, SafetensorError) as error:
        reason = " ".join(str(error).split())
        raise GeneratorError(f"{folder} holds no flow map ({reason:.300}); restore it or train it anew") from error
    return RiemannianMeanFlow(flow_map.eval(), scheduler, DEFAULT).to(device)


def _read(folder: Path) -> tuple[FlowMap, FlowMapScheduler]:
    """Flow map and scheduler; raises `ValueError` where diffusers would fill a gap or drop a surplus without a word."""
    for name, kind in (("config.json", FlowMap), ("scheduler_config.json", FlowMapScheduler)):
        found = json.loads((folder / name).read_text()).get("_class_name")
        if found != kind.__name__:
            raise ValueError(f"{name} is of class {found!r:.100}, not {kind.__name__}")
    weights = load_file(folder / "diffusion_pytorch_model.safetensors")
    flow_map = FlowMap.from_config(FlowMap.load_config(folder, local_files_only=True))
    for name, value in weights.items():
        if value.dtype != torch.float32 or not value.isfinite().all():
            raise ValueError(f"weight {name:.100} is {value.dtype} or not finite; it must be finite float32")
    flow_map.load_state_dict(weights)
    scheduler = FlowMapScheduler.from_pretrained(folder, local_files_only=True)
    if scheduler.config.space != flow_map.config.space:
        raise ValueError("scheduler_config.json is of another space than config.json")
    return flow_map, scheduler
