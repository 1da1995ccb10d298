"""A Ramachandran plot of a set of backbones over what the corpus's train split has."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from domains.protein import ramachandran, residues, rules, svg
from domains.protein.ramachandran import ANY, BINS
from domains.protein.residues import Protein

SIZE = 288
_LEFT, _TOP, _RIGHT, _BOTTOM = 44, 10, 10, 38
MOST_POINTS = 4000
_LEVELS = ((ramachandran.ALLOWED, 0.16), (0.98, 0.24), (0.8, 0.34))
"""Share of real residues in a region, and its opacity."""
_DOT = "#2f7fd1"


def plot(designs: Sequence[Protein]) -> bytes:
    """phi across and psi up, one dot a residue (evenly chosen ones where there are too many), outliers in red."""
    angles, outside = _torsions(designs)
    total = len(angles)
    chosen = np.arange(total) if total <= MOST_POINTS else np.linspace(0, total - 1, MOST_POINTS).astype(int)
    rows = [_region(share, opacity) for share, opacity in _LEVELS]
    rows += [_axes(), _dots(angles[chosen][~outside[chosen]], _DOT), _dots(angles[chosen][outside[chosen]], svg.BAD)]
    share = 100 * outside.mean() if total else 0.0
    some = f"{len(chosen)} of {total}" if len(chosen) < total else f"{total}"
    rows.append(svg.text(_LEFT, _TOP + SIZE + 31, f"{some} residues, {share:.1f} % of all outside (red)"))
    return svg.page(
        _LEFT + SIZE + _RIGHT, _TOP + SIZE + _BOTTOM, rows, f"Ramachandran plot of {len(designs)} backbones"
    )


def _torsions(designs: Sequence[Protein]) -> tuple[np.ndarray, np.ndarray]:
    """phi and psi (n, 2) of the residues that have both, and which of them are outliers."""
    angles = np.concatenate([np.zeros((0, 2)), *(ramachandran.torsions(design.atoms()) for design in designs)])
    codes = residues.codes("".join(design.letters for design in designs))
    known = ~np.isnan(angles).any(-1)
    return angles[known], ramachandran.outliers(angles, codes)[known]


def _x(degrees: float) -> float:
    return _LEFT + SIZE * (degrees + 180) / 360


def _y(degrees: float) -> float:
    return _TOP + SIZE * (180 - degrees) / 360


def _region(share: float, opacity: float) -> str:
    """The bins of real residues of any kind, as one path of vertical bars."""
    bars, step = [], SIZE / BINS
    for phi, column in enumerate(ramachandran.region(share)[ANY]):
        for start, end in rules.runs(column):
            top, height = _TOP + SIZE - end * step, (end - start) * step
            bars.append(f"M{_LEFT + phi * step:g} {top:g}v{height:g}h{step:g}v{-height:g}z")
    return f'<path d="{"".join(bars)}" fill="{svg.STRAND}" fill-opacity="{opacity}" shape-rendering="crispEdges"/>'


def _axes() -> str:
    frame = f"M{_LEFT} {_TOP}h{SIZE}v{SIZE}h-{SIZE}zM{_LEFT} {_y(0)}h{SIZE}M{_x(0)} {_TOP}v{SIZE}"
    rows = [f'<path d="{frame}" fill="none" stroke="{svg.INK}" stroke-opacity=".6"/>']
    for degrees in (-180, -90, 0, 90, 180):
        anchor = {-180: "start", 180: "end"}.get(degrees, "middle")
        rows.append(svg.text(_x(degrees), _TOP + SIZE + 13, str(degrees), f'text-anchor="{anchor}"'))
        rows.append(svg.text(_LEFT - 5, _y(degrees) + 3.5, str(degrees), 'text-anchor="end"'))
    rows.append(svg.text(_x(45), _TOP + SIZE + 13, "phi", 'text-anchor="middle" font-style="italic"'))
    rows.append(svg.text(8, _y(45), "psi", 'font-style="italic"'))
    return "".join(rows)


def _dots(angles: np.ndarray, colour: str) -> str:
    degrees = np.degrees(angles)
    points = "".join(f"M{_x(phi):.1f} {_y(psi):.1f}h0" for phi, psi in degrees.tolist())
    return f'<path d="{points}" stroke="{colour}" stroke-opacity=".65" stroke-width="2.4" stroke-linecap="round"/>'
