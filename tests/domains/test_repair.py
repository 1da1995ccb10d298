"""What repair promises in every domain that has it, and what it promises of backbones."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from domains import layout, protein
from domains.base import Repairing
from domains.protein import baselines, geometry, rules
from domains.protein.relaxation import relaxed
from domains.protein.residues import CA, Protein

FRAMES = protein.build(length=100)
REAL = [chain for chain in FRAMES.corpus("val") if not FRAMES.violations(chain)][:20]
FREE = np.zeros(128, dtype=bool)


def coiled(seed: int, n: int = 60) -> Protein:
    """A chain of random torsions, which runs through itself."""
    chain = baselines.random_coil(np.array([n]), np.random.default_rng(seed))[0]
    return Protein("X" * n, chain)


def strained(design: Protein) -> int:
    """How many rules it breaks by bonds, angles and clashes."""
    return sum(found.rule in ("bond", "angle", "planarity", "clash", "break") for found in FRAMES.violations(design))


@pytest.mark.parametrize(
    ("domain", "design"),
    [
        (FRAMES, REAL[0]),
        (layout.build(), next(x for x in layout.build().corpus("val") if not layout.build().violations(x))),
    ],
    ids=["protein", "layout"],
)
def test_what_breaks_no_rule_stays_as_it_is(domain: Repairing, design: object) -> None:
    assert isinstance(domain, Repairing)
    assert domain.repaired(design, []) == design


@pytest.mark.parametrize("form", ["sequence", "torsions"])
def test_what_has_no_backbone_or_an_ideal_one_is_not_repaired(form: str) -> None:
    assert not isinstance(protein.build(form), Repairing)


@pytest.mark.parametrize("domain", [FRAMES, layout.build()], ids=["protein", "layout"])
def test_no_design_is_made_worse(domain: Any) -> None:
    for designs in domain.baselines(domain.corpus("train")[:200], 6, 0).values():
        for design in designs:
            assert len(domain.violations(domain.repaired(design, []))) <= len(domain.violations(design))


def test_a_knot_is_undone_or_left_alone() -> None:
    atoms = coiled(0).atoms()
    knot = Protein("X" * 60, atoms - 0.97 * (atoms[:, 1:2] - atoms[:, 1].mean(0)))
    after = FRAMES.repaired(knot, [])
    assert after == knot or len(FRAMES.violations(after)) < len(FRAMES.violations(knot))


@pytest.mark.parametrize("seed", range(5))
def test_a_chain_that_runs_through_itself_comes_apart(seed: int) -> None:
    before = coiled(seed)
    after = FRAMES.repaired(before, [])
    assert len(rules.clashes(before.atoms())) > 0
    assert len(rules.clashes(after.atoms())) == 0
    assert np.abs(rules.peptide_bonds(after.atoms()) - geometry.C_N).max() < 0.1
    assert np.linalg.norm(after.atoms()[:, CA] - before.atoms()[:, CA], axis=-1).mean() < 3


def test_a_little_noise_on_real_chains_is_mended() -> None:
    rng = np.random.default_rng(0)
    noised = [replace(x, backbone=x.atoms() + 0.15 * rng.normal(size=(len(x), 4, 3))) for x in REAL]
    mended = [FRAMES.repaired(chain, []) for chain in noised]
    broken, left = (sum(map(strained, some)) for some in (noised, mended))
    assert left < broken / 10
    error = [np.abs(rules.peptide_bonds(chain.atoms()) - geometry.C_N).mean() for chain in mended]
    assert max(error) < 0.03


def test_letters_and_numbers_stay() -> None:
    design = replace(coiled(1), letters="G" * 60, chain="B", numbers=tuple(f"{i}A" for i in range(60)))
    after = FRAMES.repaired(design, [])
    assert (after.letters, after.chain, after.numbers) == (design.letters, design.chain, design.numbers)


def test_held_residues_do_not_move() -> None:
    design, held = coiled(2), [*range(10, 20), 40]
    after = FRAMES.repaired(design, held)
    assert np.array_equal(after.atoms()[held, :3], design.atoms()[held, :3])
    assert not np.array_equal(after.atoms(), design.atoms())


def test_it_moves_with_the_chain() -> None:
    atoms = coiled(3).atoms().astype(np.float64)
    turn = geometry.nearest_rotations(np.random.default_rng(0).normal(size=(1, 3, 3)))[0]
    free = FREE[: len(atoms)]
    assert relaxed(atoms @ turn.T + 5, free) == pytest.approx(relaxed(atoms, free) @ turn.T + 5, abs=1e-6)


def test_residues_are_ideal_and_peptides_stay_cis_or_trans() -> None:
    torsions = np.tile([-1.1, -0.8, np.pi], (1, 30, 1))
    torsions[0, 14, 2] = 0.1
    chain = geometry.with_oxygens(geometry.chains(torsions)[0])
    made = relaxed(chain + 0.1 * np.random.default_rng(0).normal(size=chain.shape), FREE[:30])
    assert made[:, :3] == pytest.approx(geometry.ideal_backbone(made[:, CA], geometry.frames(made))[:, :3], abs=1e-6)
    here, after = made[:-1], made[1:]
    omega = np.abs(geometry.dihedral(here[:, 1], here[:, 2], after[:, 0], after[:, 1]))
    assert (omega < np.pi / 2).nonzero()[0].tolist() == [14]


@pytest.mark.parametrize("n", [1, 2, 3])
def test_the_shortest_chains(n: int) -> None:
    made = relaxed(coiled(0).atoms()[:n], FREE[:n])
    assert made.shape == (n, 4, 3)
    assert np.isfinite(made).all()
