"""Rules and metrics: the stated derivation of the limits, planted faults, slow versions and closed forms."""

from __future__ import annotations

import itertools
import json
import math
import re
from collections import Counter

import numpy as np
import pytest
from Bio.PDB.vectors import Vector, calc_dihedral
from scipy.stats import wasserstein_distance

from domains import protein
from domains.base import DesignError
from domains.protein import Protein, baselines, corpus, geometry, metrics, rules, secondary, sequence_design
from domains.protein.rules import MEASURES, Measure

FRAMES = protein.build()
SEQUENCES = protein.build("sequence")


@pytest.fixture(scope="module")
def val() -> list[Protein]:
    return FRAMES.corpus("val")


def _chain(torsions: list[tuple[float, float]], letters: str = "") -> Protein:
    atoms = baselines.from_torsions(np.radians([torsions]))[0]
    return Protein(letters or "X" * len(torsions), geometry.with_oxygens(atoms))


HELIX = _chain([(-63, -42)] * 14)


def _moved(site: int, by: tuple[float, float, float], atom: int | slice = slice(None)) -> Protein:
    atoms = HELIX.atoms().copy()
    atoms[site, atom] += by
    return Protein(HELIX.letters, atoms, "Q", tuple(f"{i}B" for i in range(14)))


@pytest.fixture
def without_sequences(monkeypatch: pytest.MonkeyPatch) -> None:
    """ProteinMPNN, which takes most of the time, is left out."""
    monkeypatch.setattr(sequence_design, "self_likelihood", lambda designs: np.zeros(len(designs)))


# Limits


@pytest.mark.parametrize("measure", MEASURES, ids=lambda measure: measure.what)
def test_limits_are_rare_quantiles_of_the_train_split_rounded_outwards(measure: Measure) -> None:
    train = corpus.shipped("train")
    values = measure.of(train.atoms)
    if measure.span == 2:
        values = np.delete(values, train.lengths.cumsum()[:-1] - 1)
    least, most = np.quantile(values, [1e-4, 1 - 1e-4])
    step = 0.01 if measure.unit == "A" else 1
    assert measure.most - step <= most <= measure.most
    assert measure.least <= least <= measure.least + step or measure.rule == "planarity"


def test_real_chains_have_no_break_and_hardly_a_clash(val: list[Protein]) -> None:
    train = corpus.shipped("train")
    steps = np.delete(rules.ca_steps(train.atoms), train.lengths.cumsum()[:-1] - 1)
    assert 4.2 < steps.max() < rules.BREAK
    assert np.mean([len(rules.clashes(chain)) > 0 for chain in train.apart()[::12]]) <= 0.004


def test_most_real_chains_break_no_rule(val: list[Protein]) -> None:
    broken = [FRAMES.violations(design) for design in val[::4]]
    assert np.mean([len(found) > 0 for found in broken]) < 0.25
    assert Counter(v.rule for found in broken for v in found)["handedness"] <= 1


# Violations


def test_an_ideal_helix_breaks_no_rule() -> None:
    assert FRAMES.violations(HELIX) == []


@pytest.mark.parametrize(
    ("design", "rule", "start", "end", "words"),
    [
        (_moved(5, (0, 0, 0.4), 2), "bond", 5, 7, "C-N bond at Q:5B to 6B"),
        (_moved(13, (9, 9, 9)), "break", 12, 14, "chain break at Q:12B to 13B: CA atoms .* at most 4.3"),
        (_chain([(-63, -42), (0, 0), (-63, -42)]), "ramachandran", 1, 2, "A:2: phi 0, psi 0 deg"),
        (_chain([(-63, -42), (0, 0), (0, 0), (-63, -42)]), "ramachandran", 1, 3, "A:2 to 3: phi 0, psi 0 deg at first"),
        (_chain([(57, 47)] * 7), "handedness", 1, 6, "left-handed helix at A:2 to 6"),
        (Protein("X" * 81, np.zeros((81, 4, 3))), "length", 0, 81, "81 residues: this domain has 1 to 80"),
        (Protein("", np.zeros((0, 4, 3))), "length", 0, 0, "0 residues"),
    ],
)
def test_planted_faults_are_found_at_their_place(design: Protein, rule: str, start: int, end: int, words: str) -> None:
    found = [v for v in FRAMES.violations(design) if v.rule == rule]
    assert any((v.start, v.end) == (start, end) for v in found)
    assert all("\n" not in v.message for v in found)
    with_words = [v for v in found if v.start == start]
    assert any(re.search(words, v.message) for v in with_words)


def test_a_break_is_one_violation() -> None:
    assert [v.rule for v in FRAMES.violations(_moved(13, (9, 9, 9)))] == ["break"]


