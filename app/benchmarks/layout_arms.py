"""Ways to write the numbers of a layout, one network and one budget each: bins, digits, diffusion, and ours between.

Arms that are not trained yet are trained first, in `FORESHAPE_HOME/training/layout-arms`; a training that was stopped
goes on. Each is one `foreshape train` with the keys that its row has under `training`.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import fmean
from typing import Any

import numpy as np
import torch
from torch import Tensor

from app import cells, training
from app.spec import TrainSpec, from_plain, to_plain
from data.noise import DesignNoise, StepNoise
from data.space import State
from data.store import home
from domains.layout import Layout, metrics
from domains.layout.cell import Cell
from domains.layout.clips import WINDOW
from domains.statistics import wasserstein
from generators.base import Generator
from generators.hybrid.generator import Hybrid

SEEDS, N, TILE = (0, 1, 2), 500, 100
QUICK_SEEDS, QUICK_N = (0,), 8
EXPORTED = 50
"""Of the designs of a row, so many are written as GDSII and read again."""
OURS, WITHOUT, TOKENS = "hybrid", "plain_end", ("digits", "grid")
BINNED = ("bins256", "bins256_centres", "bins128")
NETWORK: Mapping[str, Any] = {"name": "hybrid", "span": 1.5625, "channels": 128, "depth": 3, "heads": 4}
RECIPE = {"steps": 2500, "learning_rate": 0.0015}
FLOW = {"steps": 4000, "flow_matching_steps": 4000, "identity_weight": 0}
CORNERS = {"name": "layout", "technology": "sky130", "length": 56}
ARMS: Mapping[str, Mapping[str, Any]] = {
    OURS: {"bins": 81, "finer": 2},
    WITHOUT: {"bins": 81, "finer": 2, "adjuster": False, "recipe": RECIPE | {"length_weight": 0}},
    "diffusion": {"bins": 1, "finer": 9},
    "bins256": {"bins": 256, "places": 1},
    "bins256_centres": {"bins": 256, "places": 1},
    "bins128": {"bins": 128, "places": 1},
    "digits": {"bins": 17, "places": 25, "finer": 5},
    "grid": {"bins": 401, "places": 1},
    "joint": {"name": "rmf", "channels": 128, "depth": 6, "recipe": FLOW},
}
"""Parameters of the generator. `hybrid`: bins of 5 steps of the grid and the rest by diffusion; `diffusion`: all of it.

