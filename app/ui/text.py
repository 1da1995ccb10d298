"""Names and pictures from files, shown as what they are: nothing in them is markup to the page."""

from __future__ import annotations

import base64
import html
import re

SPECIAL = re.compile(r"([!-/:-@\[-`{-~])")
"""Every ASCII character that may mean something in Markdown."""
WIDTH = re.compile(rb"<svg[^>]*\bviewBox=[\"'] *[-.0-9]+[ ,]+[-.0-9]+[ ,]+([.0-9]+)[ ,]+([.0-9]+)")


def plain(text: object) -> str:
    """Text as Markdown that shows it letter by letter, on one line."""
    return SPECIAL.sub(r"\\\1", " ".join(str(text).split()))


def image(svg: bytes, alt: str) -> str:
    """An SVG as an `<img>`, in which no script runs and nothing else is loaded, on white paper."""
    data = base64.b64encode(svg).decode()
    style = "width:100%;max-height:15rem;object-fit:contain;background:white;border-radius:.4rem"
    return f'<img alt="{html.escape(alt)}" src="data:image/svg+xml;base64,{data}" style="{style}">'


def is_wide(svg: bytes) -> bool:
    """Whether a picture is a strip, so that two fill a row."""
    found = WIDTH.search(svg[:2000])
    return found is not None and float(found[1]) > 2 * float(found[2])


def duration(seconds: float) -> str:
    """A time to go, as people say it."""
    if seconds < 90:
        return f"{max(1, round(seconds))} s"
    return f"{round(seconds / 60)} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"
