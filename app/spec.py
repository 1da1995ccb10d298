"""What a person asks for, checked: every key and value that decides a run. Plain data in, plain data out."""

from __future__ import annotations

import hashlib
import os
import time
from collections.abc import Mapping
from dataclasses import MISSING, dataclass, fields, replace
from pathlib import Path
from typing import Any, TypeVar

from app import plugins
from data.errors import InputError
from data.store import FREE, runs_folder

DEVICES = ("auto", "cpu", "cuda")
HEAVIEST = 1000
"""The largest weight of a reward."""
T = TypeVar("T")


class SpecError(InputError):
    """A key or a value of a spec that is not legal."""


@dataclass(frozen=True)
class Choice:
    """A plug-in by name, with its parameters."""

    name: str
    parameters: Mapping[str, Any]


@dataclass(frozen=True)
class Weighted:
    """A reward's weight in the total score, with its parameters."""

    weight: float
    parameters: Mapping[str, Any]


@dataclass(frozen=True)
class RunSpec:
    """A run of `generate`: `n` designs from one generator, steered by rewards."""

    domain: Choice
    generator: Choice
    guidance: Choice
    rewards: Mapping[str, Weighted]
    n: int
    steps: int
    seed: int
    batch: int
    device: str
    checkpoint: str
    out: str | None
    sequences: int = 0
    """How many are designed for each design; none in specs that do not say."""
    lock: Mapping[str, Any] | None = None
    """What some sites of every design are held at, in the words of the domain's `locked`."""
    repair: bool = False
    """Whether designs are repaired before they are scored, where the domain can."""
    condition: Mapping[str, Any] | None = None
    """What every design is to have, by the names of the domain's conditions."""
    cfg: float = 1.0
    """Weight of classifier-free guidance towards that."""

    def identity(self) -> dict[str, Any]:
        """The spec as plain data, without the place it is written to and keys that have their default."""
        defaults = {field.name: field.default for field in fields(self)}
        return {key: value for key, value in to_plain(self).items() if key != "out" and value != defaults[key]}


@dataclass(frozen=True)
class EvaluateSpec:
    """A comparison of a generator at several numbers of steps with baselines, against a reference."""

    domain: Choice
    generator: Choice
    reference: str | None
    n: int
    steps: tuple[int, ...]
    twin_steps: tuple[int, ...]
    seed: int
    batch: int
    device: str
    checkpoint: str
    repair: bool = False
    """Whether there are rows of repaired designs too."""


@dataclass(frozen=True)
class TrainSpec:
    """A training: the generator's own recipe is among `generator.parameters`."""

    domain: Choice
    generator: Choice
    start: str | None
    seed: int
    batch: int
    device: str
    threads: int
    save_every: int
    out: str | None


def from_plain(kind: type[T], plain: Mapping[str, Any]) -> T:
    """A spec of this kind from plain data; raises `SpecError` or `PluginError` with the key, the value and the cure."""
    legal = [field.name for field in fields(kind)]  # type: ignore[arg-type]
    unknown = sorted(set(plain) - set(legal))
    if unknown:
        raise SpecError(f"no key {unknown[0]!r}; there are {', '.join(legal)}")
    defaults = {field.name: field.default for field in fields(kind) if field.default is not MISSING}  # type: ignore[arg-type]
    given = defaults | dict(plain)
    values = {key: _value(key, given.get(key)) for key in legal}
    checked = plugins.arguments(kind, values, "spec")
    return kind(**checked)


def to_plain(spec: Any) -> dict[str, Any]:
    """The inverse of `from_plain`: what is written into `spec.yaml`."""
    plain: dict[str, Any] = {}
    for field in fields(spec):
        value = getattr(spec, field.name)
        if isinstance(value, Choice):
            plain[field.name] = {"name": value.name, **value.parameters}
        elif field.name == "rewards":
            plain[field.name] = {name: {"weight": w.weight, **w.parameters} for name, w in value.items()}
        else:
            plain[field.name] = list(value) if isinstance(value, tuple) else value
    return plain


