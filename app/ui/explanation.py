"""What carries the score of a run's best designs: a section of its report, which the run's page takes out of it again.

So it is shown wherever the folder is, without the generator that explained the designs.
"""

from __future__ import annotations

import html
import re
from collections.abc import Mapping

TITLE = "What carries the score"
MEANING = (
    "Each bar is how far the score that the run was made for is expected to fall when the letter above it is changed, "
    "or, where it is red, to rise; shaded letters are motifs."
)
_FIGURE = '<figure class="explained"><figcaption>{name}</figcaption>{svg}</figure>'


def section(pictures: Mapping[str, bytes]) -> str:
    """Pictures, as SVG by name, under what they mean, as HTML; empty where there are none."""
    figures = [_FIGURE.format(name=html.escape(name), svg=svg.decode()) for name, svg in pictures.items()]
    return f"<h2>{TITLE}</h2><p>{MEANING}</p>{''.join(figures)}" if figures else ""


def pictures(page: str) -> dict[str, bytes]:
    """The pictures of such a section, from a page that has one; empty from another."""
    found = re.findall(_FIGURE.format(name="([^<]*)", svg="(.*?)"), page, re.DOTALL)
    return {html.unescape(name): svg.encode() for name, svg in found}
