"""Pictures of promoters, as SVG: one design as a track, many as a sequence logo."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from domains.base import DesignError, Violation
from domains.dna import letters, motifs

WIDTH, HEIGHT = 520, 124
_LEFT, _RIGHT = 40, 480
_LEGEND, _MIDDLE, _GC_TOP, _GC_BOTTOM, _RULER = 13, 37, 56, 93, 99
_MARK = 10
_WINDOW = 20
"""Bases that one point of the G+C curve averages."""
_COLOURS = ("#0072b2", "#009e73", "#e69f00", "#cc79a7", "#56b4e9", "#5e4fa2")  # apart for the colour-blind
_INK, _FAINT, _BAD = "#3b4252", "#d5dae1", "#c8102e"
_BASE_COLOURS = {"A": "#109648", "C": "#255c99", "G": "#f7b32b", "T": "#d62839"}
_AXES = (0.05, 0.1, 0.2, 0.5, 1, 2)  # bits; a logo takes the smallest that holds it
_GLYPHS = {
    "A": "M0 100L36 0H64L100 100H76L69 78H31L24 100ZM37 58H63L50 20Z",
    "C": "M100 32A53 50 0 1 0 100 68L76 62A29 30 0 1 1 76 38Z",
    "G": "M100 32A53 50 0 1 0 100 78V46H54V64H77V68A29 30 0 1 1 76 38Z",
    "T": "M0 0H100V20H62V100H38V20H0Z",
}
"""Outlines of the letters in a box of 100 x 100."""


def track(design: str, violations: Sequence[Violation]) -> bytes:
    """One design, 520 x 124: motifs above the line on strand +, below it on -; broken rules in red; G+C; positions."""
    hits = motifs.hits(design)
    colours = dict(zip(motifs.core_motifs(), _COLOURS, strict=False))
    rows = [
        _legend({hit.motif: colours[hit.motif] for hit in hits}, bool(violations)),
        *(_violation(violation, len(design)) for violation in violations),
        f'<path d="M{_LEFT} {_MIDDLE}H{_RIGHT}" stroke="{_INK}"/>',
        _text(_LEFT - 5, _MIDDLE - 2, "+", "end") + _text(_LEFT - 5, _MIDDLE + 9, "\u2212", "end"),
        f'<path d="M{_RIGHT} {_MIDDLE}V{_MIDDLE - 14}h14m-4 -4l4 4l-4 4" fill="none" stroke="{_INK}"/>',
        *(_mark(hit, colours[hit.motif], len(design)) for hit in hits),
        _gc(design),
        _ruler(len(design)),
    ]
    return _svg(WIDTH, HEIGHT, rows, f"promoter of {len(design)} bases")


def logo(designs: Sequence[str], start: int, end: int) -> bytes:
    """Sequence logo of positions [start, end), negative and counted from the transcription start at 0.

    Letter heights are information in bits, less the small-sample error 3 / (2 n ln 2)
    (Schneider and Stephens 1990, Nucleic Acids Research 18, 6097).
    """
    length = len(designs[0]) if designs else 0
    if not -length <= start < end <= 0:
        raise DesignError(
            f"logo of positions [{start}, {end}) of {len(designs)} designs of {length} letters; "
            f"give designs and -{length} <= start < end <= 0"
        )
    found = letters.codes(designs, length)[:, start + length : end + length]
    heights = logo_heights(found)
    tallest = next(bits for bits in _AXES if bits >= min(heights.sum(1).max(), 2))
    step, left, top, bottom = 18, 56, 10, 130
    rows = [_bits(left, left + step * len(heights), top, bottom, tallest)]
    for i, column in enumerate(heights):
        rows += _stack(column, left + i * step, step, bottom, (bottom - top) / tallest)
        if (start + i) % 5 == 0 or i in (0, len(heights) - 1):
            rows.append(_text(left + (i + 0.5) * step, bottom + 14, str(start + i), "middle"))
    return _svg(left + step * len(heights) + 8, bottom + 22, rows, f"logo of {len(designs)} promoters")


def logo_heights(found: np.ndarray) -> np.ndarray:
    """Heights in bits (length, 4) of the letters in a logo of codes (n, length), where `OTHER` does not count."""
    counts = np.stack([(found == base).sum(0) for base in range(4)], axis=-1)
    n = counts.sum(-1, keepdims=True).clip(min=1)
    frequencies = counts / n
    entropy = -np.sum(frequencies * np.log2(np.where(frequencies > 0, frequencies, 1)), axis=-1, keepdims=True)
    heights: np.ndarray = frequencies * np.maximum(2 - entropy - 3 / (2 * math.log(2) * n), 0)
    return heights


def _svg(width: float, height: float, rows: Sequence[str], title: str) -> bytes:
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}" '
        f'font-family="Helvetica, Arial, DejaVu Sans, sans-serif" font-size="13" fill="{_INK}">'
    )
    paper = f'<rect width="{width}" height="{height}" fill="white"/>'
    return "\n".join([head, f"<title>{title}</title>", paper, *rows, "</svg>\n"]).encode()


def _x(site: float, length: int) -> float:
    return _LEFT + (_RIGHT - _LEFT) * site / length


def _text(x: float, y: float, words: str, anchor: str = "start", colour: str = _INK) -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" fill="{colour}">{words}</text>'


def _box(x: float, y: float, width: float, height: float, look: str) -> str:
    return f'<rect x="{x:.1f}" y="{y:.1f}" width="{width:.1f}" height="{height:.1f}" {look}/>'


def _legend(colours: dict[str, str], broken: bool) -> str:
    """Names of what is in the picture, each after a patch of its colour."""
    entries = [*colours.items(), *([("broken rule", _BAD)] if broken else [])]
    rows, x = [], float(_LEFT)
    for name, colour in entries:
        rows += [_box(x, _LEGEND - 8, 9, 9, f'rx="2" fill="{colour}"'), _text(x + 13, _LEGEND, name)]
        x += 26 + 7.5 * len(name)
    return "".join(rows) or _text(_LEFT, _LEGEND, "no core motif", colour="#5f6878")


def _mark(hit: motifs.Hit, colour: str, length: int) -> str:
    """An arrow-shaped box on the strand's side of the middle line, pointing the way the strand is read."""
    x0, x1 = _x(hit.start, length), _x(hit.end, length)
    tail, tip = (x0, x1) if hit.strand > 0 else (x1, x0)
    neck = tip - hit.strand * min(5, (x1 - x0) / 2)
    near = _MIDDLE - 1.5 * hit.strand
    far = near - _MARK * hit.strand
    corners = [(tail, near), (neck, near), (tip, (near + far) / 2), (neck, far), (tail, far)]
    points = " ".join(f"{x:.1f},{y:.1f}" for x, y in corners)
    return (
        f'<polygon points="{points}" fill="{colour}"><title>{hit.motif} at {hit.start - length}, '
        f"{hit.score:.1f} bits</title></polygon>"
    )


