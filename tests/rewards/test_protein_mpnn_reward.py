"""The reward of a backbone that ProteinMPNN is sure of."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from app import inventory
from domains import protein
from domains.protein import Protein, geometry, sequence_design
from rewards import protein_mpnn
from rewards.base import Differentiable, RewardError

FRAMES = protein.build()


def test_it_is_the_geometric_mean_of_probabilities() -> None:
    chain = min(FRAMES.corpus("val"), key=len)
    noise = 0.5 * np.random.default_rng(0).standard_normal((len(chain), 3, 3))
    noised = Protein(chain.letters, geometry.with_oxygens(chain.atoms()[:, :3] + noise))
    empty = Protein("", np.zeros((0, 4, 3)))
    found = protein_mpnn.build(FRAMES)([chain, noised, empty])
    nll = sequence_design.self_likelihood([chain, noised])
    np.testing.assert_allclose(found.value[:2], np.exp(-nll), rtol=1e-6)
    np.testing.assert_allclose(found.parts["nll"], [*nll, 0], rtol=1e-6)
    assert found.valid.tolist() == [True, True, False]
    assert 0 == found.value[2] < found.value[1] < found.value[0] < 1
    assert found.value.dtype == torch.float32


def test_it_scores_backbones_and_has_no_gradient() -> None:
    with pytest.raises(RewardError, match="form=frames"):
        protein_mpnn.build(protein.build("sequence"))  # type: ignore[arg-type]
    assert not isinstance(protein_mpnn.build(FRAMES), Differentiable)


def test_it_is_listed_for_backbones_only() -> None:
    for form, there in (("frames", True), ("sequence", False)):
        names = [entry["name"] for entry in inventory._rewards("protein", protein.build(form))]
        assert ("protein_mpnn" in names) is there
    assert "protein_mpnn" not in [entry["name"] for entry in inventory._rewards("dna", FRAMES)]
