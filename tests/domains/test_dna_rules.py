"""Rules, against Biopython's restriction analysis and slow searches."""

from __future__ import annotations

import itertools
import random

import pytest
from Bio import Restriction
from Bio.Seq import Seq
from hypothesis import example, given
from hypothesis import strategies as st

from domains import dna
from domains.base import DesignError
from domains.dna import letters, rules

ENZYMES = [*rules.FORBIDDEN, "SapI", "BglI", "HaeIII", "BsrI", "PshAI", "Hpy188III"]


def _planted(enzyme: str) -> str:
    """Random bases with sites of the enzyme on both strands, some overlapping."""
    rng = random.Random(enzyme)
    site = getattr(Restriction, enzyme).site
    parts = ["".join(rng.choices("ACGT", k=60))]
    for strand in (site, letters.reverse_complement(site)) * 3:
        parts += ["".join(rng.choice(letters.IUPAC[letter]) for letter in strand), "".join(rng.choices("ACGT", k=33))]
    return "".join(parts)


@pytest.mark.parametrize("enzyme", ENZYMES)
def test_as_many_sites_as_biopython_cuts(enzyme: str) -> None:
    sequence = _planted(enzyme)
    cutter = getattr(Restriction, enzyme)
    found = rules.violations(sequence, rules.sites([enzyme]), len(sequence))
    assert len(found) == len(cutter.search(Seq(sequence), linear=True)) >= 6
    if cutter.is_palindromic():
        assert [v.start + 1 + cutter.fst5 for v in found] == cutter.search(Seq(sequence))


@pytest.mark.parametrize("enzyme", ENZYMES)
def test_every_site_reads_as_the_recognition_sequence(enzyme: str) -> None:
    sequence, site = _planted(enzyme), getattr(Restriction, enzyme).site
    for violation in rules.violations(sequence, rules.sites([enzyme]), len(sequence)):
        word = sequence[violation.start : violation.end]
        either = (word, letters.reverse_complement(word))
        assert any(all(b in letters.IUPAC[s] for b, s in zip(w, site, strict=True)) for w in either)


@pytest.mark.parametrize(
    ("site", "forward", "backward"), [("AA", 5, 0), ("TT", 0, 5), ("WN", 5, 5), ("WW", 5, 0), ("GAATTC", 0, 0)]
)
def test_raw_sequences_may_overlap_and_palindromes_count_once(site: str, forward: int, backward: int) -> None:
    found = rules.violations("AAAAAA", rules.sites([site]), 9)
    assert [sum(f"strand {strand}" in v.message for v in found) for strand in "+-"] == [forward, backward]


@given(st.text("ACGTNR", max_size=60), st.integers(1, 9))
@example("AAAAAAAAA", 8)
@example("AAAAAAAA", 8)
def test_runs_are_those_of_a_slow_count(sequence: str, longest: int) -> None:
    slow, start = [], 0
    for letter, group in itertools.groupby(sequence):
        size = len(list(group))
        if size > longest and letter in "ACGT":
            slow.append((start, start + size))
        start += size
    found = rules.violations(sequence, {}, longest)
    assert [(v.start, v.end) for v in found if v.rule == "homopolymer"] == slow


@given(st.text(max_size=60))
def test_letters_outside_acgt_are_all_covered(sequence: str) -> None:
    covered = {i for v in rules.violations(sequence, {}) if v.rule == "letters" for i in range(v.start, v.end)}
    assert covered == {i for i, letter in enumerate(sequence) if letter not in "ACGT"}


def test_places_count_from_the_transcription_start() -> None:
    design = "ACGT" * 30 + "GAATTC" + "AC"
    (violation,) = dna.build(128).violations(design)
    assert (violation.start, violation.end) == (120, 126)
    assert "EcoRI site GAATTC" in violation.message
    assert "-8..-3" in violation.message


def test_another_length_is_not_legal() -> None:
    assert [v.rule for v in dna.build(128).violations("ACGT")] == ["length"]


@pytest.mark.parametrize("name", ["", "EcoRX", "gaattc", "GAAT-C", "HpyUM037X"])
def test_unknown_sites_are_refused(name: str) -> None:
    with pytest.raises(DesignError, match=f"forbidden site {name!r}.*EcoRI.*ACGTRYSWKMBDHVN"):
        dna.build(forbidden_sites=[name])


def test_no_forbidden_sites_is_allowed() -> None:
    assert dna.build(128, forbidden_sites=()).violations("GAATTC" * 21 + "GA") == []
