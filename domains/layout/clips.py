"""The corpus: windows that were cut out of the standard cells of two technologies."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np

from data import corpora
from domains.base import DesignError
from domains.layout import cell
from domains.layout.cell import Cell
from domains.layout.technology import Technology, load

CORPUS = "layout_clips_2um.npz"
WINDOW = 2000
"""Width and height in nm."""
_KINDS = {"rects": ("iu", 2), "ptr": ("iu", 1), "pdk": ("U", 1)}
_NAME = re.compile(r"(?:.*__|sg13g2_)(?P<function>.+?)(?:_[0-9]+)?")


@cache
def split(technology: str, name: str) -> list[Cell]:
    """The clips of a technology in a split of the corpus; none where it has none."""
    arrays = _corpus()
    found = _unpack(arrays, (arrays["pdk"] == technology) & (arrays["split"] == name), load(technology))
    sources = arrays["source"][(arrays["pdk"] == technology) & (arrays["split"] == name)].tolist()
    return [replace(clip, function=function(source)) for clip, source in zip(found, sources, strict=True)]


def technologies() -> list[str]:
    """Those that have clips."""
    return sorted(set(_corpus()["pdk"].tolist()))


def foreign(path: Path, rules: Technology) -> list[Cell]:
    """The clips of a technology in a file of the corpus's format; raises `DesignError` on another format."""
    try:
        arrays = corpora.read_npz(path, _KINDS)
    except corpora.CorpusError as error:
        raise DesignError(str(error)) from error
    _check(arrays, path, WINDOW // rules.grid, len(rules.layers))
    return _unpack(arrays, arrays["pdk"] == rules.name, rules)


def function(source: str) -> str:
    """The logic function of a standard cell by its name: without the library before it and the drive strength."""
    found = _NAME.fullmatch(source)
    return found["function"] if found else ""


@cache
def _corpus() -> dict[str, np.ndarray]:
    return corpora.load(CORPUS)


def _unpack(arrays: Mapping[str, np.ndarray], wanted: np.ndarray, technology: Technology) -> list[Cell]:
    """The wanted clips; in the file, lengths are in steps of the grid and the layer comes last."""
    ends, grid = arrays["ptr"], technology.grid
    shapes = arrays["rects"].astype(np.int64)[:, [4, 0, 1, 2, 3]] * [1, grid, grid, grid, grid]
    parts = (shapes[ends[row] : ends[row + 1]] for row in np.flatnonzero(wanted))
    return [cell.from_array(technology.name, WINDOW, WINDOW, part) for part in parts]


def _check(arrays: Mapping[str, np.ndarray], path: Path, steps: int, layers: int) -> None:
    """Raise `DesignError` unless these are clips: where each begins, and rectangles in the window."""
    rects, ends, n = arrays["rects"], arrays["ptr"], len(arrays["pdk"])
    begin = (
        len(ends) == n + 1 and (ends[0], ends[-1]) == (0, len(rects)) and (np.diff(ends.astype(np.int64)) >= 0).all()
    )
    if rects.shape[1] != 5 or not n or not begin:
        raise DesignError(
            f"{path}: rects is {rects.shape} and ptr {ends.shape} for {n} clips; rects must be (m, 5) and ptr go from "
            f"0 to m, one longer than the clips; cut them again"
        )
    if len(rects) and not (rects.min() >= 0 and rects[:, :4].max() <= steps and rects[:, 4].max() < layers):
        raise DesignError(
            f"{path}: rects goes from {rects.min()} to {rects[:, :4].max()} on layers to {rects[:, 4].max()}; a window "
            f"is from 0 to {steps} steps of the grid, with {layers} layers; cut the clips again"
        )
