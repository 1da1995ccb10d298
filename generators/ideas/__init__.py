"""IDEAS: evolution of sequences guided by an explainable model.

The paper (ICML 2026) says what it does, that critical motifs found in designs of high fitness guide the mutation of
positions that are not critical; how, where its abstract leaves that open, is decided here.
"""

from __future__ import annotations

from functools import partial

from data.space import Categorical, Space
from generators.base import GeneratorError
from generators.ideas.generator import Evolution
from generators.ideas.protocol import MEMBERS
from generators.ideas.strategy import Explained

__all__ = ["FACTORS", "build"]

FACTORS = (Categorical,)
MOST_MEMBERS = 16


def build(
    space: Space, budget: int = 256, start: int = 32, members: int = MEMBERS, both_strands: bool = False, file: str = ""
) -> Evolution:
    """An evolution of at most `budget` measurements, the first `start` of which are of designs of the corpus.

    With a `file` it starts from the design in there instead, and from mutants of it. `members` is the size of the
    ensemble of surrogates. With `both_strands` motifs are written on either strand, for scores that are the same of
    both; letters pair first with last, as A C G T do. Raises `GeneratorError` for numbers out of range.
    """
    if not 1 <= members <= MOST_MEMBERS:
        raise GeneratorError(f"members is {members}; an ensemble has 1 to {MOST_MEMBERS}; choose e.g. {MEMBERS}")
    return Evolution(space, budget, start, partial(Explained, members=members, both_strands=both_strands), file)
