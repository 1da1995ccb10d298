"""Best of n: several candidates are drawn for each design, and the one with the highest score is kept."""

from __future__ import annotations

from dataclasses import dataclass

from generators.base import GeneratorError

MOST = 1000


@dataclass(frozen=True)
class BestOfN:
    """A selection; a design's candidates come from its own noise, so it is best among them in any batch."""

    candidates: int


def build(candidates: int = 4) -> BestOfN:
    """Guidance that draws `candidates` designs for each one that is kept."""
    if not 1 <= candidates <= MOST:
        raise GeneratorError(f"candidates is {candidates}; it must be from 1 to {MOST}")
    return BestOfN(candidates)
