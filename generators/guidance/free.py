"""No guidance: designs as the model makes them."""

from __future__ import annotations


def build() -> None:
    """None, which every generator takes as "do not steer"."""