def test_a_clash_names_both_residues() -> None:
    atoms = HELIX.atoms().copy()
    atoms[13] += atoms[2, 1] - atoms[13, 1] + [0, 0, 2]
    (clash, *_) = [v for v in FRAMES.violations(Protein(HELIX.letters, atoms)) if v.rule == "clash"]
    assert (clash.start, clash.end) == (2, 14)
    assert "clash of A:3 with 14: CA atoms 2.00 Å apart, at least 3.40 Å" in clash.message


def test_the_mirror_image_of_a_helix_is_left_handed() -> None:
    mirrored = Protein(HELIX.letters, HELIX.atoms() * [1, 1, -1])
    assert "handedness" in {v.rule for v in FRAMES.violations(mirrored)}


def test_a_twisted_peptide_is_found() -> None:
    atoms = HELIX.atoms()[:, :3].astype(float)
    axis = geometry.unit(atoms[7, 0] - atoms[6, 2])
    turn = np.cos(1.2) * np.eye(3) + (1 - np.cos(1.2)) * np.outer(axis, axis)
    turn += np.sin(1.2) * np.array([[0, -axis[2], axis[1]], [axis[2], 0, -axis[0]], [-axis[1], axis[0], 0]])
    atoms[7:] = (atoms[7:] - atoms[7, 0]) @ turn.T + atoms[7, 0]
    found = FRAMES.violations(Protein(HELIX.letters, geometry.with_oxygens(atoms)))
    (twist,) = [v for v in found if v.rule == "planarity"]
    assert (twist.start, twist.end) == (6, 8)
    assert re.search(r"68\.\d\d deg", twist.message)  # 1.2 radians


def test_letters_outside_the_twenty_are_found_in_sequences() -> None:
    found = SEQUENCES.violations(Protein("AXXC" + "A" * 77 + "B", None, "A"))
    assert [(v.rule, v.start, v.end) for v in found] == [("length", 0, 82), ("letters", 1, 3), ("letters", 81, 82)]
    assert "XX at A:2 to 3" in found[1].message
    assert SEQUENCES.violations(Protein("ACDEF")) == []
    assert [v.rule for v in SEQUENCES.violations(Protein(""))] == ["length"]


@pytest.mark.parametrize(
    ("marked", "found"), [([], []), ([0, 1, 1, 0, 1], [(1, 3), (4, 5)]), ([1], [(0, 1)]), ([0, 0], [])]
)
def test_runs(marked: list[int], found: list[tuple[int, int]]) -> None:
    assert rules.runs(marked) == found


# Metrics


@pytest.mark.usefixtures("without_sequences")
def test_the_validation_split_gives_the_corpus_floor(val: list[Protein]) -> None:
    some = val[::12]
    found = FRAMES.metrics(some, some)
    assert tuple(found) == FRAMES.metric_names
    assert json.loads(json.dumps(found, allow_nan=False)) == found
    assert found["ca_bonds"] == pytest.approx(0.998, abs=3e-3)
    assert found["bond_error"] < 0.01
    assert (found["clash_free"], found["peptide_bonds"]) == (1, 1)
    assert found["rama_outliers"] < 0.01
    zero = ("rg_error", "ss_error", "angle_error", "omega_error", "breaks", "clashes", "left_handed")
    assert [found[name] for name in zero] == [0] * len(zero)
    assert found["frechet"] == pytest.approx(0, abs=1e-9)
    assert found["tm_novelty"] == pytest.approx(0, abs=1e-3)
    assert 0.5 < found["diversity"] < 0.9


@pytest.mark.usefixtures("without_sequences")
def test_simple_models_are_further_from_real_chains(val: list[Protein]) -> None:
    simple = FRAMES.baselines(val, 10, 0)
    made = {name: FRAMES.metrics(simple[name], val[:15]) for name in ("random_coil", "independent")}
    assert made["random_coil"]["rama_outliers"] > 0.3 > 0.01 > made["independent"]["rama_outliers"]
    for found in made.values():
        assert found["ca_bonds"] == 1
        assert found["bond_error"] < 0.001
        assert found["clash_free"] < 0.5
        assert found["rg_error"] > 0.15
        assert found["ss_error"] > 0.3
        assert found["frechet"] > 0.5
        assert found["tm_novelty"] > 0.5


def test_noise_spoils_native_chains_and_what_fits_them(val: list[Protein]) -> None:
    native = val[:4]
    noised = [Protein(x.letters, chain) for x, chain in zip(native, _noised(native), strict=True)]
    before, after = FRAMES.metrics(native, val[:9]), FRAMES.metrics(noised, val[:9])
    for name in ("mpnn_nll", "angle_error", "omega_error", "bond_error", "breaks", "rama_outliers", "ss_error"):
        assert after[name] > before[name], name
    assert after["mpnn_nll"] > before["mpnn_nll"] + 0.15
    assert after["peptide_bonds"] < 0.3


