"""What carries the score of a run's best designs: a section of its report, which the run's page takes out of it again.

So it is shown wherever the folder is, without the generator that explained the designs.
"""

from __future__ import annotations

import html
from collections.abc import Mapping

TITLE = "What carries the score"
MEANING = (
    "Each bar is how far the score that the run was made for is expected to fall when the letter above it is changed, "
    "or, where it is red, to rise; shaded letters are motifs."
)
_OPEN, _BETWEEN, _CLOSE = '<figure class="explained"><figcaption>', "</figcaption>", "</figure>"


def section(pictures: Mapping[str, bytes]) -> str:
    """Pictures, as SVG by name, under what they mean, as HTML; empty where there are none."""
    figures = [f"{_OPEN}{html.escape(name)}{_BETWEEN}{svg.decode()}{_CLOSE}" for name, svg in pictures.items()]
    return f"<h2>{TITLE}</h2><p>{MEANING}</p>{''.join(figures)}" if figures else ""


def pictures(page: str) -> dict[str, bytes]:
    """The pictures of such a section, from a page that has one; those of a damaged page that are whole."""
    found = {}
    for figure in page.split(_OPEN)[1:]:
        name, _, rest = figure.partition(_BETWEEN)
        svg, closed, _ = rest.partition(_CLOSE)
        if closed:
            found[html.unescape(name)] = svg.encode()
    return found
