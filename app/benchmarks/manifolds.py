"""How fast and how exact our closed forms are beside those of roma, geoopt and geomstats, in float32 on one thread."""

from __future__ import annotations

import importlib
import math
import time
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from statistics import median
from typing import Any

import torch
from torch import Tensor

from data.errors import InputError
from data.noise import StepNoise
from generators.manifolds import rotations
from generators.manifolds.geomstats_manifold import use_torch
from generators.manifolds.rotations import Rotations
from generators.manifolds.sphere import Sphere

BATCHES = (1, 1_000, 100_000)
DISTANCES = (1e-3, 1.0, math.pi - 1e-3)
"""Small, middle and near the cut locus, in radians, at which the error is measured."""
ROUNDS, QUICK_ROUNDS = 15, 5
SECONDS = 0.02
"""Each timing repeats its operation for about as long."""
OURS = "ours"
SLOW = 1_000
"""Whose work grows by the matrix is timed up to this batch only."""
GOALS = (
    ("SO(3) log", "roma", 1_000, "<=", 1.2),
    ("SO(3) log", "roma", 100_000, "<=", 1.2),
    ("SO(3) exp", "roma", 1_000, "<=", 1.2),
    ("SO(3) exp", "roma", 100_000, "<=", 1.2),
    ("rotation vector", "roma", 1_000, "<=", 1.2),
    ("rotation matrix", "roma", 1_000, "<=", 1.2),
    ("SO(3) log", "geomstats", 1_000, ">=", 100.0),
    ("SO(3) exp", "geomstats", 1_000, ">=", 100.0),
    ("sphere log", "geomstats", 1_000, ">=", 3.0),
)
"""Operation, rival, batch: our time over theirs is to be so low, or theirs over ours so high."""

Operation = Callable[[Tensor, Tensor], Tensor]
"""(x, y or tangent at x) -> tangent at x or point."""


def run(quick: bool) -> dict[str, Any]:
    """A row for each operation, library and batch: the time, the ratio to ours, and the errors by distance."""
    contests = _contests()
    batches = BATCHES[:2] if quick else BATCHES
    with _one_thread(), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # geomstats is not quiet
        rows = [row for name in contests for batch in batches for row in _rows(name, contests[name], batch, quick)]
    return {"name": "manifolds", "seeds": [0], "n": max(batches), "reference": "float64", "rows": rows} | {
        "goals": _goals(rows)
    }


def _contests() -> dict[str, dict[str, Operation]]:
    """Operation -> library -> how it does it, on points and tangents in our coordinates."""
    roma, geoopt = _library("roma"), _library("geoopt")
    use_torch()
    orthogonal = importlib.import_module("geomstats.geometry.special_orthogonal").SpecialOrthogonal
    group, vectors = orthogonal(3), orthogonal(3, point_type="vector")
    ball = importlib.import_module("geomstats.geometry.hypersphere").Hypersphere(2).metric
    ours, sphere, theirs = Rotations(), Sphere(), geoopt.Sphere()

    def roma_log(x: Tensor, y: Tensor) -> Tensor:
        """By the rotation vector of R^T S."""
        r = rotations.matrices(x)
        return rotations.points(r @ rotations.skew(roma.rotmat_to_rotvec(r.mT @ rotations.matrices(y))))

    def roma_exp(x: Tensor, v: Tensor) -> Tensor:
        """By the matrix of the rotation vector in R^T v."""
        r = rotations.matrices(x)
        inside = r.mT @ rotations.matrices(v)
        w = torch.stack([inside[..., 2, 1], inside[..., 0, 2], inside[..., 1, 0]], dim=-1)
        return rotations.points(r @ roma.rotvec_to_rotmat(w))

    matrices, points = rotations.matrices, rotations.points
    return {
        "SO(3) log": {
            OURS: ours.log,
            "roma": roma_log,
            "geomstats": lambda x, y: points(group.metric.log(matrices(y), matrices(x))),
        },
        "SO(3) exp": {
            OURS: ours.exp,
            "roma": roma_exp,
            "geomstats": lambda x, v: points(group.metric.exp(matrices(v), matrices(x))),
        },
        "rotation vector": {
            OURS: lambda x, y: rotations.rotation_vector(matrices(y)),
            "roma": lambda x, y: roma.rotmat_to_rotvec(matrices(y)),
            "geomstats": lambda x, y: vectors.rotation_vector_from_matrix(matrices(y)),
        },
        "rotation matrix": {
            OURS: lambda x, w: points(rotations.rotation(w)),
            "roma": lambda x, w: points(roma.rotvec_to_rotmat(w)),
            "geomstats": lambda x, w: points(vectors.matrix_from_rotation_vector(w)),
        },
        "sphere log": {OURS: sphere.log, "geoopt": theirs.logmap, "geomstats": lambda x, y: ball.log(y, x)},
        "sphere exp": {OURS: sphere.exp, "geoopt": theirs.expmap, "geomstats": lambda x, v: ball.exp(v, x)},
    }


