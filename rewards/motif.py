"""How well a motif occurs in a sequence, at best, on either strand."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

import torch
from torch import Tensor

from data.known import Known
from data.space import State
from domains.base import DesignError
from domains.dna import Dna, letters, motifs
from rewards.base import RewardError, RewardResult

Name = Annotated[str, Known(motifs.core_motifs)]


class Motif:
    """The best score of a matrix inside positions [start, end), from 0 for its worst word to 1 for its best.

    Positions are negative and count from the transcription start; a place counts when the whole motif lies inside.
    """

    domains: tuple[str, ...] = ("dna",)

    def __init__(self, length: int, motif: motifs.Motif, start: int, end: int) -> None:
        self.length = length
        self.motif = motif
        self.first = start + length
        self.last = end + length
        self._log_odds = torch.from_numpy(motif.log_odds)

    def __call__(self, designs: Sequence[str]) -> RewardResult:
        """Score sequences; places with a letter other than A, C, G, T do not count, and their design is not valid.

        `parts` has the best score in bits and the position where it starts; `per_position` shares the value out there.
        """
        bases = letters.one_hot(letters.codes(designs, self.length))
        state = {"base": bases, "mask": bases.any(-1)}
        best, site = self._best(state)
        value = self._scaled(best)
        sites = torch.arange(self.length)
        inside = (sites >= site[:, None]) & (sites < site[:, None] + self.motif.width)
        parts = {"best_log_odds": best, "position": site - self.length}
        return RewardResult(value, state["mask"].all(-1), parts, inside * value[:, None] / self.motif.width)

    def relaxed(self, state: State) -> Tensor:
        """The value (B,) at the best expected score of probabilities `base` (B, length, 4), where its gradient is."""
        return self._scaled(self._best(state)[0])

    def _best(self, state: State) -> tuple[Tensor, Tensor]:
        """Best score (B,) in bits and the leftmost site (B,) of its place; the least score where no place is in use."""
        bases = state["base"][:, self.first : self.last]
        in_use = state["mask"][:, self.first : self.last].unfold(1, self.motif.width, 1).all(-1)  # (B, places)
        either = motifs.scan(bases, self._log_odds).amax(1)  # (B, places)
        best, place = either.masked_fill(~in_use, self.motif.least).max(1)
        return best, place + self.first

    def _scaled(self, score: Tensor) -> Tensor:
        least, most = self.motif.least, self.motif.most
        return ((score - least) / (most - least)).clamp(0, 1)  # only rounding is ever outside


def build(domain: Dna, name: Name = "TATA-Box", start: int | None = None, end: int | None = None) -> Motif:
    """The reward of a core motif, or of an IUPAC pattern, inside positions [start, end); anywhere when not given."""
    try:
        motif = motifs.find(name)
    except DesignError as error:
        raise RewardError(str(error)) from error
    start = -domain.length if start is None else start
    end = 0 if end is None else end
    if not -domain.length <= start <= end - motif.width <= -motif.width:
        raise RewardError(
            f"start={start} end={end} for a motif of {motif.width} bases; positions go from {-domain.length} to 0 and "
            f"must hold the motif; choose a window of {motif.width} or more"
        )
    return Motif(domain.length, motif, start, end)
