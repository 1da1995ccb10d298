"""The shipped flow map of protein backbones: how long it takes, and the symmetries that it must have."""

from __future__ import annotations

import time
from typing import Any

import torch
from torch import Tensor

from app import cells
from data import checkpoints
from data.noise import DesignNoise, StepNoise
from domains import protein
from generators.manifolds.product import Points
from generators.manifolds.rotations import from_quaternion
from generators.rmf.flow_map import FlowMap
from generators.rmf.objectives.flow_matching import on_path

LENGTH, STEPS, SEED = 100, 10, 0
N, QUICK_N = 64, 8
CHAINS, TIMES = 16, (0.0, 0.2, 0.5, 0.9, 0.98)
MOST = 1e-4
"""Of a coordinate in units of 10 angstrom, or of an entry of a rotation, in float32."""


def run(quick: bool) -> dict[str, Any]:
    """A row for a batch of chains of `LENGTH` residues; goals: rigid motions and padding change nothing else."""
    domain = protein.build(length=LENGTH, shortest=LENGTH)
    folder = checkpoints.find("protein-rmf", domain.space)
    generator: Any = cells.loaded("rmf", folder, domain.space, torch.device("cpu"))
    n = QUICK_N if quick else N
    started = time.monotonic()
    generator.sample(n, STEPS, None, None, DesignNoise(SEED, range(n)), lambda step: None)
    seconds = round(time.monotonic() - started, 2)
    errors = {"equivariance": 0.0, "padding": 0.0}
    for s in TIMES:
        for name, error in symmetries(generator.flow_map, protein.Frames(LENGTH), s).items():
            errors[name] = max(errors[name], error)
    metrics = {"seconds": seconds} | errors
    row = {"method": "rmf", "steps": STEPS, "nfe": STEPS, "n": n, "seconds": seconds, "metrics": metrics}
    goals = {
        f"{key} <= {MOST:g}": {"value": value, "goal": MOST, "met": value <= MOST} for key, value in errors.items()
    }
    made = {"checkpoint": checkpoints.weights_digest(folder), "threads": torch.get_num_threads()}
    return {"name": "backbones", "seeds": [SEED], "n": n, "rows": [row], "goals": goals} | made


def symmetries(flow_map: FlowMap, domain: protein.Frames, s: float) -> dict[str, float]:
    """How far jumps from time s to 1 are from turning with their starts, and from not minding what fills padding."""
    flow, state = flow_map.flow, domain.encode(domain.corpus("val")[:CHAINS])
    mask, times = state["mask"], torch.full((CHAINS,), s)
    x, _ = on_path(flow, flow.geometry.points(state), mask, times, StepNoise(SEED))
    end = torch.ones(CHAINS)
    with torch.no_grad():
        there = flow.jump(x, mask, times, end)
        turned = flow.jump(_turned(x), mask, times, end)
        filled = flow.jump(_filled(x, mask), mask, times, end)
    return {"equivariance": _apart(_turned(there), turned, mask), "padding": _apart(there, filled, mask)}


def _turned(x: Points) -> Points:
    turn = from_quaternion(torch.tensor([0.3, -1.0, 0.5, 2.0]))
    return {
        "position": x["position"] @ turn.T,
        "rotation": (turn @ x["rotation"].reshape(*x["rotation"].shape[:-1], 3, 3)).flatten(-2),
    }


def _filled(x: Points, mask: Tensor) -> Points:
    """Frames of other chains where there are none."""
    return {name: torch.where(mask[..., None], value, value.roll(1, 0)) for name, value in x.items()}


def _apart(a: Points, b: Points, mask: Tensor) -> float:
    return max(float(((a[name] - b[name]) * mask[..., None]).abs().max()) for name in a)