LIMITS = {
    "n": (1, 10**7),
    "steps": (1, 10**4),
    "twin_steps": (1, 10**4),
    "batch": (1, 10**5),
    "seed": (0, int(plugins.LARGEST)),
    "threads": (1, os.cpu_count() or 1),
    "save_every": (1, 10**9),
    "sequences": (0, 256),
}
"""Whole numbers of a spec, with the least and the most that they may be."""


def _value(key: str, value: Any) -> Any:
    if key in plugins.ROOMS:
        return choice(key, value)
    if key == "rewards":
        return {name: _weighted(name, entry) for name, entry in _mapping("rewards", value or {}).items()}
    if key in ("lock", "condition"):
        return _mapping(key, value or {}) or None
    if key in LIMITS and isinstance(value, list):
        numbers = [_whole(key, item) for item in value]
        if not numbers or len(set(numbers)) < len(numbers):
            raise SpecError(f"{key} is {value!r:.100}; it must be a list of different numbers, such as [1,4]")
        return tuple(numbers)
    if key in LIMITS:
        return _whole(key, value)
    if key == "device" and value not in DEVICES:
        raise SpecError(f"device is {value!r:.100}; it must be one of {', '.join(DEVICES)}")
    return value


def _whole(key: str, value: Any) -> int:
    least, most = LIMITS[key]
    if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= most:
        raise SpecError(f"{key} is {value!r:.100}; it must be a whole number from {least} to {most}")
    return value


def choice(kind: str, value: Any) -> Choice:
    """A plug-in that was asked for, by its name or as a table with it; raises `SpecError`."""
    entry = dict(_mapping(kind, {"name": value} if isinstance(value, str) else value))
    name = entry.pop("name", None)
    if name not in plugins.names(kind):
        raise SpecError(f"no {kind} {name!r:.100}; there are {', '.join(plugins.names(kind))}")
    return Choice(name, entry)


def _weighted(name: str, value: Any) -> Weighted:
    entry = dict(_mapping(f"rewards.{name}", value or {}))
    weight = entry.pop("weight", 1.0)
    if name not in plugins.names("reward"):
        raise SpecError(f"no reward {name!r}; there are {', '.join(plugins.names('reward'))}")
    if isinstance(weight, bool) or not isinstance(weight, int | float) or not abs(weight) <= HEAVIEST:
        raise SpecError(f"rewards.{name}.weight is {weight!r:.100}; it must be a number from -{HEAVIEST} to {HEAVIEST}")
    return Weighted(float(weight), entry)


def _mapping(key: str, value: Any) -> Mapping[str, Any]:
    if not isinstance(value, Mapping) or not all(isinstance(name, str) for name in value):
        raise SpecError(f"{key} is {value!r:.100}; it must be a table of names and values")
    return value


def placed(spec: RunSpec) -> Path:
    """Where a run is written: `out`, else a new folder in the home, named by time and spec."""
    if spec.out is not None:
        return Path(spec.out)
    return runs_folder() / f"{time.strftime('%Y%m%d-%H%M%S', time.gmtime())}-{_digest(spec.identity())}"


def placed_as(name: str, spec: RunSpec) -> RunSpec:
    """The spec of one of several runs, which is written in `out`, else in the home, in a folder of this name.

    The folder is the same when the same is asked for again. Without a name it is as if there were no others.
    """
    if not name:
        return spec
    if spec.out is not None:
        return replace(spec, out=str(Path(spec.out) / name))
    lasting = {key: value for key, value in spec.identity().items() if key not in FREE}
    return replace(spec, out=str(runs_folder() / f"{name}-{_digest(lasting)}"))


def _digest(identity: Mapping[str, Any]) -> str:
    return hashlib.sha256(repr(identity).encode()).hexdigest()[:16]
