"""What a generator is expected to reach on a domain, as comparisons between the rows of an evaluation."""

from __future__ import annotations

import operator
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

Metrics = Mapping[tuple[str, int], Mapping[str, float]]
"""(method, steps) -> metrics."""
Outcome = tuple[str, dict[str, float | bool]]
"""A goal's name, with value, goal and whether it is met."""
TWIN = "flow_matching"
"""The checkpoint `<domain>-<generator>-flow_matching` is the same network trained by flow matching alone."""
_SENSES = {"<=": operator.le, ">=": operator.ge, "<": operator.lt, ">": operator.gt}


class Expected(Protocol):
    """One goal of whatever kind."""

    @property
    def metrics(self) -> frozenset[str]:
        """Those it looks at."""

    def met(self, generator: str, by: Metrics) -> Outcome | None:
        """Whether it is met; None where a row or metric that it names is absent."""


@dataclass(frozen=True)
class Goal:
    """A metric at a number of steps against `factor`, or against `factor` times that of another method."""

    metric: str
    steps: int
    sense: str
    factor: float
    method: str = ""
    its_steps: int = 0

    @property
    def metrics(self) -> frozenset[str]:
        """Its only one."""
        return frozenset({self.metric})

    def met(self, generator: str, by: Metrics) -> Outcome | None:
        """Value, goal and whether it is met; None where a row or metric that it names is absent."""
        ours, theirs = by.get((generator, self.steps), {}), by.get((self.method, self.its_steps), {})
        if self.metric not in ours or (self.method and self.metric not in theirs):
            return None
        value, goal = ours[self.metric], self.factor * (theirs[self.metric] if self.method else 1)
        right = f"{self.factor:g} x {self.method} {self.its_steps or ''}".strip() if self.method else f"{self.factor:g}"
        reached = bool(_SENSES[self.sense](value, goal))
        return f"{self.metric}: {generator} {self.steps} {self.sense} {right}", {
            "value": value,
            "goal": goal,
            "met": reached,
        }


@dataclass(frozen=True)
class Several:
    """At least `least` of some goals, whose name says what they have in common."""

    name: str
    goals: tuple[Goal, ...]
    least: int

    @property
    def metrics(self) -> frozenset[str]:
        """Those of all its goals."""
        return frozenset().union(*(goal.metrics for goal in self.goals))

    def met(self, generator: str, by: Metrics) -> Outcome | None:
        """How many are met; None unless all can be told."""
        found = [goal.met(generator, by) for goal in self.goals]
        if None in found:
            return None
        value = sum(bool(outcome[1]["met"]) for outcome in found if outcome)
        name = f"{generator} {self.name}: {self.least} of {len(self.goals)}"
        return name, {"value": value, "goal": self.least, "met": value >= self.least}


@dataclass(frozen=True)
class Nearer:
    """A metric at a number of steps nearer to that of one method than to that of another, none of which has steps."""

    metric: str
    steps: int
    one: str
    other: str

    @property
    def metrics(self) -> frozenset[str]:
        """Its only one."""
        return frozenset({self.metric})

    def met(self, generator: str, by: Metrics) -> Outcome | None:
        """The distance from the one against that from the other."""
        rows = [by.get(row, {}) for row in ((generator, self.steps), (self.one, 0), (self.other, 0))]
        if any(self.metric not in row for row in rows):
            return None
        ours, one, other = (row[self.metric] for row in rows)
        value, goal = abs(ours - one), abs(ours - other)
        name = f"{self.metric}: {generator} {self.steps} nearer to {self.one} than to {self.other}"
        return name, {"value": value, "goal": goal, "met": value < goal}


_BACKBONE = ("bond_error", "clash_free", "rama_outliers", "rg_error", "ss_error", "mpnn_nll", "frechet")
"""What few steps of a backbone are compared by; all but the second are best when low."""


def _beside_twin(steps: int, its_steps: int, strictly: bool) -> tuple[Goal, ...]:
    """One goal for each of `_BACKBONE`: no worse than the twin, or better than it."""
    senses = ("<", ">") if strictly else ("<=", ">=")
    return tuple(Goal(name, steps, senses[name == "clash_free"], 1.0, TWIN, its_steps) for name in _BACKBONE)


GOALS: Mapping[tuple[str, str], tuple[Expected, ...]] = {
    ("dna", "rmf"): (
        Goal("kmer6_js", 4, "<=", 1.1, TWIN, 100),
        Goal("kmer6_js", 1, "<=", 1.5, TWIN, 100),
        Goal("kmer6_js", 4, "<=", 1.0, "independent"),
        Goal("kmer6_js", 4, "<=", 1.5, "markov3"),
        Goal("exact_copies", 4, "<=", 1.0, "floor"),
        Goal("near_copies", 4, "<=", 1.0, "floor"),
        Goal("tata_enrichment", 4, ">=", 2.0),
    ),
    ("protein", "rmf"): (
        Several(f"10 no worse than {TWIN} 100", _beside_twin(10, 100, strictly=False), 5),
        Several(f"1 better than {TWIN} 5", _beside_twin(1, 5, strictly=True), len(_BACKBONE)),
        Goal("ca_bonds", 10, ">=", 0.9),
        Goal("peptide_bonds", 10, ">=", 0.95),
        Goal("clash_free", 10, ">=", 0.9),
        Goal("left_handed", 10, "<=", 1.0, "floor"),
        Nearer("mpnn_nll", 10, "floor", "native_noised"),
    ),
    ("svg", "hybrid"): (Goal("renders", 10, ">=", 1.0),),
    ("layout", "hybrid"): (
        Goal("raw_clean", 10, ">=", 0.5),
        Goal("legal_clean", 10, ">=", 0.95),
        Goal("capped", 10, "<=", 0.01),
        Goal("off_grid", 10, "<=", 0.0),
    ),
}


def goals(domain: str, generator: str, by: Metrics) -> dict[str, dict[str, float | bool]]:
    """The goals of a cell, as far as the rows that they name are there."""
    found = (goal.met(generator, by) for goal in GOALS.get((domain, generator), ()))
    return dict(entry for entry in found if entry is not None)
