"""What can be asked of a layout: its technology, its layers, how much they cover, and the function of its cell."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import torch
import yaml
from torch import Tensor

from data.conditions import Condition, Label, Level, Subset, codes
from domains.layout import metrics, technology
from domains.layout.cell import Cell
from domains.layout.technology import Technology

FUNCTIONS = Path(__file__).with_name("functions.yaml")
DENSEST = 0.6
"""The largest density that can be asked for; hardly any real clip has more."""


def declared(rules: Technology) -> dict[str, Condition]:
    """The conditions of a technology's layouts; those of all technologies with these layers are the same."""
    return {
        "technology": Label(tuple(technology.names())),
        "layers": Subset("layer", tuple(layer.name for layer in rules.layers)),
        "density": Level(0.0, DENSEST),
        "function": Label(functions()),
    }


@cache
def functions() -> tuple[str, ...]:
    """The logic functions of the train split, in alphabetical order."""
    return tuple(yaml.safe_load(FUNCTIONS.read_text()))


def facts(conditions: Mapping[str, Condition], designs: Sequence[Cell]) -> Tensor:
    """Codes (n, conditions): `density` is the share of the window that a layer covers, the mean over layers.

    A function is unknown where the train split has none of its cells, layers where there are no shapes.
    """
    rows = [codes(conditions, _facts(design)) for design in designs]
    return torch.cat([torch.zeros(0, len(conditions)), *rows])


def _facts(design: Cell) -> dict[str, Any]:
    layers = design.rules.layers
    density = min(float(np.mean(metrics.densities(design))), DENSEST)
    found: dict[str, Any] = {"technology": design.technology, "density": density}
    if design.shapes:
        found["layers"] = [layers[k].name for k in sorted({shape.layer for shape in design.shapes})]
    if design.function in functions():
        found["function"] = design.function
    return found