def _noised(designs: list[Protein]) -> list[np.ndarray]:
    rng = np.random.default_rng(0)
    moved = [x.atoms()[:, :3] + rng.normal(size=(len(x), 3, 3)) * baselines.NOISE for x in designs]
    return [geometry.with_oxygens(chain.astype(np.float64)) for chain in moved]


def test_native_chains_are_noised_once_each_by_the_stated_noise(val: list[Protein]) -> None:
    known = [design.atoms() for design in val[:12]]
    made = baselines.native_noised(known, 30, np.random.default_rng(0))
    lengths = [len(chain) for chain in made]
    assert sorted(lengths[:12]) == sorted(map(len, known))
    assert lengths[12:24] == lengths[:12]
    order = np.random.default_rng(0).permutation(12)
    shift = np.concatenate([(made[k] - known[order[k]])[:, :3].ravel() for k in range(12)])
    assert shift.std() == pytest.approx(0.5, rel=0.03)
    assert shift.mean() == pytest.approx(0, abs=0.02)
    for chain in made[:3]:
        np.testing.assert_allclose(np.linalg.norm(chain[:, 3] - chain[:, 2], axis=-1), geometry.C_O)


# Handedness


def test_real_helices_are_right_handed_and_mirrored_ones_left_handed(val: list[Protein]) -> None:
    hands = np.concatenate([secondary.hands(design.atoms()) for design in val])
    assert len(hands) > 300
    assert (hands < 0).mean() < 0.005
    mirrored = np.concatenate([secondary.hands(design.atoms() * [1, 1, -1]) for design in val])
    assert (mirrored > 0).mean() < 0.005
    helical = [design for design in val[:40] if secondary.assign(design.atoms()).count("H") > 12]
    assert all(len(secondary.hands(design.atoms())) for design in helical)


@pytest.mark.usefixtures("without_sequences")
def test_the_hands_of_ideal_chains() -> None:
    right, left, strand = ([angles] * 16 for angles in ((-60, -45), (60, 45), (-120, 130)))
    assert [secondary.hands(_chain(x).atoms()).tolist() for x in (right, left, strand)] == [[1], [-1], []]
    both = _chain([*right, *strand[:4], *left])
    assert secondary.hands(both.atoms()).tolist() == [1, -1]
    assert secondary.hands(np.zeros((2, 4, 3))).tolist() == []
    assert FRAMES.metrics([both], [both])["left_handed"] == 0.5
    assert FRAMES.metrics([_chain(strand)], [both])["left_handed"] == 0


# Lengths


def test_weights_give_the_reference_the_lengths_of_the_designs() -> None:
    known, wanted = [40] * 6 + [55] * 3 + [70], [41, 52, 53, 59]
    weights = metrics.length_weights(wanted, known)
    assert weights.mean() == pytest.approx(1)
    assert weights[:6].sum() / weights[6:9].sum() == pytest.approx(1 / 3)
    assert weights[9] == 0
    np.testing.assert_array_equal(metrics.length_weights([10], known), np.ones(10))
    np.testing.assert_array_equal(metrics.length_weights(known, known), np.ones(10))


@pytest.mark.usefixtures("without_sequences")
def test_chains_of_other_lengths_do_not_count_in_the_reference(val: list[Protein]) -> None:
    seventies = [x for x in val if 70 <= len(x) < 80][:20]
    others = [x for x in val if len(x) < 60][:20]
    found, alone = (FRAMES.metrics(seventies[:4], some) for some in ([*others, *seventies], seventies))
    for name in ("ss_error", "frechet"):
        assert found[name] == pytest.approx(alone[name])
    assert found["rg_error"] == pytest.approx(alone["rg_error"], abs=0.02)


