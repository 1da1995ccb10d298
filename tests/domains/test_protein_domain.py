"""The domain of proteins in its two forms: values, corpus, encoding, foreign reference files, baselines."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from data import corpora
from data.space import State
from domains import protein
from domains.base import DesignError, Overview
from domains.protein import Protein, corpus, frames, geometry, metrics, ramachandran, residues, similarity

FRAMES = protein.build()
SEQUENCES = protein.build("sequence")
TORSIONS = protein.build("torsions")
Form = protein.Frames | protein.Sequences | protein.Torsions


@pytest.fixture(scope="module")
def val() -> list[Protein]:
    return FRAMES.corpus("val")


def test_forms_and_their_spaces() -> None:
    kinds = {"frames": protein.Frames, "sequence": protein.Sequences, "torsions": protein.Torsions}
    assert {form: type(protein.build(form)) for form in protein.FORMS} == kinds
    assert next(iter(protein.FORMS)) == "frames"
    assert FRAMES.space.length == SEQUENCES.space.length == 80
    assert FRAMES.space.factors["position"].centred  # type: ignore[union-attr]
    assert {name: factor.width for name, factor in FRAMES.space.factors.items()} == {"position": 3, "rotation": 9}
    assert {name: factor.width for name, factor in SEQUENCES.space.factors.items()} == {"residue": 20}
    assert isinstance(FRAMES, Overview)


@pytest.mark.parametrize("length", [-1, 0, 39, 129])
@pytest.mark.parametrize("form", protein.FORMS)
def test_other_lengths_are_refused_with_value_and_limits(form: str, length: int) -> None:
    with pytest.raises(DesignError, match=rf"length={length}; .*40 to 128.*choose"):
        protein.build(form, length)


def test_other_forms_are_refused() -> None:
    with pytest.raises(DesignError, match=r"form='atoms'.*frames, sequence, torsions"):
        protein.build("atoms")


@pytest.mark.parametrize("form", protein.FORMS)
def test_lengths_from_shortest_to_longest(form: str) -> None:
    domain = protein.build(form, length=60, shortest=58)
    assert {len(chain) for chain in domain.corpus("val")} == {58, 59, 60}
    assert (domain.space.shortest, domain.space.length) == (58, 60)
    for shortest in (39, 61):
        with pytest.raises(DesignError, match=rf"shortest={shortest}; it is from 40 to the length, 60"):
            protein.build(form, length=60, shortest=shortest)


# The value


def test_equal_proteins_are_equal_values() -> None:
    atoms = np.arange(24, dtype=np.float64).reshape(2, 4, 3) - 12
    one, same = Protein("AG", atoms), Protein("AG", atoms.astype(np.float32) + 1e-5)
    assert one == same
    assert len({one, same}) == 1
    assert Protein("A", np.full((1, 4, 3), -0.0001)) == Protein("A", np.zeros((1, 4, 3)))
    others = [Protein("AC", atoms), Protein("AG", atoms + 0.001), Protein("AG"), Protein("AG", atoms, "B")]
    assert all(one != other for other in [*others, Protein("AG", atoms, "A", ("1", "1A")), "AG"])
    assert one.numbers == ("1", "2")


def test_a_protein_cannot_be_changed() -> None:
    with pytest.raises(ValueError, match="read-only"):
        Protein("A", np.zeros((1, 4, 3))).atoms()[0] = 1


@pytest.mark.parametrize(
    ("letters", "backbone", "numbers", "words"),
    [
        ("AG", np.zeros((1, 4, 3)), (), r"shape \(1, 4, 3\) for 2 residues"),
        ("A", np.zeros((1, 3, 3)), (), r"\(n, 4, 3\): N, CA, C, O"),
        ("A", np.full((1, 4, 3), np.inf), (), "residue 1: x of N is not finite"),
        ("AG", None, ("1",), "1 numbers for 2 residues"),
        ("A", None, ("A5",), "residue number 'A5'"),
        ("A", None, ("5AB",), "as 52A"),
    ],
)
def test_what_is_not_a_protein(letters: str, backbone: np.ndarray | None, numbers: tuple[str, ...], words: str) -> None:
    with pytest.raises(DesignError, match=words):
        Protein(letters, backbone, "A", numbers)


def test_a_sequence_has_no_atoms() -> None:
    with pytest.raises(DesignError, match="3 letters has no backbone"):
        FRAMES.encode([Protein("AAA")])


# The corpus


@pytest.mark.parametrize(("split", "count"), [("train", 1398), ("val", 189)])
def test_both_forms_show_the_same_chains(split: str, count: int) -> None:
    structures, sequences = FRAMES.corpus(split), SEQUENCES.corpus(split)
    assert [x.letters for x in structures] == [x.letters for x in sequences]
    assert len(structures) == count
    assert all(x.backbone is None for x in sequences)
    assert min(map(len, sequences)) >= 40
    assert max(map(len, sequences)) == 80


def test_coordinates_are_the_running_sum_of_each_chain() -> None:
    arrays = corpora.load(corpus.FILE)
    chosen = arrays["split"] == "val"
    ends = arrays["length"].astype(int).cumsum()
    for i, end in list(zip(np.flatnonzero(chosen), ends[chosen], strict=True))[::100]:
        rows = slice(end - arrays["length"][i], end)
        expected = arrays["dcoords"][rows].reshape(-1, 3).astype(np.int32).cumsum(0).reshape(-1, 3, 3) * 0.01
        found = corpus.shipped("val").apart()[int(chosen[:i].sum())]
        np.testing.assert_allclose(found, expected, atol=1e-9)


@pytest.mark.parametrize("domain", [FRAMES, SEQUENCES, TORSIONS])
def test_no_other_split(domain: Form) -> None:
    with pytest.raises(DesignError, match="'test'; there are train and val"):
        domain.corpus("test")


def _arrays(lengths: list[int], **change: np.ndarray) -> dict[str, np.ndarray]:
    rng, n = np.random.default_rng(0), sum(lengths)
    arrays = {
        "dcoords": rng.integers(-300, 300, (n, 3, 3)).astype(np.int16),
        "seq": rng.integers(20, size=n).astype(np.uint8),
        "length": np.array(lengths, np.uint16),
    }
    return arrays | change


def test_reference_takes_every_chain_of_the_right_length(tmp_path: Path) -> None:
    arrays = _arrays([40, 81, 39, 80])
    np.savez(tmp_path / "other.npz", **arrays)
    one, other = FRAMES.reference(tmp_path / "other.npz")
    assert (len(one), len(other)) == (40, 80)
    assert other.letters == residues.text(arrays["seq"][160:])
    expected = arrays["dcoords"][160:].reshape(-1, 3).astype(int).cumsum(0)[4] / 100
    np.testing.assert_allclose(other.atoms()[1, 1], expected, atol=1e-3)
    assert [x.letters for x in SEQUENCES.reference(tmp_path / "other.npz")] == [one.letters, other.letters]


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"length": np.array([3, 3])}, "add up to 6"),
        ({"length": np.array([0, 5])}, "without residues"),
        ({"length": np.array([], int)}, "no chain"),
        ({"length": np.array([-1, 6])}, "without residues"),
        ({"seq": np.full(5, 20)}, "seq is from 20 to 20"),
        ({"seq": np.full(5, -1)}, "seq is from -1 to -1"),
        ({"seq": np.zeros((5, 1), int)}, "axes"),
        ({"dcoords": np.zeros((5, 4, 3), np.int16)}, r"\(5, 3, 3\)"),
        ({"dcoords": np.zeros((5, 3, 3))}, "type i"),
    ],
)
@pytest.mark.parametrize("domain", [FRAMES, SEQUENCES, TORSIONS])
def test_reference_refuses_other_arrays(
    domain: Form,
    tmp_path: Path,
    change: dict[str, np.ndarray],
    words: str,
) -> None:
    np.savez(tmp_path / "bad.npz", **_arrays([2, 3], **change))
    with pytest.raises(DesignError, match=words) as caught:
        domain.reference(tmp_path / "bad.npz")
    assert "\n" not in str(caught.value)


def test_reference_of_long_chains_only(tmp_path: Path) -> None:
    np.savez(tmp_path / "long.npz", **_arrays([90]))
    with pytest.raises(DesignError, match="no chain of 40 to 80 residues"):
        FRAMES.reference(tmp_path / "long.npz")


# Frames


def test_a_state_is_centred_and_its_rotations_are_rotations(val: list[Protein]) -> None:
    state = FRAMES.encode(val[:20])
    FRAMES.space.check(state)
    assert state["mask"].sum(1).tolist() == [len(x) for x in val[:20]]
    assert (state["mask"][:, 1:] <= state["mask"][:, :-1]).all()
    used = state["mask"][..., None]
    assert (state["position"] * used).sum(1).abs().max() < 1e-3
    assert state["position"][~state["mask"]].abs().max() == 0
    rotations = state["rotation"].view(20, 80, 3, 3)
    torch.testing.assert_close(rotations @ rotations.mT, torch.eye(3).expand(20, 80, 3, 3), atol=1e-5, rtol=0)
    torch.testing.assert_close(torch.linalg.det(rotations), torch.ones(20, 80), atol=1e-5, rtol=0)


def test_columns_of_a_rotation_are_the_axes_of_the_residue(val: list[Protein]) -> None:
    atoms = val[0].atoms().astype(np.float64)
    rotation = FRAMES.encode(val[:1])["rotation"][0, 5].view(3, 3).double().numpy()
    first, second, third = rotation.T
    bond = atoms[5, 2] - atoms[5, 1]
    np.testing.assert_allclose(first, bond / np.linalg.norm(bond), atol=1e-5)
    assert third @ (atoms[5, 0] - atoms[5, 1]) == pytest.approx(0, abs=1e-3)
    assert second @ (atoms[5, 0] - atoms[5, 1]) > 1


def test_decoding_keeps_real_backbones_but_for_their_strain(val: list[Protein]) -> None:
    for real, made in zip(val[:40], FRAMES.decode(FRAMES.encode(val[:40])), strict=True):
        error = np.abs(made.atoms() - real.atoms() + real.atoms()[:, 1].mean(0))
        assert error[:, 1].max() < 2e-3
        assert error[:, :3].mean() < 0.03
        assert error.max() < 0.6
        assert made.letters == "X" * len(real)


def test_decoding_undoes_encoding_of_what_was_decoded(val: list[Protein]) -> None:
    made = FRAMES.decode(FRAMES.encode(val[:20]))
    again = FRAMES.decode(FRAMES.encode(made))
    assert max(np.abs(a.atoms() - b.atoms()).max() for a, b in zip(made, again, strict=True)) <= 0.0055


def test_encoding_turns_with_the_design(val: list[Protein]) -> None:
    turn = geometry.nearest_rotations(np.random.default_rng(0).normal(size=(3, 3)))
    turned = Protein(val[0].letters, val[0].atoms() @ turn.T + [5, -3, 40])
    here, there = FRAMES.encode(val[:1]), FRAMES.encode([turned])
    n = len(val[0])
    matrix = torch.from_numpy(turn).float()
    torch.testing.assert_close(here["position"][0] @ matrix.T, there["position"][0], atol=2e-3, rtol=0)
    expected = matrix @ here["rotation"][0, :n].view(n, 3, 3)
    torch.testing.assert_close(expected, there["rotation"][0, :n].view(n, 3, 3), atol=3e-3, rtol=0)


def _junk(seed: int, scale: float, space_of: Form) -> State:
    rng = torch.Generator().manual_seed(seed)
    shapes = {name: (3, 80, factor.width) for name, factor in space_of.space.factors.items()}
    state = {name: torch.randn(shape, generator=rng) * scale for name, shape in shapes.items()}
    return state | {"mask": torch.rand(3, 80, generator=rng) < torch.tensor([[1.0], [0.5], [0.0]])}


@settings(max_examples=4, deadline=None)
@given(seed=st.integers(0, 99), scale=st.sampled_from([0.0, 1.0, 1e30]))
@pytest.mark.parametrize("domain", [FRAMES, SEQUENCES, TORSIONS])
def test_any_state_gives_designs(domain: Form, seed: int, scale: float) -> None:
    state = _junk(seed, scale, domain)
    designs = domain.decode(state)
    assert [len(x) for x in designs] == state["mask"].sum(1).tolist()
    for design in designs:
        domain.violations(design)
        assert b"nan" not in domain.draw(design)
        assert design.backbone is None or np.abs(design.backbone).max(initial=0) < 999


def test_ideal_residues_are_ideal_whatever_the_matrix() -> None:
    (design, *_) = FRAMES.decode(_junk(1, 1.0, FRAMES))
    n, ca, c, _ = design.atoms().astype(np.float64).transpose(1, 0, 2)
    assert np.abs(np.linalg.norm(n - ca, axis=-1) - geometry.N_CA).max() < 2e-3
    assert np.abs(np.linalg.norm(c - ca, axis=-1) - geometry.CA_C).max() < 2e-3
    handed = np.linalg.det(FRAMES.encode([design])["rotation"].view(-1, 3, 3).numpy())
    np.testing.assert_allclose(handed, 1, atol=1e-5)


@pytest.mark.parametrize("domain", [FRAMES, SEQUENCES, TORSIONS])
def test_longer_designs_cannot_be_encoded(domain: Form) -> None:
    long = Protein("A" * 81, np.zeros((81, 4, 3)))
    with pytest.raises(DesignError, match="81 residues; this domain has at most 80"):
        domain.encode([long])


# Torsions


def test_ideal_chains_come_back_from_their_torsions() -> None:
    """Up to a rigid motion, and but for what files round."""
    designs = TORSIONS.baselines(TORSIONS.corpus("val")[:50], 6, 1)["random_coil"]
    for design, made in zip(designs, TORSIONS.decode(TORSIONS.encode(designs)), strict=True):
        here, there = (x.atoms()[:, 1].astype(np.float64) for x in (design, made))
        apart = [np.linalg.norm(x[:, None] - x, axis=-1) for x in (here, there)]
        assert np.abs(apart[0] - apart[1]).max() < 0.1
        n, ca, c, _ = made.atoms().astype(np.float64).transpose(1, 0, 2)
        np.testing.assert_allclose(np.linalg.norm(n[1:] - c[:-1], axis=-1), geometry.C_N, atol=2e-3)
        assert np.abs(ca.mean(0)).max() < 1e-3


def test_torsions_of_real_chains_are_kept(val: list[Protein]) -> None:
    state = TORSIONS.encode(val[:20])
    again = TORSIONS.encode(TORSIONS.decode(state))
    apart = (state["torsion"] - again["torsion"] + np.pi).remainder(2 * np.pi) - np.pi
    assert apart.abs().max() < 0.01
    omega = state["torsion"][..., 2][state["mask"]]
    assert (omega.cos() < -0.9).float().mean() > 0.9
    assert not state["torsion"][~state["mask"]].any()


def test_no_torsion_goes_over_a_gap(val: list[Protein]) -> None:
    atoms = val[0].atoms() + np.where(np.arange(len(val[0])) < 7, 0.0, 30.0)[:, None, None]
    with pytest.raises(DesignError, match="gap behind residue 7; use form=frames"):
        TORSIONS.encode([Protein(val[0].letters, atoms)])


def test_a_trace_has_the_places_of_any_length(val: list[Protein]) -> None:
    state = frames.ca_trace([val[0], Protein("", np.zeros((0, 4, 3))), val[1]])
    assert state["mask"].sum(1).tolist() == [len(val[0]), 0, len(val[1])]
    np.testing.assert_array_equal(state["position"][2, : len(val[1])], val[1].atoms()[:, 1])
    assert frames.ca_trace([])["position"].shape == (0, 0, 3)


# Sequences


@settings(max_examples=30, deadline=None)
@given(st.lists(st.text(residues.LETTERS, max_size=80), max_size=4))
def test_decoding_undoes_encoding_of_sequences(letters: list[str]) -> None:
    designs = [Protein(text) for text in letters]
    state = SEQUENCES.encode(designs)
    SEQUENCES.space.check(state)
    assert SEQUENCES.decode(state) == designs
    assert (state["residue"].sum(-1) == state["mask"]).all()


def test_decoding_takes_the_likeliest_letter() -> None:
    state = SEQUENCES.encode([Protein("WYC")])
    state["residue"] = state["residue"] * 0.1 + 0.04
    assert SEQUENCES.decode(state) == [Protein("WYC")]


@pytest.mark.parametrize(("letters", "words"), [("AXA", "design 1 has 'X' at residue 2"), ("Aé", "'é'"), ("a", "'a'")])
def test_letters_that_cannot_be_encoded(letters: str, words: str) -> None:
    with pytest.raises(DesignError, match=words):
        SEQUENCES.encode([Protein("A"), Protein(letters)])


# Baselines


def test_baselines_have_the_lengths_of_real_chains_and_depend_on_the_seed_alone(val: list[Protein]) -> None:
    for domain, names in (
        (FRAMES, ["random_coil", "independent", "native_noised"]),
        (SEQUENCES, ["independent", "markov1"]),
    ):
        some = domain.corpus("val")
        one, same, other = (domain.baselines(some, 4, seed) for seed in (5, 5, 6))
        assert list(one) == names
        for name in names:
            assert one[name] == same[name] != other[name]
            assert {len(x) for x in one[name]} <= {len(x) for x in some}
            assert len(one[name]) == 4


def test_independent_torsions_are_those_of_the_histogram(val: list[Protein]) -> None:
    made = FRAMES.baselines(val, 60, 0)["independent"]
    angles = np.concatenate([ramachandran.torsions(x.atoms())[1:-1] for x in made])
    shares = ramachandran.density()[ramachandran.ANY]
    quadrants = shares.reshape(2, 36, 2, 36).sum((1, 3))
    found = np.histogram2d(*angles.T, bins=2, range=[[-np.pi, np.pi]] * 2)[0] / len(angles)
    np.testing.assert_allclose(found, quadrants, atol=0.03)


def test_letters_follow_their_models() -> None:
    train = SEQUENCES.corpus("train")
    made = SEQUENCES.baselines(train, 800, 1)
    alanine = {name: np.mean([x == "A" for d in designs for x in d.letters]) for name, designs in made.items()}
    real = np.mean([x == "A" for d in train for x in d.letters])
    assert alanine == pytest.approx(dict.fromkeys(alanine, real), abs=0.006)

    def repeats(designs: list[Protein]) -> float:
        return float(np.mean([a == "E" == b for d in designs for a, b in zip(d.letters, d.letters[1:], strict=False)]))

    assert repeats(made["markov1"]) == pytest.approx(repeats(train), rel=0.15)
    assert repeats(made["independent"]) < 0.9 * repeats(train)


def test_diversity_is_that_of_shapes() -> None:
    chains = [design.atoms()[:, 1].astype(float) for design in protein.build().corpus("val")[:5]]
    turned = chains[0] @ np.array([[0.0, -1, 0], [1, 0, 0], [0, 0, 1]]) + 7
    assert metrics.diversity(chains[:1]) == 0
    assert metrics.diversity([chains[0], turned]) == pytest.approx(0, abs=1e-3)
    pairs = np.array([(i, j) for i in range(5) for j in range(5) if i != j])
    assert metrics.diversity(chains) == pytest.approx(1 - similarity.tm_scores(chains, chains, pairs).mean())
