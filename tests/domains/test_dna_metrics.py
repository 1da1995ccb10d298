"""Metrics against slow versions, closed forms and the corpus's own numbers."""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Mapping

import numpy as np
import pytest

from domains import dna
from domains.base import DesignError
from domains.dna import letters, metrics


@pytest.fixture(scope="module")
def domain() -> dna.Dna:
    return dna.build(256)


@pytest.fixture(scope="module")
def val_metrics(domain: dna.Dna) -> dict[str, float]:
    return domain.metrics(domain.corpus("val"), domain.corpus("train"))


@pytest.fixture(scope="module")
def baselines(domain: dna.Dna) -> Mapping[str, list[str]]:
    return domain.baselines(domain.corpus("train"), 909, seed=0)


def _some(n: int, length: int, seed: int) -> list[str]:
    """Sequences with repeats in common, so that words and near copies occur."""
    rng = np.random.default_rng(seed)
    parts = ["".join(rng.choice(list("ACGT"), size=40)) for _ in range(4)]
    return ["".join(rng.choice(parts, size=-(-length // 40)))[:length] for _ in range(n)]


def _entropy(p: dict[str, float]) -> float:
    return -sum(x * math.log(x) for x in p.values() if x)


def _slow_js(a: list[str], b: list[str], k: int) -> float:
    """Entropy of the mixture less the mean entropy."""
    p, q = (Counter(s[i : i + k] for s in x for i in range(len(s) - k + 1)) for x in (a, b))
    p, q = ({w: c / sum(x.values()) for w, c in x.items()} for x in (p, q))
    mixed = {w: (p.get(w, 0) + q.get(w, 0)) / 2 for w in p | q}
    return _entropy(mixed) - (_entropy(p) + _entropy(q)) / 2


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("k", [4, 6])
def test_word_divergence_is_that_of_a_slow_count(seed: int, k: int) -> None:
    a, b = _some(5, 130, seed), _some(9, 130, seed + 10)
    fast = metrics.closeness(letters.codes(a, 130), letters.codes(b, 130))[f"kmer{k}_js"]
    assert fast == pytest.approx(_slow_js(a, b, k), abs=1e-9)


@pytest.mark.parametrize("seed", range(3))
def test_copying_is_that_of_a_slow_search(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(metrics, "_CHUNK", 7)
    train, designs = _some(20, 128, seed), _some(17, 128, seed)
    designs[0], designs[1] = train[3], "A" * 12 + train[3][12:]
    designs[2], designs[3] = "A" * 128, "G" * 96 + train[5][30:62]
    distance = [min(sum(x != y for x, y in zip(d, t, strict=True)) for t in train) for d in designs]
    words = {t[i : i + 32] for t in train for i in range(97)}
    shared = [any(d[i : i + 32] in words for i in range(97)) for d in designs]
    assert metrics.copying(letters.codes(designs, 128), letters.codes(train, 128)) == {
        "exact_copies": np.mean([x == 0 for x in distance]),
        "near_copies": np.mean([x <= 12.8 for x in distance]),
        "nearest_distance": np.median(distance) / 128,
        "shared_32mers": np.mean(shared),
    }
    assert not all(shared)
    assert shared[3]


@pytest.mark.parametrize(
    ("position", "core"), [(-128, 0), (-59, 0), (-38, 1), (-19, 1), (-129, None), (-58, None), (-39, None), (-18, None)]
)
def test_tata_windows_include_their_ends(position: int, core: int | None) -> None:
    def put(at: int, *more: int) -> float:
        design = ["C"] * 256
        for place in (at, *more):
            design[256 + place : 262 + place] = "TATAAA"
        return metrics.tata_enrichment(letters.codes(["".join(design)], 256))

    extra = {1: (-100,), 0: (-30,), None: (-100, -30)}[core]
    assert put(position, *extra) == pytest.approx(70 / 20)


@pytest.mark.parametrize(("design", "value"), [("C" * 256, 0.0), ("C" * 226 + "TATAAA" + "C" * 24, 7.0)])
def test_tata_enrichment_is_finite_without_a_background(design: str, value: float) -> None:
    assert metrics.tata_enrichment(letters.codes([design], 256)) == pytest.approx(value)


@pytest.mark.parametrize(
    ("name", "value"),
    [("kmer6_js", 0.00434), ("kmer4_js", 0.00097), ("gc_error", 0.01713), ("exact_copies", 0), ("near_copies", 0)],
)
def test_the_validation_split_gives_the_corpus_floor(val_metrics: dict[str, float], name: str, value: float) -> None:
    assert val_metrics[name] == pytest.approx(value, abs=5e-6)


def test_the_train_split_has_its_tata_enrichment(domain: dna.Dna) -> None:
    assert metrics.tata_enrichment(letters.codes(domain.corpus("train"), 256)) == pytest.approx(2.855, abs=5e-4)


@pytest.mark.parametrize("name", ["uniform", "independent", "markov3"])
def test_real_promoters_are_closer_than_simple_models(
    domain: dna.Dna, val_metrics: dict[str, float], baselines: Mapping[str, list[str]], name: str
) -> None:
    train = letters.codes(domain.corpus("train"), 256)
    theirs = metrics.closeness(letters.codes(baselines[name], 256), train)
    assert theirs["kmer6_js"] > val_metrics["kmer6_js"]
    assert theirs["motif_profile_js"] > 1.5 * val_metrics["motif_profile_js"]


def test_a_set_is_at_no_distance_from_itself_and_a_copy_of_train(domain: dna.Dna) -> None:
    some = domain.corpus("train")[:20]
    found = domain.metrics(some, some)
    assert tuple(found) == domain.metric_names
    assert [found[n] for n in ("kmer4_js", "kmer6_js", "gc_error", "motif_profile_js")] == [0, 0, 0, 0]
    assert [found[n] for n in ("exact_copies", "near_copies", "nearest_distance", "shared_32mers")] == [1, 1, 0, 1]


def test_shifted_copies_share_words_but_are_not_near(domain: dna.Dna) -> None:
    shifted = ["ACGTA" + s[:-5] for s in domain.corpus("train")[:20]]
    found = domain.metrics(shifted, shifted)
    assert found["near_copies"] < 0.2
    assert found["shared_32mers"] == 1


@pytest.mark.parametrize(("a", "b", "value"), [("C", "C", 0.0), ("C", "GAGAGAGAG", math.log(2) / 6)])
def test_motifs_in_one_set_only_count_in_full(a: str, b: str, value: float) -> None:
    one, other = ((text * 256)[:100].ljust(256, "C") for text in (a, b))
    found = metrics.motif_profile_js(letters.codes([one], 256), letters.codes([other], 256))
    assert found == pytest.approx(value)


def test_motif_profiles_see_place_and_strand() -> None:
    box = "GTATAAAAGGCGGGG"

    def at(start: int, word: str) -> np.ndarray:
        return letters.codes([("C" * start + word).ljust(256, "C")], 256)

    here = at(220, box)
    apart = [at(100, box), at(220, letters.reverse_complement(box))]
    assert metrics.motif_profile_js(here, at(221, box)) == 0
    assert [metrics.motif_profile_js(here, other) for other in apart] == pytest.approx([math.log(2) / 6] * 2)


def test_metrics_are_json_and_finite(domain: dna.Dna) -> None:
    found = domain.metrics(["A" * 256], ["C" * 256])
    assert json.loads(json.dumps(found, allow_nan=False)) == found
    assert found["kmer6_js"] == pytest.approx(math.log(2))


@pytest.mark.parametrize(
    ("designs", "reference"), [([], ["A" * 256]), (["A" * 256], []), (["A"], ["A" * 256]), (["N" * 256], ["A" * 256])]
)
def test_metrics_refuse_nothing_and_other_letters(domain: dna.Dna, designs: list[str], reference: list[str]) -> None:
    with pytest.raises(DesignError):
        domain.metrics(designs, reference)


def test_diversity_is_the_mean_over_all_pairs() -> None:
    designs = np.random.default_rng(0).integers(4, size=(7, 50)).astype(np.uint8)
    pairs = [(designs[i] != designs[j]).mean() for i in range(7) for j in range(i)]
    assert metrics.diversity(designs) == pytest.approx(np.mean(pairs))
    assert metrics.diversity(designs[:1]) == 0
    assert metrics.diversity(designs[[0, 0]]) == 0
