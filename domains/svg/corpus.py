"""Stroke icons in an npz file: segments of all icons one after the other, each icon's last one an end marker."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np

from data import corpora
from domains.base import DesignError
from domains.svg.icon import CANVAS, COORDINATES, DECIMALS, Icon, Segment, assembled

NAME = "icons_stroke24.npz"
_COMMANDS = tuple(COORDINATES)
_CLOSE, _END = _COMMANDS.index("Z"), len(_COMMANDS)
_SCALE = 16_000
"""Stored whole numbers in half a canvas; 0 is the middle."""
_MOST = 2 * _SCALE


def shipped(split: str, length: int) -> list[Icon]:
    """The icons of one split that have at most `length` segments."""
    arrays = corpora.load(NAME)
    return _icons(arrays, (arrays["split"] == split) & _short(arrays, length))


def foreign(path: Path, length: int) -> list[Icon]:
    """Every icon of at most `length` segments of a file in the same format; `DesignError` on anything else."""
    try:
        arrays = corpora.read_npz(path, {"ptr": ("iu", 1), "cmd": ("u", 1), "pts": ("i", 2)})
    except corpora.CorpusError as error:
        raise DesignError(str(error)) from error
    _check(arrays, path)
    return _icons(arrays, _short(arrays, length))


def _short(arrays: Mapping[str, np.ndarray], length: int) -> np.ndarray:
    """Bool (icons,), which have at most `length` segments before their end marker."""
    short: np.ndarray = np.diff(arrays["ptr"].astype(np.int64)) <= length + 1
    return short


def _icons(arrays: Mapping[str, np.ndarray], chosen: np.ndarray) -> list[Icon]:
    pointers, commands = arrays["ptr"].tolist(), arrays["cmd"].tolist()
    coordinates = np.round((arrays["pts"] / _SCALE + 1) * CANVAS / 2, DECIMALS).tolist()
    return [
        assembled([_segment(commands[i], coordinates[i]) for i in range(pointers[row], pointers[row + 1] - 1)])
        for row in np.flatnonzero(chosen).tolist()
    ]


def _segment(command: int, coordinates: list[float]) -> Segment:
    name = _COMMANDS[command]
    return Segment(name, tuple(coordinates[6 - COORDINATES[name] :]))


def _check(arrays: Mapping[str, np.ndarray], path: Path) -> None:
    """Raise `DesignError` unless every icon is segments of which the first is M, and then an end marker."""
    pointers, commands = arrays["ptr"], arrays["cmd"]
    sizes = np.diff(pointers.astype(np.int64))
    whole = (
        len(sizes) > 0
        and pointers[0] == 0
        and pointers[-1] == len(commands)
        and sizes.min() > 1
        and arrays["pts"].shape == (len(commands), 6)
    )
    if not whole:
        raise DesignError(
            f"{path}: {len(commands)} segments, pts {arrays['pts'].shape} and ptr of {len(pointers)} do not fit; ptr "
            "must rise from 0 to the number of segments by 2 or more an icon, pts must have 6 columns"
        )
    most = int(np.abs(arrays["pts"].astype(np.int64)).max())
    if most > _MOST:
        raise DesignError(f"{path}: pts has {most}; the largest is {_MOST}, a whole canvas from the middle; scale it")
    starts = np.isin(np.arange(len(commands)), pointers[:-1])
    after_close = np.r_[False, commands[:-1] == _CLOSE]
    bad = (
        (commands > _END)
        | (np.isin(np.arange(len(commands)), pointers[1:] - 1) != (commands == _END))
        | (starts & (commands != 0))
        | (after_close & ~np.isin(commands, (0, _END)))
    )
    if bad.any():
        place = int(bad.argmax())
        raise DesignError(
            f"{path}: command {commands[place]} of segment {place} is out of place; an icon begins with 0 (M), so does "
            "what follows 3 (Z), and only its end is 4"
        )