@pytest.mark.usefixtures("without_sequences")
def test_metrics_of_backbones_are_those_of_slow_counts(val: list[Protein]) -> None:
    rng = np.random.default_rng(0)
    noisy = [Protein(x.letters, x.atoms() + rng.normal(size=x.atoms().shape) * 0.3) for x in val[:6]]
    found = FRAMES.metrics(noisy, val[:9])
    pairs = [(a, b) for x in noisy for a, b in itertools.pairwise(x.atoms().astype(float))]
    assert found["ca_bonds"] == np.mean([3.6 <= math.dist(a[1], b[1]) <= 4.0 for a, b in pairs])
    assert found["bond_error"] == pytest.approx(np.mean([abs(math.dist(a[2], b[0]) - 1.33) for a, b in pairs]))
    free = [
        all(math.dist(x.atoms()[i, 1], x.atoms()[j, 1]) >= 3.4 for i in range(len(x)) for j in range(i + 2, len(x)))
        for x in noisy
    ]
    assert found["clash_free"] == np.mean(free)
    radii = [
        [np.sqrt(x.atoms()[:, 1].var(0).sum()) / (2.2 * len(x) ** 0.38) for x in some] for some in (noisy, val[:9])
    ]
    weights = metrics.length_weights([len(x) for x in noisy], [len(x) for x in val[:9]])
    assert found["rg_error"] == pytest.approx(wasserstein_distance(*radii, v_weights=weights), abs=0.02)
    assert found["breaks"] == np.mean([math.dist(a[1], b[1]) > 4.3 for a, b in pairs])
    assert found["peptide_bonds"] == np.mean([abs(math.dist(a[2], b[0]) - 1.33) <= 0.1 for a, b in pairs])
    close = [
        sum(math.dist(x.atoms()[i, 1], x.atoms()[j, 1]) < 3.4 for i in range(len(x)) for j in range(i + 2, len(x)))
        for x in noisy
    ]
    assert found["clashes"] == pytest.approx(sum(close) / sum(map(len, noisy)))
    joined = "".join(secondary.assign(x.atoms(), x.letters) for x in noisy)
    assert [found["helix"], found["strand"]] == pytest.approx([joined.count(s) / len(joined) for s in "HE"])
    twists = [
        np.concatenate([[_twist(a, b) for a, b in itertools.pairwise(x.atoms().astype(float))] for x in some])
        for some in (noisy, val[:9])
    ]
    assert found["omega_error"] == pytest.approx(wasserstein_distance(*twists))


def _twist(a: np.ndarray, b: np.ndarray) -> float:
    omega = abs(math.degrees(calc_dihedral(*map(Vector, (a[1], a[2], b[0], b[1])))))
    return min(omega, 180 - omega)


@pytest.mark.usefixtures("without_sequences")
def test_a_helix_against_a_coil_is_all_wrong() -> None:
    coil = _chain([(-120, 130)] * 14)
    assert FRAMES.metrics([coil], [coil])["ss_error"] == 0
    assert FRAMES.metrics([HELIX], [coil])["ss_error"] == pytest.approx(12 / 14)


def test_divergences_of_letters_have_closed_forms() -> None:
    found = SEQUENCES.metrics([Protein("AAAA")], [Protein("CCCC")])
    assert tuple(found) == SEQUENCES.metric_names
    assert found == pytest.approx({"aa_js": math.log(2), "dipeptide_js": math.log(2), "exact_copies": 0})
    half = SEQUENCES.metrics([Protein("ACAX")], [Protein("AC")])
    p, q = 2 / 3, 1 / 3
    middle = [(p + 0.5) / 2, (q + 0.5) / 2]
    expected = (
        p * math.log(p / middle[0]) + q * math.log(q / middle[1]) - sum(0.5 * math.log(2 * m) for m in middle)
    ) / 2
    assert half["aa_js"] == pytest.approx(expected)


def test_order_matters_to_pairs_alone() -> None:
    found = SEQUENCES.metrics([Protein("ACACAC")], [Protein("AAACCC")])
    assert found["aa_js"] == 0
    assert found["dipeptide_js"] > 0.3


def test_copies_of_the_train_split_are_counted() -> None:
    train = SEQUENCES.corpus("train")
    assert SEQUENCES.metrics([train[5], Protein(train[5].letters[1:])], train[:9])["exact_copies"] == 0.5
    val = SEQUENCES.metrics(SEQUENCES.corpus("val"), train)
    assert val["exact_copies"] == 0
    made = {name: SEQUENCES.metrics(x, train) for name, x in SEQUENCES.baselines(train, 189, 0).items()}
    assert made["independent"]["dipeptide_js"] > val["dipeptide_js"] > made["markov1"]["dipeptide_js"]


@pytest.mark.parametrize(
    ("designs", "reference"), [([], [HELIX]), ([HELIX], []), ([Protein("", np.zeros((0, 4, 3)))], [HELIX])]
)
@pytest.mark.parametrize("domain", [FRAMES, SEQUENCES])
def test_metrics_refuse_nothing(
    domain: protein.Frames | protein.Sequences, designs: list[Protein], reference: list[Protein]
) -> None:
    with pytest.raises(DesignError, match="metrics want one or more"):
        domain.metrics(designs, reference)


def test_the_radius_of_a_rod() -> None:
    rod = np.zeros((11, 4, 3))
    rod[:, :, 0] = np.arange(11)[:, None]
    assert metrics.radius_of_gyration(rod) == pytest.approx(math.sqrt(10))
    assert metrics.typical_radius(100) == pytest.approx(12.66, abs=0.01)
