"""The domain of promoters: encoding, corpus, foreign reference files, baselines."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from domains import dna
from domains.base import DesignError, Overview
from domains.dna import letters

BASES = st.text("ACGT", min_size=128, max_size=128)


@pytest.fixture(scope="module")
def domain() -> dna.Dna:
    return dna.build(128)


@pytest.mark.parametrize("length", [128, 256, 512])
def test_legal_lengths_give_a_space_of_that_length(length: int) -> None:
    assert str(dna.build(length).space) == f"{length} x (base: Categorical(4))"


@pytest.mark.parametrize("length", [0, -1, 127, 513])
def test_other_lengths_are_refused_with_value_and_limits(length: int) -> None:
    with pytest.raises(DesignError, match=rf"length={length}; .*128 to 512.*choose"):
        dna.build(length)


def test_no_run_may_be_longer_than_nothing() -> None:
    with pytest.raises(DesignError, match="longest_run=0"):
        dna.build(longest_run=0)


@settings(max_examples=30, deadline=None)
@given(designs=st.lists(BASES, max_size=4))
def test_decoding_undoes_encoding(designs: list[str]) -> None:
    domain = dna.build(128)
    state = domain.encode(designs)
    domain.space.check(state)
    assert domain.decode(state) == designs
    assert state["base"].dtype == torch.float32
    assert bool(state["mask"].all())


def test_decoding_takes_the_likeliest_base_and_marks_unused_sites(domain: dna.Dna) -> None:
    state = domain.encode(["ACGT" * 32])
    state["base"] = state["base"] * 0.4 + 0.15
    state["mask"][0, 3:5] = False
    assert domain.decode(state) == ["ACGNN" + ("ACGT" * 32)[5:]]
    assert [v.rule for v in domain.violations(domain.decode(state)[0])] == ["letters"]


@pytest.mark.parametrize(
    ("design", "words"),
    [("A" * 127, "design 1 has 127 letters"), ("A" * 120 + "N" + "A" * 7, "'N' at position -8"), ("é" * 128, "'é'")],
)
def test_what_cannot_be_encoded_is_named_with_its_place(domain: dna.Dna, design: str, words: str) -> None:
    with pytest.raises(DesignError, match=words):
        domain.encode(["C" * 128, design])


@pytest.mark.parametrize(("split", "count"), [("train", 13170), ("val", 909)])
def test_corpus_is_the_end_of_longer_promoters(split: str, count: int) -> None:
    short, long = dna.build(128).corpus(split), dna.build(512).corpus(split)
    assert len(short) == len(long) == count
    assert all(b.endswith(a) for a, b in zip(short, long, strict=True))


def test_corpus_has_its_tata_boxes_at_minus_thirty() -> None:
    starts = np.bincount([i for s in dna.build(256).corpus("train") for i in range(251) if s.startswith("TATAAA", i)])
    assert -34 <= starts.argmax() - 256 <= -28


def test_no_other_split(domain: dna.Dna) -> None:
    with pytest.raises(DesignError, match="'test'; there are train and val"):
        domain.corpus("test")


def _packed(found: np.ndarray) -> dict[str, np.ndarray]:
    pairs = np.stack([found >> 1, found & 1], axis=-1).reshape(len(found), -1)
    return {"bits": np.packbits(pairs, axis=1), "shape": np.array(found.shape)}


@pytest.mark.parametrize("width", [128, 131, 400])
def test_reference_reads_any_width_that_is_long_enough(domain: dna.Dna, tmp_path: Path, width: int) -> None:
    found = np.random.default_rng(0).integers(4, size=(5, width), dtype=np.uint8)
    np.savez(tmp_path / "other.npz", **_packed(found))
    assert domain.reference(tmp_path / "other.npz") == [s[-128:] for s in letters.text(found)]


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"shape": np.array([5, 100])}, "it must be uint8"),
        ({"shape": np.array([4, 128])}, "it must be uint8"),
        ({"shape": np.array([5])}, "it must be uint8"),
        ({"shape": np.array([0, 128]), "bits": np.zeros((0, 32), np.uint8)}, "n > 0"),
        ({"shape": np.array([5, 64]), "bits": np.zeros((5, 16), np.uint8)}, "of 64 bases; at least 128"),
        ({"bits": np.zeros((5, 32), np.uint16)}, "uint16"),
        ({"bits": np.zeros(5, np.uint8)}, "axes"),
        ({"bits": np.array([["a"]])}, "axes, type"),
        ({"bits": np.array([[None]])}, "plain arrays"),
    ],
)
def test_reference_refuses_other_shapes(
    domain: dna.Dna, tmp_path: Path, change: dict[str, np.ndarray], words: str
) -> None:
    np.savez(tmp_path / "bad.npz", **_packed(np.zeros((5, 128), np.uint8)) | change)
    with pytest.raises(DesignError, match=words) as caught:
        domain.reference(tmp_path / "bad.npz")
    assert "\n" not in str(caught.value)


def test_baselines_follow_their_models() -> None:
    domain = dna.build(128)
    train = domain.corpus("train")
    made = domain.baselines(train, 3000, seed=1)
    found = {name: letters.definite_codes(designs, 128) for name, designs in made.items()}
    known = letters.definite_codes(train, 128)
    assert list(made) == ["uniform", "independent", "markov3"]
    by_site = np.stack([(found["independent"] == b).mean(0) - (known == b).mean(0) for b in range(4)])
    assert np.abs(by_site).max() < 5 * np.sqrt(0.25 / 3000)
    words = [
        np.bincount(letters.windows(x, 4).ravel().astype(int), minlength=256) / x.size
        for x in (found["markov3"], known)
    ]
    assert np.abs(words[0] - words[1]).max() < 0.002
    assert np.abs(np.bincount(found["uniform"].ravel()) / found["uniform"].size - 0.25).max() < 0.005


@pytest.mark.parametrize("name", ["uniform", "independent", "markov3"])
def test_baselines_depend_on_the_seed_alone(domain: dna.Dna, name: str) -> None:
    train = domain.corpus("val")
    one, same, other = (domain.baselines(train, 3, seed)[name] for seed in (5, 5, 6))
    assert one == same != other
    assert len(one) == 3


@settings(max_examples=30, deadline=None)
@given(st.text("ACGTRYSWKMBDHVN"))
def test_reverse_complement_undoes_itself_and_agrees_with_biopython(sequence: str) -> None:
    from Bio.Seq import Seq

    assert letters.reverse_complement(sequence) == str(Seq(sequence).reverse_complement())
    assert letters.reverse_complement(letters.reverse_complement(sequence)) == sequence


@pytest.mark.parametrize("width", [1, 4, 32])
def test_windows_are_words_in_base_four(width: int) -> None:
    found = np.random.default_rng(3).integers(4, size=(2, 40), dtype=np.uint8)
    slow = [[int("".join(map(str, row[i : i + width])), 4) for i in range(41 - width)] for row in found.tolist()]
    assert letters.windows(found, width).tolist() == slow


def test_overview_is_there_for_those_who_ask(domain: dna.Dna) -> None:
    assert isinstance(domain, Overview)
    assert all(picture.startswith(b"<svg") for picture in domain.overview(["ACGTN" * 25 + "ACG"]).values())
