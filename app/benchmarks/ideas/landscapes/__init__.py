"""Landscapes with a known best, which need no network: two measured tables, two of RNA, and closed forms."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache, partial

from app.benchmarks.ideas.landscapes import aav, ehrlich, gb1, jaspar, rna, tfbind8
from app.benchmarks.ideas.landscapes.base import Landscape

__all__ = ["BUILDERS", "EIGHT", "Landscape", "landscape"]

BUILDERS: Mapping[str, Callable[[], Landscape]] = {
    "tfbind8_six6": partial(tfbind8.build, "six6"),
    "tfbind8_pax4": partial(tfbind8.build, "pax4"),
    "rna_14": partial(rna.build, 14),
    "rna_50": partial(rna.build, 50),
    "jaspar_100": jaspar.build,
    "gb1_pairs": gb1.build,
    "aav_90": aav.build,
    "ehrlich_32": partial(ehrlich.build, 32, 2),
    "ehrlich_64": partial(ehrlich.build, 64, 4),
}
EIGHT = tuple(name for name in BUILDERS if name != "ehrlich_64")
"""Those of the bench; the ninth is the harder of the Ehrlich functions."""


@cache
def landscape(name: str) -> Landscape:
    """The landscape of this name."""
    return BUILDERS[name]()