def _library(name: str) -> Any:
    try:
        return importlib.import_module(name)
    except ImportError as error:
        raise InputError(f"this bench compares with {name}, which is not installed: pip install {name}") from error


def _rows(name: str, rivals: Mapping[str, Operation], batch: int, quick: bool) -> list[dict[str, Any]]:
    given, _ = _problem(name, batch, None)
    timed = {library: one for library, one in rivals.items() if not _matrix_by_matrix(name, library) or batch <= SLOW}
    times = _interleaved(timed, given, QUICK_ROUNDS if quick else ROUNDS)
    rows = []
    for library, operation in timed.items():
        ratio = median(ours / its for ours, its in zip(times[OURS], times[library], strict=True))
        seconds = median(times[library])
        metrics = {"microseconds": seconds * 1e6, "ours_over_it": ratio}
        if batch == BATCHES[1]:
            metrics |= {f"error_at_{distance:.4g}": _error(name, operation, distance) for distance in DISTANCES}
        row = {"method": f"{name} {library}", "operation": name, "library": library, "n": batch}
        rows.append(row | {"steps": 0, "nfe": 0, "seconds": seconds, "metrics": metrics})
    return rows


def _matrix_by_matrix(name: str, library: str) -> bool:
    """geomstats calls scipy for the logarithm of each matrix."""
    return (name, library) == ("SO(3) log", "geomstats")


def _problem(name: str, batch: int, distance: float | None) -> tuple[tuple[Tensor, Tensor], Tensor]:
    """What an operation is given in float32, and what it is to give in float64; ends at a distance, or anywhere."""
    manifold: Rotations | Sphere = Sphere() if name.startswith("sphere") else Rotations()
    like = torch.empty(batch, 3 if name.startswith("sphere") else 9, dtype=torch.float64)
    x, y = (manifold.project(manifold.random(like, StepNoise(seed))) for seed in (0, 1))
    if name.startswith("rotation"):
        x = rotations.points(torch.eye(3, dtype=torch.float64)).expand_as(y)
    v = manifold.log(x, y)
    if distance is not None:
        v = distance * v / v.norm(dim=-1, keepdim=True)
    x, v = x.float(), v.float()
    if name == "rotation matrix":
        w = rotations.rotation_vector(rotations.matrices(manifold.exp(x, v)).double()).float()
        return (x, w), rotations.points(rotations.rotation(w.double()))
    if name.endswith("exp"):
        return (x, v), manifold.exp(x.double(), v.double())
    y = manifold.exp(x.double(), v.double()).float()
    if name == "rotation vector":
        return (x, y), rotations.rotation_vector(rotations.matrices(y.double()))
    return (x, y), manifold.log(x.double(), y.double())


def _error(name: str, operation: Operation, distance: float) -> float:
    """The largest error of a coordinate, against our own form in float64, which the tests hold against others."""
    given, wanted = _problem(name, BATCHES[1], distance)
    return float((operation(*given).double() - wanted).abs().max())


def _interleaved(rivals: Mapping[str, Operation], given: tuple[Tensor, Tensor], rounds: int) -> dict[str, list[float]]:
    """Seconds of each library in each round; in a round all take their turn, so that they meet the same machine."""
    repeats = {library: max(1, int(SECONDS / _seconds(one, given, 1))) for library, one in rivals.items()}
    times: dict[str, list[float]] = {library: [] for library in rivals}
    for _ in range(rounds):
        for library, operation in rivals.items():
            times[library].append(_seconds(operation, given, min(repeats[library], 1_000)))
    return times


def _seconds(operation: Operation, given: tuple[Tensor, Tensor], repeats: int) -> float:
    started = time.perf_counter()
    for _ in range(repeats):
        operation(*given)
    return (time.perf_counter() - started) / repeats


def _goals(rows: list[dict[str, Any]]) -> dict[str, dict[str, float | bool]]:
    by = {(row["operation"], row["library"], row["n"]): row["metrics"]["ours_over_it"] for row in rows}
    found: dict[str, dict[str, float | bool]] = {}
    for operation, rival, batch, sense, goal in GOALS:
        ratio = by.get((operation, rival, batch))
        if ratio is not None:
            slower = sense == "<="
            value = ratio if slower else 1 / ratio
            text = (
                f"{operation} at {batch}: time / {rival}'s"
                if slower
                else f"{operation} at {batch}: {rival}'s time / ours"
            )
            found[f"{text} {sense} {goal:g}"] = {
                "value": value,
                "goal": goal,
                "met": value <= goal if slower else value >= goal,
            }
    return found


@contextmanager
def _one_thread() -> Iterator[None]:
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        with torch.inference_mode():
            yield
    finally:
        torch.set_num_threads(threads)
