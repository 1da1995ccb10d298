"""How good a generator is, in one table: at several numbers of steps, beside its baselines and the floor."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any

from app import cells, devices
from app.goals import TWIN, goals
from app.service import Progress, batches
from app.spec import EvaluateSpec
from data import checkpoints
from data.noise import DesignNoise, StepNoise
from domains.base import Domain, Repairing
from generators.base import Diagnosed, Generator

REPAIRED = "+repair"
"""Ends the method of a row of repaired designs."""
SPLITS = ("train", "val")
DIAGNOSED = 128
"""Designs on the way to which identities are tried."""


@dataclass(frozen=True)
class Row:
    """One method at one number of steps, and `nfe` network calls a design at most; 0 where no network is called."""

    method: str
    steps: int
    nfe: int
    n: int
    seconds: float
    metrics: Mapping[str, float]


def evaluate(spec: EvaluateSpec, progress: Progress) -> dict[str, Any]:
    """The table as plain data: rows, goals of the domain's bench computed from them, and what generators say of laws.

    The reference is a split, the train split where none is given, or the file given. The floor is a sample of the val
    split (at most all of it), or of the train split where val is the reference, against a reference without it.
    """
    domain = cells.domain(spec.domain, spec.generator.name)
    contestants = _contestants(spec, domain)
    wanted = spec.reference or "train"
    reference = domain.corpus(wanted) if wanted in SPLITS else domain.reference(Path(wanted))
    other = list(domain.corpus("train" if wanted == "val" else "val"))
    floor = [other[i] for i in StepNoise(spec.seed).uniform(len(other)).argsort()[: spec.n].tolist()]
    held_out = set(floor)
    rows = [Row("floor", 0, 0, len(floor), 0.0, domain.metrics(floor, [d for d in reference if d not in held_out]))]
    for name, designs in domain.baselines(domain.corpus("train"), spec.n, spec.seed).items():
        rows.append(Row(name, 0, 0, len(designs), 0.0, domain.metrics(designs, reference)))
    for method, steps, generator in contestants:
        heard = partial(progress, f"{method} in {steps} steps: designs")
        rows += _measured(spec, domain, method, steps, generator, reference, heard)
    return {
        "name": f"evaluate {spec.domain.name} {spec.generator.name}",
        "seeds": [spec.seed],
        "n": spec.n,
        "reference": Path(wanted).name,
        "device": str(devices.resolve(spec.device)),
        "rows": [asdict(row) for row in rows],
        "identity_residuals": _residuals(spec, domain, contestants),
        "goals": _goals(spec, rows),
    }


def table(result: Mapping[str, Any], columns: Sequence[str] = ()) -> str:
    """The rows as a Markdown table of some of the metrics, or of all; empty where a row has not measured one."""
    columns = columns or list(dict.fromkeys(name for row in result["rows"] for name in row["metrics"]))
    lines = ["| method | steps | n | " + " | ".join(columns) + " |", "| --- " * (len(columns) + 3) + "|"]
    for row in result["rows"]:
        cells = [f"{row['metrics'][name]:.4g}" if name in row["metrics"] else "" for name in columns]
        lines.append(f"| {row['method']} | {row['steps'] or ''} | {row['n']} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def _measured(
    spec: EvaluateSpec,
    domain: Domain[Any],
    method: str,
    steps: int,
    generator: Generator,
    reference: Sequence[Any],
    heard: Callable[[int, int], None],
) -> Iterator[Row]:
    """The row of one generator's designs, and that of the same designs repaired where it is asked for."""
    calls = steps if generator.steerable else steps * domain.space.length
    start = time.monotonic()
    designs = _draw(domain, generator, spec, steps, heard)
    seconds = time.monotonic() - start
    yield Row(method, steps, calls, spec.n, round(seconds, 2), domain.metrics(designs, reference))
    if spec.repair and isinstance(domain, Repairing):
        start = time.monotonic()
        designs = [domain.repaired(design, []) for design in designs]
        seconds += time.monotonic() - start
        yield Row(f"{method}{REPAIRED}", steps, calls, spec.n, round(seconds, 2), domain.metrics(designs, reference))


def _goals(spec: EvaluateSpec, rows: Sequence[Row]) -> dict[str, dict[str, float | bool]]:
    """Those of designs as they come; then the same of repaired ones, where there are such rows."""
    by = {(row.method, row.steps): row.metrics for row in rows}
    found = goals(spec.domain.name, spec.generator.name, by)
    mended = {(row.method.removesuffix(REPAIRED), row.steps): row.metrics for row in rows if REPAIRED in row.method}
    if mended:
        again = goals(spec.domain.name, spec.generator.name, by | mended)
        found |= {f"{name}, repaired": outcome for name, outcome in again.items()}
    return found


def _contestants(spec: EvaluateSpec, domain: Domain[Any]) -> list[tuple[str, int, Generator]]:
    """The generator at its numbers of steps, then the twin of a shipped one."""
    device = devices.resolve(spec.device)
    folder = cells.checkpoint(spec.domain.name, spec.generator, spec.checkpoint, domain)
    ours = cells.ready(spec.generator, domain, folder, spec.seed, device)
    found = [(spec.generator.name, steps, ours) for steps in spec.steps]
    twin = f"{spec.domain.name}-{spec.generator.name}-{TWIN}"
    if spec.checkpoint == "auto" and twin in checkpoints.names():
        theirs = cells.loaded(spec.generator.name, checkpoints.find(twin, domain.space), domain.space, device)
        found += [(TWIN, steps, theirs) for steps in spec.twin_steps]
    return found


def _residuals(
    spec: EvaluateSpec, domain: Domain[Any], contestants: Sequence[tuple[str, int, Generator]]
) -> dict[str, dict[str, float]]:
    """Method -> identity -> how far it is from it, on the way to designs of the val split."""
    state = domain.encode(list(domain.corpus("val"))[:DIAGNOSED])
    by = {method: generator for method, _, generator in contestants if isinstance(generator, Diagnosed)}
    device, rng = devices.resolve(spec.device), StepNoise(spec.seed)
    there = {name: value.to(device) for name, value in state.items()}
    return {method: generator.diagnose(there, rng.fork(0)) for method, generator in by.items()}


def _draw(
    domain: Domain[Any], generator: Generator, spec: EvaluateSpec, steps: int, heard: Callable[[int, int], None]
) -> list[Any]:
    designs: list[Any] = []
    for batch in batches(range(spec.n), spec.batch):
        state = generator.sample(len(batch), steps, None, None, DesignNoise(spec.seed, batch), lambda step: None)
        designs += domain.decode(state)
        heard(len(designs), spec.n)
    return designs
