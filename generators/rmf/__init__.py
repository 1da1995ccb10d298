"""Riemannian MeanFlow: few-step flow maps on manifolds."""

from __future__ import annotations

from pathlib import Path

import torch
from safetensors import SafetensorError

from data.space import Space
from generators.base import GeneratorError
from generators.rmf.flow_map import FlowMap
from generators.rmf.generator import RiemannianMeanFlow
from generators.rmf.scheduler import FlowMapScheduler
from generators.rmf.training import Recipe

__all__ = ["build", "load"]

DEFAULT = Recipe()


def build(
    space: Space, channels: int = 128, depth: int = 10, kernel: int = 5, recipe: Recipe = DEFAULT
) -> RiemannianMeanFlow:
    """An untrained generator for a space."""
    flow_map = FlowMap(space.to_dict(), channels, depth, kernel)
    return RiemannianMeanFlow(flow_map, FlowMapScheduler(space.to_dict()), recipe)


def load(folder: Path, device: torch.device) -> RiemannianMeanFlow:
    """The generator that `save` wrote into a folder; raises `GeneratorError` where it is damaged."""
    try:
        flow_map = FlowMap.from_pretrained(folder, use_safetensors=True, local_files_only=True, low_cpu_mem_usage=False)
        scheduler = FlowMapScheduler.from_pretrained(folder, local_files_only=True)
    except (OSError, KeyError, TypeError, ValueError, RuntimeError, SafetensorError) as error:
        reason = str(error).splitlines()[0]
        raise GeneratorError(f"{folder} does not hold a flow map ({reason}); restore it or train it anew") from error
    return RiemannianMeanFlow(flow_map.eval(), scheduler, DEFAULT).to(device)
