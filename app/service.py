"""The route of one design, from what was asked for to files."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any

from app import devices, plugins, provenance, report
from app.scoring import Scorer, scorer
from app.spec import EvaluateSpec, RunSpec
from data import checkpoints
from data.errors import InputError
from data.noise import DesignNoise, stable_seed
from data.store import Run, home
from domains.base import Domain
from generators.base import Generator, Guidance

Progress = Callable[[str, int, int], None]
"""Hears what is being done, how much of it is done and how much there is."""


@dataclass(frozen=True)
class Prepared:
    """Everything a run needs, built and found to fit together."""

    domain: Domain[Any]
    generator: Generator
    guidance: Guidance | None
    scorer: Scorer
    checkpoint: Path
    folder: Path


def prepare(spec: RunSpec) -> Prepared:
    """Build domain, generator, guidance and rewards, and look at the run's folder; writes nothing.

    Raises `InputError` where one of them is wrong or they do not fit together.
    """
    domain = plugins.build("domain", spec.domain.name, spec.domain.parameters)
    weights = checkpoint(spec, domain)
    generator = plugins.load_generator(spec.generator.name, weights, devices.resolve(spec.device))
    guidance = plugins.build("guidance", spec.guidance.name, spec.guidance.parameters)
    rewards = scorer(domain, spec.domain.name, spec.rewards)
    if guidance is not None:
        rewards.check_guidance(spec.guidance.name, guidance.needs_gradient)
    Run.examine(folder(spec), spec.identity(), provenance.of_run(spec, weights))
    return Prepared(domain, generator, guidance, rewards, weights, folder(spec))


def checkpoint(spec: RunSpec | EvaluateSpec, domain: Domain[Any]) -> Path:
    """The folder of a checkpoint that fits; `auto` is the shipped one of this cell."""
    if spec.generator.parameters:
        key = next(iter(spec.generator.parameters))
        raise InputError(f"generator.{key} is fixed by a checkpoint; leave it out, or `foreshape train` one with it")
    name = f"{spec.domain.name}-{spec.generator.name}" if spec.checkpoint == "auto" else spec.checkpoint
    return checkpoints.find(name, domain.space)


def generate(spec: RunSpec, progress: Progress) -> Path:
    """Make the designs that a run still lacks, score them, and write the run's folder; returns it."""
    ready = prepare(spec)
    origin = provenance.of_run(spec, ready.checkpoint)
    run = Run.open(ready.folder, spec.identity(), origin, ready.domain.suffixes)
    try:
        add_missing(run, ready, spec, origin, progress)
    finally:
        run.close()
    return run.path


def add_missing(run: Run, ready: Prepared, spec: RunSpec, origin: dict[str, Any], progress: Progress) -> None:
    """Batch by batch: generate, decode, score, write; then the report."""
    started, done = time.monotonic(), run.finished()
    missing = [i for i in range(spec.n) if i not in done]
    run.event("started", n=spec.n, missing=len(missing))
    for batch in batches(missing, spec.batch):
        designs = draw(ready, spec, batch, progress)
        for index, design, scores in zip(batch, designs, ready.scorer.rows(designs), strict=True):
            notes = provenance.of_design(spec, index, origin)
            writers = dict.fromkeys(ready.domain.suffixes, partial(ready.domain.write, design, provenance=notes))
            run.add({"design": index} | scores, writers)
        done.update(batch)
        run.event("designs", done=len(done))
    seconds = time.monotonic() - started
    run.event("finished", seconds=round(seconds, 3))
    if missing or not (run.path / "report.html").exists():
        run.finish(seconds, report.page(run, ready.domain, spec))


def draw(ready: Prepared, spec: RunSpec, batch: Sequence[int], progress: Progress) -> list[Any]:
    """The designs with these numbers: their own noise, the generator's steps, the guidance's look-ahead, decoded."""
    state = ready.generator.sample(
        len(batch),
        spec.steps,
        ready.scorer.score if ready.guidance else None,
        ready.guidance,
        DesignNoise(spec.seed, batch),
        lambda step: progress(f"designs {batch[0]}-{batch[-1]} of {spec.n}: steps", step, len(batch) * spec.steps),
    )
    return ready.domain.decode(state)


def folder(spec: RunSpec) -> Path:
    """Where a run is written: `out`, else a new folder in the home, named by time and spec."""
    if spec.out is not None:
        return Path(spec.out)
    stamp = time.strftime("%Y%m%d-%H%M%S", time.gmtime())
    return home() / "runs" / f"{stamp}-{stable_seed(repr(spec.identity())):016x}"[:32]


def batches(items: Sequence[int], size: int) -> Iterator[list[int]]:
    """Consecutive pieces of at most `size`."""
    source = iter(items)
    while piece := list(islice(source, size)):
        yield piece
