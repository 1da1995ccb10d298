"""What a state is: named factors on a padded sequence of sites. No mathematics lives here.

A domain *declares* a `Space`; a generator decides which geometry its factors have.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from torch import Tensor
from torch import bool as torch_bool

from data import conditions
from data.conditions import Condition, Subset
from data.errors import InputError

State = dict[str, Tensor]
"""Factor name -> values `(batch, length, width)`; `"mask"` -> `(batch, length)` bool, true where a site is in use."""
CONDITIONS = "conditions"
"""Key of the codes `(batch, 1, conditions)` of what is known of designs, in batches that a generator learns from."""


class SpaceError(InputError):
    """A state or a description that does not fit a space; the message says which factor and by how much."""


@dataclass(frozen=True)
class Categorical:
    """One of `n` categories per site, as probabilities of width `n`."""

    n: int

    @property
    def width(self) -> int:
        """Numbers per site."""
        return self.n


@dataclass(frozen=True)
class Real:
    """`width` real numbers per site, of typical size `scale` (the unit is the domain's)."""

    width: int
    scale: float = 1.0
    centred: bool = False
    """Whether the mean over the sites in use is zero."""
    given: str = ""
    """A Categorical factor whose category decides which of the numbers mean something; all do where this is empty."""
    used: tuple[tuple[bool, ...], ...] = ()
    """[category][number] -> whether it means something; the others are zero."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "used", tuple(tuple(map(bool, row)) for row in self.used))
        if bool(self.given) != bool(self.used) or any(len(row) != self.width for row in self.used):
            raise SpaceError(
                f"used has rows of {[len(row) for row in self.used]}; `given` wants one of {self.width} each"
            )


@dataclass(frozen=True)
class Angle:
    """`width` angles per site, in radians, equal modulo 2 pi."""

    width: int


@dataclass(frozen=True)
class Rotation:
    """One rotation of space per site, as a row-major 3 x 3 matrix."""

    body: tuple[tuple[float, float, float], ...] = ()
    """Points that turn with a site, along its own axes: from its place, and in the unit of places, if it has one."""

    def __post_init__(self) -> None:
        try:
            object.__setattr__(self, "body", tuple((float(x), float(y), float(z)) for x, y, z in self.body))
        except (TypeError, ValueError):
            raise SpaceError(f"body is {self.body!r:.100}; it must be points of three numbers") from None

    @property
    def width(self) -> int:
        """Numbers per site."""
        return 9


Factor = Categorical | Real | Angle | Rotation
_FACTORS: dict[str, type[Factor]] = {kind.__name__: kind for kind in (Categorical, Real, Angle, Rotation)}


@dataclass(frozen=True)
class Space:
    """`shortest` to `length` sites, each carrying every factor; factors are in the order of their names.

    Spaces are equal whatever can be asked of their designs.
    """

    length: int
    factors: Mapping[str, Factor]
    shortest: int = 1
    conditions: Mapping[str, Condition] = field(default_factory=dict, compare=False)

    def __post_init__(self) -> None:
        if not 1 <= self.shortest <= self.length:
            raise SpaceError(f"shortest is {self.shortest}; it must be from 1 to the length, {self.length}")
        # The order decides where a network finds a factor, and a `config.json` does not keep the order it was given.
        object.__setattr__(self, "factors", dict(sorted(self.factors.items())))
        object.__setattr__(self, "conditions", dict(sorted(self.conditions.items())))
        for name, (of, n) in self._references().items():
            other = self.factors.get(of)
            if not isinstance(other, Categorical) or other.n != n:
                raise SpaceError(f"{name} is given {of!r}, which is {other}; it must be Categorical({n})")

    def _references(self) -> dict[str, tuple[str, int]]:
        """Factors and conditions that name a Categorical factor, with its number of categories."""
        reals = ((name, one) for name, one in self.factors.items() if isinstance(one, Real) and one.given)
        subsets = ((name, one) for name, one in self.conditions.items() if isinstance(one, Subset))
        return {name: (one.given, len(one.used)) for name, one in reals} | {
            name: (one.of, len(one.names)) for name, one in subsets
        }

    def check(self, state: State) -> None:
        """Raise `SpaceError` unless `state` has exactly these factors, with these shapes and finite values."""
        if set(state) != set(self.factors) | {"mask"}:
            raise SpaceError(f"a state has factors {sorted(state)}; this space wants {sorted(self.factors)} and mask")
        batch = state["mask"].shape[0]
        if state["mask"].shape != (batch, self.length) or state["mask"].dtype != torch_bool:
            mask = state["mask"]
            raise SpaceError(f"mask is {mask.dtype} {tuple(mask.shape)}; it must be bool ({batch}, {self.length})")
        for name, factor in self.factors.items():
            value, wanted = state[name], (batch, self.length, factor.width)
            if tuple(value.shape) != wanted:
                raise SpaceError(f"{name} has shape {tuple(value.shape)}; it must be {wanted}")
            if not value.isfinite().all():
                raise SpaceError(f"{name} has {int((~value.isfinite()).sum())} values that are not finite")

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON values, as kept in a checkpoint's `config.json`."""
        factors = {name: {"kind": type(factor).__name__} | asdict(factor) for name, factor in self.factors.items()}
        shortest = {"shortest": self.shortest} if self.shortest > 1 else {}
        asked = {"conditions": conditions.to_dict(self.conditions)} if self.conditions else {}
        plain: dict[str, Any] = json.loads(json.dumps({"length": self.length, "factors": factors} | shortest | asked))
        return plain

    @staticmethod
    def from_dict(plain: Mapping[str, Any]) -> Space:
        """The inverse of `to_dict`; raises `SpaceError` for anything else."""
        try:
            factors = {}
            for name, fields in plain["factors"].items():
                arguments = dict(fields)
                factors[name] = _FACTORS[arguments.pop("kind")](**arguments)
            length, shortest = plain["length"], plain.get("shortest", 1)
            if not all(isinstance(number, int) and number >= 1 for number in (length, shortest)):
                raise ValueError(f"length is {length!r:.40}, shortest {shortest!r:.40}")
            return Space(length, factors, shortest, conditions.from_dict(plain.get("conditions", {})))
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise SpaceError(f"not the description of a space: {plain!r:.200} ({error})") from error

    def __str__(self) -> str:
        kinds = (f"{name}: {type(factor).__name__}({factor.width})" for name, factor in self.factors.items())
        length = self.length if self.shortest == 1 else f"{self.shortest} to {self.length}"
        return f"{length} x ({', '.join(kinds)})"
