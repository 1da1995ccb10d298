"""What the evolutions say: how many calls each method needs, what it finds, and the goals."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from app.benchmarks.ideas.landscapes import landscape
from app.benchmarks.ideas.methods import ABSENT, NOT_RANKED, OURS, PERMUTED
from app.benchmarks.ideas.work import ROUNDS, Piece, Result
from data.noise import stable_seed
from generators.ideas.baselines import BASELINES

RESAMPLES = 2_000
"""Of the bootstrap."""
FASTER, FRONT, WORST = 1.19, 6, 0.95
"""Goals: acceleration over the best baseline, landscapes on whose front it is, and the least against no mask."""
Cell = tuple[str, int]
"""A landscape and a budget."""


@dataclass(frozen=True, eq=False)
class Findings:
    """Of all pieces of a bench; arrays are (cells, seeds)."""

    cells: tuple[Cell, ...]
    calls: Mapping[str, np.ndarray]
    """Of each method: calls until the threshold, one more than the budget where it was not reached."""
    metrics: Mapping[str, Mapping[str, np.ndarray]]
    """Of each method: `best`, `auc`, `diversity`, `novelty`, `seconds`; of some `faithfulness`, (cells, seeds, rounds).

    Its rounds without an explanation are NaN.
    """

    @property
    def reference(self) -> str:
        """The baseline of the fewest calls, by their geometric mean over all cells."""
        return min((m for m in self.calls if m in BASELINES), key=lambda m: float(np.log(self.calls[m]).mean()))

    def rows_of(self, names: Sequence[str]) -> np.ndarray:
        """The indices of the cells of some landscapes."""
        return np.array([i for i, (name, _) in enumerate(self.cells) if name in names], int)

    def acceleration(self, method: str, other: str, rows: np.ndarray | None = None) -> tuple[float, float, float]:
        """Geometric mean of calls of the other over calls of the method, and its 95 % interval.

        The interval is by bootstrap over the seeds of each cell, of the two methods together.
        """
        logs = np.log(self.calls[other]) - np.log(self.calls[method])
        logs = logs if rows is None else logs[rows]
        rng = np.random.default_rng(stable_seed("bootstrap", method, other))
        drawn = rng.integers(logs.shape[1], size=(RESAMPLES, *logs.shape))
        means = np.take_along_axis(logs[None], drawn, 2).mean((1, 2))
        low, high = np.quantile(means, [0.025, 0.975])
        return float(np.exp(logs.mean())), float(np.exp(low)), float(np.exp(high))

    def points(self, name: str) -> dict[str, np.ndarray]:
        """Acceleration over the reference, diversity and novelty (3,) of each method that is ranked."""
        rows = self.rows_of([name])
        found = {}
        for method in self.calls:
            if method not in NOT_RANKED:
                means = [float(self.metrics[method][key][rows].mean()) for key in ("diversity", "novelty")]
                found[method] = np.array([self.acceleration(method, self.reference, rows)[0], *means])
        return found


def gathered(pieces: Sequence[Piece], results: Sequence[Result]) -> Findings:
    """Findings from the results of pieces, which are of every method, cell and seed."""
    by = dict(zip(pieces, results, strict=True))
    cells = tuple(dict.fromkeys((piece.landscape, piece.budget) for piece in pieces))
    names = list(dict.fromkeys(piece.method for piece in pieces))
    seeds = sorted({piece.seed for piece in pieces})
    runs = {m: [[by[Piece(name, m, budget, seed)] for seed in seeds] for name, budget in cells] for m in names}
    curves = {m: [[running_best(run["values"]) for run in row] for row in rows] for m, rows in runs.items()}
    rivals = [m for m in names if m in BASELINES]
    calls: dict[str, np.ndarray] = {m: np.zeros((len(cells), len(seeds))) for m in names}
    metrics: dict[str, dict[str, np.ndarray]] = {}
    for i, (_, budget) in enumerate(cells):
        level = max(float(np.median([curve[-1] for curve in curves[m][i]])) for m in rivals)
        for m in names:
            calls[m][i] = [hit(curve, level, budget) for curve in curves[m][i]]
    for m in names:
        told = {
            key: np.array([[run[key] for run in row] for row in runs[m]], float)
            for key in runs[m][0][0]
            if key != "values"
        }
        told["best"] = np.array([[curve[-1] for curve in row] for row in curves[m]])
        tops = [landscape(name).optimum for name, _ in cells]
        told["auc"] = np.array([[area(c, top) for c in row] for row, top in zip(curves[m], tops, strict=True)])
        metrics[m] = told
    return Findings(cells, calls, metrics)


def running_best(values: Sequence[float | None]) -> np.ndarray:
    """The best value (N,) after each call; infeasible designs count for nothing."""
    return np.maximum.accumulate([-np.inf if value is None else value for value in values])


def hit(curve: np.ndarray, level: float, budget: int) -> int:
    """The number of the first call whose running best reaches a level; budget + 1 where none does."""
    reached = np.flatnonzero(curve >= level)
    return int(reached[0]) + 1 if len(reached) else budget + 1


def area(curve: np.ndarray, top: float) -> float:
    """The mean over the calls after the start of the share of the way from its best design to the optimum."""
    start = len(curve) // ROUNDS
    low = curve[start - 1]
    return float((curve[start:] - low).mean() / (top - low)) if np.isfinite(low) and top > low else 1.0


def on_front(points: Mapping[str, np.ndarray], name: str) -> bool:
    """Whether no other point is at least as good in all and better in one."""
    mine = points[name]
    return not any((other >= mine).all() and (other > mine).any() for other in points.values())


def volume(points: Mapping[str, np.ndarray], name: str) -> float:
    """The share of the box of all points that one of them dominates."""
    every = np.stack(list(points.values()))
    low, high = every.min(0), every.max(0)
    return float(((points[name] - low) / np.where(high > low, high - low, 1)).prod())


def rows(found: Findings) -> list[dict[str, Any]]:
    """A row a landscape, budget and method: means over seeds."""
    return [
        {
            "landscape": name,
            "method": method,
            "steps": ROUNDS,
            "nfe": budget,
            "n": budget,
            "seconds": round(float(found.metrics[method]["seconds"][i].mean()), 2),
            "metrics": _metrics(found, method, i, budget),
        }
        for i, (name, budget) in enumerate(found.cells)
        for method in found.calls
    ]


def _metrics(found: Findings, method: str, i: int, budget: int) -> dict[str, float]:
    means = {key: float(found.metrics[method][key][i].mean()) for key in ("best", "auc", "diversity", "novelty")}
    calls = found.calls[method][i]
    means |= {"hit_rate": float((calls <= budget).mean()), "calls": float(np.exp(np.log(calls).mean()))}
    return {key: float(f"{value:.5g}") for key, value in means.items()}


def faithfulness(found: Findings) -> list[dict[str, Any]]:
    """A line a landscape, budget and method that explains: the mean over seeds of each round, None where none did."""
    lines = []
    for method, told in found.metrics.items():
        for (name, budget), rounds in zip(found.cells, told.get("faithfulness", []), strict=False):
            known = np.isfinite(rounds)
            means = np.where(known, rounds, 0).sum(0) / known.sum(0).clip(min=1)
            by_round = [round(float(x), 3) if n else None for x, n in zip(means, known.sum(0), strict=True)]
            lines.append({"landscape": name, "budget": budget, "method": method, "rounds": by_round})
    return lines


def summary(found: Findings) -> list[dict[str, Any]]:
    """A line a method: acceleration over the reference in three readings, fronts that it is on, volume.

    `ideas_over` is the acceleration of IDEAS over the method, with its interval.
    """
    names = list(dict.fromkeys(name for name, _ in found.cells))
    points = {name: found.points(name) for name in names}
    base = float(found.metrics[found.reference]["auc"].mean())
    lines = []
    for method in found.calls:
        ratio, low, high = found.acceleration(method, found.reference)
        line = {"method": method, "acceleration": ratio, "low": low, "high": high, "fewer_calls": 1 - 1 / ratio}
        line["ideas_over"], line["ideas_over_low"], line["ideas_over_high"] = found.acceleration(OURS, method)
        line["auc_gain"] = float(found.metrics[method]["auc"].mean()) / max(base, 1e-9) - 1
        if method in points[names[0]]:
            line["fronts"] = sum(on_front(points[name], method) for name in names)
            line["volume"] = float(np.mean([volume(points[name], method) for name in names]))
        lines.append({key: round(value, 3) if isinstance(value, float) else value for key, value in line.items()})
    return lines


def goals(found: Findings) -> dict[str, dict[str, float | bool]]:
    """The numbers that are to be reached."""
    names = list(dict.fromkeys(name for name, _ in found.cells))
    motifs = [name for name in names if landscape(name).has_motifs]
    plain = [name for name in names if not landscape(name).has_motifs]
    ratio, low, _ = found.acceleration(OURS, found.reference)
    reached = {
        f"acceleration over {found.reference}": (ratio, FASTER),
        f"lower end of acceleration over {found.reference}": (low, 1.0),
        "landscapes on whose Pareto front ideas is": (sum(on_front(found.points(x), OURS) for x in names), FRONT),
    }
    for control in (PERMUTED, ABSENT):
        value = found.acceleration(OURS, control, found.rows_of(motifs))[0]
        reached[f"acceleration over {control} where there are motifs"] = (value, 1.0)
    if plain:
        worst = min(found.acceleration(OURS, ABSENT, found.rows_of([name]))[0] for name in plain)
        reached["least acceleration over ideas_no_mask where there are none"] = (worst, WORST)
    return {
        name: {"value": round(float(value), 3), "goal": goal, "met": bool(value >= goal)}
        for name, (value, goal) in reached.items()
    }


def table(result: Mapping[str, Any]) -> str:
    """The summary, the goals, faithfulness by round and two of the metrics by landscape, as Markdown."""
    columns = list(dict.fromkeys(key for line in result["summary"] for key in line))
    parts = [
        _markdown(columns, [[line.get(key, "") for key in columns] for line in result["summary"]]),
        _markdown(
            ["goal", "value", "wanted", "met"],
            [[name, x["value"], x["goal"], "yes" if x["met"] else "no"] for name, x in result["goals"].items()],
        ),
    ]
    rounds = [[x["landscape"], x["budget"], *x["rounds"]] for x in result["faithfulness"] if x["method"] == OURS]
    heads = ["landscape", "budget", *(f"round {k + 1}" for k in range(ROUNDS - 1))]
    parts.append("faithfulness:\n\n" + _markdown(heads, rounds))
    for key in ("calls", "best"):
        methods = [line["method"] for line in result["summary"]]
        cells: dict[tuple[str, int], dict[str, float]] = {(row["landscape"], row["nfe"]): {} for row in result["rows"]}
        for row in result["rows"]:
            cells[row["landscape"], row["nfe"]][row["method"]] = row["metrics"][key]
        lines = [[*cell, *(f"{found[m]:.4g}" for m in methods)] for cell, found in cells.items()]
        parts.append(f"{key}:\n\n" + _markdown(["landscape", "budget", *methods], lines))
    return "\n\n".join(parts)


def _markdown(columns: Sequence[str], lines: Sequence[Sequence[object]]) -> str:
    rule = "| --- " * len(columns) + "|"
    return "\n".join([f"| {' | '.join(columns)} |", rule, *(f"| {' | '.join(map(str, line))} |" for line in lines)])