def _violation(violation: Violation, length: int) -> str:
    x = _x(violation.start, length)
    width = max(_x(violation.end, length) - x, 2)
    band = _box(x, _MIDDLE - 14, width, _RULER - _MIDDLE + 14, f'fill="{_BAD}" fill-opacity="0.12"')
    return band + _box(x, _RULER - 2.5, width, 4, f'fill="{_BAD}"')


def _gc(design: str) -> str:
    """Share of G and C in a sliding window, as a filled curve between 0 and 100 %."""
    share = np.convolve([letter in "GCS" for letter in design], np.ones(_WINDOW) / _WINDOW, mode="valid")
    places = np.arange(len(share)) + _WINDOW / 2
    points = [
        f"{_x(site, len(design)):.1f} {_GC_BOTTOM - (_GC_BOTTOM - _GC_TOP) * value:.1f}"
        for site, value in zip(places, share, strict=True)
    ]
    curve = "L".join(points)
    first, last = _x(places[0], len(design)), _x(places[-1], len(design))
    middle = (_GC_TOP + _GC_BOTTOM) / 2
    return "".join(
        [
            f'<path d="M{first:.1f} {_GC_BOTTOM}L{curve}L{last:.1f} {_GC_BOTTOM}Z" fill="#d8dfe9"/>',
            f'<path d="M{_LEFT} {_GC_TOP}H{_RIGHT}M{_LEFT} {_GC_BOTTOM}H{_RIGHT}" stroke="{_FAINT}"/>',
            f'<path d="M{_LEFT} {middle}H{_RIGHT}" stroke="{_FAINT}" stroke-dasharray="3 3"/>',
            f'<path d="M{curve}" fill="none" stroke="#5b7299"/>',
            _text(_LEFT - 5, middle + 4.5, "G+C", "end"),
            _text(_RIGHT + 4, middle + 4.5, "50%", colour="#5f6878"),
        ]
    )


def _ruler(length: int) -> str:
    """Positions from the transcription start, a tick every 10 and a number every 50."""
    rows = [f'<path d="M{_LEFT} {_RULER}H{_RIGHT}" stroke="{_INK}"/>']
    for position in range(-(length // 10) * 10, 0, 10):
        x, tall = _x(position + length, length), 5 if position % 50 == 0 else 3
        rows.append(f'<path d="M{x:.1f} {_RULER}v{tall}" stroke="{_INK}"/>')
        if position % 50 == 0:
            rows.append(_text(x, _RULER + 16, str(position), "middle"))
    rows.append(f'<path d="M{_RIGHT} {_RULER}v5" stroke="{_INK}"/>' + _text(_RIGHT, _RULER + 16, "+1", "middle"))
    return "".join(rows)


def _bits(left: float, right: float, top: float, bottom: float, tallest: float) -> str:
    """The axis of a logo, from 0 to `tallest` bits."""
    rows = [f'<path d="M{left} {bottom}H{right}M{left - 4} {top}V{bottom}" fill="none" stroke="{_INK}"/>']
    for share in (0, 0.5, 1):
        y = bottom - (bottom - top) * share
        label = _text(left - 11, y + 3.5, f"{share * tallest:g}", "end")
        rows.append(f'<path d="M{left - 8} {y}h4" stroke="{_INK}"/>{label}')
    middle = (top + bottom) / 2
    turned = f'<text x="10" y="{middle}" text-anchor="middle" transform="rotate(-90 10 {middle})">bits</text>'
    return "".join([*rows, turned])


def _stack(heights: np.ndarray, x: float, width: float, bottom: float, bit: float) -> list[str]:
    """One column of letters, the most frequent on top; `bit` is the height of one bit."""
    rows = []
    for base in np.argsort(heights):
        height = float(heights[base]) * bit
        if height < 0.2:
            continue
        bottom -= height
        letter = letters.LETTERS[base]
        rows.append(
            f'<path d="{_GLYPHS[letter]}" fill="{_BASE_COLOURS[letter]}" fill-rule="evenodd" '
            f'transform="translate({x + 0.5:.2f} {bottom:.2f}) scale({(width - 1) / 100:.4f} {height / 100:.4f})"/>'
        )
    return rows
