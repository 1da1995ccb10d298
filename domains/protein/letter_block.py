"""A sequence as rows of letters on patches coloured by side chain."""

from __future__ import annotations

from domains.protein import svg
from domains.protein.residues import Protein

_GROUPS = {"AVLIMC": "#e0b04c", "FWY": "#c98bc0", "KRH": "#6ea0e0", "DE": "#e58072", "STNQ": "#7fc79a", "GP": "#a9b2bf"}
"""Aliphatic and sulphur, aromatic, basic, acidic, polar, and the two that bend."""
_COLOURS = {letter: colour for letters, colour in _GROUPS.items() for letter in letters}
_DARK = "#1c2430"
_COLUMNS, _GROUP = 40, 10
_CELL, _ROW, _LEFT, _TOP = 13, 21, 34, 6
_SPACE = 5


def draw(design: Protein) -> bytes:
    """Rows of 40 letters in tens, as SVG; letters outside the 20 are red."""
    rows = max(1, -(-len(design) // _COLUMNS))
    width = _LEFT + _COLUMNS * _CELL + (_COLUMNS // _GROUP - 1) * _SPACE + 6
    parts = [_letter(i, letter) for i, letter in enumerate(design.letters)]
    parts += [
        svg.text(_LEFT - 5, _TOP + row * _ROW + 12.5, design.numbers[row * _COLUMNS], 'text-anchor="end"')
        for row in range(rows)
        if row * _COLUMNS < len(design)
    ]
    body = f'<g font-family="Menlo, Consolas, DejaVu Sans Mono, monospace" text-anchor="middle">{"".join(parts)}</g>'
    return svg.page(width, 2 * _TOP + rows * _ROW, [body], f"sequence of {len(design)} residues")


def _letter(i: int, letter: str) -> str:
    row, column = divmod(i, _COLUMNS)
    x = _LEFT + column * _CELL + column // _GROUP * _SPACE
    y = _TOP + row * _ROW
    colour = _COLOURS.get(letter, svg.BAD)
    box = f'<rect x="{x}" y="{y}" width="{_CELL - 1}" height="17" rx="2.5" fill="{colour}"/>'
    return box + svg.text(x + (_CELL - 1) / 2, y + 12.3, letter, f'fill="{_DARK}" font-weight="bold"')
