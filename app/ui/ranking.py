"""Designs in order: weights that move re-rank what is there, for the raw scores of all designs are kept."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

PER_PAGE = 24


@dataclass(frozen=True)
class Entry:
    """One design of a run: its total at the weights of now, its raw rewards and what they measured."""

    number: int
    total: float
    rewards: Mapping[str, float]
    parts: Mapping[str, float]
    violations: int


def entries(rows: Sequence[Mapping[str, str]], weights: Mapping[str, float]) -> list[Entry]:
    """The designs of a table of scores, with totals by these weights of the rewards in it."""
    return [_entry(row, weights) for row in rows]


def ordered(found: Sequence[Entry], by: str, clean_only: bool) -> list[Entry]:
    """Best first by `total` or a reward, first first by `number`; values that are no numbers come last."""
    kept = [entry for entry in found if not (clean_only and entry.violations)]
    if by == "number":
        return sorted(kept, key=lambda entry: entry.number)
    return sorted(kept, key=lambda entry: (-_finite(entry.total if by == "total" else entry.rewards[by]), entry.number))


def rewards_in(spec: Mapping[str, Any]) -> dict[str, float]:
    """The rewards of a run's spec with the weights it was made with."""
    found = spec.get("rewards")
    table = found if isinstance(found, dict) else {}
    return {name: _number(entry.get("weight", 1)) for name, entry in table.items() if isinstance(entry, dict)}


def _entry(row: Mapping[str, str], weights: Mapping[str, float]) -> Entry:
    rewards = {name: _number(row[name]) for name in weights if name in row}
    parts = {
        key: _number(value)
        for key, value in row.items()
        if key.partition(".")[0] in rewards and "." in key and not key.endswith(".valid")
    }
    total = sum(weights[name] * value for name, value in rewards.items())
    return Entry(int(row["design"]), total, rewards, parts, int(_finite(_number(row.get("violations", 0)), 0.0)))


def _number(value: Any) -> float:
    try:
        return float(value)
    except (TypeError, ValueError):
        return math.nan


def _finite(value: float, otherwise: float = -math.inf) -> float:
    return value if math.isfinite(value) else otherwise
