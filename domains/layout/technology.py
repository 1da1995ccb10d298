"""Technologies: the layers a cell may have, their numbers in files and their design rules. One YAML file each."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

import yaml

from domains.base import DesignError

FOLDER = Path(__file__).with_name("technologies")
CELLS = "_cells"
"""`load("sky130")` has the layers of a clip; `load("sky130_cells")` has all there are in a standard cell."""
CHECKS = ("enclosure", "extension", "overlap", "separation")


@dataclass(frozen=True)
class Rule:
    """A length in nm, and the name that the foundry's deck has for it."""

    rule: str
    nm: int


@dataclass(frozen=True)
class Area:
    """An area in nm², and the name that the foundry's deck has for it."""

    rule: str
    nm2: int


@dataclass(frozen=True)
class Layer:
    """One mask: its layer and datatype in files, and the smallest gap between two shapes.

    Shapes are at least `width` wide, or, where there is a `size`, squares of exactly this size. `notch` is the smallest
    gap between two sides of one shape where it is not `space`, and `area` the least of a shape.
    """

    name: str
    gds: tuple[int, int]
    space: Rule
    width: Rule | None
    size: Rule | None
    notch: Rule | None = None
    area: Area | None = None


@dataclass(frozen=True)
class Pair:
    """A rule between shapes of layers `of`, all or those that overlap some of layers `on`, and those of layers `to`.

    By `check`: `enclosure`, `of` lies in `to`, `nm` or more from its sides; `extension`, where `of` crosses `to`, it
    ends `nm` or more behind it, and where it ends beside `to`, its far side is as far; `separation`, gaps between the
    two are `nm` or more; `overlap`, where the two touch and each goes on behind the other, they share `nm` or more.
    """

    check: str
    rule: str
    nm: int
    of: tuple[int, ...]
    to: tuple[int, ...]
    on: tuple[int, ...]


@dataclass(frozen=True)
class Cut:
    """A layer of cuts, and the conductors on which they land below and above, by number."""

    layer: int
    below: tuple[int, ...]
    above: tuple[int, ...]


@dataclass(frozen=True)
class Technology:
    """The database unit and the manufacturing grid in nm, and the layers in the order of fabrication."""

    name: str
    dbu: int
    grid: int
    boundary: tuple[int, int]
    """Layer and datatype of the frame that says which window a file shows."""
    layers: tuple[Layer, ...]
    pairs: tuple[Pair, ...] = ()
    cuts: tuple[Cut, ...] = ()
    gate: tuple[int, int] | None = None
    """The layers (over, channel) that make a transistor where they overlap."""

    def index(self, name: str) -> int:
        """The number of the layer of this name; `DesignError` where there is none."""
        names = [layer.name for layer in self.layers]
        if name not in names:
            raise DesignError(f"no layer {name!r} in {self.name}; there are {', '.join(names)}; choose one")
        return names.index(name)


def names() -> list[str]:
    """The technologies there are."""
    return sorted(path.stem for path in FOLDER.glob("*.yaml"))


def layer_names() -> list[str]:
    """The layers of clips in any technology, in the order of fabrication."""
    return list(dict.fromkeys(layer.name for name in names() for layer in load(name).layers))


@cache
def load(name: str) -> Technology:
    """The technology of this name, with the layers of a clip or, with `CELLS` at its end, of a whole cell.

    Raises `DesignError` where there is none.
    """
    stem = name.removesuffix(CELLS)
    if stem not in names():
        raise DesignError(f"technology={name!r}; there are {', '.join(names())}; choose one")
    plain = yaml.safe_load((FOLDER / f"{stem}.yaml").read_text())
    clip = plain["clip"]
    if stem == name:
        layers = tuple(_layer(entry, clip["checks"]) for entry in plain["layers"] if entry["name"] in clip["layers"])
    else:
        layers = tuple(_layer(entry) for entry in plain["layers"])
    bare = Technology(name, plain["dbu"], plain["grid"], tuple(plain["boundary"]), layers)
    wanted = clip["checks"] if stem == name else CHECKS
    over, channel = plain["gate"]
    return replace(
        bare,
        pairs=tuple(_pairs(bare, plain["pairs"], wanted)),
        cuts=tuple(_cuts(bare, plain["cuts"])),
        gate=(bare.index(over), bare.index(channel)),
    )


def _cuts(bare: Technology, plain: Sequence[Mapping[str, Any]]) -> Iterator[Cut]:
    """The cuts that there are, with the conductors that there are."""
    there = [layer.name for layer in bare.layers]
    for entry in plain:
        below, above = (tuple(there.index(name) for name in entry[key] if name in there) for key in ("below", "above"))
        if entry["layer"] in there and below and above:
            yield Cut(there.index(entry["layer"]), below, above)


def _layer(plain: Mapping[str, Any], checks: Collection[str] = ("notch", "area")) -> Layer:
    rules = {key: Rule(**plain[key]) if key in plain else None for key in ("width", "size")}
    notch = Rule(**plain["notch"]) if "notch" in plain and "notch" in checks else None
    area = Area(**plain["area"]) if "area" in plain and "area" in checks else None
    return Layer(plain["name"], tuple(plain["gds"]), Rule(**plain["space"]), **rules, notch=notch, area=area)


def _pairs(bare: Technology, plain: Sequence[Mapping[str, Any]], wanted: Collection[str]) -> list[Pair]:
    """The rules of the wanted kinds all whose layers there are."""
    there = {layer.name for layer in bare.layers}
    found = []
    for entry in plain:
        of, to, over = (entry.get(key, ()) for key in ("of", "to", "over"))
        if entry["check"] in wanted and there.issuperset([*of, *to, *over]):
            numbers = (tuple(bare.index(name) for name in some) for some in (of, to, over))
            found.append(Pair(entry["check"], entry["rule"], entry["nm"], *numbers))
    return found
