"""Whole runs of DNA: what queue and store cost, how memory grows with n, and how workers share a run."""

from __future__ import annotations

import os
import tempfile
import time
from dataclasses import replace
from pathlib import Path

from app import provenance, service, worker
from app.benchmarks.runs.commands import begin, foreshape
from app.composition import composed
from app.service import Prepared
from app.spec import RunSpec, from_plain, placed
from data.store import runs_folder
from data.store.queue import Queue

SUBMIT, WORK = ("submit", "domain=dna", "generator=rmf"), ("worker", "--drain")
REPEATS = 3
"""How often each way of making a run is timed; the fastest counts."""


def overhead(n: int) -> dict[str, float]:
    """CPU seconds of n designs by the bare sampler with rewards, with files and pictures too, and as a queued run."""
    spec = from_plain(RunSpec, composed("generate", [*SUBMIT[1:], f"n={n}"]))
    ready, bare, filed, queued = service.built(spec), list[float](), list[float](), list[float]()
    for k in range(REPEATS):
        bare.append(_sampled(ready, spec, None))
        with tempfile.TemporaryDirectory() as folder:
            filed.append(_sampled(ready, spec, Path(folder)))
        queued.append(_queued(replace(spec, out=str(runs_folder() / f"overhead-{k}"))))
    return {
        "n": n,
        "sampler (s)": min(bare),
        "with files and pictures (s)": min(filed),
        "queued run (s)": min(queued),
        "queue and store": (min(queued) - min(filed)) / min(bare),
        "all beside the sampler": (min(queued) - min(bare)) / min(bare),
    }


def memory(few: int, many: int) -> dict[str, float]:
    """The most memory that a worker takes for few and for many designs."""
    peaks = []
    for n in (few, many):
        foreshape(*SUBMIT, f"n={n}", f"out={runs_folder() / f'memory-{n}'}")
        peaks.append(foreshape(*WORK))
    return {"n": many, "few": few, "few (MB)": peaks[0], "many (MB)": peaks[1], "ratio": peaks[1] / peaks[0]}


def scaling(n: int, counts: tuple[int, ...]) -> dict[str, float]:
    """Designs a second by so many workers of one thread each, with the time that each takes to start."""
    found: dict[str, float] = {"n": n, "cores": os.cpu_count() or 1}
    for count in counts:
        foreshape(*SUBMIT, f"n={n}", "batch=32", f"out={runs_folder() / f'scaling-{count}'}")
        start = time.monotonic()
        workers = [begin(*WORK) for _ in range(count)]
        for each in workers:
            if each.wait():
                raise RuntimeError(f"a worker ended with {each.returncode}")
        found[f"designs/s of {count}"] = n / (time.monotonic() - start)
    return found


def together(n: int) -> dict[str, float]:
    """Seconds of n runs of one design each, of one model, made one after another by name and as a worker finds them."""
    spec = from_plain(RunSpec, composed("generate", [*SUBMIT[1:], "n=1"]))
    queue, seconds, made = Queue(), list[float](), list[list[bytes]]()
    one = worker.Worker(queue)
    one.ready(spec)
    for way in ("alone", "together"):
        folders = [runs_folder() / f"{way}-{k}" for k in range(n)]
        runs = [worker.enlist(replace(spec, seed=k), folder, queue) for k, folder in enumerate(folders)]
        start = time.monotonic()
        for name in [worker.name_of(run) for run in runs] if way == "alone" else [None]:
            one.serve(name)
        seconds.append(time.monotonic() - start)
        made.append([path.read_bytes() for folder in folders for path in sorted((folder / "designs").iterdir())])
    differ = abs(len(made[0]) - len(made[1])) + sum(a != b for a, b in zip(*made, strict=False))
    return {"n": n, "alone (s)": seconds[0], "together (s)": seconds[1], "differ": differ}


def _sampled(ready: Prepared, spec: RunSpec, folder: Path | None) -> float:
    """CPU seconds of all designs and rewards; with a folder, of their files and pictures too."""
    start = time.process_time()
    for batch in service.batches(range(spec.n), spec.batch):
        designs = service.draw(ready, spec, batch, lambda what, done, total: None)
        ready.scorer.rows(designs)
        for index, design in zip(batch, designs if folder else (), strict=False):
            ready.domain.violations(design)
            assert folder is not None
            (folder / f"{index}.svg").write_bytes(ready.domain.draw(design))
            for suffix in ready.domain.suffixes:
                notes = provenance.of_design(spec, index, ready.origin)
                ready.domain.write(design, folder / f"{index}{suffix}", provenance=notes)
    return time.process_time() - start


def _queued(spec: RunSpec) -> float:
    """CPU seconds of the run from the queue, in this process, with the model loaded before."""
    queue = Queue()
    one = worker.Worker(queue)
    one.ready(spec)
    start = time.process_time()
    run = worker.enlist(spec, placed(spec), queue)
    one.serve(worker.name_of(run))
    return time.process_time() - start
