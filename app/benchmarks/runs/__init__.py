"""What the run store costs and survives: claims, a thousand workers, overhead, small runs, memory, scaling and kills.

All is measured on this machine with the SQLite store of a home of its own, and the claims also on the server of
`FORESHAPE_STORE` where it names one.
"""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any

from app.benchmarks.runs import claims, kills
from data.store import home

SEED = 0
Row = dict[str, Any]
Measurement = Callable[[], dict[str, float]]
GOALS: Mapping[str, Sequence[tuple[str, float]]] = {
    "claims": (("lost", 0), ("claimed twice", 0)),
    "overhead": (("queue and store", 0.03),),
    "small runs": (("differ", 0),),
    "memory": (("ratio", 1.2),),
    "kills": (("differ", 0), ("wrong number", 0), ("rests", 0)),
}
"""Of each kind of row, numbers and the most that they may be."""


def run(quick: bool) -> dict[str, Any]:
    """A row a measurement, and the goals."""
    rows: list[Row] = []
    with _own_home() as store:
        for name, measure in _measurements(quick, store):
            metrics = measure()
            rows.append({"method": name, "steps": 0, "n": metrics.pop("n"), "metrics": metrics})
            print(_line(rows[-1]), file=sys.stderr, flush=True)
    return {"name": "runs", "seed": SEED, "rows": rows, "goals": goals(rows)}


def goals(rows: Sequence[Row]) -> dict[str, dict[str, float | bool]]:
    """The goals by the rows."""
    found: dict[str, dict[str, float | bool]] = {}
    for row in rows:
        for metric, most in GOALS.get(row["method"].split(",")[0], ()):
            value = row["metrics"][metric]
            found[f"{row['method']}: {metric}"] = {"value": value, "goal": most, "met": value <= most}
    return found


def table(result: Mapping[str, Any]) -> str:
    """The rows and the goals, a line each."""
    reached = [
        f"{name}: {goal['value']:.4g}, at most {goal['goal']:g}: {'met' if goal['met'] else 'missed'}"
        for name, goal in result["goals"].items()
    ]
    return "\n".join([*map(_line, result["rows"]), "", *reached])


def _measurements(quick: bool, store: str) -> Iterator[tuple[str, Measurement]]:
    from app.benchmarks.runs import whole  # loads PyTorch, which the processes of `claims` are to be spared

    shards, workers, beats = (400, 40, 2) if quick else (20_000, 1000, 20)
    url = f"sqlite:///{(home() / 'foreshape.db').absolute()}"
    for place in (url, store) if store.startswith("postgres") else (url,):
        kind = place.partition(":")[0]
        yield f"claims, {kind}", partial(claims.raced, place, shards)
        yield f"crowd, {kind}", partial(claims.crowd, place, workers, beats)
    yield "overhead", partial(whole.overhead, 64 if quick else 1000)
    yield "small runs", partial(whole.together, 4 if quick else 16)
    yield "memory", partial(whole.memory, *((16, 64) if quick else (1000, 10_000)))
    yield "scaling", partial(whole.scaling, 64 if quick else 1024, (1, 2) if quick else (1, 2, 4))
    yield "kills", partial(kills.survived, *((3, 24) if quick else (100, 200)), SEED)


@contextmanager
def _own_home() -> Iterator[str]:
    """A home and an SQLite store for this bench alone meanwhile; gives the store that was set before."""
    before = {key: os.environ.get(key) for key in ("FORESHAPE_HOME", "FORESHAPE_STORE")}
    with tempfile.TemporaryDirectory(prefix="foreshape-bench-") as folder:
        os.environ["FORESHAPE_HOME"] = folder
        store = os.environ.pop("FORESHAPE_STORE", "")
        try:
            yield store
        finally:
            for key, value in before.items():
                os.environ.pop(key, None)
                os.environ.update({} if value is None else {key: value})


def _line(row: Row) -> str:
    told = ", ".join(f"{name} {value:.4g}" for name, value in row["metrics"].items())
    return f"{row['method']} (n={row['n']:g}): {told}"
