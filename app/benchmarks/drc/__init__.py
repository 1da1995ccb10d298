"""Our design-rule check beside KLayout's, on real standard cells and on the same with some sides moved.

`stdcells_100.npz` has 100 standard cells of the val split of SkyWater SKY130 and IHP SG13G2 (both Apache-2.0, as
distributed in the Python packages sky130 0.0.16 and ihp-gdsfactory 2.0.1): `rects` (m, 5) are layer x0 y0 x1 y1 in
steps of 5 nm, the cell's lower left corner at 0, and `ptr` says where each cell begins; the layer is a number in
`layers`, `pdk` and `names` are by cell. KLayout (GPL) runs in a process of its own, `referee.py`, and only here.
"""

from __future__ import annotations

import importlib.util
import json
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from data import corpora
from data.errors import InputError
from domains.layout import rules, technology
from domains.layout.rules import Marker
from domains.layout.technology import CELLS, Technology

FILE = "stdcells_100.npz"
REFEREE = Path(__file__).with_name("referee.py")
SEED = 0
QUICK = 12
"""Of so many cells, the quick form takes one."""
REPEATS = 3
"""Of so many times the least counts: of ours for all cells together, of KLayout's cell by cell."""
ROOM = 2000
"""Between a cell and its window's edge, in nm: nothing is cut, so all rules hold everywhere."""

Box = Sequence[int]
Move = Callable[[np.ndarray, int, np.random.Generator], np.ndarray]
"""Shapes (n, 5) and the grid -> how far each side moves (n, 4), in nm."""


class Stock(NamedTuple):
    """Cells of one technology: shapes (n, 5) of layer x0 y0 x1 y1 in nm, and the sizes of their windows."""

    technology: Technology
    shapes: list[np.ndarray]
    sizes: list[tuple[int, int]]


class Verdicts(NamedTuple):
    """What a check found, by cell: the number of a rule and a box each; and how long it took, in CPU seconds."""

    found: list[list[tuple[int, Box]]]
    seconds: float


def run(quick: bool) -> dict[str, Any]:
    """A row for each set of cells and check; goals: same verdicts, nothing missed, and faster."""
    if importlib.util.find_spec("klayout") is None:
        raise InputError("bench drc compares with klayout, which is not installed: pip install klayout")
    rng = np.random.default_rng(SEED)
    real = stocks(QUICK if quick else 1)
    ways: dict[str, Move | None] = {
        "real": None,
        "one side moved": partial(moved, share=0.0, least=1, most=20),
        "5 % of sides moved": partial(moved, share=0.05, least=1, most=4),
        "one side off grid": off_grid,
    }
    rows = [row for name, move in ways.items() for row in contest(name, [perturbed(s, move, rng) for s in real])]
    n = sum(len(stock.shapes) for stock in real)
    result = {"name": "drc", "seeds": [SEED], "n": n, "reference": "klayout", "rows": rows}
    return result | {"goals": goals(rows)}


def goals(rows: Sequence[dict[str, Any]]) -> dict[str, dict[str, Any]]:
    """The goals by the rows of ours."""
    ours = [row["metrics"] for row in rows if row["library"] == "ours"]
    agree, missed = min(m["agree"] for m in ours), sum(m["missed"] for m in ours)
    speed = min(m["klayout_over_ours"] for m in ours)
    return {
        "cells with the same broken rules >= 98 %": {"value": agree, "goal": 0.98, "met": agree >= 0.98},
        "violations missed <= 0": {"value": missed, "goal": 0, "met": missed <= 0},
        "KLayout's time / ours >= 5": {"value": speed, "goal": 5.0, "met": speed >= 5},
    }


def stocks(every: int) -> list[Stock]:
    """Each `every`-th cell of the file, by technology."""
    arrays = corpora.load(FILE)
    rects, ptr, names, pdk = (arrays[key] for key in ("rects", "ptr", "layers", "pdk"))
    found = []
    for name in np.unique(pdk).tolist():
        known = technology.load(f"{name}{CELLS}")
        there = [layer.name for layer in known.layers]
        number = np.array([there.index(own) if own in there else -1 for own in names.tolist()])
        cells = [rects[ptr[i] : ptr[i + 1]].astype(np.int64) for i in np.flatnonzero(pdk == name)[::every]]
        shapes = [np.c_[number[own[:, 0]], own[:, 1:] * known.grid + ROOM] for own in cells]
        shapes = [own[own[:, 0] >= 0] for own in shapes]
        found.append(Stock(known, shapes, [_size(own) for own in shapes]))
    return found


def perturbed(stock: Stock, move: Move | None, rng: np.random.Generator) -> Stock:
    """The cells with their sides moved; shapes that have no area then are left out."""
    if move is None:
        return stock
    shapes = []
    for own in stock.shapes:
        new = own.copy()
        new[:, 1:] += move(own, stock.technology.grid, rng)
        shapes.append(new[(new[:, 3] > new[:, 1]) & (new[:, 4] > new[:, 2])])
    return stock._replace(shapes=shapes)


def moved(
    shapes: np.ndarray, grid: int, rng: np.random.Generator, *, share: float, least: int, most: int
) -> np.ndarray:
    """One side, and of the others this share, by `least` to `most` steps of the grid in or out."""
    which = rng.random((len(shapes), 4)) < share
    which[rng.integers(len(shapes)), rng.integers(4)] = True
    steps: np.ndarray = which * grid * rng.integers(least, most + 1, which.shape) * rng.choice([-1, 1], which.shape)
    return steps


