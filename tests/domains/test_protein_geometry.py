"""Geometry, torsions and secondary structure, against Biopython, the corpus's own DSSP and closed forms."""

from __future__ import annotations

import numpy as np
import pytest
from Bio.PDB.vectors import Vector, calc_angle, calc_dihedral
from hypothesis import example, given, settings
from hypothesis import strategies as st

from data import corpora
from domains.protein import baselines, corpus, geometry, ramachandran, residues, rules, secondary
from domains.protein.ramachandran import ANY

SEEDS = st.integers(0, 10_000)


def _points(seed: int) -> np.ndarray:
    return np.random.default_rng(seed).normal(size=(4, 3)) * 3


@settings(max_examples=30, deadline=None)
@given(SEEDS)
def test_torsions_are_biopythons(seed: int) -> None:
    points = _points(seed)
    assert geometry.dihedral(*points) == pytest.approx(calc_dihedral(*map(Vector, points)), abs=1e-6)


@settings(max_examples=30, deadline=None)
@given(SEEDS, st.floats(0.5, 5), st.floats(0.2, 3), st.floats(-3.1, 3.1))
@example(455, 4.567954756186959, 1.5, 0.0)
def test_a_placed_point_has_its_length_angle_and_torsion(
    seed: int, length: float, angle: float, torsion: float
) -> None:
    a, b, c, _ = _points(seed)
    d = geometry.place(np.stack([a, b, c]), length, angle, torsion)
    assert np.linalg.norm(d - c) == pytest.approx(length)
    assert calc_angle(Vector(b), Vector(c), Vector(d)) == pytest.approx(angle, abs=1e-5)
    assert geometry.dihedral(a, b, c, d) == pytest.approx(torsion, abs=1e-5)  # Biopython's divides by 0 where it is 0


@pytest.mark.parametrize("before", [np.zeros((3, 3)), np.outer([0, 1, 2], [1, 0, 0]), np.outer([0, 1, 2], [1, 2, 3])])
def test_points_on_a_line_still_give_a_place(before: np.ndarray) -> None:
    d = geometry.place(before, 1.5, 2.0, 0.3)
    assert np.isfinite(d).all()
    if before.any():
        assert np.linalg.norm(d - before[2]) == pytest.approx(1.5)


@settings(max_examples=20, deadline=None)
@given(SEEDS)
def test_nearest_rotations_are_rotations_and_keep_those_that_are(seed: int) -> None:
    some = geometry.nearest_rotations(np.random.default_rng(seed).normal(size=(5, 3, 3)))
    np.testing.assert_allclose(some @ some.transpose(0, 2, 1), np.broadcast_to(np.eye(3), (5, 3, 3)), atol=1e-9)
    np.testing.assert_allclose(np.linalg.det(some), 1)
    np.testing.assert_allclose(geometry.nearest_rotations(3 * some), some, atol=1e-9)
    np.testing.assert_allclose(np.linalg.det(geometry.nearest_rotations(-some)), 1)


def test_chains_from_torsions_have_them_and_ideal_bonds() -> None:
    torsions = np.random.default_rng(0).uniform(-np.pi, np.pi, (3, 20, 2))
    for wanted, atoms in zip(torsions, baselines.from_torsions(torsions), strict=True):
        found = ramachandran.torsions(atoms)
        np.testing.assert_allclose(found[1:, 0], wanted[1:, 0], atol=1e-9)
        np.testing.assert_allclose(found[:-1, 1], wanted[:-1, 1], atol=1e-9)
        assert np.isnan([found[0, 0], found[-1, 1]]).all()
        ideal = [geometry.N_CA, geometry.CA_C, geometry.C_N]
        angles = np.degrees([geometry.N_CA_C, geometry.CA_C_N, geometry.C_N_CA])
        for measure, value in zip(rules.MEASURES, [*ideal, *angles, 0], strict=True):
            np.testing.assert_allclose(measure.of(atoms), value, atol=1e-5)
        np.testing.assert_allclose(rules.ca_steps(atoms), 3.80, atol=0.01)


def test_oxygens_lie_in_the_peptide_plane_opposite_to_the_next_nitrogen() -> None:
    val = corpus.shipped("val")
    atoms = geometry.with_oxygens(val.apart()[0])
    c, o, after = atoms[:-1, 2], atoms[:-1, 3], atoms[1:, 0]
    np.testing.assert_allclose(np.linalg.norm(o - c, axis=-1), geometry.C_O)
    normal = np.cross(atoms[:-1, 1] - c, after - c)
    np.testing.assert_allclose((normal * (o - c)).sum(-1), 0, atol=1e-6)
    assert np.abs(np.linalg.norm(after - o, axis=-1) - 2.25).max() < 0.15  # in real peptides
    together = geometry.with_oxygens(val.atoms, val.lengths)
    np.testing.assert_allclose(together[: len(atoms)], atoms)
    np.testing.assert_allclose(together[-val.lengths[-1] :], geometry.with_oxygens(val.apart()[-1]))


