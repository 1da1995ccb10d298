"""What is compared: IDEAS, two controls, its upper bound and seven baselines, and the code that each depends on."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial

from app.benchmarks.ideas.landscapes import Landscape
from app.benchmarks.ideas.truth import Truth, Watched
from generators.ideas.alphabet import Alphabet
from generators.ideas.baselines import BASELINES
from generators.ideas.explanation import absent, permuted
from generators.ideas.protocol import Strategy
from generators.ideas.strategy import EXPLAINER, Explained


def _rival(name: str, oracle: Landscape, alphabet: Alphabet) -> Strategy:
    return BASELINES[name](alphabet)


OURS, PERMUTED, ABSENT, ORACLE = "ideas", "ideas_permuted_mask", "ideas_no_mask", "ideas_oracle"
NOT_RANKED = (PERMUTED, ABSENT, ORACLE)
"""Controls, and the upper bound."""
METHODS: Mapping[str, Callable[[Landscape, Alphabet], Strategy]] = {
    OURS: lambda oracle, alphabet: Explained(alphabet, explainer=Watched(EXPLAINER)),
    PERMUTED: lambda oracle, alphabet: Explained(alphabet, mask=permuted),
    ABSENT: lambda oracle, alphabet: Explained(alphabet, mask=absent),
    ORACLE: lambda oracle, alphabet: Explained(alphabet, explainer=Watched(Truth(oracle))),
    **{name: partial(_rival, name) for name in BASELINES},
}
SHARED = (
    "app/benchmarks/ideas/landscapes",
    "app/benchmarks/ideas/work.py",
    *(f"generators/ideas/{name}.py" for name in ("alphabet", "evolution", "meter", "operators", "surrogate")),
)
"""Code on which all results depend."""
GUIDED = (
    "app/benchmarks/ideas/truth.py",
    *(f"generators/ideas/{name}.py" for name in ("explainers", "explanation", "guided", "selection", "strategy")),
)


def code(method: str) -> tuple[str, ...]:
    """Files and folders on which the results of a method depend."""
    if method not in BASELINES:
        return SHARED + GUIDED
    return (*SHARED, f"{BASELINES[method].__module__.replace('.', '/')}.py")
