"""What a landscape is: a closed-form or measured oracle over letters, whose best value is stated."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from data.errors import InputError
from data.noise import StepNoise
from data.space import Categorical, Space, State
from generators.ideas.alphabet import Alphabet

BASES = "ACGT"
RESIDUES = "ACDEFGHIKLMNPQRSTVWY"
INFEASIBLE = -torch.inf
"""The value of a design that breaks a rule of its landscape: no score at all, which differs from a bad one."""


@dataclass(frozen=True, eq=False)
class Landscape:
    """An oracle over letters (N, L, F)."""

    name: str
    space: Space
    evaluate: Callable[[Tensor], Tensor]
    """Letters (N, L, F) -> values (N,), `INFEASIBLE` where a rule is broken."""
    start: Callable[[int, StepNoise], Tensor]
    """`n` mediocre designs (n, L, F) to start from."""
    best: Tensor
    """(L, F), a design of the best value that is known."""
    proven: bool
    """Whether no design can be better."""
    has_motifs: bool
    """Whether value comes from letters that stand together, wherever they are."""
    both_strands: bool = False
    """Whether a design and its reverse complement have the same value."""

    def value(self, letters: Tensor) -> Tensor:
        """Values (N,) of letters (N, L, F); raises `InputError` for other shapes and for letters that do not exist."""
        factors = list(self.space.factors.values())
        sizes = torch.tensor([factor.width for factor in factors])
        if letters.shape[1:] != (self.space.length, len(sizes)):
            shape = tuple(letters.shape)
            raise InputError(f"{self.name}: letters have shape {shape}; give (N, {self.space.length}, {len(sizes)})")
        wrong = letters[(letters < 0) | (letters >= sizes)]
        if len(wrong):
            raise InputError(
                f"{self.name}: letter {int(wrong[0])} does not exist; they are 0 to {(sizes - 1).tolist()}"
            )
        return self.evaluate(letters).float()

    def score(self, state: State) -> Tensor:
        """Values (N,) of a state, as generators ask for them."""
        return self.value(Alphabet(self.space).letters(state))

    @property
    def optimum(self) -> float:
        """The best value that is known."""
        return float(self.value(self.best[None])[0])


def sequences(length: int, letters: str) -> Space:
    """Designs of one factor."""
    return Space(length, {"letter": Categorical(len(letters))})


def codes(texts: Sequence[str], letters: str) -> Tensor:
    """Texts of one length as letters (N, L, 1); raises `InputError` for a letter that is not one of `letters`."""
    strange = sorted(set("".join(texts)) - set(letters))
    if strange:
        raise InputError(f"letter {strange[0]!r} is not one of {letters}; write designs in these")
    if len({len(text) for text in texts}) > 1:
        raise InputError(f"lengths are {sorted({len(text) for text in texts})}; give texts of one length")
    return torch.tensor([[letters.index(letter) for letter in text] for text in texts])[..., None]


def text(design: Tensor, letters: str) -> str:
    """Letters (L, 1) as text."""
    return "".join(letters[code] for code in design.flatten().tolist())
