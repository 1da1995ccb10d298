"""What a generator says about its designs: the letters of the best ones, each with what would be lost without it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import islice
from typing import Any

from domains.base import Domain
from generators.base import Explaining, Generator

SHOWN = 3
"""Designs, the best."""
COLUMNS, CELL, BAR, ROW = 60, 12, 26, 50
"""Letters of a row; width of a letter, height of the largest bar and of a row in pixels."""
LEFT = 40
GAIN, LOSS, BAND = "#d62839", "#255c99", "#f4d58d"


def pictures(domain: Domain[Any], generator: Generator, designs: Mapping[int, Any]) -> dict[str, bytes]:
    """A picture of each of the first of numbered designs; none where the generator or the designs do not allow it."""
    shown = dict(islice(designs.items(), SHOWN))
    texts = [getattr(design, "letters", design) for design in shown.values()]
    if (
        not isinstance(generator, Explaining)
        or not generator.has_measured
        or not all(isinstance(x, str) for x in texts)
    ):
        return {}
    criticality, motifs = generator.explain(domain.encode(list(shown.values())))
    return {
        f"Design {number:06d}": picture(text, worth[: len(text)].tolist(), motif[: len(text)].tolist())
        for number, text, worth, motif in zip(shown, texts, criticality, motifs, strict=True)
    }


def picture(text: str, criticality: Sequence[float], motif: Sequence[bool]) -> bytes:
    """Letters in rows, as SVG; those of motifs on a band, and under each a bar, red where changing it gains."""
    most = max((abs(x) for x in criticality), default=0) or 1
    rows = -(-len(text) // COLUMNS)
    width, height = LEFT + COLUMNS * CELL + 8, rows * ROW + 22
    sites = zip(text, criticality, motif, strict=True)
    parts = [_site(i, letter, worth / most, held) for i, (letter, worth, held) in enumerate(sites)]
    parts += [
        f'<text x="{LEFT - 6}" y="{r * ROW + 14}" text-anchor="end">{r * COLUMNS + 1}</text>' for r in range(rows)
    ]
    parts.append(
        f'<text x="{LEFT}" y="{height - 6}">longest bar: {most:.2g} in normal scores of all designs measured</text>'
    )
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}" '
        f'font-family="Menlo, Consolas, DejaVu Sans Mono, monospace" font-size="11" fill="#3b4252">'
    )
    return "\n".join([head, f'<rect width="{width}" height="{height}" fill="white"/>', *parts, "</svg>\n"]).encode()


def _site(i: int, letter: str, share: float, held: bool) -> str:
    row, column = divmod(i, COLUMNS)
    x, y, tall = LEFT + column * CELL, row * ROW + 14, abs(share) * BAR
    bar = f'<rect x="{x + 1}" y="{y + 4}" width="{CELL - 2}" height="{tall:.1f}" fill="{LOSS if share > 0 else GAIN}"/>'
    band = f'<rect x="{x}" y="{y - 11}" width="{CELL}" height="14" fill="{BAND}"/>' * held
    return f'{band}<text x="{x + CELL / 2}" y="{y}" text-anchor="middle">{letter}</text>{bar}'
