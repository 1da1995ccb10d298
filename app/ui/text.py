"""Names and pictures from files, shown as what they are: nothing in them is markup to the page."""

from __future__ import annotations

import base64
import html
import math
import re

SPECIAL = re.compile(r"([!-/:-@\[-`{-~])")
"""Every ASCII character that may mean something in Markdown."""
WIDTHS = (
    re.compile(rb"<svg[^>]*\swidth=[\"']([0-9]+(?:\.[0-9]+)?)(?:px)?[\"']"),
    re.compile(rb"<svg[^>]*\bviewBox=[\"'] *[-.0-9]+[ ,]+[-.0-9]+[ ,]+([0-9]+(?:\.[0-9]+)?)[ ,]"),
)
"""Where an SVG says how wide it is: in pixels, else in units of its own."""


def plain(text: object) -> str:
    """Text as Markdown that shows it letter by letter, on one line."""
    return SPECIAL.sub(r"\\\1", " ".join(str(text).split()))


def image(svg: bytes, alt: str, size: str = "width:100%;max-height:15rem") -> str:
    """An SVG as an `<img>`, in which no script runs and nothing else is loaded, on white paper."""
    data = base64.b64encode(svg).decode()
    style = f"{size};object-fit:contain;background:white;border-radius:.4rem"
    return f'<img alt="{html.escape(alt)}" src="data:image/svg+xml;base64,{data}" style="{style}">'


def width(svg: bytes) -> float:
    """How wide a picture says it is; 0 where it does not."""
    found = next((match for pattern in WIDTHS if (match := pattern.search(svg[:2000]))), None)
    return float(found[1]) if found else 0.0


def per_row(svg: bytes) -> int:
    """How many cards fill a row, so that the words in their pictures can still be read."""
    return next(cards for widest, cards in ((200, 4), (400, 3), (math.inf, 2)) if width(svg) <= widest)
