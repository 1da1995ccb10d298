"""Single protein chains, as backbones or as sequences."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from domains.base import DesignError
from domains.protein.corpus import LONGEST, SHORTEST
from domains.protein.frames import Frames
from domains.protein.residues import Protein
from domains.protein.sequences import Sequences
from domains.protein.torsions import Torsions

__all__ = ["FORMS", "Frames", "Protein", "Sequences", "Torsions", "build"]

FORMS: Mapping[str, Callable[[int, int], Frames | Sequences | Torsions]]
FORMS = {"frames": Frames, "sequence": Sequences, "torsions": Torsions}


def build(form: str = "frames", length: int = 80, shortest: int = SHORTEST) -> Frames | Sequences | Torsions:
    """The domain of chains of `shortest` to `length` residues, as `frames`, as a `sequence` or as `torsions`."""
    if form not in FORMS:
        raise DesignError(f"form={form!r}; a protein is seen as {', '.join(FORMS)}; choose one")
    if not SHORTEST <= length <= LONGEST:
        raise DesignError(f"length={length}; chains have {SHORTEST} to {LONGEST} residues; choose one in between")
    if not SHORTEST <= shortest <= length:
        raise DesignError(f"shortest={shortest}; it is from {SHORTEST} to the length, {length}; choose one in between")
    return FORMS[form](length, shortest)
