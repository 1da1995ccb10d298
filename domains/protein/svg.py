"""What the pictures of proteins share: colours that are legible on light and on dark, and the frame of an SVG."""

from __future__ import annotations

from collections.abc import Iterable

INK = "#7d8796"
BAD = "#e0243f"
HELIX, STRAND, COIL = "#d8506b", "#e6a92f", "#8fa3bd"


def page(width: float, height: float, rows: Iterable[str], title: str) -> bytes:
    """An SVG of this size without a background."""
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:g} {height:g}" width="{width:g}" '
        f'height="{height:g}" font-family="Helvetica, Arial, DejaVu Sans, sans-serif" font-size="12" fill="{INK}">'
    )
    return "\n".join([head, f"<title>{title}</title>", *rows, "</svg>\n"]).encode()


def text(x: float, y: float, words: str, look: str = "") -> str:
    """Words at a place; `look` is more attributes."""
    return f'<text x="{x:.1f}" y="{y:.1f}"{look and " " + look}>{words}</text>'


def shade(colour: str, light: float) -> str:
    """A colour, darker below 1 and brighter above."""
    channels = (int(colour[i : i + 2], 16) for i in (1, 3, 5))
    return "#" + "".join(f"{max(0, min(255, round(channel * light))):02x}" for channel in channels)
