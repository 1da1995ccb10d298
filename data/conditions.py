"""What can be asked of a whole design beforehand. A domain *declares* its conditions; a generator may learn them.

A condition's value is kept as one number, its code; NaN where nothing is known or asked.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import torch
from torch import Tensor

from data.errors import InputError

UNKNOWN = math.nan


class ConditionError(InputError):
    """A condition that there is not, or a value that it cannot have; the message says which there are."""


@dataclass(frozen=True)
class Label:
    """One of these names; its code is the name's place."""

    names: tuple[str, ...]

    def __post_init__(self) -> None:
        if not self.names:
            raise ConditionError("a label has no names; give some")

    def code(self, value: Any) -> float:
        """The code of a name; raises `ConditionError`."""
        if value not in self.names:
            raise ConditionError(f"{value!r:.60}; it must be one of {', '.join(self.names)}")
        return float(self.names.index(value))


@dataclass(frozen=True)
class Level:
    """A number from `least` to `most`; its code is the number."""

    least: float
    most: float

    def __post_init__(self) -> None:
        if not -math.inf < self.least < self.most < math.inf:
            raise ConditionError(f"a level goes from {self.least} to {self.most}; the first must be less")

    def code(self, value: Any) -> float:
        """The number itself; raises `ConditionError`."""
        number = isinstance(value, int | float) and not isinstance(value, bool)
        if not number or not self.least <= value <= self.most:
            raise ConditionError(f"{value!r:.60}; it must be a number from {self.least:g} to {self.most:g}")
        return float(value)


@dataclass(frozen=True)
class Subset:
    """The categories of the factor `of` that a design has, by their `names`; the code has bit k for category k.

    Where it is asked for, a generator makes no others.
    """

    of: str
    names: tuple[str, ...]

    def code(self, value: Any) -> float:
        """The code of a list of names, or of one text with commas; raises `ConditionError`."""
        asked = value.split(",") if isinstance(value, str) else value
        if not isinstance(asked, Sequence) or not asked or not all(name in self.names for name in asked):
            raise ConditionError(f"{value!r:.60}; it must be a list of some of {', '.join(self.names)}")
        return float(sum(1 << k for k, name in enumerate(self.names) if name in asked))


Condition = Label | Level | Subset
_KINDS: dict[str, type[Condition]] = {kind.__name__: kind for kind in (Label, Level, Subset)}


def codes(conditions: Mapping[str, Condition], asked: Mapping[str, Any]) -> Tensor:
    """(1, conditions) in the order of their names, `UNKNOWN` where nothing is asked; raises `ConditionError`."""
    for name in asked:
        if name not in conditions:
            raise ConditionError(f"no condition {name!r:.60}; there are {', '.join(conditions) or 'none'}")
    row = []
    for name, condition in conditions.items():
        try:
            row.append(condition.code(asked[name]) if name in asked else UNKNOWN)
        except ConditionError as error:
            raise ConditionError(f"condition.{name} is {error}") from None
    return torch.tensor([row])


def to_dict(conditions: Mapping[str, Condition]) -> dict[str, Any]:
    """Plain JSON values."""
    return {name: {"kind": type(one).__name__} | asdict(one) for name, one in conditions.items()}


def from_dict(plain: Mapping[str, Any]) -> dict[str, Condition]:
    """The inverse of `to_dict`; raises `KeyError`, `TypeError` or `ValueError` for anything else."""
    found: dict[str, Condition] = {}
    for name, fields in plain.items():
        arguments = dict(fields)
        kind = _KINDS[arguments.pop("kind")]
        if "names" in arguments:
            arguments["names"] = tuple(map(str, arguments["names"]))
        found[name] = kind(**arguments)
    return found
