"""The words every generator speaks. A generator is one package here.

It has `FACTORS`, the kinds of factors that it can make, and the function `build(space, **parameters)`. One that is
trained beforehand has `load(folder, device)` too; without it, `fit` is shown the corpus before each run.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

import torch
from torch import Tensor

from data.errors import InputError
from data.noise import DesignNoise, Noise
from data.space import Space, State

UNLIMITED = sys.maxsize
Score = Callable[[State], Tensor]
"""A batch of finished states -> (B,), higher is better."""


class GeneratorError(InputError):
    """A generator was asked for something it cannot do; the message says what and the remedy."""


@dataclass(frozen=True)
class Flight:
    """A batch on its way from noise (t = 0) to designs (t = 1), as it is shown to guidance before a step of `dt`."""

    x: State
    """In the generator's own coordinates, in which lengths of vectors mean something (radians on a sphere)."""
    t: float
    dt: float
    finish: Callable[[State], State]
    """The look-ahead: the finished state of the space that this x will become. Differentiable."""
    move: Callable[[State, State], State]
    """`move(x, v)`: x moved by the tangent part of v along a geodesic, so that it stays where it may be.

    Sites that are locked do not move, and `finish` has no gradient there.
    """


@runtime_checkable
class Guidance(Protocol):
    """Steers a flight towards a higher score. The same type goes in and out, so that guidances chain in a for-loop."""

    needs_gradient: bool
    """Whether the score must be differentiable."""

    def __call__(self, flight: Flight, score: Score, rng: Noise) -> State:
        """The batch to go on with, in the place of `flight.x`."""


@runtime_checkable
class Selection(Protocol):
    """A guidance that does not steer: it has several candidates drawn for each design, and the best one is kept."""

    candidates: int


class Generator(Protocol):
    """Learns a distribution over states of one space and draws from it."""

    space: Space
    steps: int
    """How many batches its recipe of training wants."""
    steerable: bool
    """Whether its designs are on a flight that guidance can steer."""
    optimises: bool
    """Whether `sample` itself climbs the score, so that it wants one, and no guidance."""
    most_designs: int
    """How many different designs one seed can give."""
    most_steps: int

    def to(self, device: torch.device) -> Generator:
        """The same generator with its weights on a device."""

    def fit(self, batches: Iterable[State], rng: Noise, on_step: Callable[[int, dict[str, float]], None]) -> None:
        """Train on batches until they run out; `on_step` hears the step's number and its losses."""

    def sample(
        self,
        n: int,
        steps: int,
        score: Score | None,
        guidance: Guidance | None,
        rng: DesignNoise,
        on_step: Callable[[int], None],
    ) -> State:
        """Draw `n` finished states in `steps` steps, steered by `guidance` towards `score` where both are given.

        A design depends on its own noise alone, not on the others in the call. `on_step` hears how many of the
        `n * steps` steps are done.
        """

    def save(self, folder: Path) -> None:
        """Write weights and configuration into a folder, never as a pickle."""


@runtime_checkable
class Holding(Generator, Protocol):
    """A generator that can hold sites of its designs at given values; asked for with `isinstance`."""

    def check_lock(self, lock: State) -> None:
        """Raise `GeneratorError` for a lock that it cannot hold."""

    def sample(
        self,
        n: int,
        steps: int,
        score: Score | None,
        guidance: Guidance | None,
        rng: DesignNoise,
        on_step: Callable[[int], None],
        lock: State | None = None,
    ) -> State:
        """Draw as every generator does, each design with the values of `lock` at the sites in its mask.

        `lock` is a state of one design, of which only those sites count. Frames are given up to a rigid motion.
        Designs have at least as many sites as the last locked one needs.
        """


@runtime_checkable
class Starting(Protocol):
    """A generator that can start from one design; asked for with `isinstance`."""

    file: str
    """Where the design is that `fit` is to be shown, in the place of the corpus if it is not empty."""


@runtime_checkable
class Resizable(Generator, Protocol):
    """A generator that has learned designs of several lengths; asked for with `isinstance`."""

    def resize(self, space: Space) -> None:
        """Draw designs of the lengths of `space`; raises `GeneratorError` where it has learned none such."""


@runtime_checkable
class Conditioned(Protocol):
    """A generator that can have learned conditions of designs; asked for with `isinstance`.

    One whose space has conditions learns from batches with `data.space.CONDITIONS`.
    """

    space: Space

    def ask(self, given: Mapping[str, Any], asked: Mapping[str, Any], weight: float) -> None:
        """Draw designs, from now on, that have what is `given` and what is `asked`; values by condition.

        A larger `weight` than 1 makes them more alike to what is asked, and less to what is only given. Raises
        `InputError` for what it has not learned; what is only given, it then draws without.
        """


@runtime_checkable
class Explaining(Protocol):
    """A generator that can say what matters in designs; asked for with `isinstance`."""

    @property
    def has_measured(self) -> bool:
        """Whether it has measured anything to explain."""

    def explain(self, state: State) -> tuple[Tensor, Tensor]:
        """How critical each site of designs is (N, L), what is lost on average when it is changed; which are motifs."""


@runtime_checkable
class Diagnosed(Protocol):
    """A generator that can say how far it is from laws that an exact one would keep; asked for with `isinstance`."""

    def diagnose(self, state: State, rng: Noise) -> dict[str, float]:
        """Law -> error, 0 where it is kept, on the way to the designs of a state."""


@runtime_checkable
class Resumable(Protocol):
    """A generator whose training can be stopped and taken up again; asked for with `isinstance`."""

    def training_state(self) -> dict[str, Any]:
        """All that the next step of `fit` depends on: tensors, numbers and containers of them."""

    def resume(self, state: dict[str, Any]) -> int:
        """Take up such a state before `fit`; returns the number of steps already done."""

    def begin_from(self, folder: Path) -> None:
        """Take the weights of a checkpoint before `fit`; raises `GeneratorError` for those of another network."""
