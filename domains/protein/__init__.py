"""Single protein chains, as backbones or as sequences."""

from __future__ import annotations

from domains.base import DesignError
from domains.protein.corpus import LONGEST, SHORTEST
from domains.protein.frames import Frames
from domains.protein.residues import Protein
from domains.protein.sequences import Sequences

__all__ = ["FORMS", "Frames", "Protein", "Sequences", "build"]

FORMS = ("frames", "sequence")


def build(form: str = "frames", length: int = 80) -> Frames | Sequences:
    """The domain of chains of at most `length` residues, seen as `frames` or as a `sequence`."""
    if form not in FORMS:
        raise DesignError(f"form={form!r}; a protein is seen as {' or '.join(FORMS)}; choose one")
    if not SHORTEST <= length <= LONGEST:
        raise DesignError(f"length={length}; chains have {SHORTEST} to {LONGEST} residues; choose one in between")
    return Frames(length) if form == "frames" else Sequences(length)
