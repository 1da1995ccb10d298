"""Technologies: the layers a cell may have, their numbers in files and their design rules. One YAML file each."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import yaml

from domains.base import DesignError

FOLDER = Path(__file__).with_name("technologies")


@dataclass(frozen=True)
class Rule:
    """A length in nm, and the name that the foundry's deck has for it."""

    rule: str
    nm: int


@dataclass(frozen=True)
class Layer:
    """One mask: its layer and datatype in files, and the smallest gap between two shapes.

    Shapes are at least `width` wide, or, where there is a `size`, squares of exactly this size.
    """

    name: str
    gds: tuple[int, int]
    space: Rule
    width: Rule | None
    size: Rule | None


@dataclass(frozen=True)
class Technology:
    """The database unit and the manufacturing grid in nm, and the layers in the order of fabrication."""

    name: str
    dbu: int
    grid: int
    boundary: tuple[int, int]
    """Layer and datatype of the frame that says which window a file shows."""
    layers: tuple[Layer, ...]

    def index(self, name: str) -> int:
        """The number of the layer of this name; `DesignError` where there is none."""
        names = [layer.name for layer in self.layers]
        if name not in names:
            raise DesignError(f"no layer {name!r} in {self.name}; there are {', '.join(names)}; choose one")
        return names.index(name)


def names() -> list[str]:
    """The technologies there are."""
    return sorted(path.stem for path in FOLDER.glob("*.yaml"))


@cache
def load(name: str) -> Technology:
    """The technology of this name; `DesignError` where there is none."""
    if name not in names():
        raise DesignError(f"technology={name!r}; there are {', '.join(names())}; choose one")
    plain = yaml.safe_load((FOLDER / f"{name}.yaml").read_text())
    layers = tuple(_layer(entry) for entry in plain["layers"])
    return Technology(plain["name"], plain["dbu"], plain["grid"], tuple(plain["boundary"]), layers)


def _layer(plain: Mapping[str, Any]) -> Layer:
    rules = {key: Rule(**plain[key]) if key in plain else None for key in ("width", "size")}
    return Layer(plain["name"], tuple(plain["gds"]), Rule(**plain["space"]), **rules)
