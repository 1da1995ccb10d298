"""A sequence as rows of letters on patches coloured by side chain."""

from __future__ import annotations

from domains.protein import svg
from domains.protein.residues import Protein

_GROUPS = {
    "aliphatic": ("AVLIMC", "#e0b04c"),
    "aromatic": ("FWY", "#c98bc0"),
    "basic": ("KRH", "#6ea0e0"),
    "acidic": ("DE", "#e58072"),
    "polar": ("STNQ", "#7fc79a"),
    "G, P": ("GP", "#a9b2bf"),
}
"""Side chains by kind: letters and colour. Those of sulphur are among the aliphatic ones."""
_COLOURS = {letter: colour for letters, colour in _GROUPS.values() for letter in letters}
_DARK = "#1c2430"
_COLUMNS, _GROUP = 30, 10
_CELL, _ROW, _LEFT, _TOP = 13, 21, 34, 6
_SPACE = 5
_PLACES = (34, 111, 186, 243, 302, 356)
"""Where the entries of the legend start."""


def draw(design: Protein) -> bytes:
    """Rows of 30 letters in tens, as SVG, and what their colours mean; letters outside the 20 are red."""
    rows = max(1, -(-len(design) // _COLUMNS))
    width = _LEFT + _COLUMNS * _CELL + (_COLUMNS // _GROUP - 1) * _SPACE + 6
    parts = [_letter(i, letter) for i, letter in enumerate(design.letters)]
    parts += [
        svg.text(_LEFT - 5, _TOP + row * _ROW + 12.5, design.numbers[row * _COLUMNS], 'text-anchor="end"')
        for row in range(rows)
        if row * _COLUMNS < len(design)
    ]
    body = f'<g font-family="Menlo, Consolas, DejaVu Sans Mono, monospace" text-anchor="middle">{"".join(parts)}</g>'
    below = _TOP + rows * _ROW
    return svg.page(width, below + 20, [body, *_legend(below)], f"sequence of {len(design)} residues")


def _legend(top: float) -> list[str]:
    """The kinds of side chains, each after a patch of its colour."""
    return [
        f'<rect x="{x}" y="{top + 3}" width="9" height="9" rx="2" fill="{colour}"/>'
        + svg.text(x + 13, top + 11.5, name)
        for x, (name, (_, colour)) in zip(_PLACES, _GROUPS.items(), strict=True)
    ]


def _letter(i: int, letter: str) -> str:
    row, column = divmod(i, _COLUMNS)
    x = _LEFT + column * _CELL + column // _GROUP * _SPACE
    y = _TOP + row * _ROW
    colour = _COLOURS.get(letter, svg.BAD)
    box = f'<rect x="{x}" y="{y}" width="{_CELL - 1}" height="17" rx="2.5" fill="{colour}"/>'
    return box + svg.text(x + (_CELL - 1) / 2, y + 12.3, letter, f'fill="{_DARK}" font-weight="bold"')
