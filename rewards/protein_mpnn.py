"""How sure ProteinMPNN is of the letters that belong on a backbone."""

from __future__ import annotations

from collections.abc import Sequence

import torch

from domains.protein import Protein, sequence_design
from domains.protein.backbones import Backbones
from rewards.base import RewardResult, check_form


class ProteinMPNN:
    """exp(-nll): the geometric mean of the probabilities of the letters that the model draws for a backbone.

    About 0.38 for real chains, 0.23 for the same with noise of 0.5 angstrom. The letters of a design do not count.
    """

    domains: tuple[str, ...] = ("protein",)

    def __call__(self, designs: Sequence[Protein]) -> RewardResult:
        """Score backbones; `parts` has the negative log likelihood in nats per residue, see `self_likelihood`.

        A design without residues is not valid and scores 0.
        """
        nll = torch.from_numpy(sequence_design.self_likelihood(designs)).float()
        return RewardResult((-nll).exp().nan_to_num(0.0), nll.isfinite(), {"nll": nll.nan_to_num(0.0)})


def build(domain: Backbones) -> ProteinMPNN:
    """The reward of a backbone for which ProteinMPNN is sure of the sequence."""
    check_form(domain, Backbones, "protein_mpnn", "frames or torsions")
    return ProteinMPNN()
