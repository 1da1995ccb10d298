"""How well explanations agree with the landscape itself, which is asked outside the budget."""

from __future__ import annotations

from dataclasses import dataclass, field

import torch
from torch import Tensor

from app.benchmarks.ideas.landscapes import Landscape
from generators.ideas.alphabet import Alphabet
from generators.ideas.explainers import Explainer, Model, ism
from generators.ideas.explanation import explain
from generators.ideas.surrogate import spearman

ASKED = 3
"""Of the elites of a round, the best."""


@dataclass
class Truth:
    """An explainer that asks the landscape in place of the model: no explanation can be more faithful."""

    oracle: Landscape

    def __call__(self, model: Model, alphabet: Alphabet, letters: Tensor) -> Tensor:
        """Effects (N, L, W) of all substitutions; what is infeasible counts as the worst neighbour of its design."""
        return ism(self._values, alphabet, letters)

    def _values(self, cells: Tensor) -> Tensor:
        alphabet = Alphabet(self.oracle.space)
        values = self.oracle.value(alphabet.best(cells)[1])
        feasible = values[values.isfinite()]
        return values.clamp(min=float(feasible.min()) if len(feasible) else 0.0)


@dataclass
class Watched:
    """An explainer whose first explanation of each round, that of the elites, is remembered."""

    explainer: Explainer
    round: int = 0
    kept: dict[int, tuple[Tensor, Tensor]] = field(default_factory=dict)
    """Of a round: letters and effects."""

    def __call__(self, model: Model, alphabet: Alphabet, letters: Tensor) -> Tensor:
        """Effects (N, L, W)."""
        effects = self.explainer(model, alphabet, letters)
        self.kept.setdefault(self.round, (letters[:ASKED], effects[:ASKED]))
        return effects

    def faithfulness(self, oracle: Landscape, rounds: int) -> list[float | None]:
        """Of each round, the mean over elites of the rank correlation of explained and true criticality.

        None for a round without an explanation, because the surrogate was not trusted.
        """
        return [_agreement(oracle, *self.kept[k]) if k in self.kept else None for k in range(rounds)]


def _agreement(oracle: Landscape, letters: Tensor, effects: Tensor) -> float:
    told, true = (
        explain(explainer, torch.flatten, Alphabet(oracle.space), letters).criticality.flatten(1)
        for explainer in (lambda *_: effects, Truth(oracle))
    )
    return round(sum(map(spearman, told, true)) / len(letters), 4)
