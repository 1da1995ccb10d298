"""The bench of ProteinMPNN on native chains and on noised ones."""

import numpy as np

from app.benchmarks import sequences
from domains import protein


def test_noise_makes_letters_less_likely() -> None:
    found = sequences.run(quick=True)
    assert [row["method"] for row in found["rows"]] == [sequences.NATIVE, sequences.NOISED]
    assert all(goal["met"] == (goal["value"] > goal["goal"]) for goal in found["goals"].values())
    native, noised = (row["metrics"] for row in found["rows"])
    assert noised["native_nll"] > native["native_nll"] + 0.4
    assert noised["mpnn_nll"] > native["mpnn_nll"] + 0.2
    assert native["recovery"] > 2 * noised["recovery"] > 2 / 20


def test_noise_has_its_size_and_letters_stay() -> None:
    chains = list(protein.build(length=50).corpus("val"))[:10]
    shaken = sequences.noised(chains, np.random.default_rng(1))
    assert [chain.letters for chain in shaken] == [chain.letters for chain in chains]
    moved = np.concatenate([(a.atoms() - b.atoms())[:, :3].ravel() for a, b in zip(shaken, chains, strict=True)])
    assert abs(moved.std() - 0.5) < 4 * 0.5 / (2 * len(moved)) ** 0.5
