"""Riemannian MeanFlow on eleven small problems: every identity and parameterisation, beside its rivals."""

from __future__ import annotations

import os
from typing import Any

from app.benchmarks.rmf_toys import findings, work
from app.benchmarks.rmf_toys.arms import ARMS
from app.benchmarks.rmf_toys.problems import PROBLEMS
from app.benchmarks.rmf_toys.work import Plan

FULL = Plan(
    problems=tuple(PROBLEMS),
    arms=tuple(ARMS),
    part=1,
    steps=(1, 2, 4, 8, 100),
    seeds=3,
    seed=0,
    n=1_000,
    pairs=20,
)
QUICK = Plan(
    problems=("vmf", "wrapped_normal", "large_angles"),
    arms=(
        "semigroup x1 long",
        "flow_matching x1 long",
        "eulerian x1",
        "lagrangian_push average_velocity",
        "euclidean x1",
    ),
    part=0.04,
    steps=(1, 4),
    seeds=1,
    seed=0,
    n=300,
    pairs=3,
)
table = findings.table


def run(quick: bool) -> dict[str, Any]:
    """A row a problem, method and number of steps, and the goals. What an earlier call has finished is taken over."""
    plan = QUICK if quick else FULL
    rows, seconds = work.done(plan, 1 if quick else min(2, os.cpu_count() or 1))
    return {
        "name": "rmf_toys",
        "seeds": list(range(plan.seeds)),
        "n": plan.n,
        "reference": "samples of the same law; for torsions, of chains that were not trained on",
        "rows": rows,
        "cpu_seconds": round(seconds),
        "goals": findings.goals(rows),
    }
