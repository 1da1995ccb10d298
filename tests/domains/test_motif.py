"""What people name in files: stretches of residues, as locks of a backbone; bases as locks of a promoter."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch

from domains import dna, protein
from domains.base import DesignError, placed
from domains.dna import lock
from domains.protein import Protein, geometry, motif
from domains.protein.residues import CA

FRAMES = protein.build()


@pytest.fixture(scope="module")
def chain() -> Protein:
    return FRAMES.corpus("val")[0]


def written(design: Protein, folder: Path, suffix: str = ".pdb") -> str:
    path = folder / f"motif{suffix}"
    FRAMES.write(design, path, {})
    return str(path)


# Placing


def test_segments_are_spread_evenly() -> None:
    assert placed([10], [], 50) == [range(20, 30)]
    assert placed([10, 10], [], 50) == [range(10, 20), range(30, 40)]
    assert placed([2, 3], [], 5) == [range(2), range(2, 5)]


@pytest.mark.parametrize("counts", [[1], [3, 4], [1, 1, 1], [7, 7, 7, 7]])
def test_spread_segments_leave_equal_gaps(counts: list[int]) -> None:
    found = placed(counts, [], 80)
    ends = [0, *(end for piece in found for end in (piece.start, piece.stop)), 80]
    gaps = np.diff(ends)[::2]
    assert gaps.max() - gaps.min() <= 1
    assert [len(piece) for piece in found] == counts


@pytest.mark.parametrize(
    ("counts", "at", "message"),
    [
        ([50, 31], [], "81 sites in all; a design has at most 80"),
        ([5], [1, 20], "for 1 segments"),
        ([5, 5], [1, 5], "at=5 for a segment of 5; it must be from 6 to 76"),
        ([5, 5], [20, 1], "at=1"),
        ([5], [0], "at=0"),
        ([5], [77], "at=77 for a segment of 5; it must be from 1 to 76"),
    ],
)
def test_segments_that_do_not_fit_are_refused(counts: list[int], at: list[int], message: str) -> None:
    with pytest.raises(DesignError, match=message):
        placed(counts, at, 80)


# Motifs


@pytest.mark.parametrize("suffix", [".pdb", ".cif"])
def test_a_motif_is_the_chain_at_its_sites(chain: Protein, tmp_path: Path, suffix: str) -> None:
    found = motif.motif(written(chain, tmp_path, suffix), "A10-A24,A40-48", [20, 60], 80)
    state = found.state(80)
    FRAMES.space.check(state)
    assert state["mask"][0].nonzero()[:, 0].tolist() == [*range(19, 34), *range(59, 68)]
    there = chain.atoms()[[*range(9, 24), *range(39, 48)]].astype(np.float64)
    held = state["position"][0, state["mask"][0]].numpy()
    assert np.allclose(held - held[0], there[:, CA] - there[0, CA], atol=1e-4)
    rotations = state["rotation"][0, state["mask"][0]].numpy().reshape(-1, 3, 3)
    assert np.allclose(rotations, geometry.frames(there), atol=1e-5)


@pytest.mark.parametrize("text", ["A10-A24,A40-A48", "A10-24/A40-48", " A:10-A:24  A:40-48 ", "A10-A24, A40-A48,"])
def test_stretches_are_written_in_many_ways(text: str) -> None:
    assert motif.stretches(text) == [(("A", "10"), ("A", "24")), (("A", "40"), ("A", "48"))]


@pytest.mark.parametrize(
    ("text", "first", "last"),
    [
        ("A5", ("A", "5"), ("A", "5")),
        ("A-5", ("A", "-5"), ("A", "-5")),
        ("A-5-A3", ("A", "-5"), ("A", "3")),
        ("A-5--A-3", None, None),
        ("A52A-A52C", ("A", "52A"), ("A", "52C")),
        ("1:5-1:9", ("1", "5"), ("1", "9")),
        ("AA5-AA9", ("AA", "5"), ("AA", "9")),
        ("", None, None),
        ("A", None, None),
        ("A5-", None, None),
        ("A5;A6", None, None),
        ("5-9", None, None),
    ],
)
def test_residues_are_named_as_their_authors_did(text: str, first: motif.Key | None, last: motif.Key | None) -> None:
    if first is None:
        with pytest.raises(DesignError, match="names no residues; give them as"):
            motif.stretches(text)
    else:
        assert motif.stretches(text) == [(first, last)]


def test_too_many_stretches_are_refused() -> None:
    with pytest.raises(DesignError, match="at most 100"):
        motif.stretches("A1," * 101)


def test_numbers_and_insertion_codes_are_the_files(chain: Protein, tmp_path: Path) -> None:
    numbers = ("-2", "-1", "52", "52A", "52B", *map(str, range(60, 55 + len(chain))))
    path = written(Protein(chain.letters, chain.atoms(), "B", numbers), tmp_path)
    found = motif.motif(path, "B-1-B52A,B60", [], 80)
    assert np.allclose(found.backbone[:, CA], chain.atoms()[[1, 2, 3, 5], CA], atol=1e-6)


def test_a_file_may_have_several_chains(chain: Protein, tmp_path: Path) -> None:
    other = Protein(chain.letters[:30], chain.atoms()[30:60] + 1, "B")
    lines = [Path(written(x, tmp_path)).read_text().splitlines() for x in (chain, other)]
    path = tmp_path / "two.pdb"
    path.write_text("\n".join([*(x for x in lines[0] if x.strip() != "END"), *lines[1]]) + "\n")
    found = motif.motif(str(path), "B2-B4,A7", [], 80)
    assert np.allclose(found.backbone[:3, CA], other.atoms()[1:4, CA], atol=1e-6)
    assert np.allclose(found.backbone[3, CA], chain.atoms()[6, CA], atol=1e-6)
    with pytest.raises(DesignError, match="from chain to chain"):
        motif.motif(str(path), "A7-B4", [], 80)


def test_a_gap_in_a_stretch_is_refused(chain: Protein, tmp_path: Path) -> None:
    keep = [i for i in range(len(chain)) if i != 14]
    numbers = tuple(str(i + 1) for i in keep)
    letters = "".join(chain.letters[i] for i in keep)
    path = written(Protein(letters, chain.atoms()[keep], "A", numbers), tmp_path)
    with pytest.raises(DesignError, match=r"A:14 and A:16 are not bonded \(\d\.\d angstrom\)"):
        motif.motif(path, "A10-A20", [], 80)
    assert len(motif.motif(path, "A10-A14,A16-A20", [], 80).sites) == 10


def test_a_missing_atom_is_refused(chain: Protein, tmp_path: Path) -> None:
    path = Path(written(chain, tmp_path))
    lines = [x for x in path.read_text().splitlines() if not (x[12:16] == " N  " and x[22:26] == "  12")]
    path.write_text("\n".join(lines))
    with pytest.raises(DesignError, match="A:12 lacks N"):
        motif.motif(str(path), "A10-A20", [], 80)


@pytest.mark.parametrize("text", ["", "END\n", "ATOM      1  N   GLY A   1\n", "data_x\n#\n"])
@pytest.mark.parametrize("suffix", [".pdb", ".cif"])
def test_files_that_hold_nothing_are_refused(tmp_path: Path, text: str, suffix: str) -> None:
    path = tmp_path / f"x{suffix}"
    path.write_text(text)
    with pytest.raises(DesignError, match=r"has no atoms|cannot be read"):
        motif.motif(str(path), "A1", [], 80)


# DNA


def test_bases_are_locked_at_their_positions() -> None:
    state = lock.state("TATAAA", [226], 256)
    dna.build(256).space.check(state)
    sites = state["mask"][0].nonzero()[:, 0]
    assert sites.tolist() == list(range(225, 231))
    assert "".join("ACGT"[i] for i in state["base"][0, sites].argmax(-1)) == "TATAAA"
    assert torch.allclose(state["base"].sum(-1), torch.ones(1, 256))


def test_positions_may_count_from_the_transcription_start() -> None:
    assert torch.equal(lock.state("TATAAA", [-31], 256)["mask"], lock.state("tataaa", [226], 256)["mask"])
    assert lock.state("TATAAA", [-6], 256)["mask"][0, -6:].all()
    assert lock.state("AC/GT", [], 128)["mask"].sum() == 4


@pytest.mark.parametrize(
    ("text", "at", "message"),
    [
        ("TATAWAAR", [1], "locked bases are A, C, G, T"),
        ("", [1], "locked bases are"),
        ("TATAAA", [252], "at=252 for a segment of 6; it must be from 1 to 251"),
        ("TATAAA", [-5], "at=252"),
        ("TATAAA", [0], "at=0"),
        ("TATA,TATA", [10, 12], "at=12"),
        ("A" * 257, [], "257 sites"),
    ],
)
def test_bad_bases_are_refused(text: str, at: list[int], message: str) -> None:
    with pytest.raises(DesignError, match=message):
        lock.state(text, at, 256)
