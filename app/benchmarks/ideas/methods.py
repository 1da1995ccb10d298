"""What is compared: IDEAS, its two controls and the seven baselines, and the code that each depends on."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial

from generators.ideas.alphabet import Alphabet
from generators.ideas.baselines import BASELINES
from generators.ideas.explanation import absent, permuted
from generators.ideas.protocol import Strategy
from generators.ideas.strategy import Explained

OURS, PERMUTED, ABSENT = "ideas", "ideas_permuted_mask", "ideas_no_mask"
METHODS: Mapping[str, Callable[[Alphabet], Strategy]] = {
    OURS: Explained,
    PERMUTED: partial(Explained, mask=permuted),
    ABSENT: partial(Explained, mask=absent),
    **BASELINES,
}
SHARED = (
    "app/benchmarks/ideas/landscapes",
    "app/benchmarks/ideas/work.py",
    *(f"generators/ideas/{name}.py" for name in ("alphabet", "evolution", "meter", "operators", "surrogate")),
)
"""Code on which all results depend."""
GUIDED = tuple(f"generators/ideas/{name}.py" for name in ("explanation", "guided", "selection", "strategy"))


def code(method: str) -> tuple[str, ...]:
    """Files and folders on which the results of a method depend."""
    if method not in BASELINES:
        return SHARED + GUIDED
    return (*SHARED, f"{BASELINES[method].__module__.replace('.', '/')}.py")
