"""Whether IDEAS finds better designs than random search within the same budget of measurements, seed by seed."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from math import ceil
from statistics import fmean
from typing import Any

import torch
from torch import Tensor

from app import plugins
from app.scoring import Scorer
from data.noise import DesignNoise, StepNoise, stable_seed
from data.space import Space, State
from generators import ideas
from generators.ideas import random_search
from generators.ideas.generator import Evolution

SEEDS, BUDGET, ROUNDS = 5, 256, 8
QUICK_SEEDS, QUICK_BUDGET = 2, 64
POOL, TOP = 64, 10
"""Designs of the corpus to start from, and the best ones whose mean and diversity are told."""
WON = 0.8
"""Share of the seeds in which IDEAS is to be better."""
OURS = "ideas"
METHODS: Mapping[str, Callable[[Space, int], Evolution]] = {
    OURS: ideas.build,
    "random_mutation": random_search.mutation,
    "random_designs": random_search.designs,
}
TASKS: Mapping[str, tuple[str, Mapping[str, Any], Mapping[str, tuple[str, Mapping[str, Any]]]]] = {
    "dna": (
        "dna",
        {"length": 256},
        {
            "tata": ("motif", {"name": "TATA-Box", "start": -40, "end": -15}),
            "gc": ("gc_content", {"target": 0.5}),
        },
    ),
    "protein": (
        "protein",
        {"form": "sequence", "length": 80},
        {
            "stable": ("protparam", {"property": "instability", "target": 10.0}),
            "hydropathic": ("protparam", {"property": "gravy", "target": 0.4}),
            "charged": ("protparam", {"property": "charge", "target": 5.0}),
        },
    ),
}
"""Name -> domain with its parameters, and rewards with theirs, whose sum is climbed."""


def run(quick: bool) -> dict[str, Any]:
    """A row for each task and method, means over seeds and the values of each, and how often IDEAS was better."""
    seeds = list(range(QUICK_SEEDS if quick else SEEDS))
    budget = QUICK_BUDGET if quick else BUDGET
    rows = [_row(task, method, budget, seeds) for task in TASKS for method in METHODS]
    return {"name": "ideas", "seeds": seeds, "n": budget, "reference": "train", "rows": rows, "goals": _goals(rows)}


def scorer(task: str) -> Scorer:
    """The rewards of a task, each with weight 1, on its domain."""
    name, parameters, rewards = TASKS[task]
    domain = plugins.build("domain", name, parameters)
    built = {key: plugins.build("reward", plugin, given, domain) for key, (plugin, given) in rewards.items()}
    return Scorer(domain, built, dict.fromkeys(built, 1.0))


def pool(scorer: Scorer, seed: int) -> State:
    """Designs of the corpus that all methods start from."""
    corpus = scorer.domain.corpus("train")
    drawn = StepNoise(stable_seed("bench", seed)).uniform(len(corpus)).argsort()[:POOL]
    return scorer.domain.encode([corpus[i] for i in drawn.tolist()])


def _row(task: str, method: str, budget: int, seeds: list[int]) -> dict[str, Any]:
    climbed = scorer(task)
    generator = METHODS[method](climbed.domain.space, budget)
    started = time.monotonic()
    found = [_measure(generator, climbed, seed) for seed in seeds]
    seconds = round((time.monotonic() - started) / len(seeds), 2)
    means = {name: fmean(each[name] for each in found) for name in found[0]}
    by_seed = {f"{name}_by_seed": [round(each[name], 5) for each in found] for name in found[0]}
    counted = {"steps": ROUNDS, "nfe": budget, "n": budget, "seconds": seconds}
    return {"task": task, "method": method} | counted | {"metrics": means} | by_seed


def _measure(generator: Evolution, climbed: Scorer, seed: int) -> dict[str, float]:
    """The best value, the mean of the `TOP` best and how many positions differ between two of them, on average."""
    generator.fit([pool(climbed, seed)], StepNoise(seed), lambda step, losses: None)
    noise = DesignNoise(seed, range(TOP))
    state = generator.sample(TOP, ROUNDS, climbed.score, None, noise, lambda step: None)
    values = climbed.score(state)
    apart = _distances(generator.alphabet.letters(state).flatten(1))
    return {"best": float(values[0]), f"top{TOP}": float(values.mean()), "diversity": apart}


def _distances(letters: Tensor) -> float:
    pairs = torch.combinations(torch.arange(len(letters)))
    return float((letters[pairs[:, 0]] != letters[pairs[:, 1]]).float().sum(-1).mean())


def _goals(rows: list[dict[str, Any]]) -> dict[str, dict[str, float | bool]]:
    by = {(row["task"], row["method"]): row["best_by_seed"] for row in rows}
    found: dict[str, dict[str, float | bool]] = {}
    for (task, method), theirs in by.items():
        if method != OURS:
            won = sum(mine > other for mine, other in zip(by[task, OURS], theirs, strict=True))
            goal = ceil(WON * len(theirs))
            found[f"{task}: seeds where {OURS} > {method}"] = {"value": won, "goal": goal, "met": won >= goal}
    return found
