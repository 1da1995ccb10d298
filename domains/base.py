"""The words every domain speaks. A domain is one module (or package) here with a `build(**parameters)` function.

One whose designs can be seen as different spaces (a protein as frames, or as a sequence) names them in `FORMS`, the
preferred first, and takes one as the parameter `form`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol, TypeVar, runtime_checkable

from torch import Tensor

from data.errors import InputError
from data.noise import DesignNoise
from data.space import Space, State

D = TypeVar("D")


class DesignError(InputError):
    """A design, or a file that should hold one, is not valid; the message says where and what is legal."""


@dataclass(frozen=True)
class Violation:
    """A rule that a design breaks, in words for people, with its place (0-based, half-open, in sites)."""

    rule: str
    start: int
    end: int
    message: str


class Domain(Protocol[D]):
    """One kind of design. `D` is the domain's own value type: a sequence, a backbone, a list of paths, a cell."""

    space: Space
    suffixes: tuple[str, ...]
    """Endings of the files that `write` can make, the preferred one first, each with its dot."""
    metric_names: tuple[str, ...]

    def corpus(self, split: str) -> Sequence[D]:
        """The real designs of one split, `train` or `val`, in the corpus's order."""

    def reference(self, path: Path) -> Sequence[D]:
        """Every design in a file of the corpus's format, whatever its split; raises `DesignError` on another format."""

    def encode(self, designs: Sequence[D]) -> State:
        """The state of finished designs, as `space` declares it."""

    def decode(self, state: State) -> list[D]:
        """The designs a finished state stands for."""

    def violations(self, design: D) -> list[Violation]:
        """The rules it breaks; empty means legal."""

    def metrics(self, designs: Sequence[D], reference: Sequence[D]) -> dict[str, float]:
        """How far a set of designs is from a reference set, by the names in `metric_names`."""

    def baselines(self, train: Sequence[D], n: int, seed: int) -> Mapping[str, Sequence[D]]:
        """Sets of `n` designs made by the simple models that any generator has to beat, by name."""

    def read(self, path: Path) -> D:
        """The design in a file; raises `DesignError` on anything else."""

    def write(self, design: D, path: Path, provenance: Mapping[str, str]) -> None:
        """Write one design in the format of `path.suffix`, with its provenance inside the file."""

    def provenance(self, path: Path) -> Mapping[str, str]:
        """What `write` was told, from inside the file; empty for a file that came from elsewhere."""

    def draw(self, design: D) -> bytes:
        """A thumbnail, as SVG."""


@runtime_checkable
class Overview(Protocol):
    """A domain that can draw many designs together; asked for with `isinstance`."""

    def overview(self, designs: Sequence[Any]) -> Mapping[str, bytes]:
        """Pictures of a set of designs as SVG, by title."""


@runtime_checkable
class Sequenced(Protocol):
    """A domain that can find sequences for its designs; asked for with `isinstance`."""

    sequence_suffix: str
    """Ending of the file of a design's sequences, with its dot; none of `suffixes`. `provenance` reads it too."""

    def sequenced(
        self, designs: Sequence[Any], n: int, rng: DesignNoise
    ) -> Sequence[tuple[Any, Callable[[Path, Mapping[str, str]], None]]]:
        """Each design with the likeliest of `n` sequences for it, and what writes all of them, with provenance.

        What a design gets depends on the noise of its row alone.
        """


@runtime_checkable
class Repairing(Protocol):
    """A domain that can mend designs; asked for with `isinstance`."""

    def repaired(self, design: Any, held: Sequence[int]) -> Any:
        """The same design with fewer broken rules, changed no more than that takes; the sites in `held` stay."""


@runtime_checkable
class Lockable(Protocol):
    """A domain in whose designs some sites can be given beforehand; asked for with `isinstance`."""

    @property
    def locked(self) -> Callable[..., State]:
        """Makes a lock of what a person gives (its parameters say what): a state of one design.

        Only the sites in its mask count. Raises `DesignError` for what no design can have.
        """


@runtime_checkable
class Conditional(Protocol):
    """A domain that knows conditions of its designs, those of its space; asked for with `isinstance`."""

    given: Mapping[str, Any]
    """Values of the conditions that all its designs have."""

    def lessons(self) -> State:
        """The state of all designs that can be learned from, with `data.space.CONDITIONS`."""

    def facts(self, designs: Sequence[Any]) -> Tensor:
        """Codes (n, conditions) of what is known of designs."""


def placed(counts: Sequence[int], at: Sequence[int], length: int) -> list[range]:
    """Sites, from 0, of segments of so many sites each, which begin at `at`, from 1, or are spread evenly.

    Raises `DesignError` for segments that overlap, are not in order or do not fit.
    """
    free = length - sum(counts)
    if free < 0:
        raise DesignError(f"{sum(counts)} sites in all; a design has at most {length}; give fewer")
    if at and len(at) != len(counts):
        raise DesignError(f"at={list(at)!s:.100} for {len(counts)} segments; give one position for each, or none")
    evenly = (round(free * (i + 1) / (len(counts) + 1)) + sum(counts[:i]) for i in range(len(counts)))
    found, end = [], 0
    for start, count in zip([first - 1 for first in at] or evenly, counts, strict=True):
        if not end <= start <= length - count:
            raise DesignError(
                f"at={start + 1} for a segment of {count}; it must be from {end + 1} to {length - count + 1}, "
                f"behind the one before and inside the design; move it"
            )
        end = start + count
        found.append(range(start, end))
    return found
