"""Landscapes: their best is the best, what they refuse, and Ehrlich functions against their definition."""

from __future__ import annotations

import importlib.util

import numpy as np
import pytest
import torch

from app.benchmarks.ideas.landscapes import BUILDERS, EIGHT, Landscape, base, ehrlich, landscape
from data import corpora
from data.errors import InputError
from data.noise import StepNoise
from generators.ideas.alphabet import Alphabet

NEEDS_RNA = pytest.mark.skipif(importlib.util.find_spec("RNA") is None, reason="ViennaRNA is not installed")
NAMES = [pytest.param(name, marks=NEEDS_RNA) if name.startswith("rna") else name for name in BUILDERS]


@pytest.fixture(params=NAMES)
def oracle(request: pytest.FixtureRequest) -> Landscape:
    return landscape(request.param)


def test_there_are_eight() -> None:
    assert len(EIGHT) == 8


def test_starts_are_feasible_and_no_better_than_the_best(oracle: Landscape) -> None:
    values = oracle.value(oracle.start(200, StepNoise(0)))
    assert values.isfinite().all()
    assert values.max() < oracle.optimum


def test_no_neighbour_of_the_best_is_better(oracle: Landscape) -> None:
    alphabet, best = Alphabet(oracle.space), oracle.best
    neighbours = []
    for site, factor in np.ndindex(*best.shape):
        for letter in range(alphabet.sizes[factor]):
            other = best.clone()
            other[site, factor] = letter
            neighbours.append(other)
    assert oracle.value(torch.stack(neighbours)[::7]).max() <= oracle.optimum + 1e-6


def test_the_same_designs_have_the_same_values_in_any_batch(oracle: Landscape) -> None:
    designs = oracle.start(6, StepNoise(3))
    one_by_one = torch.cat([oracle.value(design[None]) for design in designs])
    assert torch.allclose(oracle.value(designs), one_by_one)
    assert torch.allclose(oracle.score(Alphabet(oracle.space).state(designs)), one_by_one)


def test_both_strands_are_worth_the_same_where_it_says_so(oracle: Landscape) -> None:
    designs = oracle.start(50, StepNoise(0))
    if len(oracle.space.factors) == 1 and max(Alphabet(oracle.space).sizes) == 4:
        same = torch.allclose(oracle.value(designs), oracle.value(3 - designs.flip(1)), atol=1e-6)
        assert same == oracle.both_strands
    else:
        assert not oracle.both_strands


@pytest.mark.parametrize("change", [lambda x: x + 5000, lambda x: x - 5000, lambda x: x[:, :-1]])
def test_other_letters_and_lengths_are_refused(oracle: Landscape, change) -> None:  # type: ignore[no-untyped-def]
    with pytest.raises(InputError, match=oracle.name):
        oracle.value(change(oracle.start(2, StepNoise(0))))


def test_tables_are_complete() -> None:
    for table in corpora.load("tfbind8.npz").values():
        assert table.shape == (65536,)
        assert np.isfinite(table).all()
        words = np.arange(65536)
        digits = words[:, None] // 4 ** np.arange(8)[::-1] % 4
        other = ((3 - digits[:, ::-1]) * 4 ** np.arange(8)[::-1]).sum(-1)
        assert (table == table[other]).all()
    assert int(np.isfinite(corpora.load("gb1_pairs.npz")["pairs"]).sum()) == 530_737


def test_pairs_have_no_order() -> None:
    oracle = landscape("gb1_pairs")
    designs = oracle.start(50, StepNoise(0))
    assert torch.equal(oracle.value(designs), oracle.value(designs.flip(1)))
    same_place = designs.clone()
    same_place[:, 1, 0] = same_place[:, 0, 0]
    assert (oracle.value(same_place) == base.INFEASIBLE).all()


def test_the_wild_type_of_aav_is_half_way() -> None:
    wild = torch.from_numpy(corpora.load("aav_liver_90.npz")["wild_type"]).long()[None, :, None]
    assert landscape("aav_90").value(wild).item() == pytest.approx(0.5, abs=1e-4)


@pytest.mark.parametrize(("length", "count"), [(32, 2), (64, 4), (8, 2), (20, 5)])
def test_an_ehrlich_function_is_its_definition(length: int, count: int) -> None:
    function = ehrlich.drawn(length, count, 4, StepNoise(length))
    designs = torch.cat([function.walk(30, length, StepNoise(1)), function.solution(length)[None]])
    assert function.feasible(designs).all()
    for design, value in zip(designs[..., 0].tolist(), function(designs).tolist(), strict=True):
        product = 1.0
        for motif, offsets in zip(function.motifs.tolist(), function.offsets.tolist(), strict=True):
            places = range(length - offsets[-1])
            product *= max(sum(design[p + o] == m for m, o in zip(motif, offsets, strict=True)) for p in places) / 4
        assert value == pytest.approx(product)
    assert value == 1.0
    broken = designs[:1].clone()
    first, second = (~function.allowed).nonzero()[0].tolist()
    broken[0, :2, 0] = torch.tensor([first, second])
    assert function(broken).item() == base.INFEASIBLE


def test_motifs_that_do_not_fit_are_refused() -> None:
    with pytest.raises(InputError, match="6 motifs of 4 letters do not fit"):
        ehrlich.drawn(100, 6, 4, StepNoise(0))


@pytest.mark.parametrize(
    ("texts", "words"), [(["ACGN"], "'N' is not one of ACGT"), (["AC", "A"], r"lengths are \[1, 2\]")]
)
def test_texts_in_other_letters_are_refused(texts: list[str], words: str) -> None:
    with pytest.raises(InputError, match=words):
        base.codes(texts, base.BASES)
    assert base.text(base.codes(["ACGT"], base.BASES)[0], base.BASES) == "ACGT"


def test_agrees_with_holo() -> None:
    holo = pytest.importorskip("holo.test_functions.closed_form")
    theirs = holo.Ehrlich(num_states=20, dim=32, num_motifs=2, motif_length=4, quantization=4)
    offsets = torch.stack([torch.cat([torch.zeros(1, dtype=torch.long), gap.cumsum(0)]) for gap in theirs.spacings])
    ours = ehrlich.Ehrlich(theirs.transition_matrix > 0, torch.stack(list(theirs.motifs)), offsets)
    designs = theirs.initial_solution(100)
    assert torch.allclose(ours(designs[..., None]), theirs(designs))
