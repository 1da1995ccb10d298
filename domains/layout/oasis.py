"""OASIS to GDSII: run as a process of its own with limits, because gdstk may crash or hang on a damaged file.

`python oasis.py IN OUT`; what is wrong goes to stderr.
"""

from __future__ import annotations

import resource
import sys
import warnings
from pathlib import Path

import gdstk

_LIMITS = {
    resource.RLIMIT_AS: 2 << 30,
    resource.RLIMIT_CPU: 30,
    resource.RLIMIT_FSIZE: 64 << 20,
    resource.RLIMIT_CORE: 0,
}
_END = 256
"""Bytes of the last record, whose number is 2."""


def main(source: Path, target: Path) -> None:
    """Convert one file; whatever GDSII cannot say is refused."""
    for limit, most in _LIMITS.items():
        resource.setrlimit(limit, (most, most))
    data = source.read_bytes()
    if not data.startswith(b"%SEMI-OASIS\r\n") or len(data) <= _END or data[-_END] != 2:
        sys.exit("it has no begin or no end")
    if gdstk.oas_validate(source)[0] is False:
        sys.exit("its checksum is wrong")
    with warnings.catch_warnings(action="error"):  # of what is left out
        library = gdstk.read_oas(source)
    shapes = [shape for cell in library.cells if isinstance(cell, gdstk.Cell) for shape in cell.polygons]
    layers = [number for shape in shapes for number in (shape.layer, shape.datatype)]
    if max(layers, default=0) >= 1 << 15:
        sys.exit(f"layer or datatype {max(layers)}, which is above 32767")
    with warnings.catch_warnings(action="ignore"):  # of long properties
        library.write_gds(target, max_points=0)


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
