"""IDEAS beside seven baselines, two controls and its upper bound, on landscapes with a known best."""

from __future__ import annotations

import os
from typing import Any

from app.benchmarks.ideas import findings, work
from app.benchmarks.ideas.landscapes import EIGHT
from app.benchmarks.ideas.methods import METHODS
from app.benchmarks.ideas.work import Piece

SEEDS, BUDGETS = 5, (128, 512, 1280)
QUICK_SEEDS, QUICK_BUDGETS, QUICK_LANDSCAPES = 2, (64,), ("tfbind8_six6", "jaspar_100")
table = findings.table


def run(quick: bool) -> dict[str, Any]:
    """A row a landscape, budget and method, and the goals. What an earlier call has finished is taken over."""
    seeds = range(QUICK_SEEDS if quick else SEEDS)
    budgets, names = (QUICK_BUDGETS, QUICK_LANDSCAPES) if quick else (BUDGETS, EIGHT)
    pieces = [Piece(name, m, budget, seed) for name in names for budget in budgets for m in METHODS for seed in seeds]
    found = findings.gathered(pieces, work.done(pieces, 1 if quick else min(2, os.cpu_count() or 1)))
    return {
        "name": "ideas",
        "seeds": list(seeds),
        "n": max(budgets),
        "reference": found.reference,
        "rows": findings.rows(found),
        "summary": findings.summary(found),
        "faithfulness": findings.faithfulness(found),
        "goals": findings.goals(found),
    }