@pytest.mark.parametrize("n", [0, 1, 2])
def test_oxygens_of_the_shortest_chains(n: int) -> None:
    atoms = geometry.with_oxygens(baselines.from_torsions(np.zeros((1, 2, 2)))[0, :n])
    assert atoms.shape == (n, 4, 3)
    assert np.isfinite(atoms).all()


def test_ideal_values_are_the_means_of_the_corpus() -> None:
    train = corpus.shipped("train")
    inner = np.ones(len(train.atoms), dtype=bool)
    inner[train.lengths.cumsum() - 1] = False
    ideal = [geometry.N_CA, geometry.CA_C, geometry.C_N]
    angles = np.degrees([geometry.N_CA_C, geometry.CA_C_N, geometry.C_N_CA])
    for measure, value in zip(rules.MEASURES, [*ideal, *angles], strict=False):
        found = measure.of(train.atoms)
        found = found if measure.span == 1 else found[inner[:-1]]
        assert found.mean() == pytest.approx(value, abs=0.001 if measure.unit == "A" else 0.1)


# Torsions of real residues


def test_the_densities_add_up_and_the_regions_hold_their_share() -> None:
    np.testing.assert_allclose(ramachandran.density().sum((1, 2)), 1)
    angles, codes = ramachandran.observed()
    for kind in range(len(ramachandran.KINDS)):
        mine = np.ones(len(codes), bool) if kind == ANY else ramachandran.kinds(codes) == kind
        letters = np.full(len(codes), residues.OTHER) if kind == ANY else codes
        outside = ramachandran.outliers(angles[mine], letters[mine]).mean()
        assert outside == pytest.approx(1 - ramachandran.ALLOWED, rel=0.05)
    assert (ramachandran.region(0.5) <= ramachandran.region(0.98)).all()


@pytest.mark.parametrize(
    ("letter", "phi", "psi", "outside"),
    [
        ("A", -63, -42, False), ("A", -120, 130, False), ("X", 57, 40, False), ("A", 150, -60, True),
        ("G", 85, -170, False), ("A", 85, -170, True), ("X", 85, -170, False), ("P", -65, 140, False),
        ("P", -120, 130, True), ("A", 0, 0, True), ("X", 0, 0, True), ("A", 180, -179.9, False),
    ],
)  # fmt: skip
def test_textbook_torsions(letter: str, phi: float, psi: float, outside: bool) -> None:
    found = ramachandran.outliers(np.radians([[phi, psi]]), residues.codes(letter))
    assert found.tolist() == [outside]


def test_unknown_torsions_are_no_outliers() -> None:
    assert not ramachandran.outliers(np.array([[np.nan, 0.0], [0.0, np.nan]]), residues.codes("AA")).any()


# Secondary structure


def test_three_states_agree_with_the_dssp_in_the_corpus() -> None:
    arrays = corpora.load(corpus.FILE)
    chosen = np.repeat(arrays["split"] == "val", arrays["length"])
    some = corpus.shipped("val").proteins(128, True)[:150]
    found = np.array(list("".join(secondary.assign(x.atoms(), x.letters) for x in some)))
    real = np.array(list("CHEHHCCE"))[arrays["ss"][chosen][: len(found)]]  # CHEGITSB
    same = found == real
    assert same.mean() > 0.95
    assert same[real == "H"].mean() > 0.99
    assert same[real == "E"].mean() > 0.8


def test_three_states_agree_with_pydssp() -> None:
    pydssp = pytest.importorskip("pydssp")
    some = corpus.shipped("val").proteins(128, True)[:60]
    theirs = "".join("".join(pydssp.assign(x.atoms(), out_type="c3")).replace("-", "C") for x in some)
    mine = "".join(secondary.assign(x.atoms()) for x in some)
    assert np.mean(np.array(list(mine)) == np.array(list(theirs))) > 0.95


@pytest.mark.parametrize(("phi", "psi", "state"), [(-60, -45, "H"), (-49, -26, "H"), (-120, 130, "C"), (-75, 145, "C")])
def test_ideal_chains(phi: float, psi: float, state: str) -> None:
    torsions = np.broadcast_to(np.radians([phi, psi]), (1, 20, 2))
    found = secondary.assign(geometry.with_oxygens(baselines.from_torsions(torsions)[0]))
    assert found[2:-2] == state * 16
    assert found[0] == found[-1] == "C"


def test_proline_gives_no_hydrogen() -> None:
    helix = geometry.with_oxygens(baselines.from_torsions(np.broadcast_to(np.radians([-60, -45]), (1, 12, 2)))[0])
    assert secondary.hydrogen_bonds(helix)[3, 7]
    assert not secondary.hydrogen_bonds(helix, "A" * 7 + "P" + "A" * 4)[:, 7].any()


@pytest.mark.parametrize("n", range(6))
def test_short_and_degenerate_chains_are_coil(n: int) -> None:
    assert secondary.assign(np.zeros((n, 4, 3))) == "C" * n
