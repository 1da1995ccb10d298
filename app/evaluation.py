"""How good a generator is, in one table: at several numbers of steps, beside its baselines and the floor."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any

from app import devices, plugins
from app.service import Progress, batches, checkpoint
from app.spec import EvaluateSpec
from data import checkpoints
from data.noise import DesignNoise
from domains.base import Domain
from generators.base import Generator

TWIN = "flow_matching"
"""The checkpoint `<domain>-<generator>-flow_matching` is the same network trained by flow matching alone."""


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

    The reference is the file given, or the train split. The floor is the val split against a reference without it.
    """
    domain = plugins.build("domain", spec.domain.name, spec.domain.parameters)
    reference = domain.reference(Path(spec.reference)) if spec.reference else domain.corpus("train")
    floor = list(domain.corpus("val"))[: spec.n]
    held_out = set(floor)
    rows = [Row("floor", 0, 0, len(floor), 0.0, domain.metrics(floor, [d for d in reference if d not in held_out]))]
    for name, designs in domain.baselines(domain.corpus("train"), spec.n, spec.seed).items():
        rows.append(Row(name, 0, 0, len(designs), 0.0, domain.metrics(designs, reference)))
    for method, steps, generator in _contestants(spec, domain):
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
    """What few steps have to reach, beside many steps of plain flow matching and the baselines, where rows allow it."""
    by = {(row.method, row.steps): row.metrics for row in rows}
    found: dict[str, dict[str, float | bool]] = {}

    def ratio(name: str, metric: str, ours: tuple[str, int], theirs: tuple[str, int], most: float) -> None:
        if ours in by and theirs in by and metric in by[ours] and by[theirs][metric] > 0:
            value = by[ours][metric] / by[theirs][metric]
            found[name] = {"value": round(value, 4), "goal": most, "met": value <= most}

    four, one = ("rmf", 4), ("rmf", 1)
    ratio("kmer6_js: rmf 4 / flow_matching 100", "kmer6_js", four, (TWIN, 100), 1.1)
    ratio("kmer6_js: rmf 1 / flow_matching 100", "kmer6_js", one, (TWIN, 100), 1.5)
    ratio("kmer6_js: rmf 4 / independent", "kmer6_js", four, ("independent", 0), 1.0)
    ratio("kmer6_js: rmf 4 / markov3", "kmer6_js", four, ("markov3", 0), 1.5)
    if "tata_enrichment" in by.get(four, {}):
        value = by[four]["tata_enrichment"]
        found["tata_enrichment: rmf 4"] = {"value": round(value, 4), "goal": 2.0, "met": value >= 2}
        value, floor = by[four]["exact_copies"], 0.0
        found["exact_copies: rmf 4"] = {"value": value, "goal": floor, "met": value <= floor}
        value, floor = by[four]["near_copies"], by["floor", 0]["near_copies"]
        found["near_copies: rmf 4, at most the floor's"] = {"value": value, "goal": floor, "met": value <= floor}
    return found


def table(result: Mapping[str, Any], columns: Sequence[str]) -> str:
    """The rows as a Markdown table of some of the metrics."""
    lines = ["| method | steps | n | " + " | ".join(columns) + " |", "| --- " * (len(columns) + 3) + "|"]
    for row in result["rows"]:
        cells = [f"{row['metrics'][name]:.4g}" for name in columns]
        lines.append(f"| {row['method']} | {row['steps'] or ''} | {row['n']} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def _contestants(spec: EvaluateSpec, domain: Domain[Any]) -> list[tuple[str, int, Generator]]:
    """The generator at its numbers of steps, then its twin where a checkpoint of that is shipped."""
    device = devices.resolve(spec.device)
    folder = checkpoint(spec.domain.name, spec.generator.name, spec.checkpoint, domain)
    ours = plugins.load_generator(spec.generator.name, folder, device)
    found = [(spec.generator.name, steps, ours) for steps in spec.steps]
    twin = f"{spec.domain.name}-{spec.generator.name}-{TWIN}"
    if twin in checkpoints.names():
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
