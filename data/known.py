"""Words that a text parameter is usually one of."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass


@dataclass(frozen=True)
class Known:
    """Said in a parameter's annotation, `Annotated[str, Known(names)]`: what a form offers; others may be typed.

    `names` is called when somebody asks, so that it may read a data file. For words that are all there are, `Literal`.
    """

    names: Callable[[], Iterable[str]]
