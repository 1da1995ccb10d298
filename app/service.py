"""The route of one design, from what was asked for to files."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any

from app import cells, devices, explained, plugins, provenance, report
from app.batching import Drawn
from app.scoring import Scorer, scorer
from app.spec import RunSpec, placed
from data.errors import InputError
from data.noise import DesignNoise, stable_seed
from data.space import State
from data.store import Run
from domains.base import Domain, Lockable, Repairing, Sequenced
from generators.base import Generator, Guidance, Holding, Selection

Progress = Callable[[str, int, int], None]
"""Hears what is being done, how much of it is done and how much there is."""
Write = Callable[..., None]
"""Writes a design into the file at a path, with its `provenance`."""
AT_ONCE = 16
"""Designs that are given sequences at a time."""
EVERY = 0.5
"""Seconds between the notes of progress in a run's events."""


@dataclass(frozen=True)
class Prepared:
    """Everything a run needs, built and found to fit together."""

    domain: Domain[Any]
    generator: Generator
    guidance: Guidance | Selection | None
    scorer: Scorer
    checkpoint: Path | None
    origin: dict[str, Any]
    """The contents of `provenance.json`, before any time was spent."""
    lock: State | None = None
    drawn: Drawn | None = None
    """States that were drawn beforehand, with those of other runs."""

    def suffixes(self, spec: RunSpec) -> tuple[str, ...]:
        """Endings of the files of each design."""
        return self.domain.suffixes + ((_sequenced(self.domain, spec).sequence_suffix,) if spec.sequences else ())


def prepare(spec: RunSpec) -> Prepared:
    """Build what a run needs, and look at its folder; writes nothing.

    Raises `InputError` where a part is wrong, or they do not fit together.
    """
    ready = built(spec)
    Run.examine(placed(spec), spec.identity(), ready.origin)
    return ready


def built(spec: RunSpec, loaded: Generator | None = None) -> Prepared:
    """Domain, generator, guidance and rewards; raises `InputError` where one is wrong or they do not fit together.

    `loaded` is the generator, where another run had the same.
    """
    domain = cells.domain(spec.domain, spec.generator.name)
    if spec.sequences:
        _sequenced(domain, spec)
    weights = cells.checkpoint(spec.domain.name, spec.generator, spec.checkpoint, domain)
    guidance = plugins.build("guidance", spec.guidance.name, spec.guidance.parameters)
    rewards = scorer(domain, spec.domain.name, spec.rewards)
    device = devices.resolve(spec.device)
    generator = loaded or cells.ready(spec.generator, domain, weights, spec.seed, device, spec.condition, spec.cfg)
    check_together(spec, generator, guidance, rewards)
    lock = locked(spec, domain, generator)
    return Prepared(domain, generator, guidance, rewards, weights, provenance.of_run(spec, weights, lock), lock)


def locked(spec: RunSpec, domain: Domain[Any], generator: Generator) -> State | None:
    """The sites that a run holds, found to fit; raises `InputError` where the domain or the generator cannot."""
    if spec.lock is None:
        return None
    if not isinstance(domain, Lockable):
        raise InputError(f"lock: {spec.domain.name} of {domain.space} has nothing that can be locked; leave it out")
    if not isinstance(generator, Holding):
        raise InputError(f"lock: {spec.generator.name} cannot hold sites; leave lock out, or use another generator")
    lock = domain.locked(**plugins.arguments(domain.locked, spec.lock, "lock"))
    generator.check_lock(lock)
    return lock


