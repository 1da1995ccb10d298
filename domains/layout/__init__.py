"""Layouts: rectangles of four layers in a window of 2 x 2 um, as in the standard cells of two technologies."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Annotated

import numpy as np
import torch
from torch import Tensor

from data.known import Known
from data.space import CONDITIONS, Categorical, Factor, Real, Space, State
from domains.base import DesignError, Violation
from domains.layout import baselines, cell, clips, conditions, draw, files, legaliser, lock, metrics, rules
from domains.layout.cell import Cell, Rectangle
from domains.layout.clips import CORPUS, WINDOW
from domains.layout.technology import Technology, load, names

LONGEST = 256
UNIT = 128
"""Steps of the grid that are 1 in a state: a power of two, so that the grid is exact, and corners are of size 1."""
FORMS = ("corners", "centres")
"""How a state has the numbers of a rectangle: x0 y0 x1 y1, or x y width height."""
TechnologyName = Annotated[str, Known(names)]


class Layout:
    """Cells of one technology with at most `length` rectangles."""

    def __init__(self, rules_of: Technology, length: int, form: str = FORMS[0]) -> None:
        self.technology = rules_of
        self.length, self.form = length, form
        factors: dict[str, Factor] = {"layer": Categorical(len(rules_of.layers)), form: Real(4)}
        self.space = Space(length, factors, conditions=conditions.declared(rules_of))
        self.given = {"technology": rules_of.name}
        self.suffixes: tuple[str, ...] = files.SUFFIXES
        self.metric_names = metrics.NAMES
        self._unit = UNIT * rules_of.grid

    def corpus(self, split: str) -> list[Cell]:
        """Windows of the technology's standard cells with at most `length` rectangles; splits are by logic function.

        Each layer is made up of rectangles as large as they can be (`regions.cover`).
        """
        if split not in ("train", "val"):
            raise DesignError(f"no split {split!r}; there are train and val; choose one")
        found = clips.split(self.technology.name, split)
        if not found:
            raise DesignError(
                f"no clips of {self.technology.name} in {CORPUS}; there are those of ihp_sg13g2 and sky130; build the "
                f"domain of one of these, or give clips as a reference"
            )
        return self._short(found)

    def reference(self, path: Path) -> list[Cell]:
        """Every clip of the technology with at most `length` rectangles in a file of the corpus's format.

        However the file's rectangles make up a layer, the clips are made up as those of the corpus.
        """
        there = clips.foreign(path, self.technology)
        found = self._short(Cell(c.technology, c.width, c.height, metrics.pattern(c)) for c in there)
        if not found:
            raise DesignError(
                f"{path} has no clip of {self.technology.name}; give a file that has, or build its domain"
            )
        return found

    def lessons(self) -> State:
        """The train splits of all technologies that have clips, with what is known of each."""
        self.corpus("train")  # which says so where the own technology has none
        parts = [Layout(load(name), self.length, self.form)._told() for name in clips.technologies()]
        return {key: torch.cat([part[key] for part in parts]) for key in parts[0]}

    def facts(self, designs: Sequence[Cell]) -> Tensor:
        """Codes (n, conditions) of the conditions that designs have, by `conditions.facts`."""
        return conditions.facts(self.space.conditions, designs)

    def encode(self, designs: Sequence[Cell]) -> State:
        """One-hot layers (n, length, 4) and corners x0 y0 x1 y1 (n, length, 4) from the window's centre.

        Rectangles are by layer, then by lower left corner. 1 is 128 steps of the grid (`UNIT`). As `centres`, the
        numbers are the place of the middle, and how much larger width and height are than half a window.
        """
        n, layers = len(designs), len(self.technology.layers)
        one_hot, corners = torch.zeros(n, self.length, layers), torch.zeros(n, self.length, 4)
        mask = torch.zeros(n, self.length, dtype=torch.bool)
        for i, design in enumerate(designs):
            self._check(design, f"design {i}")
            shapes = torch.from_numpy(design.array())
            one_hot[i, : len(shapes)] = torch.nn.functional.one_hot(shapes[:, 0], layers).float()
            corners[i, : len(shapes)] = (shapes[:, 1:] - WINDOW // 2) / self._unit
            mask[i, : len(shapes)] = True
        numbers = corners if self.form == "corners" else self._centres(corners) * mask[..., None]
        return {"layer": one_hot, self.form: numbers, "mask": mask}

    def decode(self, state: State) -> list[Cell]:
        """The likeliest layer of each site in use, and its corners on the nearest point of the grid in the window.

        Half a step is rounded up. A rectangle with x1 <= x0 or y1 <= y0 then is dropped and counted in `Cell.dropped`,
        which `violations` reports.
        """
        layers = state["layer"].argmax(-1, keepdim=True).double()
        steps = (self.steps(state) + 0.5).floor()
        corners = (steps * self.technology.grid).clamp(0, WINDOW)
        shapes = torch.cat([layers, corners], -1).long().cpu().numpy()
        rows = zip(shapes, state["mask"].cpu().numpy(), strict=True)
        return [
            cell.from_array(self.technology.name, WINDOW, WINDOW, row[used], np.flatnonzero(used)) for row, used in rows
        ]

    def steps(self, state: State) -> Tensor:
        """Corners x0 y0 x1 y1 (n, length, 4) of a state in steps of the grid, from the window's, not yet rounded."""
        self.space.check(state)
        numbers = state[self.form].double()
        corners = numbers if self.form == "corners" else self._corners(numbers)
        return corners * UNIT + WINDOW / 2 / self.technology.grid

    def violations(self, design: Cell) -> list[Violation]:
        """Too little width or space, contacts of another size, corners off the grid, rectangles without area."""
        return rules.violations(design)

    def repaired(self, design: Cell, held: Sequence[int]) -> Cell:
        """By the legaliser, see `legaliser.py`, around the shapes of held sites; as it is where that finds no way."""
        which = [k for k, site in enumerate(design.sites) if site in held]
        try:
            return legaliser.legalise(design, which).cell
        except ArithmeticError:
            return design

    def metrics(self, designs: Sequence[Cell], reference: Sequence[Cell]) -> dict[str, float]:
        """Legality, also after repair, distances to `reference`, copies of the train split; see `metrics.py`.

        `capped` is the share of designs with as many rectangles as there may be.
        """
        if not designs or not reference:
            raise DesignError(f"{len(designs)} designs against {len(reference)}; metrics want one or more of each")
        close = metrics.closeness(designs, reference)
        legal = metrics.legality(designs) | metrics.repair(designs)
        capped = float(np.mean([len(design.shapes) + design.dropped >= self.length for design in designs]))
        rest = {"off_grid": metrics.off_grid(designs), "capped": capped}
        return legal | close | metrics.copying(designs, self._known) | rest

    def baselines(self, train: Sequence[Cell], n: int, seed: int) -> Mapping[str, list[Cell]]:
        """`n` cells each of rectangles anywhere, and of real rectangles drawn independently."""
        models = {"uniform": baselines.uniform, "independent": baselines.independent}
        return {name: make(train, n, np.random.default_rng(seed)) for name, make in models.items()}

    def locked(self, file: str = "", place: str = "first") -> State:
        """What the shapes in a GDSII or OASIS file cover, as sites that every design has.

        `first`: they are the beginning of the design, and go on from there, on their last layer and those above it.
        `spread`: they are at the sites where real cells have such shapes, and the rest goes between them.
        """
        lock.check(place)
        if not file:
            raise DesignError("lock.file is empty; it must be a GDSII or OASIS file with the shapes to hold")
        given = self.read(Path(file))
        held = Cell(given.technology, given.width, given.height, metrics.pattern(given))
        if not held.shapes:
            raise DesignError(f"{file} has no shapes on the layers of {self.technology.name}; there is nothing to hold")
        state = self.encode([held])
        if place == "first":
            return state
        return lock.spread(state, lock.usual(held, self.corpus("train"), self.length))

    def read(self, path: Path) -> Cell:
        """The cell in a GDSII or OASIS file of one top cell, on the technology's layers; see `files.read`."""
        return files.read(path, self.technology, WINDOW)

    def write(self, design: Cell, path: Path, provenance: Mapping[str, str]) -> None:
        """Write GDSII (.gds) or OASIS (.oas), with the window as a frame on the technology's boundary layer."""
        self._check_kind(design, "the design")
        files.write(design, path, provenance)

    def provenance(self, path: Path) -> Mapping[str, str]:
        """What `write` was told about the design in a file."""
        return files.provenance(path)

    def draw(self, design: Cell) -> bytes:
        """The layers over each other as SVG, with broken rules in red boxes."""
        return draw.picture(design, rules.markers(design))

    def overview(self, designs: Sequence[Cell]) -> Mapping[str, bytes]:
        """A contact sheet."""
        return {"Contact sheet": draw.sheet(designs)}

    def _check_kind(self, design: Cell, what: str) -> None:
        if (design.technology, design.width, design.height) != (self.technology.name, WINDOW, WINDOW):
            raise DesignError(
                f"{what} is {design.technology}, {design.width} x {design.height} nm; this domain has "
                f"{self.technology.name}, {WINDOW} x {WINDOW} nm; cut it, or build the domain of its technology"
            )

    def _check(self, design: Cell, what: str) -> None:
        """Raise `DesignError` unless the space holds this cell exactly."""
        self._check_kind(design, what)
        if len(design.shapes) > self.length:
            raise DesignError(
                f"{what} has {len(design.shapes)} rectangles; this domain has at most {self.length}; "
                f"build it with a larger length"
            )
        if (design.array()[:, 1:] % self.technology.grid).any():
            raise DesignError(f"{what} has corners off the grid of {self.technology.grid} nm; round them to it")

    def _centres(self, corners: Tensor) -> Tensor:
        low, high = corners.chunk(2, dim=-1)
        return torch.cat([(low + high) / 2, high - low - WINDOW / 2 / self._unit], dim=-1)

    def _corners(self, centres: Tensor) -> Tensor:
        middle, larger = centres.chunk(2, dim=-1)
        half = (larger + WINDOW / 2 / self._unit) / 2
        return torch.cat([middle - half, middle + half], dim=-1)

    def _told(self) -> State:
        designs = self.corpus("train")
        return self.encode(designs) | {CONDITIONS: self.facts(designs)[:, None]}

    def _short(self, cells: Iterable[Cell]) -> list[Cell]:
        return [made for made in cells if len(made.shapes) <= self.length]

    @cached_property
    def _known(self) -> frozenset[tuple[Rectangle, ...]]:
        return frozenset(made.shapes for made in self.corpus("train"))


def build(technology: TechnologyName = "sky130", length: int = 56, form: str = FORMS[0]) -> Layout:
    """The domain of one technology, see `technology.names`: at most `length` rectangles, in one of `FORMS`."""
    if form not in FORMS:
        raise DesignError(f"form={form!r}; a rectangle has {' or '.join(FORMS)}; choose one")
    if not 1 <= length <= LONGEST:
        raise DesignError(f"length={length}; cells have 1 to {LONGEST} rectangles; choose one in between")
    return Layout(load(technology), length, form)
