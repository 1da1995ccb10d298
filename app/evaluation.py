"""How good a generator is, in one table: at several numbers of steps, beside its baselines and the floor."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any

from app import cells, devices, plugins
from app.service import Progress, batches
from app.spec import EvaluateSpec
from data import checkpoints
from data.noise import DesignNoise, StepNoise
from domains.base import Domain
from generators.base import Generator

TWIN = "flow_matching"
"""The checkpoint `<domain>-<generator>-flow_matching` is the same network trained by flow matching alone."""

OURS = "rmf"
AT_MOST: tuple[tuple[str, int, float, str, int], ...] = (
    ("kmer6_js", 4, 1.1, TWIN, 100),
    ("kmer6_js", 1, 1.5, TWIN, 100),
    ("kmer6_js", 4, 1.0, "independent", 0),
    ("kmer6_js", 4, 1.5, "markov3", 0),
    ("exact_copies", 4, 1.0, "floor", 0),
    ("near_copies", 4, 1.0, "floor", 0),
)
"""Metric and steps of ours, which are to be at most this many times that of another method at its steps."""
AT_LEAST: tuple[tuple[str, int, float], ...] = (("tata_enrichment", 4, 2.0),)


@dataclass(frozen=True)
class Row:
    """One method at one number of steps. `steps` and `nfe` are 0 where no network is called."""

    method: str
    steps: int
    nfe: int
    n: int
    seconds: float
    metrics: Mapping[str, float]


def evaluate(spec: EvaluateSpec, progress: Progress) -> dict[str, Any]:
    """The table as plain data: rows, and the goals of the domain's bench computed from them.

    The reference is the file given, or the train split. The floor is a sample of the val split (at most all of it)
    against a reference without it.
    """
    domain = cells.domain(spec.domain, spec.generator.name)
    contestants = _contestants(spec, domain)
    reference = domain.reference(Path(spec.reference)) if spec.reference else domain.corpus("train")
    val = list(domain.corpus("val"))
    floor = [val[i] for i in StepNoise(spec.seed).uniform(len(val)).argsort()[: spec.n].tolist()]
    held_out = set(floor)
    rows = [Row("floor", 0, 0, len(floor), 0.0, domain.metrics(floor, [d for d in reference if d not in held_out]))]
    for name, designs in domain.baselines(domain.corpus("train"), spec.n, spec.seed).items():
        rows.append(Row(name, 0, 0, len(designs), 0.0, domain.metrics(designs, reference)))
    for method, steps, generator in contestants:
        start = time.monotonic()
        designs = _draw(domain, generator, spec, steps, partial(progress, f"{method} in {steps} steps: designs"))
        seconds = time.monotonic() - start
        rows.append(Row(method, steps, steps, spec.n, round(seconds, 2), domain.metrics(designs, reference)))
    return {
        "name": f"evaluate {spec.domain.name} {spec.generator.name}",
        "seeds": [spec.seed],
        "n": spec.n,
        "reference": Path(spec.reference).name if spec.reference else "train",
        "device": str(devices.resolve(spec.device)),
        "rows": [asdict(row) for row in rows],
        "goals": goals(rows),
    }


def goals(rows: Sequence[Row]) -> dict[str, dict[str, float | bool]]:
    """Whether few steps reach what `AT_MOST` and `AT_LEAST` ask for, as far as the rows that they name are there."""
    by = {(row.method, row.steps): row.metrics for row in rows}
    found: dict[str, dict[str, float | bool]] = {}
    for metric, steps, factor, method, its_steps in AT_MOST:
        ours, theirs = by.get((OURS, steps), {}), by.get((method, its_steps), {})
        if metric in ours and metric in theirs:
            value, goal = ours[metric], factor * theirs[metric]
            name = f"{metric}: {OURS} {steps} <= {factor:g} x {method} {its_steps or ''}".strip()
            found[name] = {"value": value, "goal": goal, "met": value <= goal}
    for metric, steps, least in AT_LEAST:
        if metric in (ours := by.get((OURS, steps), {})):
            name = f"{metric}: {OURS} {steps} >= {least:g}"
            found[name] = {"value": ours[metric], "goal": least, "met": ours[metric] >= least}
    return found


def table(result: Mapping[str, Any], columns: Sequence[str] = ()) -> str:
    """The rows as a Markdown table of some of the metrics, or of all."""
    columns = columns or list(result["rows"][0]["metrics"])
    lines = ["| method | steps | n | " + " | ".join(columns) + " |", "| --- " * (len(columns) + 3) + "|"]
    for row in result["rows"]:
        cells = [f"{row['metrics'][name]:.4g}" for name in columns]
        lines.append(f"| {row['method']} | {row['steps'] or ''} | {row['n']} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def _contestants(spec: EvaluateSpec, domain: Domain[Any]) -> list[tuple[str, int, Generator]]:
    """The generator at its numbers of steps, then the twin of a shipped one."""
    device = devices.resolve(spec.device)
    folder = cells.checkpoint(spec.domain.name, spec.generator, spec.checkpoint, domain)
    ours = cells.ready(spec.generator, domain, folder, spec.seed, device)
    found = [(spec.generator.name, steps, ours) for steps in spec.steps]
    twin = f"{spec.domain.name}-{spec.generator.name}-{TWIN}"
    if spec.checkpoint == "auto" and twin in checkpoints.names():
        theirs = plugins.load_generator(spec.generator.name, checkpoints.find(twin, domain.space), device)
        found += [(TWIN, steps, theirs) for steps in spec.twin_steps]
    return found


def _draw(
    domain: Domain[Any], generator: Generator, spec: EvaluateSpec, steps: int, heard: Callable[[int, int], None]
) -> list[Any]:
    designs: list[Any] = []
    for batch in batches(range(spec.n), spec.batch):
        state = generator.sample(len(batch), steps, None, None, DesignNoise(spec.seed, batch), lambda step: None)
        designs += domain.decode(state)
        heard(len(designs), spec.n)
    return designs