def check_together(spec: RunSpec, generator: Generator, guidance: Guidance | Selection | None, scorer: Scorer) -> None:
    """Raise `InputError` where a guidance or a generator asks for what the other, or the rewards, do not give."""
    name, kind = spec.generator.name, spec.guidance.name
    for key, value, most in (("n", spec.n, generator.most_designs), ("steps", spec.steps, generator.most_steps)):
        if value > most:
            raise InputError(f"{key} is {value}; {name} takes at most {most} as it is built; lower {key}")
    if guidance is not None and generator.optimises:
        raise InputError(f"{name} climbs the rewards itself, without guidance {kind}; use guidance=free")
    if isinstance(guidance, Guidance) and not generator.steerable:
        raise InputError(f"{name} cannot be steered by guidance {kind}; use guidance=best_of_n or guidance=free")
    if guidance is not None:
        needs_gradient = isinstance(guidance, Guidance) and guidance.needs_gradient
        scorer.check_climbable(f"guidance {kind}", needs_gradient, ", or use guidance=free")
    elif generator.optimises:
        scorer.check_climbable(name, False, "")


def generate(spec: RunSpec, progress: Progress) -> Path:
    """Make the designs that a run still lacks, score them, and write the run's folder; returns it.

    Raises `Cancelled` where somebody asked for the run's end.
    """
    spec = replace(spec, out=str(placed(spec)))
    return make(prepare(spec), spec, range(spec.n), progress)


def make(ready: Prepared, spec: RunSpec, wanted: Sequence[int], progress: Progress, shared: bool = False) -> Path:
    """Make those of the wanted designs that a run lacks, alone or `shared`; whoever is last completes it."""
    run = Run.open(placed(spec), spec.identity(), ready.origin, ready.suffixes(spec), shared)
    started = time.monotonic()
    try:
        made = add_missing(run, ready, spec, wanted, progress)
        started -= made * ready.drawn.seconds if ready.drawn else 0.0
        if len(run.finished()) >= spec.n:
            if made or not (run.path / "report.html").exists():
                why = partial(explained.pictures, ready.domain, ready.generator)
                run.finish(time.monotonic() - started, report.page(run, ready.domain, spec, why))
            run.event("finished", seconds=round(time.monotonic() - started, 3))
    finally:
        run.close()
    return run.path


def add_missing(run: Run, ready: Prepared, spec: RunSpec, wanted: Sequence[int], progress: Progress) -> int:
    """Batch by batch: generate, decode, score, write; a batch too large for the memory is halved. Returns how many."""
    done = run.finished()
    missing = [i for i in wanted if i not in done]
    run.event("started", n=spec.n, missing=spec.n - len(done))
    size, made = spec.batch, 0
    while made < len(missing):
        batch = missing[made : made + size]
        try:
            told = of_all(progress, made, len(batch), len(missing))
            add_batch(run, ready, spec, batch, noted(told, run, len(done) + made, len(batch)))
        except (MemoryError, RuntimeError) as error:
            if len(batch) == 1 or not devices.is_out_of_memory(error):
                raise
            size = len(batch) // 2
            run.event("out of memory", device=ready.origin["device"], batch=size)
            progress(f"out of memory on {ready.origin['device']}; from now on {size} designs at a time", 1, 1)
            continue
        made += len(batch)
        run.event("designs", done=len(done) + made)
    return made


def add_batch(run: Run, ready: Prepared, spec: RunSpec, batch: Sequence[int], progress: Progress) -> None:
    """Generate, decode, score and write the designs with these numbers."""
    made = with_sequences(ready, spec, batch, draw(ready, spec, batch, progress), progress)
    rows = ready.scorer.rows([design for design, _ in made])
    for index, (design, write), scores in zip(batch, made, rows, strict=True):
        notes = provenance.of_design(spec, index, ready.origin)
        writers = {suffix: partial(one, provenance=notes) for suffix, one in write.items()}
        broken = [violation.message for violation in ready.domain.violations(design)]
        run.add({"design": index} | scores, writers, ready.domain.draw(design), broken)


def of_all(progress: Progress, before: int, batch: int, missing: int) -> Progress:
    """The progress of a batch, with so many designs made before it, as that of all that are missing."""

    def tell(what: str, done: int, total: int) -> None:
        """Each design is worth as much as those of the batch."""
        each = total // batch
        progress(what, before * each + done, missing * each)

    return tell


