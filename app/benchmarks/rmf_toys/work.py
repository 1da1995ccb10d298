"""The work of the bench: pieces that are written down as they are finished, by as many processes as there are."""

from __future__ import annotations

import hashlib
import json
import multiprocessing
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import fmean, stdev
from typing import Any

import torch

from app.benchmarks.rmf_toys import arms, measures
from app.benchmarks.rmf_toys.arms import ARMS, FlowMaps
from app.benchmarks.rmf_toys.problems import Problem, problem
from data.noise import StepNoise, stable_seed
from data.store import home, locked

ROOT = Path(__file__).parents[3]
HERE = "app/benchmarks/rmf_toys"
CODE = (
    *(f"{HERE}/{name}.py" for name in ("arms", "measures", "problems", "samplers")),
    *(
        "generators/rmf",
        "generators/manifolds",
        "generators/networks/multilayer_perceptron.py",
        "generators/training.py",
    ),
)
"""On which results depend."""
FLOOR, PRIOR = "floor", "prior"
FAR_OFF = 1_000
"""Keys of the references of the floor, so that they are not those of the seeds."""
Row = dict[str, Any]


@dataclass(frozen=True)
class Plan:
    """What is measured."""

    problems: tuple[str, ...]
    arms: tuple[str, ...]
    part: float
    """Of the training steps of each arm."""
    steps: tuple[int, ...]
    seeds: int
    seed: int
    n: int
    """Points of a sample, and of the reference that it is compared with."""
    pairs: int
    """Independent pairs of samples of the data, for the floor."""

    def folder(self) -> Path:
        """Where pieces are kept: another folder for other code or other numbers, the same for more problems or arms."""
        kept = hashlib.sha256(repr(replace(self, problems=(), arms=())).encode())
        for path in (ROOT / part for part in CODE):
            for file in [path] if path.is_file() else sorted(path.rglob("*.py")):
                kept.update(file.read_bytes())
        return home() / "bench" / "rmf_toys" / kept.hexdigest()[:16]

    def place(self, piece: tuple[str, str]) -> int:
        """In the table: problem after problem."""
        return self.problems.index(piece[0])

    def pieces(self) -> list[tuple[str, str]]:
        """Problem and method of each piece of work, in the order of the methods."""
        return [(name, method) for method in (FLOOR, PRIOR, *self.arms) for name in self.problems]


def done(plan: Plan, workers: int) -> tuple[list[Row], float]:
    """The rows of all pieces, in order, and the CPU seconds that they took; pieces that are there are taken over.

    Several processes, also ones that were started by other calls, may do the same plan at once.
    """
    folder = plan.folder()
    folder.mkdir(parents=True, exist_ok=True)
    if workers > 1:
        with multiprocessing.get_context("spawn").Pool(workers) as pool:
            pool.starmap(_work, [(plan, folder)] * workers, chunksize=1)
    _work(plan, folder)
    found = [json.loads(_file(folder, piece).read_text()) for piece in sorted(plan.pieces(), key=plan.place)]
    return [row for piece in found for row in piece["rows"]], sum(piece["seconds"] for piece in found)


def _work(plan: Plan, folder: Path) -> None:
    """Make what nobody has made or is making; then wait for what others are making."""
    left = plan.pieces()
    with _lean():
        while left:
            left = [piece for piece in left if not _made(plan, folder, piece)]
            if left:
                time.sleep(1)


@contextmanager
def _lean() -> Iterator[None]:
    """One thread, and zero for numbers below the smallest normal one, with which arithmetic takes twice as long."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    torch.set_flush_denormal(True)
    try:
        yield
    finally:
        torch.set_flush_denormal(False)
        torch.set_num_threads(threads)


def _made(plan: Plan, folder: Path, piece: tuple[str, str]) -> bool:
    """Whether a piece is there, because it was or because it was made now; not while another process makes it."""
    path = _file(folder, piece)
    if path.exists():
        return True
    with path.with_suffix(".lock").open("ab") as lock:
        if not locked(lock):
            return False
        if not path.exists():
            part = path.with_suffix(".part")
            started = time.process_time()
            made = rows(plan, *piece)
            part.write_text(json.dumps({"rows": made, "seconds": time.process_time() - started}))
            part.replace(path)
    return True


def _file(folder: Path, piece: tuple[str, str]) -> Path:
    return folder / f"{'.'.join(piece).replace(' ', '-')}.json"


def rows(plan: Plan, name: str, method: str) -> list[Row]:
    """The rows of one problem and one method."""
    toy = problem(name)
    if method == FLOOR:
        pairs = [(toy.fresh(plan.n, k), toy.reference(plan.n, FAR_OFF + k)) for k in range(plan.pairs)]
        found = [measures.measured(*map(toy.coordinates, pair)) for pair in pairs]
        return [_row(plan, name, method, 0, found)]
    if method == PRIOR:
        rng = StepNoise(stable_seed("prior", plan.seed))
        drawn = [toy.coordinates(arms.prior(toy, plan.n, rng.fork(k))) for k in range(plan.seeds)]
        return [_row(plan, name, method, 0, _against(plan, toy, torch.stack(drawn)))]
    training = arms.trained(toy, ARMS[method], plan.part, plan.seeds, plan.seed)
    known: Row = {"training_seconds": round(training.seconds, 2)}
    if training.failure:
        known["failure"] = training.failure
    return [_sampled(plan, name, method, training.maps, steps) | known for steps in plan.steps]


def _sampled(plan: Plan, name: str, method: str, maps: FlowMaps, steps: int) -> Row:
    """What is measured of samples in so many steps, and the CPU seconds of the sampling alone."""
    started = time.process_time()
    samples = maps.sample(plan.n, steps, StepNoise(stable_seed("sample", plan.seed)))
    seconds = round(time.process_time() - started, 3)
    found = _against(plan, problem(name), samples) if bool(samples.isfinite().all()) else []
    return _row(plan, name, method, steps, found) | {"seconds": seconds}


def _against(plan: Plan, toy: Problem, samples: torch.Tensor) -> list[dict[str, float]]:
    """What is measured of samples (seeds, n, d), each seed's against a reference of its own."""
    return [
        measures.measured(sample, toy.coordinates(toy.reference(plan.n, key))) for key, sample in enumerate(samples)
    ]


def _row(plan: Plan, name: str, method: str, steps: int, found: Sequence[Mapping[str, float]]) -> Row:
    """Means and standard deviations over seeds, or over pairs; none where nothing was finite."""
    keys = list(found[0]) if found else []
    means = {key: fmean(each[key] for each in found) for key in keys}
    spread = {f"{key}_sd": stdev(each[key] for each in found) if len(found) > 1 else 0.0 for key in keys}
    return {
        "problem": name,
        "method": method,
        "steps": steps,
        "nfe": steps,
        "n": plan.n,
        "seconds": 0.0,
        "metrics": {key: float(f"{value:.5g}") for key, value in (means | spread).items()},
        "mmd2_by_seed": [float(f"{each['mmd2']:.5g}") for each in found],
    }