def off_grid(shapes: np.ndarray, grid: int, rng: np.random.Generator) -> np.ndarray:
    """One side by less than a step of the grid."""
    return moved(shapes, 1, rng, share=0.0, least=1, most=grid - 1)


def contest(name: str, sets: Sequence[Stock]) -> list[dict[str, Any]]:
    """The rows of both checks on the same cells.

    agree                share of cells in which both find the same rules broken
    missed               places that KLayout finds and at which ours has no marker of the same rule
    clean                share of cells in which no rule is broken
    ms_per_cell          CPU time a cell, with the union of overlapping shapes, in milliseconds
    klayout_over_ours    KLayout's time over ours
    """
    started = time.monotonic()
    ours = [own_verdicts(stock) for stock in sets]
    between = time.monotonic()
    theirs = referee_verdicts(sets)
    seconds = [between - started, time.monotonic() - between]
    pairs = [pair for a, b in zip(ours, theirs, strict=True) for pair in zip(a.found, b.found, strict=True)]
    agree = float(np.mean([{k for k, _ in a} == {k for k, _ in b} for a, b in pairs]))
    missed = sum(missing(a, b) for a, b in pairs)
    own, other = (sum(each.seconds for each in some) / len(pairs) for some in (ours, theirs))
    rows = []
    for side, library, cost, wall in ((0, "ours", own, seconds[0]), (1, "klayout", other, seconds[1])):
        metrics = {"clean": float(np.mean([not pair[side] for pair in pairs])), "ms_per_cell": round(1000 * cost, 3)}
        if library == "ours":
            metrics = {"agree": agree, "missed": missed, **metrics, "klayout_over_ours": round(other / own, 2)}
        method = {"method": f"{name}, {library}", "library": library, "steps": 0, "nfe": 0, "n": len(pairs)}
        rows.append(method | {"seconds": round(wall, 2), "metrics": metrics})
    return rows


def missing(ours: Sequence[tuple[int, Box]], theirs: Sequence[tuple[int, Box]]) -> int:
    """How many of their findings have none of ours for the same rule that meets them."""
    return sum(not any(k == own and _meet(box, place) for own, place in ours) for k, box in theirs)


def own_verdicts(stock: Stock) -> Verdicts:
    """What our check says of the cells of one technology."""
    numbers = {_key(rule): k for k, rule in enumerate(asked(stock.technology))}
    seconds = []
    for _ in range(REPEATS):
        started = time.process_time()
        found = rules.check(stock.technology, stock.shapes, stock.sizes)
        seconds.append(time.process_time() - started)
    return Verdicts([[(numbers[_place(marker)], marker.box) for marker in own] for own in found], min(seconds))


def referee_verdicts(sets: Sequence[Stock]) -> list[Verdicts]:
    """What KLayout says of the cells of several technologies."""
    lines = []
    for known, shapes, sizes in sets:
        cells = [{"boxes": own.tolist(), "size": size} for own, size in zip(shapes, sizes, strict=True)]
        task = {"rules": asked(known), "layers": len(known.layers), "cells": cells, "repeats": REPEATS}
        lines.append(json.dumps(task))
    done = subprocess.run([sys.executable, str(REFEREE)], input="\n".join(lines), capture_output=True, text=True)
    if done.returncode:
        raise InputError(f"KLayout's check ended with {done.returncode}: {done.stderr.strip()[-200:]!r}; try again")
    answers = [json.loads(line) for line in done.stdout.splitlines()]
    found = [[[(k, box) for k, box in own] for own in answer["found"]] for answer in answers]
    return [Verdicts(own, a["seconds"]) for own, a in zip(found, answers, strict=True)]


def asked(known: Technology) -> list[dict[str, Any]]:
    """The rules of a technology as the referee takes them."""
    found: list[dict[str, Any]] = []
    for number, layer in enumerate(known.layers):
        space, notch = layer.space.nm, (layer.notch or layer.space).nm
        found.append({"check": "space", "layer": number, "nm": space, "notch": notch})
        found.append({"check": "grid", "layer": number, "nm": known.grid})
        found += [{"check": "width", "layer": number, "nm": layer.width.nm}] if layer.width else []
        found += [{"check": "size", "layer": number, "nm": layer.size.nm}] if layer.size else []
        found += [{"check": "area", "layer": number, "nm": layer.area.nm2}] if layer.area else []
    for pair in known.pairs:
        sides = {"of": pair.of, "to": pair.to, "on": pair.on}
        found.append({"check": pair.check, "layer": pair.of[0], "name": pair.rule, "nm": pair.nm} | sides)
    return found


def _key(rule: dict[str, Any]) -> tuple[str, int, str]:
    return rule["check"], rule["layer"], rule.get("name", "")


def _place(marker: Marker) -> tuple[str, int, str]:
    check = "space" if marker.rule == "notch" else marker.rule
    return check, marker.layer, marker.name if check in technology.CHECKS else ""


def _meet(a: Box, b: Box) -> bool:
    return a[0] <= b[2] and b[0] <= a[2] and a[1] <= b[3] and b[1] <= a[3]


def _size(shapes: np.ndarray) -> tuple[int, int]:
    wide, high = (shapes[:, 3:].max(0) + ROOM).tolist()
    return wide, high
