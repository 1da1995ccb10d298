"""What a run will take, before it is made: measured on its first designs, and extrapolated from them.

They are made as the run would make them, into a folder that is removed. The time and the memory of a batch are taken
to grow with it in a line, and all batches of a run to be alike.
"""

from __future__ import annotations

import tempfile
import time
from dataclasses import dataclass, replace
from pathlib import Path

from app import devices, service
from app.service import Prepared
from app.spec import RunSpec, placed
from app.terminal import duration
from data.store import Run

ENOUGH = 8.0
"""Seconds of a measurement after which no larger batch is tried."""
MOST_STEPS = 20
"""Steps that are taken; further ones are taken to need as long."""


@dataclass(frozen=True)
class Estimate:
    """Of one worker on this device; memory and disk in megabytes."""

    left: int
    """Designs that the run lacks."""
    measured: int
    """Designs of the largest batch that was measured."""
    steps: int
    """Steps of that."""
    seconds: float
    memory: float | None
    """None where that of a larger batch was full."""
    free: float
    """Memory that there is for the run."""
    disk: float

    def __str__(self) -> str:
        """In words, with what it rests on, and what is wrong."""
        memory = "more memory than there is" if self.memory is None else f"{self.memory:.0f} MB of memory"
        told = f"{self.left} are to be made: about {duration(self.seconds)}, {memory}, {self.disk:.2g} MB of disk"
        basis = f"extrapolated from {self.measured} in {self.steps} steps on this machine; {self.free:.0f} MB are free"
        full = self.memory is None or self.memory > self.free
        return f"{told} ({basis})" + (f"; a batch of {self.measured} fits, larger ones are halved" if full else "")


@dataclass(frozen=True)
class Sample:
    """A batch that was made: how many designs, its seconds, and the memory until then (MB)."""

    size: int
    seconds: float
    memory: float


def estimate(ready: Prepared, spec: RunSpec) -> Estimate:
    """Measure growing batches until one is as large as the run's, takes long, or fills the memory."""
    left = spec.n - len(Run(placed(spec)).finished() & set(range(spec.n)))
    most, steps, device = min(spec.batch, max(left, 1)), min(spec.steps, MOST_STEPS), devices.resolve(spec.device)
    with tempfile.TemporaryDirectory(prefix="foreshape-check-") as place:
        run = Run.open(Path(place), spec.identity(), ready.origin, ready.suffixes(spec))
        try:
            samples, full = _samples(run, ready, replace(spec, steps=steps), most)
        finally:
            run.close()
        disk = sum(path.stat().st_size for path in Path(place).rglob("*") if path.is_file()) / len(run.finished())
    batch, free = _batch(samples[0], samples[-1], most), devices.free(device) / 1e6
    seconds = left / most * batch.seconds * spec.steps / steps
    memory = None if full else batch.memory
    return Estimate(left, samples[-1].size, steps, seconds, memory, free, disk * left / 1e6)


def _samples(run: Run, ready: Prepared, spec: RunSpec, most: int) -> tuple[list[Sample], bool]:
    """Batches of 1, 4, 8 … designs, and whether the memory was full; one before them bears what is done only once."""
    _measured(run, ready, spec, 1)
    samples: list[Sample] = []
    for size in [2**k for k in range(most.bit_length()) if k != 1 and 2**k < most] + [most]:
        if len(samples) > 1 and samples[-1].seconds > ENOUGH:  # two at least, as one tells of no line
            break
        try:
            samples.append(_measured(run, ready, spec, size))
        except (MemoryError, RuntimeError) as error:
            if not samples or not devices.is_out_of_memory(error):
                raise
            return samples, True
    return samples, False


def _measured(run: Run, ready: Prepared, spec: RunSpec, size: int) -> Sample:
    start = time.perf_counter()
    service.add_batch(run, ready, spec, range(size), lambda what, done, total: None)
    return Sample(size, time.perf_counter() - start, devices.used(devices.resolve(spec.device)) / 1e6)


def _batch(small: Sample, large: Sample, size: int) -> Sample:
    """A batch of this size in a line through two others; its time grows no faster than it does."""
    further = (size - large.size) / max(1, large.size - small.size)
    seconds = large.seconds + further * max(0.0, large.seconds - small.seconds)
    memory = large.memory + further * (large.memory - small.memory)
    return Sample(size, min(seconds, large.seconds * size / large.size), memory)
