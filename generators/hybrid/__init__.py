"""Hybrid sequences: categories and numbers of variable length, one unit after the other."""

from __future__ import annotations

import json
from pathlib import Path

import torch
from diffusers import DDIMScheduler
from safetensors import SafetensorError
from safetensors.torch import load_file

from data.space import Categorical, Real, Space
from generators.base import GeneratorError
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
    category_temperature: float = 1.0,
    bin_temperature: float = 1.0,
    top_p: float = 1.0,
    recipe: Recipe = DEFAULT,
) -> Hybrid:
    """An untrained generator for a space; `HybridSequence` says what the parameters mean.

    Where numbers lie on a grid, the bins should too: `bins` = 1 + 2 span scale / grid.
    """
    model = HybridSequence(
        space.to_dict(), channels, depth, heads, bins, span, category_temperature, bin_temperature, top_p
    )
    return Hybrid(model, head_scheduler(), recipe)


def load(folder: Path, device: torch.device) -> Hybrid:
    """The generator that `save` wrote into a folder; raises `GeneratorError` where it is damaged."""
    try:
        model, scheduler = _read(folder)
    except (OSError, KeyError, TypeError, ValueError, RuntimeError, RecursionError, SafetensorError) as error:
        reason = " ".join(str(error).split())
        raise GeneratorError(
            f"{folder} holds no hybrid network ({reason:.300}); restore it or train it anew"
        ) from error
    return Hybrid(model.eval(), scheduler, DEFAULT).to(device)


def _read(folder: Path) -> tuple[HybridSequence, DDIMScheduler]:
    """Network and scheduler; raises `ValueError` where diffusers would fill a gap or drop a surplus without a word."""
    scheduler = head_scheduler()
    found = json.loads((folder / "scheduler_config.json").read_text())
    wanted = json.loads(scheduler.to_json_string())
    for key in sorted((found.keys() | wanted.keys()) - {"_diffusers_version"}):
        if found.get(key) != wanted.get(key):
            raise ValueError(f"scheduler_config.json has {key}={found.get(key)!r:.100}, not {wanted.get(key)!r}")
    name = json.loads((folder / "config.json").read_text()).get("_class_name")
    if name != HybridSequence.__name__:
        raise ValueError(f"config.json is of class {name!r:.100}, not {HybridSequence.__name__}")
    weights = load_file(folder / "diffusion_pytorch_model.safetensors")
    model = HybridSequence.from_config(HybridSequence.load_config(folder, local_files_only=True))
    for name, value in weights.items():
        if value.dtype != torch.float32 or not value.isfinite().all():
            raise ValueError(f"weight {name:.100} is {value.dtype} or not finite; it must be finite float32")
    model.load_state_dict(weights)
    return model, scheduler
