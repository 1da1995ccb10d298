"""The words every reward speaks. A reward is one module here with a `build(domain, **parameters)` function."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol, runtime_checkable

from torch import Tensor

from data.errors import InputError
from data.space import State


class RewardError(InputError):
    """A reward cannot be built with these parameters; the message has the value, the legal ones and the remedy."""


def check_form(domain: object, kind: type, reward: str, form: str) -> None:
    """Raise `RewardError` unless a domain is of the kind that a reward of proteins can score."""
    if not isinstance(domain, kind):
        raise RewardError(
            f"{reward} scores proteins as {form}, not {type(domain).__name__}; use domain=protein with form={form}"
        )


@dataclass(frozen=True)
class RewardResult:
    """Scores of a batch: `value` (B,) in [0, 1], 1 is best; `valid` (B,) bool; `parts` are raw measurements (B,)."""

    value: Tensor
    valid: Tensor
    parts: Mapping[str, Tensor] = field(default_factory=dict)
    per_position: Tensor | None = None
    """(B, length), which sites the value comes from, or None."""


class Reward(Protocol):
    """Scores finished designs, exactly."""

    domains: tuple[str, ...]
    """Names of the domains whose designs it can score."""

    def __call__(self, designs: Sequence[Any]) -> RewardResult:
        """Score a batch of a domain's designs."""


@runtime_checkable
class Differentiable(Protocol):
    """A reward that also has a gradient; asked for with `isinstance`."""

    def relaxed(self, state: State) -> Tensor:
        """The value (B,) of a state whose categories are probabilities; equals the exact value at one-hot states."""
