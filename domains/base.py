"""The words every domain speaks. A domain is one module (or package) here with a `build(**parameters)` function.

One whose designs can be seen as different spaces (a protein as frames, or as a sequence) names them in `FORMS`, the
preferred first, and takes one as the parameter `form`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol, TypeVar, runtime_checkable

from data.errors import InputError
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
