"""Rules and metrics: the stated derivation of the limits, planted faults, slow versions and closed forms."""

from __future__ import annotations

import itertools
import json
import math
import re
from collections import Counter

import numpy as np
import pytest
from scipy.stats import wasserstein_distance

from domains import protein
from domains.base import DesignError
from domains.protein import Protein, baselines, corpus, geometry, metrics, rules
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


def test_the_validation_split_gives_the_corpus_floor(val: list[Protein]) -> None:
    found = FRAMES.metrics(val[::4], val[::4])
    assert tuple(found) == FRAMES.metric_names
    assert json.loads(json.dumps(found, allow_nan=False)) == found
    assert found["ca_bonds"] == pytest.approx(0.998, abs=2e-3)
    assert found["bond_error"] < 0.01
    assert found["clash_free"] == 1
    assert found["rama_outliers"] < 0.005
    assert (found["rg_error"], found["ss_error"]) == (0, 0)


def test_simple_models_are_further_from_real_chains(val: list[Protein]) -> None:
    made = {name: FRAMES.metrics(x, val[:30]) for name, x in FRAMES.baselines(val, 30, 0).items()}
    assert made["random_coil"]["rama_outliers"] > 0.3 > 0.01 > made["independent"]["rama_outliers"]
    for found in made.values():
        assert found["ca_bonds"] == 1
        assert found["bond_error"] < 0.001
        assert found["clash_free"] < 0.4
        assert found["rg_error"] > 0.15
        assert found["ss_error"] > 0.3


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
    assert found["rg_error"] == pytest.approx(wasserstein_distance(*radii), abs=0.01)


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
