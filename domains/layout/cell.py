"""What a layout is: rectangles on layers inside a window."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from domains.base import DesignError
from domains.layout.technology import Technology, load


class Rectangle(NamedTuple):
    """A box [x0, x1) x [y0, y1) in nm on a layer, which is its number in the technology's order of fabrication."""

    layer: int
    x0: int
    y0: int
    x1: int
    y1: int


@dataclass(frozen=True)
class Cell:
    """Rectangles in a window whose lower left corner is (0, 0); those of a layer may overlap, and are then one shape.

    The order of the rectangles means nothing: they are kept by layer, then by lower left corner. Raises `DesignError`
    for one that has no area, is not wholly in the window, or is on a layer that the technology lacks.
    """

    technology: str
    width: int
    """Of the window, in nm."""
    height: int
    shapes: tuple[Rectangle, ...]
    dropped: int = 0
    """How many rectangles were without area when the cell was made, and are not among the shapes."""
    sites: tuple[int, ...] = field(default=(), compare=False)
    """Which site of a state each shape was decoded from, or its place among those that the cell was made of."""
    function: str = field(default="", compare=False)
    """Logic function of the standard cell that this is a window of, empty where that is not known."""

    def __post_init__(self) -> None:
        layers, width, height = len(self.rules.layers), self.width, self.height
        for layer, x0, y0, x1, y1 in self.shapes:
            if not (0 <= layer < layers and 0 <= x0 < x1 <= width and 0 <= y0 < y1 <= height):
                raise DesignError(
                    f"rectangle {x0} {y0} {x1} {y1} nm on layer {layer}: it must be on layer 0 to {layers - 1}, have "
                    f"x0 < x1 and y0 < y1, and lie within {width} x {height} nm; correct or remove it"
                )
        order = sorted(range(len(self.shapes)), key=self.shapes.__getitem__)
        object.__setattr__(self, "shapes", tuple(self.shapes[k] for k in order))
        object.__setattr__(self, "sites", tuple((self.sites or range(len(order)))[k] for k in order))

    @property
    def rules(self) -> Technology:
        """The technology itself."""
        return load(self.technology)

    def array(self) -> np.ndarray:
        """The shapes as whole numbers (n, 5)."""
        return np.array(self.shapes, dtype=np.int64).reshape(-1, 5)


def from_array(technology: str, width: int, height: int, shapes: np.ndarray, sites: np.ndarray | None = None) -> Cell:
    """A cell with the rectangles (n, 5) at these sites (n,); those with x1 <= x0 or y1 <= y0 are dropped."""
    solid = (shapes[:, 3] > shapes[:, 1]) & (shapes[:, 4] > shapes[:, 2])
    kept = tuple(map(Rectangle._make, shapes[solid].tolist()))
    places = np.flatnonzero(solid) if sites is None else sites[solid]
    return Cell(technology, width, height, kept, int(len(shapes) - solid.sum()), tuple(places.tolist()))
