"""Icons drawn by strokes of one pen, on the canvas of 24 x 24 that the large free icon sets share."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from data.space import State
from domains.base import DesignError, Violation
from domains.svg import baselines, corpus, draw, files, metrics, raster, rules, units
from domains.svg.icon import Icon

SHORTEST, LONGEST = 8, 128


class Svg:
    """Icons of at most `length` segments."""

    def __init__(self, length: int) -> None:
        self.length = length
        self.space = units.space(length)
        self.suffixes: tuple[str, ...] = (files.SUFFIX,)
        self.metric_names = metrics.NAMES

    def corpus(self, split: str) -> list[Icon]:
        """Tabler and Lucide icons of the split, `train` or `val` (other ideas, by name); longer ones are left out."""
        if split not in ("train", "val"):
            raise DesignError(f"no split {split!r}; there are train and val; choose one")
        return list(self._train if split == "train" else self._val)

    def reference(self, path: Path) -> list[Icon]:
        """Every icon of a file in the corpus's format, but those with more than `length` segments."""
        return corpus.foreign(path, self.length)

    def encode(self, designs: Sequence[Icon]) -> State:
        """Commands and numbers of each segment, see `units.py`; `DesignError` on more than `length` of them."""
        for i, design in enumerate(designs):
            if len(design.segments) > self.length:
                raise DesignError(
                    f"design {i} has {len(design.segments)} segments; at most {self.length} can be encoded; "
                    f"simplify it, or build the domain with length={len(design.segments)}"
                )
        return units.encode(designs, self.length)

    def decode(self, state: State) -> list[Icon]:
        """The icons that a state draws, by the likeliest command of each unit in use; see `units.strokes`."""
        self.space.check(state)
        return units.decode(state)

    def violations(self, design: Icon) -> list[Violation]:
        """Nothing drawn, idle segments, ink outside of the canvas, more than `length` segments."""
        return rules.violations(design, self.length)

    def metrics(self, designs: Sequence[Icon], reference: Sequence[Icon]) -> dict[str, float]:
        """Distances to `reference`, and how much was copied from the corpus's train split; see `metrics.py`."""
        if not designs or not reference:
            raise DesignError(f"{len(designs)} designs against {len(reference)}; metrics want one or more of each")
        inks, known = raster.ink(designs), self._inks(reference)
        close = metrics.closeness(designs, inks, reference, known)
        return close | metrics.copying(designs, inks, self._train, self._inks(self._train))

    def baselines(self, train: Sequence[Icon], n: int, seed: int) -> Mapping[str, list[Icon]]:
        """`n` icons each of units anywhere, and of a Markov chain of commands with units taken from `train`."""
        known = self.encode(train)
        models = {"uniform": baselines.uniform, "independent": baselines.independent}
        return {name: self.decode(make(known, n, np.random.default_rng(seed))) for name, make in models.items()}

    def read(self, path: Path) -> Icon:
        """The icon in an SVG file of strokes, fitted to the canvas; see `files.read`."""
        return files.read(path)

    def write(self, design: Icon, path: Path, provenance: Mapping[str, str]) -> None:
        """Write an SVG file of one `path` element a stroke, which takes the colour of the text around it."""
        files.write(design, path, provenance)

    def provenance(self, path: Path) -> Mapping[str, str]:
        """What `write` was told about the design in a file."""
        return files.provenance(path)

    def draw(self, design: Icon) -> bytes:
        """The icon on a light tile with its grid, as SVG; segments that break a rule are marked in red."""
        return draw.tile(design, self.violations(design))

    def overview(self, designs: Sequence[Icon]) -> Mapping[str, bytes]:
        """A contact sheet."""
        return {"Contact sheet": draw.sheet(designs)}

    def _inks(self, icons: Sequence[Icon]) -> Tensor:
        """`raster.ink`, remembered for the train split, which is met again and again."""
        if all(icon in self._train_inks for icon in icons):
            return torch.stack([self._train_inks[icon] for icon in icons])
        return raster.ink(icons)

    @cached_property
    def _train_inks(self) -> dict[Icon, Tensor]:
        return dict(zip(self._train, raster.ink(self._train), strict=True))

    @cached_property
    def _train(self) -> list[Icon]:
        return corpus.shipped("train", self.length)

    @cached_property
    def _val(self) -> list[Icon]:
        return corpus.shipped("val", self.length)


def build(length: int = 40) -> Svg:
    """The domain of icons of at most `length` segments."""
    if not SHORTEST <= length <= LONGEST:
        raise DesignError(f"length={length}; icons have at most {SHORTEST} to {LONGEST} segments; choose one between")
    return Svg(length)