def noted(progress: Progress, run: Run, done: int, batch: int) -> Progress:
    """The same progress, of a batch when so many designs are done, noted in the run's events; heeds a cancellation."""
    before = time.monotonic()

    def note(what: str, steps: int, total: int) -> None:
        """Tell, heed, and note it where the last note is old enough."""
        nonlocal before
        progress(what, steps, total)
        run.heed_cancel()
        if time.monotonic() - before >= EVERY:
            before = time.monotonic()
            run.event("progress", done=done, batch=batch, steps=steps, total=total)

    return note


def draw(ready: Prepared, spec: RunSpec, batch: Sequence[int], progress: Progress) -> list[Any]:
    """The designs with these numbers: noise, the generator's steps, the guidance's look-ahead, decoded, repaired."""
    generator, guidance, rng = ready.generator, ready.guidance, DesignNoise(spec.seed, batch)
    candidates = guidance.candidates if isinstance(guidance, Selection) else 1
    steering = guidance if isinstance(guidance, Guidance) else None
    score = ready.scorer.score if steering or generator.optimises else None
    total, what = len(batch) * spec.steps * candidates, f"steps of {spec.n} designs"

    def sample(k: int) -> list[Any]:
        """Candidate k of each design."""
        before = k * len(batch) * spec.steps
        noise = rng.fork(k) if k else rng
        held = {} if ready.lock is None else {"lock": ready.lock}

        def hear(step: int) -> None:
            """Steps of all candidates so far."""
            progress(what, before + step, total)

        state = ready.drawn.of(noise) if ready.drawn is not None else None
        if state is None:
            state = generator.sample(len(batch), spec.steps, score, steering, noise, hear, **held)
        hear(len(batch) * spec.steps)
        return ready.domain.decode(state)

    best = sample(0)
    for k in range(1, candidates):
        best = ready.scorer.better(best, sample(k))
    return repaired(best, ready) if spec.repair else best


def repaired(designs: Sequence[Any], ready: Prepared) -> list[Any]:
    """The designs, mended where the domain can; what the run's lock holds stays."""
    domain = ready.domain
    held = [] if ready.lock is None else ready.lock["mask"][0].nonzero()[:, 0].tolist()
    return [domain.repaired(design, held) for design in designs] if isinstance(domain, Repairing) else list(designs)


def with_sequences(
    ready: Prepared, spec: RunSpec, batch: Sequence[int], designs: Sequence[Any], progress: Progress
) -> list[tuple[Any, dict[str, Write]]]:
    """The designs with these numbers, with the best of as many sequences as are asked for, and how each is written."""
    found: list[tuple[Any, dict[str, Write]]] = []
    for some in batches(range(len(batch)), AT_ONCE) if spec.sequences else ():
        domain = _sequenced(ready.domain, spec)
        rng = DesignNoise(stable_seed("sequences", spec.seed), [batch[i] for i in some])
        pairs = domain.sequenced([designs[i] for i in some], spec.sequences, rng)
        found += [(design, {domain.sequence_suffix: write}) for design, write in pairs]
        what = f"sequences of {spec.n} designs"
        progress(what, len(found) * spec.sequences, len(batch) * spec.sequences)
    own, found = ready.domain.suffixes, found or [(design, {}) for design in designs]
    return [(design, dict.fromkeys(own, partial(ready.domain.write, design)) | others) for design, others in found]


def _sequenced(domain: Domain[Any], spec: RunSpec) -> Sequenced:
    if not isinstance(domain, Sequenced):
        raise InputError(
            f"sequences is {spec.sequences}, and {spec.domain.name} of {domain.space} takes none; leave it out"
        )
    return domain


def batches(items: Sequence[int], size: int) -> Iterator[list[int]]:
    """Consecutive pieces of at most `size`."""
    source = iter(items)
    while piece := list(islice(source, size)):
        yield piece
