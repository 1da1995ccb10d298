"""Kills: processes of a run are killed at random moments, the run goes on, and must end as if nothing had been."""

from __future__ import annotations

import random
import time
from pathlib import Path

from app.benchmarks.runs.commands import begin, foreshape
from data.store import Run, runs_folder

RUN = ("domain=dna", "generator=rmf", "batch=8")
VICTIMS = ("worker", "submitter", "both")
SUBMITTING, BETWEEN = 8.0, 0.4
"""Seconds that a submission takes at most, and within which a batch is made."""


def survived(kills: int, n: int, seed: int) -> dict[str, float]:
    """So many kills, each in a run of n designs that then goes on.

    Says how many runs then differ from one that was left alone, have designs twice or not at all, and have files of
    processes that are gone; and how many were killed between their first design and their last.
    """
    rng = random.Random(seed)
    found: dict[str, float] = {"n": n, "kills": kills, "in the middle": 0, "differ": 0, "wrong number": 0, "rests": 0}
    whole = _gone_on("whole", n)
    for k in range(kills):
        folder = runs_folder() / f"killed-{k}"
        found["in the middle"] += 0 < _killed(folder, n, VICTIMS[k % len(VICTIMS)], rng) < n
        found["differ"] += _gone_on(folder.name, n) != whole
        found["wrong number"] += [int(row["design"]) for row in Run(folder).rows()] != list(range(n))
        found["rests"] += any(folder.rglob(".*"))
    return found


def _killed(folder: Path, n: int, victim: str, rng: random.Random) -> int:
    """Submit a run and start a worker, and kill one of them or both; returns how many designs were there by then."""
    submission = ("submit", *RUN, f"n={n}", f"out={folder}")
    if victim == "worker":
        foreshape(*submission)
    submitter = begin(*submission) if victim != "worker" else None
    worker = begin("worker") if victim != "submitter" else None
    if submitter is not None:
        time.sleep(rng.uniform(0, SUBMITTING))
        submitter.kill()
        submitter.wait()
    if worker is None:
        return 0
    moment = rng.randrange(n)
    while worker.poll() is None and _begun(folder) and len(Run(folder).finished()) < moment:
        time.sleep(0.05)
    time.sleep(rng.uniform(0, BETWEEN))
    worker.kill()
    worker.wait()
    return len(Run(folder).finished())


def _begun(folder: Path) -> bool:
    """Whether the submitter came so far that a worker can have heard of the run."""
    return (folder / "events.jsonl").exists()


def _gone_on(name: str, n: int) -> dict[str, bytes]:
    """Let a run go on to its end; what is then in its folder that is to be the same whatever happened."""
    folder = runs_folder() / name
    foreshape("submit", *RUN, f"n={n}", f"out={folder}")
    foreshape("worker", "--drain")
    files = [*(folder / "designs").iterdir(), *(folder / "thumbnails").iterdir(), folder / "scores.csv"]
    return {str(path.relative_to(folder)): path.read_bytes() for path in files}
