"""States as sequences of units: categories, and numbers in units of a bin.

The numbers of all Real factors lie side by side in D slots. A slot's number is a bin (the nearest of `bins` centres,
evenly spaced from -span to span times the factor's scale) and a residual, what is left of it inside the bin; where the
vocabulary has `places`, residuals are rounded to that many, evenly apart.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn import functional

from data.space import Categorical, Real, Space, State
from generators.base import GeneratorError

UNIT = math.sqrt(12.0)
"""1 / the standard deviation of a number that is uniform in a bin of width 1."""


@dataclass(frozen=True)
class Units:
    """A batch of sequences; the units in use are the first ones of each."""

    categories: Tensor
    """(B, L, categorical factors), int64."""
    values: Tensor
    """(B, L, D), in units of a bin: the centre of bin k is k."""
    used: Tensor
    """(B, L, D) bool: whether a number means something."""
    mask: Tensor
    """(B, L) bool."""

    @property
    def lengths(self) -> Tensor:
        """(B,) units in use."""
        return self.mask.sum(-1)


class Vocabulary(nn.Module):
    """What the units of a space are made of, and the passage between states and units."""

    widths: Tensor

    def __init__(self, space: Space, bins: int, span: float, places: int = 0) -> None:
        super().__init__()
        self.space, self.bins, self.places = space, bins, places
        factors = sorted(space.factors.items())  # a config.json does not keep the order of its keys
        self.categoricals = {name: f.n for name, f in factors if isinstance(f, Categorical)}
        self.reals = {name: f for name, f in factors if isinstance(f, Real)}
        other = [f for f in space.factors.values() if not isinstance(f, Categorical | Real)]
        if other or not self.categoricals:
            raise GeneratorError(f"hybrid makes Categorical factors, at least one, and Real ones; the space is {space}")
        self.slots = sum(real.width for real in self.reals.values())
        widths = [2 * span * real.scale / max(bins - 1, 1) for real in self.reals.values() for _ in range(real.width)]
        self.register_buffer("widths", torch.tensor(widths), persistent=False)
        for i, name in enumerate(self.categoricals):
            self.register_buffer(f"used_{i}", self._table(name), persistent=False)

    def _table(self, name: str) -> Tensor:
        """(n, D) bool: which slots mean something, as far as this categorical factor decides it."""
        n = self.categoricals[name]
        columns = [
            torch.tensor(real.used) if real.given == name else torch.ones(n, real.width, dtype=torch.bool)
            for real in self.reals.values()
        ]
        return torch.cat(columns, dim=-1) if columns else torch.zeros(n, 0, dtype=torch.bool)

    def used(self, categories: Tensor) -> Tensor:
        """Categories (..., categorical factors) -> (..., D) bool."""
        tables = [self.get_buffer(f"used_{i}")[categories[..., i]] for i in range(len(self.categoricals))]
        return torch.stack(tables).all(0)

    def units(self, state: State) -> Units:
        """The units that a state stands for; raises `GeneratorError` where those in use are not the first ones."""
        mask = state["mask"]
        if (mask[:, 1:] & ~mask[:, :-1]).any():
            raise GeneratorError("a mask has sites in use after one that is not; hybrid wants those in use to be first")
        return self.read(state)

    def read(self, state: State) -> Units:
        """The units of the sites in use, wherever these are."""
        mask = state["mask"]
        categories = torch.stack([state[name].argmax(-1) for name in self.categoricals], dim=-1)
        numbers = torch.cat([*(state[name] for name in self.reals), state["mask"].new_zeros(*mask.shape, 0)], dim=-1)
        used = self.used(categories) & mask[..., None]
        values = numbers.float() / self.widths + (self.bins - 1) / 2
        return Units(categories, self.rounded(values.clamp(-0.5, self.bins - 0.5)), used, mask)

    def state(self, units: Units) -> State:
        """The state that units stand for: one-hot categories; zero in what is not in use."""
        numbers = (units.values - (self.bins - 1) / 2) * self.widths * units.used
        state: State = {"mask": units.mask}
        for i, (name, n) in enumerate(self.categoricals.items()):
            state[name] = functional.one_hot(units.categories[..., i], n).float() * units.mask[..., None]
        parts = torch.split(numbers, [real.width for real in self.reals.values()], dim=-1)
        for (name, real), part in zip(self.reals.items(), parts, strict=True):
            state[name] = _centred(part, units.mask) if real.centred else part
        return state

    def split(self, values: Tensor) -> tuple[Tensor, Tensor]:
        """Values in units of a bin -> bins (int64) and residuals, of variance 1 where values are uniform in a bin."""
        bins = (values + 0.5).floor().clamp(0, self.bins - 1)
        return bins.long(), (values - bins) * UNIT

    def place(self, residuals: Tensor) -> Tensor:
        """Residuals -> the nearest of the places (int64)."""
        return ((residuals / UNIT + 0.5) * self.places).floor().clamp(0, self.places - 1).long()

    def residual(self, places: Tensor) -> Tensor:
        """Places -> the residuals in their middle."""
        return ((places + 0.5) / self.places - 0.5) * UNIT

    def rounded(self, values: Tensor) -> Tensor:
        """Values on the nearest place that there is; the same where residuals are continuous."""
        if not self.places:
            return values
        bins, residuals = self.split(values)
        return self.join(bins, self.residual(self.place(residuals)))

    def join(self, bins: Tensor, residuals: Tensor) -> Tensor:
        """The inverse of `split`."""
        return bins + residuals / UNIT


def _centred(x: Tensor, mask: Tensor) -> Tensor:
    """x (B, L, width) with the mean over sites in use taken away from them."""
    mean = x.sum(1, keepdim=True) / mask.sum(1).clamp_min(1)[:, None, None]
    return (x - mean) * mask[..., None]
