"""What guidance does to rewards, and at what price in diversity and closeness to the corpus, at equal seeds."""

from __future__ import annotations

import time
from statistics import fmean
from typing import Any

from app import service
from app.spec import RunSpec, from_plain

SEEDS = (0, 1, 2)
CALLS = {"free": 1, "lookahead": 3, "best_of_n": 4}
"""Network calls a step: look-ahead finishes every design twice before it steps; best of n flies four candidates."""
TASKS: dict[str, dict[str, Any]] = {
    "dna": {
        "steps": 4,
        "rewards": {"gc_content": {"target": 0.55}, "motif": {"name": "TATA-Box", "start": -40, "end": -15}},
    },
    "protein": {"steps": 10, "rewards": {"radius_of_gyration": {"target": 9.0}}},
}


def run(quick: bool) -> dict[str, Any]:
    """One row a task, guidance and seed: mean reward and the domain's metrics; goals: look-ahead above free."""
    n, seeds = (16, SEEDS[:1]) if quick else (64, SEEDS)
    rows = [row(task, guidance, n, seed) for task in TASKS for seed in seeds for guidance in CALLS]
    goals = {f"{task} seed {seed}: reward lookahead > free": gain(rows, task, seed) for task in TASKS for seed in seeds}
    return {"name": "guidance", "seeds": list(seeds), "n": n, "reference": "train", "rows": rows, "goals": goals}


def row(task: str, guidance: str, n: int, seed: int) -> dict[str, Any]:
    """Designs of one guidance, scored exactly."""
    plain = {"domain": task, "generator": "rmf", "guidance": guidance, "n": n, "batch": n, "seed": seed}
    spec = from_plain(RunSpec, plain | {"device": "auto", "checkpoint": "auto"} | TASKS[task])
    ready = service.prepare(spec)
    started = time.monotonic()
    designs = service.draw(ready, spec, range(n), lambda what, done, total: None)
    seconds = round(time.monotonic() - started, 2)
    reward = fmean(float(line["total"]) for line in ready.scorer.rows(designs))
    metrics = {"reward": reward} | ready.domain.metrics(designs, ready.domain.corpus("train"))
    calls = {"steps": spec.steps, "nfe": spec.steps * CALLS[guidance]}
    return {"method": f"{task} {guidance}", "seed": seed, "n": n, "seconds": seconds, "metrics": metrics} | calls


def gain(rows: list[dict[str, Any]], task: str, seed: int) -> dict[str, float | bool]:
    """The mean reward by look-ahead against that without."""
    by = {row["method"]: row["metrics"]["reward"] for row in rows if row["seed"] == seed}
    value, goal = by[f"{task} lookahead"], by[f"{task} free"]
    return {"value": value, "goal": goal, "met": value > goal}
