"""The work of the bench: one evolution a file, of JSON lines, written as it is finished, by any number of processes."""

from __future__ import annotations

import hashlib
import json
import multiprocessing
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from app.benchmarks.ideas import methods
from app.benchmarks.ideas.landscapes import Landscape, landscape
from app.benchmarks.ideas.truth import Watched
from data.noise import StepNoise, stable_seed
from data.store import home, locked
from generators.ideas.alphabet import Alphabet
from generators.ideas.evolution import evolve
from generators.ideas.meter import Meter
from generators.ideas.protocol import Strategy
from generators.ideas.strategy import Explained

ROOT = Path(__file__).parents[3]
ROUNDS = 8
"""Equal batches of a budget, of which the first is the start."""
TOP = 100
"""Best designs whose diversity and novelty are told, or a quarter of the budget where that is less."""
Result = dict[str, Any]


@dataclass(frozen=True)
class Piece:
    """One evolution."""

    landscape: str
    method: str
    budget: int
    seed: int

    def path(self) -> Path:
        """Its file: in another folder for other code."""
        kept = hashlib.sha256()
        for part in methods.code(self.method):
            path = ROOT / part
            for file in [path] if path.is_file() else sorted(path.rglob("*.py")):
                kept.update(file.read_bytes())
        name = f"{self.landscape}.{self.method}.{self.budget}.{self.seed}.jsonl"
        return home() / "bench" / "ideas" / kept.hexdigest()[:16] / name


def done(pieces: Sequence[Piece], workers: int) -> list[Result]:
    """The results of all pieces, in order; those that are there are taken over."""
    if workers > 1:
        with multiprocessing.get_context("spawn").Pool(workers) as pool:
            pool.map(_work, [pieces] * workers, chunksize=1)
    _work(pieces)
    return [read(piece.path()) for piece in pieces]


def read(path: Path) -> Result:
    """A finished piece: its last line, with the values (N,) of all calls in their order."""
    *rounds, last = [json.loads(line) for line in path.read_text().splitlines()]
    whole: Result = last | {"values": [value for line in rounds for value in line["values"]]}
    return whole


def _work(pieces: Sequence[Piece]) -> None:
    """Make what nobody has made or is making; then wait for what others are making."""
    torch.set_num_threads(1)
    left = list(pieces)
    while left:
        left = [piece for piece in left if not _made(piece)]
        if left:
            time.sleep(1)


def _made(piece: Piece) -> bool:
    """Whether a piece is there, because it was or because it was made now; not while another process makes it."""
    path = piece.path()
    if path.exists():
        return True
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.with_suffix(".lock").open("ab") as lock:
        if not locked(lock):
            return False
        if not path.exists():
            part = path.with_suffix(".part")
            part.write_text("".join(json.dumps(line) + "\n" for line in lines(piece)))
            part.replace(path)
    return True


def lines(piece: Piece) -> list[Result]:
    """One evolution: a line a round with the values measured in it, then one with what is told of the whole."""
    oracle = landscape(piece.landscape)
    rng = StepNoise(stable_seed("bench", piece.landscape, piece.budget, piece.seed))
    start, alphabet = piece.budget // ROUNDS, Alphabet(oracle.space)
    meter = Meter(oracle.score, alphabet, piece.budget)
    strategy, pool = methods.METHODS[piece.method](oracle, alphabet), oracle.start(start, rng.fork(0))
    ends, watched = [start], _watched(strategy)

    def on_round(k: int) -> None:
        """Note where a round ends, and tell who watches."""
        ends.append(len(meter.values))
        if watched:
            watched.round = k

    began = time.process_time()
    evolve(meter, pool, start, ROUNDS - 1, strategy, rng.fork(1), on_round)
    seconds = time.process_time() - began
    batches = meter.values.tensor_split(ends)
    told: list[Result] = [{"round": k, "values": _plain(batch)} for k, batch in enumerate(batches[:-1])]
    last: Result = {"seconds": round(seconds, 2), **_spread(oracle, meter, pool)}
    if watched:
        last["faithfulness"] = watched.faithfulness(oracle, ROUNDS - 1)
    return [*told, last]


def _watched(strategy: Strategy) -> Watched | None:
    explainer = strategy.explainer if isinstance(strategy, Explained) else None
    return explainer if isinstance(explainer, Watched) else None


def _plain(values: Tensor) -> list[float | None]:
    """Values as JSON has them: none for what is infeasible."""
    return [round(value, 6) if value > -torch.inf else None for value in values.tolist()]


def _spread(oracle: Landscape, meter: Meter, start: Tensor) -> Result:
    """Mean Hamming distances: of pairs of the best designs measured, and of each to the nearest of the start."""
    best = meter.designs[meter.ranking()[: min(TOP, meter.budget // 4)]].flatten(1).float()
    apart = torch.cdist(best, best, p=0)
    diversity = float(apart.sum()) / max(1, len(best) * (len(best) - 1))
    novelty = float(torch.cdist(best, start.flatten(1).float(), p=0).amin(-1).mean())
    return {"diversity": round(diversity, 3), "novelty": round(novelty, 3)}
