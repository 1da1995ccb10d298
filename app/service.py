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


def prepare(spec: RunSpec) -> Prepared:
    """Build domain, generator, guidance and rewards; raises `InputError` where one is wrong or they do not fit."""
    domain = plugins.build("domain", spec.domain.name, spec.domain.parameters)
    folder = checkpoint(spec, domain)
    generator = plugins.load_generator(spec.generator.name, folder, devices.resolve(spec.device))
    guidance = plugins.build("guidance", spec.guidance.name, spec.guidance.parameters)
    if guidance is not None and not spec.rewards:
        raise InputError(f"guidance {spec.guidance.name} has no rewards to climb; add rewards, or use guidance=free")
    return Prepared(domain, generator, guidance, scorer(domain, spec.domain.name, spec.rewards), folder)


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
    run = Run.open(folder(spec), spec.identity())
    run.event("started", n=spec.n)
    started, done = time.monotonic(), run.finished()
    missing = [i for i in range(spec.n) if i not in done]
    for batch in batches(missing, spec.batch):
        designs = draw(ready, spec, batch, progress)
        for index, design, scores in zip(batch, designs, ready.scorer.rows(designs), strict=True):
            notes = provenance.of_design(spec, index, ready.checkpoint)
            writers = {end: partial(_write, ready.domain, design, notes) for end in ready.domain.suffixes}
            run.add({"design": index} | scores, writers)
        run.event("designs", done=spec.n - len(missing) + missing.index(batch[-1]) + 1)
    seconds = time.monotonic() - started
    run.event("finished", seconds=round(seconds, 3))
    run.finish(provenance.of_run(spec, ready.checkpoint, seconds), report.page(run, ready.domain, spec))
    return run.path


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


def _write(domain: Domain[Any], design: Any, notes: dict[str, str], path: Path) -> None:
    domain.write(design, path, notes)
