"""No guidance: designs as the model makes them."""

from __future__ import annotations

from data.noise import Noise
from data.space import State
from generators.base import Flight, Score


class Free:
    """Leaves every flight alone."""

    def __call__(self, flight: Flight, score: Score, rng: Noise) -> State:
        """The flight's x."""
        return flight.x


def build() -> Free:
    """Guidance that does nothing."""
    return Free()
