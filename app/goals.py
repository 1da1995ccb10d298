"""What a generator is expected to reach on a domain, as comparisons between the rows of an evaluation."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

Metrics = Mapping[tuple[str, int], Mapping[str, float]]
"""(method, steps) -> metrics."""
TWIN = "flow_matching"
"""The checkpoint `<domain>-<generator>-flow_matching` is the same network trained by flow matching alone."""


@dataclass(frozen=True)
class Goal:
    """A metric at a number of steps against `factor`, or against `factor` times that of another method."""

    metric: str
    steps: int
    sense: str
    factor: float
    method: str = ""
    its_steps: int = 0

    def met(self, generator: str, by: Metrics) -> tuple[str, dict[str, float | bool]] | None:
        """Its name with value, goal and whether it is met; None where a row or metric that it names is absent."""
        ours, theirs = by.get((generator, self.steps), {}), by.get((self.method, self.its_steps), {})
        if self.metric not in ours or (self.method and self.metric not in theirs):
            return None
        value, goal = ours[self.metric], self.factor * (theirs[self.metric] if self.method else 1)
        right = f"{self.factor:g} x {self.method} {self.its_steps or ''}".strip() if self.method else f"{self.factor:g}"
        reached = value <= goal if self.sense == "<=" else value >= goal
        return f"{self.metric}: {generator} {self.steps} {self.sense} {right}", {
            "value": value,
            "goal": goal,
            "met": reached,
        }


GOALS: Mapping[tuple[str, str], tuple[Goal, ...]] = {
    ("dna", "rmf"): (
        Goal("kmer6_js", 4, "<=", 1.1, TWIN, 100),
        Goal("kmer6_js", 1, "<=", 1.5, TWIN, 100),
        Goal("kmer6_js", 4, "<=", 1.0, "independent"),
        Goal("kmer6_js", 4, "<=", 1.5, "markov3"),
        Goal("exact_copies", 4, "<=", 1.0, "floor"),
        Goal("near_copies", 4, "<=", 1.0, "floor"),
        Goal("tata_enrichment", 4, ">=", 2.0),
    ),
    ("protein", "rmf"): (Goal("ca_bonds", 10, ">=", 0.9),),
    ("svg", "hybrid"): (Goal("renders", 10, ">=", 1.0),),
    ("layout", "hybrid"): (Goal("raw_clean", 10, ">=", 0.5),),
}


def goals(domain: str, generator: str, by: Metrics) -> dict[str, dict[str, float | bool]]:
    """The goals of a cell, as far as the rows that they name are there."""
    found = (goal.met(generator, by) for goal in GOALS.get((domain, generator), ()))
    return dict(entry for entry in found if entry is not None)
