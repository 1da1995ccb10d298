"""CMA-ES (Hansen 2016, arXiv 1604.00772) on real numbers, one a cell: the letter of a position is its largest."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import Tensor

from data.noise import StepNoise, stable_seed
from generators.base import GeneratorError
from generators.ideas.alphabet import Alphabet
from generators.ideas.meter import Meter

STEP = 0.3
"""Standard deviation of the first search, about one-hot designs."""
FEWEST = 4
"""Of a population."""
LARGEST_FULL = 100
"""Cells; with more of them the covariance is diagonal."""


class CMAES:
    """Starts from the best design and is told of all that it asked for."""

    def __init__(self, alphabet: Alphabet) -> None:
        self.alphabet = alphabet
        self._search: Any = None
        self._asked: list[np.ndarray] = []
        self._waiting = 0
        self._like = torch.empty(0)

    def propose(self, meter: Meter, n: int, rng: StepNoise) -> Tensor:
        """`n` samples of the search distribution, fewer at the end of a population; equal ones are measured once."""
        if self._search is None:
            self._like = meter.designs[meter.ranking()[0]]
            self._search = _search(self.alphabet.one_hot(self._like[None]).flatten().numpy(), n, rng)
        if not self._waiting:
            if self._asked:
                self._search.tell(self._asked, _losses(meter.measure(self._letters(self._asked))))
            self._asked = self._search.ask()
            self._waiting = len(self._asked)
        first = len(self._asked) - self._waiting
        chosen = self._asked[first : first + n]
        self._waiting -= len(chosen)
        return self._letters(chosen)

    def _letters(self, points: list[np.ndarray]) -> Tensor:
        cells = torch.from_numpy(np.stack(points)).view(len(points), self.alphabet.space.length, -1)
        return torch.where(self.alphabet.free(self._like), self.alphabet.best(cells)[1], self._like)


def _losses(values: Tensor) -> list[float]:
    """What is minimised; infeasible designs are a little worse than the worst."""
    finite = values[values.isfinite()]
    worst = float(finite.min()) - 1 if len(finite) else 0.0
    return [-value if value > -torch.inf else -worst for value in values.tolist()]


def _search(mean: np.ndarray, n: int, rng: StepNoise) -> Any:
    """A search that draws from a source of its own, not from numpy's global one."""
    try:
        import cma
    except ImportError as error:
        raise GeneratorError("CMA-ES needs the package cma; `pip install cma`") from error
    normal = np.random.Generator(np.random.Philox(stable_seed("cma", rng.seed)))
    options = {
        "popsize": max(FEWEST, n),
        "seed": np.nan,
        "randn": lambda *shape: normal.standard_normal(shape),
        "CMA_diagonal": len(mean) > LARGEST_FULL,
        "verbose": -9,
    }
    return cma.CMAEvolutionStrategy(mean.astype(float), STEP, options)
