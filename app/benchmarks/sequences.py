"""Sequences for real backbones and for the same with noise: how likely native letters are, and drawn ones."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

import numpy as np

from data.noise import DesignNoise
from domains import protein
from domains.protein import Protein, baselines, sequence_design

N, QUICK_N, SEED = 100, 8, 0
NATIVE, NOISED = "native", "native_noised"


def run(quick: bool) -> dict[str, Any]:
    """A row for chains of the val split and one for the same with noise; goals: noise makes letters less likely."""
    chains = list(protein.build(length=128).corpus("val"))
    rng = np.random.default_rng(SEED)
    some = [chains[i] for i in rng.permutation(len(chains))[: QUICK_N if quick else N]]
    rows = [row(NATIVE, some), row(NOISED, noised(some, rng))]
    before, after = (each["metrics"] for each in rows)
    goals = {
        f"{name}: {NOISED} > {NATIVE}": {"value": after[name], "goal": before[name], "met": after[name] > before[name]}
        for name in ("native_nll", "mpnn_nll")
    }
    result = {"name": "sequences", "seeds": [SEED], "n": len(some), "reference": "val", "rows": rows}
    return result | {"goals": goals}


def noised(chains: Sequence[Protein], rng: np.random.Generator) -> list[Protein]:
    """The chains with their own letters and noise on their atoms."""
    shaken = [baselines.with_noise(chain.atoms(), rng) for chain in chains]
    return [Protein(chain.letters, atoms) for chain, atoms in zip(chains, shaken, strict=True)]


def row(name: str, chains: Sequence[Protein]) -> dict[str, Any]:
    """Letters given all that come before them in a random order, and one drawn sequence for each backbone.

    native_nll  negative log likelihood of the chain's own letters, in nats a residue
    mpnn_nll    that of drawn letters, see `sequence_design.self_likelihood`
    recovery    share of residues whose drawn letter is the chain's own
    """
    started = time.monotonic()
    drawn = sequence_design.designed(chains, 1, DesignNoise(SEED, range(len(chains))))
    own, found = "".join(chain.letters for chain in chains), "".join(one.protein.letters for (one,) in drawn)
    metrics = {
        "native_nll": float(sequence_design.likelihood(chains).mean()),
        "mpnn_nll": float(sequence_design.self_likelihood(chains).mean()),
        "recovery": float(np.mean([a == b for a, b in zip(own, found, strict=True)])),
    }
    seconds = round(time.monotonic() - started, 2)
    return {"method": name, "steps": 0, "nfe": 0, "n": len(chains), "seconds": seconds, "metrics": metrics}
