"""Designs as letters: what evolution works on."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product

import torch
from torch import Tensor
from torch.nn.functional import one_hot

from data.noise import Noise
from data.space import Categorical, Space, State
from generators.base import GeneratorError

UNUSED = -1
"""The letter of a site that is not in use."""


class Alphabet:
    """Letters (N, L, F) of designs with L sites of F categorical factors; `UNUSED` where a site is not in use.

    A position is a site of one factor. A cell is one letter at one site: the cells of all factors lie side by side,
    (N, L, W), as the probabilities do in a state.
    """

    def __init__(self, space: Space) -> None:
        others = {name: factor for name, factor in space.factors.items() if not isinstance(factor, Categorical)}
        if others or not space.factors:
            raise GeneratorError(f"ideas evolves Categorical factors; this space has {space}; choose another generator")
        self.space = space
        self.sizes = tuple(factor.width for factor in space.factors.values())
        self.factor_of_cell = torch.repeat_interleave(torch.arange(len(self.sizes)), torch.tensor(self.sizes))
        self.starts = torch.tensor(self.sizes).cumsum(0) - torch.tensor(self.sizes)
        """(F,): the first cell of each factor."""
        self.locked = torch.zeros(space.length, len(self.sizes), dtype=torch.bool)
        """(L, F): positions whose letter must not change."""

    @property
    def positions(self) -> int:
        """L * F."""
        return self.space.length * len(self.sizes)

    def free(self, letters: Tensor) -> Tensor:
        """Bool (N, L, F) or (L, F): the positions of designs that may change."""
        return (letters != UNUSED) & ~self.locked

    def letters(self, state: State) -> Tensor:
        """The likeliest letters (N, L, F) of a state."""
        self.space.check(state)
        likeliest = torch.stack([state[name].argmax(-1) for name in self.space.factors], -1)
        return likeliest.masked_fill(~state["mask"][..., None], UNUSED).cpu()

    def state(self, letters: Tensor) -> State:
        """The one-hot state of letters; zero where a site is not in use."""
        parts = self.split(self.one_hot(letters))
        return dict(zip(self.space.factors, parts, strict=True)) | {"mask": letters[..., 0] != UNUSED}

    def one_hot(self, letters: Tensor) -> Tensor:
        """Cells (N, L, W), 1 where the letter is; zero where a site is not in use."""
        parts = [one_hot(letters[..., f] + 1, size + 1)[..., 1:] for f, size in enumerate(self.sizes)]
        return torch.cat(parts, -1).float()

    def uniform(self, letters: Tensor) -> Tensor:
        """Cells (N, L, W) of equal probabilities at the sites in use."""
        return (letters != UNUSED)[..., self.factor_of_cell] / torch.tensor(self.sizes)[self.factor_of_cell]

    def split(self, cells: Tensor) -> tuple[Tensor, ...]:
        """Cells (..., W) by factor."""
        return torch.split(cells, list(self.sizes), -1)

    def best(self, cells: Tensor) -> tuple[Tensor, Tensor]:
        """The largest value (N, L, F) of the cells (N, L, W) of each position, and its letter."""
        found = [part.max(-1) for part in self.split(cells)]
        return torch.stack([f.values for f in found], -1), torch.stack([f.indices for f in found], -1)

    def centre(self, cells: Tensor) -> Tensor:
        """Cells (N, L, W) less their mean over the letters of each position."""
        return torch.cat([part - part.mean(-1, keepdim=True) for part in self.split(cells)], -1)

    def cell(self, letters: Tensor) -> Tensor:
        """Index (..., F) in 0..W-1 of the cells of letters (..., F); 0 where a site is not in use."""
        return (letters + self.starts).masked_fill(letters == UNUSED, 0)

    def random(self, like: Tensor, rng: Noise) -> Tensor:
        """Uniformly random letters where `like` (N, L, F) may change."""
        drawn = (rng.uniform(*like.shape) * torch.tensor(self.sizes)).long()
        return torch.where(self.free(like), drawn, like)

    def every(self, like: Tensor) -> Iterator[Tensor]:
        """Every choice of letters (L, F) where `like` (L, F) may change, the first position slowest."""
        free = self.free(like)
        sizes = torch.tensor(self.sizes).expand_as(like)[free].tolist()
        for chosen in product(*map(range, sizes)):
            design = like.clone()
            design[free] = torch.tensor(chosen, dtype=torch.long)
            yield design
