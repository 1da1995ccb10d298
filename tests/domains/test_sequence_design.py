"""Sequences for backbones: seeds, what is held, likelihoods, and the files they are kept in."""

from __future__ import annotations

import io
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from Bio import SeqIO

from data.noise import DesignNoise
from domains import protein
from domains.base import DesignError, Sequenced
from domains.protein import Protein, geometry, motif, residues, sequence_design, sequence_files
from domains.protein.residues import LETTERS, OTHER

FRAMES = protein.build()
EMPTY = Protein("", np.zeros((0, 4, 3)))
TOLD = {"program": "foreshape/1", "spec": '{"n":3,"a b":"x;y"}'}


@pytest.fixture(scope="module")
def chains() -> list[Protein]:
    """Three short ones, each of another length."""
    found = sorted(protein.build(length=50).corpus("val"), key=len)
    return [found[0], found[len(found) // 2], found[-1]]


@pytest.fixture(scope="module")
def awkward(chains: list[Protein]) -> Protein:
    """With a two-letter chain, negative numbers, a gap, an insertion, and a letter that is not known."""
    numbers = ["-2", "-1", "0", "1", "1A", "1B", "7", *map(str, range(20, len(chains[0]) + 13))]
    return Protein("X" + chains[0].letters[1:], chains[0].atoms(), "Bc", tuple(numbers))


def unknown(chain: Protein) -> Protein:
    return replace(chain, letters="X" * len(chain))


def test_a_design_is_the_same_in_any_company(chains: list[Protein]) -> None:
    together = sequence_design.designed(chains, 2, DesignNoise(3, [4, 5, 6]))
    backwards = sequence_design.designed(chains[::-1], 2, DesignNoise(3, [6, 5, 4]))[::-1]
    for i, chain in enumerate(chains):
        (alone,) = sequence_design.designed([chain], 1, DesignNoise(3, [4 + i]))
        for other in (alone[0], backwards[i][0]):
            assert together[i][0].protein == other.protein
            assert together[i][0].nll == other.nll
            assert (together[i][0].probabilities == other.probabilities).all()
        assert together[i][1].protein == backwards[i][1].protein


def test_seeds_designs_and_sequences_differ(chains: list[Protein]) -> None:
    same = [chains[0]] * 2
    found = sequence_design.designed(same, 2, DesignNoise(3, [0, 1]), temperature=1.0)
    found += sequence_design.designed(same, 2, DesignNoise(4, [0, 1]), temperature=1.0)
    assert len({one.protein.letters for some in found for one in some}) == 8


def test_everything_but_the_letters_stays(awkward: Protein) -> None:
    ((found,),) = sequence_design.designed([awkward], 1, DesignNoise(0, [0]))
    assert replace(found.protein, letters=awkward.letters) == awkward
    assert set(found.protein.letters) <= set(LETTERS)


def test_probabilities_are_of_the_letters(chains: list[Protein]) -> None:
    ((cold,), (hot,)) = (
        sequence_design.designed(chains[:1], 1, DesignNoise(0, [0]), t)[0] for t in (sequence_design.COLDEST, 5.0)
    )
    for found in (cold, hot):
        assert found.probabilities.shape == (len(chains[0]), 20)
        np.testing.assert_allclose(found.probabilities.sum(-1), 1)
        own = found.probabilities[np.arange(len(chains[0])), residues.codes(found.protein.letters)]
        assert -np.log(own).mean() < found.nll < -np.log(own).mean() + 0.02  # X has a share too
    assert (cold.probabilities.argmax(-1) == residues.codes(cold.protein.letters)).all()
    assert hot.nll > cold.nll + 0.5


def test_fixed_residues_keep_their_letters_and_are_known_to_all(awkward: Protein) -> None:
    """With all but one fixed, its probabilities are those of one pass in which it comes last."""
    free = 5
    fixed = [("Bc", number) for i, number in enumerate(awkward.numbers) if i not in (0, free)]
    known = replace(awkward, letters="M" + awkward.letters[1:])
    ((found,),) = sequence_design.designed([known], 1, DesignNoise(0, [0]), fixed=[*fixed, ("Bc", "-2")])
    letters, changed = found.protein.letters, known.letters
    assert letters[:free] + letters[free + 1 :] == changed[:free] + changed[free + 1 :]
    codes = torch.from_numpy(residues.codes(changed).astype(np.int64))
    order = DesignNoise(0, [0]).fork(0).uniform(1, 2, len(codes))[:, 0]
    order[0, free] = 1
    rank = order.argsort().argsort()
    with torch.inference_mode():
        wanted = sequence_design.model()(sequence_design._encoded(known), codes[None], rank)[0, free]
    np.testing.assert_allclose(found.probabilities[free], wanted[:20].softmax(-1).numpy(), atol=1e-4)
    assert found.nll == pytest.approx(-wanted[LETTERS.index(letters[free])].item(), abs=1e-3)


@pytest.mark.parametrize("fixed", [[("A", "1")], [("Bc", "1C")], [("Bc", "2")]])
def test_a_fixed_residue_that_is_not_there_is_named(awkward: Protein, fixed: list[tuple[str, str]]) -> None:
    with pytest.raises(DesignError, match=":".join(fixed[0])):
        sequence_design.designed([awkward], 1, DesignNoise(0, [0]), fixed=fixed)


def test_a_fixed_residue_has_a_letter(awkward: Protein) -> None:
    with pytest.raises(DesignError, match="Bc:-2 is fixed"):
        sequence_design.designed([awkward], 1, DesignNoise(0, [0]), fixed=[("Bc", "-2")])


@pytest.mark.parametrize("temperature", [0.0, -1.0, float("nan"), float("inf")])
def test_temperatures_out_of_bounds_are_refused(chains: list[Protein], temperature: float) -> None:
    with pytest.raises(DesignError, match="temperature="):
        sequence_design.designed(chains[:1], 1, DesignNoise(0, [0]), temperature)


def test_native_letters_are_likelier_than_the_same_in_another_order(chains: list[Protein]) -> None:
    turned = [replace(chain, letters=chain.letters[7:] + chain.letters[:7]) for chain in chains]
    assert (sequence_design.likelihood(chains) + 0.3 < sequence_design.likelihood(turned)).all()


def test_likelihood_is_the_mean_over_known_letters_and_orders(chains: list[Protein]) -> None:
    chain = chains[0]
    partly = replace(chain, letters="X" * 10 + chain.letters[10:])
    codes = torch.from_numpy(residues.codes(partly.letters).astype(np.int64))
    each = []
    with torch.inference_mode():
        encoded = sequence_design._encoded(chain)
        for k in range(2):
            rank = sequence_design._noise(f"order {k}", 5, len(chain))[0].argsort().argsort()
            found = sequence_design.model()(encoded, codes[None], rank[None])[0]
            each.append(-np.mean([found[i, codes[i]].item() for i in range(10, len(chain))]))
    both = sequence_design.likelihood([partly], orders=2, seed=5)
    np.testing.assert_allclose(both, [np.mean(each)], atol=1e-5)
    assert both != sequence_design.likelihood([partly], orders=2, seed=6)
    assert np.isnan(sequence_design.likelihood([unknown(chain), EMPTY])).all()


def test_self_likelihood_is_of_the_backbone_alone(chains: list[Protein]) -> None:
    found = sequence_design.self_likelihood(chains)
    assert (found == sequence_design.self_likelihood(list(map(unknown, chains)))).all()
    assert (found[1:2] == sequence_design.self_likelihood(chains[1:2])).all()
    assert (found != sequence_design.self_likelihood(chains, seed=1)).all()
    assert np.isnan(sequence_design.self_likelihood([EMPTY])).all()
    assert sequence_design.self_likelihood([]).shape == (0,)


def test_self_likelihood_tells_noise(chains: list[Protein]) -> None:
    rng = np.random.default_rng(0)
    noised = [
        Protein(
            "X" * len(chain),
            geometry.with_oxygens(chain.atoms()[:, :3] + 0.5 * rng.standard_normal((len(chain), 3, 3))),
        )
        for chain in chains
    ]
    assert (sequence_design.self_likelihood(noised) > sequence_design.self_likelihood(chains) + 0.1).all()


def test_places_follow_the_numbers(awkward: Protein) -> None:
    found = sequence_design.places(awkward)
    assert np.diff(found)[:8].tolist() == [1, 1, 1, 1, 1, 6, 13, 1]
    assert np.diff(sequence_design.places(Protein("AAA", None, "A", ("9", "3", "3A")))).tolist() == [1, 1]


def test_a_domain_of_backbones_gives_sequences_and_one_of_sequences_does_not(chains: list[Protein]) -> None:
    assert isinstance(FRAMES, Sequenced)
    assert not isinstance(protein.build("sequence"), Sequenced)
    ((design, _),) = FRAMES.sequenced([unknown(chains[0])], 3, DesignNoise(0, [0]))
    (found,) = sequence_design.designed(chains[:1], 3, DesignNoise(0, [0]))
    assert design.letters == min(found, key=lambda one: one.nll).protein.letters


def test_files_hold_every_sequence_and_where_it_belongs(awkward: Protein, tmp_path: Path) -> None:
    (found,) = sequence_design.designed([awkward], 3, DesignNoise(0, [0]), temperature=0.25)
    path = tmp_path / "000007.fasta"
    sequence_files.write(found, path, TOLD)
    records = list(SeqIO.parse(io.StringIO(path.read_text()), "fasta"))
    assert [str(record.seq) for record in records] == [one.protein.letters for one in found]
    assert len({record.id for record in records}) == 3
    for record, one in zip(records, found, strict=True):
        words = dict(word.split("=", 1) for word in record.description.split()[1:])
        assert float(words["nll"]) == pytest.approx(one.nll, abs=1e-4)
        assert float(words["temperature"]) == 0.25
        held = [end for stretch in motif.stretches(words["residues"]) for end in stretch]
        assert set(held) <= {("Bc", number) for number in awkward.numbers}
        assert held[:2] == [("Bc", "-2"), ("Bc", "1")]
    assert TOLD.items() <= FRAMES.provenance(path).items()
    assert [name.name for name in tmp_path.iterdir()] == [path.name]


@pytest.mark.parametrize(
    ("numbers", "words"),
    [
        (("1", "2", "3"), "A:1-A:3"),
        (("-1", "0", "1", "5"), "A:-1-A:1,A:5"),
        (("1", "1A", "1B", "2", "3"), "A:1,A:1A,A:1B,A:2-A:3"),
        (("5", "4"), "A:5,A:4"),
    ],
)
def test_stretches(numbers: tuple[str, ...], words: str) -> None:
    assert sequence_files.stretches(Protein("A" * len(numbers), None, "A", numbers)) == words


def test_a_file_from_elsewhere_has_no_provenance(tmp_path: Path) -> None:
    (tmp_path / "a.fasta").write_text(">some protein\nACDE\n")
    assert FRAMES.provenance(tmp_path / "a.fasta") == {}
    (tmp_path / "b.fasta").write_bytes(b"\xff\xfe")
    with pytest.raises(DesignError, match="text file"):
        FRAMES.provenance(tmp_path / "b.fasta")


def test_the_model_does_not_know_the_letters_it_is_to_find(chains: list[Protein]) -> None:
    known, not_known = (
        sequence_design.designed([chain], 1, DesignNoise(0, [0]))[0][0] for chain in (chains[0], unknown(chains[0]))
    )
    assert known.protein == not_known.protein
    assert residues.codes(known.protein.letters).max() < OTHER
