"""Whether layouts are what was asked for: their density by the weight of guidance, and the contacts of a technology."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from app import service
from app.spec import RunSpec, from_plain
from domains.layout import metrics, technology
from domains.layout.cell import Cell

SEEDS, N, STEPS = (0, 1, 2), 64, 10
DENSITIES = (0.2, 0.3, 0.4)
"""A clip in twenty has less than the first, one in ten more than the last."""
WEIGHTS = (1.0, 1.5, 2.0)
TECHNOLOGIES = ("sky130", "ihp_sg13g2")
FREE = "free"


def run(quick: bool) -> dict[str, Any]:
    """A row for each technology, seed and weight of guidance: `n` designs a density, or in all where none is asked."""
    seeds, n, weights = (SEEDS[:1], 4, WEIGHTS[1:2]) if quick else (SEEDS, N, WEIGHTS)
    ways = [(FREE, 1.0), *((f"cfg={weight:g}", weight) for weight in weights)]
    rows = [row(name, way, weight, n, seed) for name in TECHNOLOGIES for way, weight in ways for seed in seeds]
    return {
        "name": "layout_conditions", "seeds": list(seeds), "n": n, "reference": "", "rows": rows, "goals": goals(rows),
    }  # fmt: skip


def row(name: str, way: str, weight: float, n: int, seed: int) -> dict[str, Any]:
    """What is drawn for each of the densities, in one technology."""
    started = time.monotonic()
    asked = {level: drawn(name, {} if way == FREE else {"density": level}, weight, n, seed) for level in DENSITIES}
    seconds = round(time.monotonic() - started, 2)
    made = {"method": f"{name} {way}", "steps": STEPS, "nfe": STEPS * (1 if weight == 1 else 2), "n": n, "seed": seed}
    return made | {"seconds": seconds, "metrics": measured(asked)}


def drawn(name: str, condition: Mapping[str, Any], cfg: float, n: int, seed: int) -> Sequence[Cell]:
    """Designs as they come, of the shipped checkpoint."""
    plain = {
        "domain": {"name": "layout", "technology": name}, "generator": "hybrid", "guidance": "free", "rewards": {},
        "n": n, "batch": n, "steps": STEPS, "seed": seed, "device": "auto", "checkpoint": "auto",
        "condition": dict(condition), "cfg": cfg,
    }  # fmt: skip
    spec = from_plain(RunSpec, plain)
    return service.draw(service.prepare(spec), spec, range(n), lambda what, done, total: None)


def measured(asked: Mapping[float, Sequence[Cell]]) -> dict[str, float]:
    """`density_error` is the mean distance from what was asked, `density_slope` the rise of density with it.

    `own_contacts` is the share of contacts of their technology's size, of those that the window does not cut.
    """
    designs = [design for some in asked.values() for design in some]
    wanted = np.repeat(list(asked), [len(some) for some in asked.values()])
    found = np.array([metrics.densities(design).mean() for design in designs])
    return {
        "density_error": float(np.abs(found - wanted).mean()),
        "density_slope": float(np.cov(found, wanted, bias=True)[0, 1] / wanted.var()),
        "raw_clean": metrics.legality(designs)["raw_clean"],
        "own_contacts": own_contacts(designs),
        "rectangles": float(np.mean([len(design.shapes) for design in designs])),
        "pattern_entropy": metrics.pattern_entropy(designs),
    }


def own_contacts(designs: Sequence[Cell]) -> float:
    """Share of the whole contacts that have their technology's size; 0 where there are none."""
    right = []
    for design in designs:
        layers = technology.load(design.technology).layers
        for layer, x0, y0, x1, y1 in design.shapes:
            size = layers[layer].size
            if size and x0 > 0 and x1 < design.width and y0 > 0 and y1 < design.height:
                right.append(x1 - x0 == y1 - y0 == size.nm)
    return float(np.mean(right or [False]))


def goals(rows: Sequence[Mapping[str, Any]]) -> dict[str, dict[str, float | bool]]:
    """Asked for, a density is nearer than where nothing is asked; means over seeds."""
    names = list(dict.fromkeys(row["method"] for row in rows))
    error = {
        name: float(np.mean([r["metrics"]["density_error"] for r in rows if r["method"] == name])) for name in names
    }
    pairs = [(name, f"{name.split()[0]} {FREE}") for name in names if not name.endswith(FREE)]
    return {
        f"density_error: {name} < {free}": {"value": error[name], "goal": error[free], "met": error[name] < error[free]}
        for name, free in pairs
    }