`digits` and `grid` are lossless, in two tokens and in one; `joint` flows all rectangles of a design together (a number
of them is drawn as the train split has them), layers on a sphere and corners in the plane.
"""
STEPS = {"joint": 100}
"""Of sampling; 10 for the others."""


def run(quick: bool) -> dict[str, Any]:
    """A row for each arm and seed, beside real windows of the val split; all are compared with the val split."""
    with tempfile.TemporaryDirectory() as scratch:
        root = Path(scratch) if quick else home() / "training" / "layout-arms"
        seeds, n = (QUICK_SEEDS, QUICK_N) if quick else (SEEDS, N)
        specs = {arm: spec(arm, root / arm, quick) for arm in ARMS}
        for asked in specs.values():
            training.train(asked, lambda what, done, total: None)
        domain = layout_of(specs[OURS])
        known = metrics.raster(domain.corpus("train"))
        rows = [floor(domain, n, seed, known) for seed in seeds]
        rows += [row(arm, asked, n, seed, known) for arm, asked in specs.items() for seed in seeds]
    return {"name": "layout_arms", "seeds": list(seeds), "n": n, "reference": "val", "rows": rows, "goals": goals(rows)}


def spec(arm: str, folder: Path, quick: bool) -> TrainSpec:
    """How an arm is trained; in the quick form hardly at all, and on small windows."""
    network = NETWORK if "name" not in ARMS[arm] else {}
    parameters: dict[str, Any] = {"recipe": RECIPE, **network, **ARMS[arm]}
    domain = CORNERS | ({"form": "centres"} if arm.endswith("centres") else {})
    if quick:
        domain["length"] = 12
        parameters |= {"channels": 24, "depth": 1, "recipe": parameters["recipe"] | {"steps": 4}}
    run_as = {"seed": 0, "batch": 16, "device": "auto", "threads": 1, "save_every": 500, "out": str(folder)}
    return from_plain(TrainSpec, {"domain": domain, "generator": parameters, "start": None, **run_as})


def layout_of(asked: TrainSpec) -> Layout:
    """The domain of an arm."""
    found: Any = cells.domain(asked.domain, asked.generator.name)
    assert isinstance(found, Layout)
    return found


def row(arm: str, asked: TrainSpec, n: int, seed: int, known: Tensor) -> dict[str, Any]:
    """What an arm draws with a seed."""
    domain, steps = layout_of(asked), STEPS.get(arm, 10)
    generator = cells.loaded(asked.generator.name, Path(str(asked.out)), domain.space, torch.device("cpu"))
    started = time.monotonic()
    states = [drawn(generator, range(k, min(k + TILE, n)), steps, seed) for k in range(0, n, TILE)]
    seconds = time.monotonic() - started
    state = {key: torch.cat([part[key] for part in states]) for key in states[0]}
    found = measured(domain, domain.decode(state), known) | numbers(domain, state)
    nfe = steps
    if isinstance(generator, Hybrid):
        found["coding_error"] = coding_error(domain, generator)
        nfe = domain.space.length * (1 if generator.model.denoiser is None else 1 + steps)
    made = {"method": arm, "seed": seed, "steps": steps, "nfe": nfe, "n": n, "seconds": round(seconds, 2)}
    return made | {"metrics": found | {"seconds_per_clip": seconds / n}, "training": to_plain(asked)["generator"]}


def floor(domain: Layout, n: int, seed: int, known: Tensor) -> dict[str, Any]:
    """Real windows of the val split, against the others of it."""
    val = domain.corpus("val")
    order = StepNoise(seed).uniform(len(val)).argsort().tolist()
    designs, others = ([val[i] for i in some] for some in (order[:n], order[n:]))
    found = measured(domain, designs, known, others) | numbers(domain, domain.encode(designs))
    return {"method": "floor", "seed": seed, "steps": 0, "nfe": 0, "n": n, "seconds": 0.0, "metrics": found}


def drawn(generator: Generator, designs: Sequence[int], steps: int, seed: int) -> State:
    """The designs of these numbers, unguided."""
    return generator.sample(len(designs), steps, None, None, DesignNoise(seed, designs), lambda step: None)


def measured(
    domain: Layout, designs: Sequence[Cell], known: Tensor, reference: Sequence[Cell] | None = None
) -> dict[str, float]:
    """The domain's metrics, likeness to the nearest clip of the train split, and what is off the grid in files.

    `length_w1_train` is the `length_w1` to what was learned from, which is itself away from the val split.
    """
    found = domain.metrics(designs, reference or domain.corpus("val"))
    nearest = metrics.nearest_iou(metrics.raster(designs), known)
    ours, theirs = (np.array([len(one.shapes) for one in some]) for some in (designs, domain.corpus("train")))
    found |= {"length_w1_train": wasserstein(ours, theirs), "nearest_iou": nearest}
    return found | {"off_grid_exported": exported(domain, designs[:EXPORTED])}


def exported(domain: Layout, designs: Sequence[Cell]) -> float:
    """Share of corners off the grid in files of these designs, read again."""
    with tempfile.TemporaryDirectory() as folder:
        path, again = Path(folder) / "clip.gds", []
        for design in designs:
            if design.shapes:
                domain.write(design, path, {})
                again.append(domain.read(path))
    return metrics.off_grid(again)


def numbers(domain: Layout, state: State) -> dict[str, float]:
    """What is wrong with corners before they are rounded, in steps of the grid.

    `grid_error` is the mean distance from the grid. Contacts are squares of one size: `contact_error` is by how much
    widths and heights are off, the median, `contact_mean` the mean, and `contact_exact` the share off by less than half
    a step; of those that the window does not cut.
    """
    grid, mask = domain.technology.grid, state["mask"]
    corners, layers = domain.steps(state)[mask], state["layer"].argmax(-1)[mask]
    sizes = torch.tensor([layer.size.nm / grid if layer.size else torch.nan for layer in domain.technology.layers])
    low, high = corners.chunk(2, dim=-1)
    whole = (low > 0.5) & (high < WINDOW / grid - 0.5)
    off = (high - low - sizes[layers][:, None]).abs()
    off = off[whole & ~off.isnan()]
    found = {"grid_error": (corners - corners.round()).abs().mean().item()}
    if len(off):
        found |= {"contact_error": off.median().item(), "contact_mean": off.mean().item()}
        found["contact_exact"] = (off < 0.5).double().mean().item()
    return found


def coding_error(domain: Layout, generator: Hybrid) -> float:
    """Mean distance in steps of the grid of real corners from themselves, put into units of the network and back."""
    state, vocabulary = domain.encode(domain.corpus("val")[:N]), generator.model.vocabulary
    there, mask = vocabulary.state(vocabulary.units(state)), state["mask"]
    return (domain.steps(there)[mask] - domain.steps(state)[mask]).abs().mean().item()


def goals(rows: Sequence[Mapping[str, Any]]) -> dict[str, dict[str, float | bool]]:
    """The means over seeds that ours are to reach; against lossless tokens too, which may win."""
    mean = means(rows)
    ours, rest = mean[OURS], mean.keys()
    below = [(key, arm, 1.0) for key in ("violations_per_shape", "contact_error") for arm in (*BINNED, *TOKENS)]
    below += [("copies", "floor", 1.0), ("length_w1", WITHOUT, 0.5), ("length_w1_train", WITHOUT, 0.5)]
    found = {
        f"{key}: {OURS} <= {factor:g} x {arm}": {"value": ours[key], "goal": factor * mean[arm][key]}
        for key, arm, factor in below
        if arm in rest and key in ours and key in mean[arm]
    }
    found |= {f"{key} <= {most:g}": {"value": ours[key], "goal": most} for key, most in {"capped": 0.01}.items()}
    found["off_grid_exported <= 0"] = {"value": max(one["off_grid_exported"] for one in mean.values()), "goal": 0.0}
    outcome: dict[str, dict[str, float | bool]] = {
        name: goal | {"met": goal["value"] <= goal["goal"]} for name, goal in found.items()
    }
    clean = ours["legal_clean"]
    return outcome | {"legal_clean >= 0.95": {"value": clean, "goal": 0.95, "met": clean >= 0.95}}


def means(rows: Sequence[Mapping[str, Any]]) -> dict[str, dict[str, float]]:
    """Method -> metric -> the mean over seeds."""
    methods = dict.fromkeys(row["method"] for row in rows)
    by = {method: [row["metrics"] for row in rows if row["method"] == method] for method in methods}
    return {
        method: {key: fmean(one[key] for one in some) for key in some[0] if all(key in one for one in some)}
        for method, some in by.items()
    }


def table(result: Mapping[str, Any]) -> str:
    """The means over seeds, an arm a column, and the goals."""
    by = means(result["rows"])
    columns = list(dict.fromkeys(key for found in by.values() for key in found))
    lines = ["| metric | " + " | ".join(by) + " |", "| --- " * (len(by) + 1) + "|"]
    for key in columns:
        entries = (f"{found[key]:.3g}" if key in found else "" for found in by.values())
        lines.append(f"| {key} | " + " | ".join(entries) + " |")
    verdicts = (
        f"{name}: {goal['value']:.4g}, {'met' if goal['met'] else 'not met'}" for name, goal in result["goals"].items()
    )
    return "\n".join([*lines, "", *verdicts])
