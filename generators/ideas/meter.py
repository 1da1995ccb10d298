"""The one way to an oracle: what was measured, and what is left of the budget."""

from __future__ import annotations

import torch
from torch import Tensor

from generators.base import GeneratorError, Score
from generators.ideas.alphabet import Alphabet


class BudgetError(GeneratorError):
    """More was to be measured than the budget allows."""


class Meter:
    """Measures letters (N, L, F) by a score. Each distinct design is charged once; asking again is free.

    What an `earlier` meter of the same score has measured is charged too, but the score is not asked again.
    """

    def __init__(self, score: Score, alphabet: Alphabet, budget: int, earlier: Meter | None = None) -> None:
        self.alphabet, self.budget = alphabet, budget
        self.designs = torch.empty(0, alphabet.space.length, len(alphabet.sizes), dtype=torch.long)
        """(N, L, F), distinct, in the order of measurement."""
        self.values = torch.empty(0)
        """(N,); -inf for a design that cannot be made, which is charged as every other is."""
        self._score = score
        self._earlier = earlier.known() if earlier else {}
        self._row: dict[bytes, int] = {}

    @property
    def left(self) -> int:
        """How many more designs can be measured."""
        return self.budget - len(self.values)

    def fresh(self, letters: Tensor) -> Tensor:
        """The designs that have not been measured, in their order, each once."""
        return letters[self.fresh_rows(letters)]

    def fresh_rows(self, letters: Tensor) -> list[int]:
        """The rows of `fresh`."""
        rows: dict[bytes, int] = {}
        for i, key in enumerate(_keys(letters)):
            if key not in self._row:
                rows.setdefault(key, i)
        return list(rows.values())

    def measure(self, letters: Tensor) -> Tensor:
        """The values (N,) of designs; those not measured before are charged.

        Raises `BudgetError`, and measures nothing, where they are more than what is left.
        """
        fresh = self.fresh(letters)
        if len(fresh) > self.left:
            raise BudgetError(f"{len(fresh)} new designs with {self.left} of {self.budget} calls left; raise budget")
        if len(fresh):
            self._charge(fresh)
        return self.values[[self._row[key] for key in _keys(letters)]]

    def ranking(self) -> Tensor:
        """Rows of `designs` (N,), the best first; of equal ones that which was measured first."""
        return self.values.sort(descending=True, stable=True).indices

    def known(self) -> dict[bytes, float]:
        """The value of each design that was measured, or that it was told of."""
        return self._earlier | dict(zip(self._row, self.values.tolist(), strict=True))

    def _charge(self, fresh: Tensor) -> None:
        keys = _keys(fresh)
        new = [i for i, key in enumerate(keys) if key not in self._earlier]
        values = torch.tensor([self._earlier.get(key, 0.0) for key in keys])
        if new:
            values[new] = self._asked(fresh[new])
        self._row |= {key: len(self.values) + i for i, key in enumerate(keys)}
        self.designs = torch.cat([self.designs, fresh])
        self.values = torch.cat([self.values, values])

    @torch.no_grad()
    def _asked(self, fresh: Tensor) -> Tensor:
        """Values (N,), -inf where the score says that or NaN; raises `GeneratorError` where it says nothing at all."""
        values = self._score(self.alphabet.state(fresh)).float().cpu()
        bad = int((values.isnan() | values.isposinf()).sum())
        if values.shape != (len(fresh),) or values.isposinf().any() or values.isnan().all():
            raise GeneratorError(
                f"score of {len(fresh)} designs has shape {tuple(values.shape)}, {bad} not finite; "
                f"give one number a design, -inf for what cannot be made"
            )
        return values.nan_to_num(nan=-torch.inf, neginf=-torch.inf)


def _keys(letters: Tensor) -> list[bytes]:
    return [row.tobytes() for row in letters.numpy()]
