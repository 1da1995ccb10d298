"""How close a property that Biopython's ProtParam computes from a sequence is to a wanted one."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

import torch
from Bio.SeqUtils.ProtParam import ProteinAnalysis

from domains.protein import Protein, Sequences, residues
from rewards.base import RewardError, RewardResult, check_form


@dataclass(frozen=True)
class Property:
    """A function of a sequence, with its mean and standard deviation over the corpus's train split."""

    of: Callable[[ProteinAnalysis], float]
    mean: float
    spread: float


Name = Literal["gravy", "instability", "isoelectric_point", "charge", "aromaticity", "molecular_weight"]
PROPERTIES: dict[Name, Property] = {
    "gravy": Property(ProteinAnalysis.gravy, -0.32, 0.36),
    "instability": Property(ProteinAnalysis.instability_index, 38, 15),
    "isoelectric_point": Property(ProteinAnalysis.isoelectric_point, 6.5, 1.9),
    "charge": Property(lambda analysis: float(analysis.charge_at_pH(7.0)), -1.6, 4.6),
    "aromaticity": Property(ProteinAnalysis.aromaticity, 0.083, 0.036),
    "molecular_weight": Property(ProteinAnalysis.molecular_weight, 10400, 2600),
}
"""By name; weights are in dalton, the charge is at pH 7, an instability below 40 counts as stable."""
REACH = 10
"""Standard deviations from the mean of real chains, beyond which no target may be."""


class ProtParam:
    """1 where the property is the wanted one, 1/2 a standard deviation of real chains away, 1/3 two of them away."""

    domains: tuple[str, ...] = ("protein",)

    def __init__(self, name: Name, target: float) -> None:
        self.name = name
        self.target = target

    def __call__(self, designs: Sequence[Protein]) -> RewardResult:
        """Score sequences; letters outside the 20 are left out of the property, and their design is not valid.

        `parts` has the property itself. A design without any of the 20 scores 0, and its property is 0.
        """
        definite = ["".join(x for x in design.letters if x in residues.LETTERS) for design in designs]
        found = torch.tensor([self._measure(letters) for letters in definite], dtype=torch.float64)
        known = torch.tensor([len(letters) for letters in definite])
        lengths = torch.tensor([len(design) for design in designs])
        value = 1 / (1 + (found - self.target).abs() / PROPERTIES[self.name].spread) * (known > 0)
        return RewardResult(value.float(), (known == lengths) & (known > 0), {self.name: found})

    def _measure(self, letters: str) -> float:
        return float(PROPERTIES[self.name].of(ProteinAnalysis(letters))) if letters else 0.0


def build(domain: Sequences, property: Name = "gravy", target: float | None = None) -> ProtParam:
    """The reward of a property close to `target`, or to the mean of real chains."""
    check_form(domain, Sequences, "protparam", "sequence")
    if property not in PROPERTIES:
        raise RewardError(f"property={property!r}; there are {', '.join(PROPERTIES)}; choose one")
    mean, reach = PROPERTIES[property].mean, REACH * PROPERTIES[property].spread
    if target is not None and not abs(target - mean) <= reach:
        raise RewardError(
            f"target={target}; {property} must be from {mean - reach:.3g} to {mean + reach:.3g}; "
            f"real chains have {mean:g}"
        )
    return ProtParam(property, mean if target is None else target)
