"""Motif matrices and scans, against Biopython's."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
import torch
from Bio import motifs as bio
from Bio.motifs import jaspar
from Bio.Seq import Seq
from hypothesis import given
from hypothesis import strategies as st

from domains.base import DesignError
from domains.dna import letters, motifs

NAMES = list(motifs.core_motifs())


def _pssm(name: str) -> bio.matrix.PositionSpecificScoringMatrix:
    with motifs._FILE.open() as file:
        matrix = next(m for m in jaspar.read(file, "jaspar") if m.name == name)
    return matrix.counts.normalize(jaspar.calculate_pseudocounts(matrix)).log_odds()


def _random(length: int, seed: int = 0) -> str:
    return letters.text(np.random.default_rng(seed).integers(4, size=(1, length), dtype=np.uint8))[0]


@pytest.mark.parametrize("name", NAMES)
def test_scores_on_both_strands_are_biopythons(name: str) -> None:
    sequence, pssm, motif = _random(200), _pssm(name), motifs.find(name)
    bases = letters.one_hot(letters.codes([sequence], 200)).double()
    ours = motifs.scan(bases, torch.from_numpy(motif.log_odds))[0].numpy()
    np.testing.assert_allclose(ours[0], pssm.calculate(Seq(sequence)), atol=1e-4)
    np.testing.assert_allclose(ours[1], pssm.reverse_complement().calculate(Seq(sequence)), atol=1e-4)
    assert (motif.least, motif.most) == pytest.approx((pssm.min, pssm.max), abs=1e-4)


@pytest.mark.parametrize("name", NAMES)
def test_thresholds_have_the_stated_false_positive_rate(name: str) -> None:
    motif = motifs.find(name)
    found = np.random.default_rng(1).integers(4, size=(40000, motif.width + 10), dtype=np.uint8)
    rate = motifs.occurrences(letters.one_hot(found), motif)[:, 0].float().mean().item()
    assert rate == pytest.approx(motifs.FALSE_POSITIVES, rel=0.5)


@pytest.mark.parametrize("pattern", ["TATAAA", "CACGTG", "TATAWAWR", "GAGAGAG"])
def test_short_patterns_count_only_their_best_words(pattern: str) -> None:
    motif = motifs.find(pattern)
    words = ["".join(word) for word in itertools.product("ACGT", repeat=motif.width)][:: 1 if motif.width < 8 else 3]
    hit = motifs.occurrences(letters.one_hot(letters.codes(words, motif.width)), motif)[:, 0, 0]
    best = {"".join(word) for word in itertools.product(*(letters.IUPAC[letter] for letter in pattern))}
    assert {word for word, yes in zip(words, hit.tolist(), strict=True) if yes} == best & set(words)


@pytest.mark.parametrize("pattern", ["A", "TATAWAWR", "NNGATNN"])
def test_matching_words_share_the_best_score(pattern: str) -> None:
    motif = motifs.find(pattern)
    first = "".join(letters.IUPAC[letter][0] for letter in pattern)
    last = "".join(letters.IUPAC[letter][-1] for letter in pattern)
    scores = motifs.scan(letters.one_hot(letters.codes([first, last], len(pattern))), torch.tensor(motif.log_odds))
    assert scores[:, 0, 0].tolist() == pytest.approx([motif.most] * 2, abs=1e-5)


@pytest.mark.parametrize("name", ["", "NNN", "tata", "TATA-Boxx", "ACGU"])
def test_unknown_motifs_list_the_known(name: str) -> None:
    with pytest.raises(DesignError, match=r"TATA-Box, Trl, Dref.*pattern of the letters ACGT"):
        motifs.find(name)


@given(st.text("ACGTN", min_size=40, max_size=90))
def test_the_other_strand_has_the_mirrored_hits(sequence: str) -> None:
    def places(text: str) -> set[tuple[str, int, int]]:
        bases = letters.one_hot(letters.codes([text], len(text)))
        return {
            (name, int(strand), int(start))
            for name, motif in motifs.core_motifs().items()
            for _, strand, start in motifs.occurrences(bases, motif).nonzero().tolist()
        }

    mirrored = {
        (name, 1 - strand, len(sequence) - motifs.find(name).width - start)
        for name, strand, start in places(letters.reverse_complement(sequence))
    }
    assert places(sequence) == mirrored


def test_hits_of_one_motif_do_not_overlap_and_are_in_order() -> None:
    found = motifs.hits("GAGAGAGAGAGAGAGAGAGAGAGAGAGAGAGAGAGAGAGAGAGA" + "CGGTCACACTG" + "TATCGATA" * 4)
    assert {"Trl", "M1BP", "Dref"} <= {hit.motif for hit in found}
    assert list(found) == sorted(found, key=lambda hit: (hit.start, hit.motif))
    for a, b in itertools.combinations(found, 2):
        assert a.motif != b.motif or a.end <= b.start or b.end <= a.start
    assert all(math.isfinite(hit.score) and hit.score >= motifs.find(hit.motif).threshold for hit in found)
