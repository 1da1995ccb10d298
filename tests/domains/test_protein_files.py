"""PDB, mmCIF and FASTA: round trips, what gemmi and mkdssp read in them, foreign files, and files that are refused."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory

import gemmi
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from domains import protein
from domains.base import DesignError
from domains.protein import Protein, baselines, fasta, geometry, residues, structures

FRAMES = protein.build()
SEQUENCES = protein.build("sequence")
TOLD = st.dictionaries(st.text(min_size=1, max_size=30), st.text(max_size=200), max_size=4)


def _chain(n: int = 12, phi: float = -60, psi: float = -45) -> np.ndarray:
    torsions = np.broadcast_to(np.radians([phi, psi]), (1, n, 2))
    return geometry.with_oxygens(baselines.from_torsions(torsions)[0])


def _protein(n: int = 12) -> Protein:
    return Protein("ACDEFGHIKLMNPQRSTVWYX"[:n], _chain(n))


AWKWARD = [
    _protein(1),
    _protein(21),
    Protein("GG", [_chain(2)[0], _chain(2)[1] + 30], "z", ("-5", "900")),
    Protein("AAAX", _chain(4), "7", ("52", "52A", "52B", "9999")),
    Protein("AA", _chain(2) * 0 + [9999.999, -999.999, -0.0004], "A", ("-999", "0")),
]
"""One residue, every letter, a gap, insertion codes, the ends of the columns."""
BEYOND = [
    Protein("AAAX", _chain(4), "AB", ("52", "52A", "52B", "9999")),
    Protein("AAA", _chain(3), "A", ("-1000", "-5", "10001B")),
    Protein("A" * 21, _chain(21), "H7xQ", tuple(map(str, range(99_990, 100_011)))),
]
"""Chains and numbers that a .pdb file has no columns for."""


@pytest.mark.parametrize("suffix", FRAMES.suffixes)
@pytest.mark.parametrize("design", AWKWARD + BEYOND)
def test_reading_undoes_writing(tmp_path: Path, suffix: str, design: Protein) -> None:
    path = tmp_path / f"d{suffix}"
    FRAMES.write(design, path, {"seed": "7"})
    assert FRAMES.read(path) == design
    assert FRAMES.provenance(path) == {"seed": "7"}
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize("design", AWKWARD + BEYOND)
def test_ids_live_through_every_format(tmp_path: Path, design: Protein) -> None:
    """From PDB to a design, from there to mmCIF, and back to PDB."""
    there = design
    for name in ("a.pdb", "b.cif", "c.pdb", "d.cif"):
        FRAMES.write(there, tmp_path / name, {})
        there = FRAMES.read(tmp_path / name)
    assert there == design


@pytest.mark.parametrize("design", BEYOND)
def test_a_pdb_file_without_room_for_ids_is_read_by_others_and_says_what_is_what(tmp_path: Path, design) -> None:
    FRAMES.write(design, tmp_path / "d.pdb", {"seed": "7"})
    ((chain,),) = gemmi.read_structure(str(tmp_path / "d.pdb"))
    assert [(chain.name, str(residue.seqid)) for residue in chain] == [("A", str(i + 1)) for i in range(len(design))]
    text = (tmp_path / "d.pdb").read_text()
    assert f"REMARK 999 AUTHOR chain={design.chain};" in text
    assert f"REMARK 999 AUTHOR 1={design.numbers[0]};" in text
    (tmp_path / "d.pdb").write_text(text.replace(f" 2={design.numbers[1]};", f" 2={design.numbers[0]};"))
    with pytest.raises(DesignError, match="one number to two residues; remove those lines"):
        FRAMES.read(tmp_path / "d.pdb")


def test_residues_are_picked_by_the_ids_that_a_pdb_file_has_no_room_for(tmp_path: Path) -> None:
    FRAMES.write(BEYOND[2], tmp_path / "d.pdb", {})
    held = FRAMES.locked(file=str(tmp_path / "d.pdb"), residues="H7xQ:99995-H7xQ:99999", at=[3])
    assert held["mask"][0].nonzero()[:, 0].tolist() == [2, 3, 4, 5, 6]


@pytest.mark.parametrize("suffix", FRAMES.suffixes)
def test_a_missing_oxygen_is_put_in_the_peptide_plane(tmp_path: Path, suffix: str) -> None:
    """Before a residue, before a gap, and at the end."""
    structure = _foreign("ALA GLY ALA VAL LEU ALA ALA ALA")
    del structure[0][0][3]
    for number in (41, 42, 47):
        _without("O", number)(structure)
    _save(structure, tmp_path / f"d{suffix}")
    found = FRAMES.read(tmp_path / f"d{suffix}")
    assert found.numbers == ("40", "41", "42", "44", "45", "46", "47")
    np.testing.assert_allclose(found.atoms()[1], _chain(8)[1], atol=2e-3)
    carbonyl = np.linalg.norm(found.atoms()[:, 3] - found.atoms()[:, 2], axis=-1)
    np.testing.assert_allclose(carbonyl, geometry.C_O, atol=2e-3)


@pytest.mark.parametrize("suffix", FRAMES.suffixes)
def test_decoded_designs_are_read_back(tmp_path: Path, suffix: str) -> None:
    for design in FRAMES.decode(FRAMES.encode(FRAMES.corpus("val")[:3])):
        FRAMES.write(design, tmp_path / f"d{suffix}", {})
        assert FRAMES.read(tmp_path / f"d{suffix}") == design


@pytest.mark.parametrize("suffix", [*FRAMES.suffixes, ".fasta"])
@settings(max_examples=15, deadline=None)
@given(told=TOLD)
def test_any_provenance_is_kept(suffix: str, told: dict[str, str]) -> None:
    domain, design = (SEQUENCES, Protein("AC")) if suffix == ".fasta" else (FRAMES, _protein(2))
    with TemporaryDirectory() as folder:
        path = Path(folder, f"design{suffix}")
        domain.write(design, path, told)
        assert domain.provenance(path) == told
        assert domain.read(path) == design


@pytest.mark.parametrize("suffix", FRAMES.suffixes)
def test_provenance_of_any_length_is_kept(tmp_path: Path, suffix: str) -> None:
    """A semicolon that ends a word may come first on a line, where mmCIF ends a text."""
    for length in range(40, 160):
        FRAMES.write(_protein(2), tmp_path / f"d{suffix}", {"key": "x" * length, "more": "y"})
        assert FRAMES.provenance(tmp_path / f"d{suffix}") == {"key": "x" * length, "more": "y"}


@pytest.mark.parametrize("suffix", [*FRAMES.suffixes, ".fasta"])
@pytest.mark.parametrize("stem", ["000017", "a b;c=d", "x" * 60, "é", "_"])
def test_any_file_name_will_do(tmp_path: Path, stem: str, suffix: str) -> None:
    domain, design = (SEQUENCES, Protein("AC")) if suffix == ".fasta" else (FRAMES, _protein(2))
    domain.write(design, tmp_path / (stem + suffix), {})
    assert domain.read(tmp_path / (stem + suffix)) == design


def test_provenance_stays_readable(tmp_path: Path) -> None:
    FRAMES.write(_protein(), tmp_path / "d.pdb", {"seed": "7", "spec": '{"n":64}' + "x" * 100})
    lines = (tmp_path / "d.pdb").read_text().splitlines()
    assert "REMARK 999 FORESHAPE seed=7;" in [line.rstrip() for line in lines]
    assert all(len(line) == 80 for line in lines if not line.startswith(("TER", "END")))
    FRAMES.write(_protein(), tmp_path / "d.cif", {"seed": "7"})
    assert "_foreshape.provenance" in (tmp_path / "d.cif").read_text()


def test_files_from_elsewhere_have_no_provenance(tmp_path: Path) -> None:
    for suffix in FRAMES.suffixes:
        _save(_foreign(), tmp_path / f"d{suffix}")
        assert FRAMES.provenance(tmp_path / f"d{suffix}") == {}


# Other programs


@pytest.mark.parametrize("suffix", FRAMES.suffixes)
@pytest.mark.parametrize("design", AWKWARD)
def test_gemmi_reads_the_same(tmp_path: Path, suffix: str, design: Protein) -> None:
    FRAMES.write(design, tmp_path / f"d{suffix}", {"spec": "x" * 300})
    structure = gemmi.read_structure(str(tmp_path / f"d{suffix}"))
    ((chain,),) = structure
    assert chain.name == design.chain
    assert tuple(str(residue.seqid) for residue in chain) == design.numbers
    names = [gemmi.find_tabulated_residue(residue.name).one_letter_code.upper() for residue in chain]
    assert "".join(names) == design.letters
    places = [[atom.pos.tolist() for atom in residue] for residue in chain]
    np.testing.assert_allclose(places, design.atoms(), atol=6e-4)
    assert {atom.element.name for residue in chain for atom in residue} == {"N", "C", "O"}
    structure.setup_entities()
    assert len(chain.get_polymer()) == len(design)


@pytest.mark.skipif(shutil.which("mkdssp") is None, reason="mkdssp is not installed")
@pytest.mark.parametrize("suffix", FRAMES.suffixes)
@pytest.mark.parametrize("known", [True, False])
def test_mkdssp_sees_the_helix(tmp_path: Path, suffix: str, known: bool) -> None:
    FRAMES.write(Protein("AX"[not known] * 20, _chain(20)), tmp_path / f"d{suffix}", {})
    command = ["mkdssp", "--output-format", "dssp", str(tmp_path / f"d{suffix}"), str(tmp_path / "out")]
    subprocess.run(command, check=True, capture_output=True)
    rows = (tmp_path / "out").read_text().split("  #  RESIDUE")[1].splitlines()[1:]
    assert [row[16] for row in rows].count("H") >= 14


# Foreign files


def _foreign(names: str = "ALA GLY MSE TRP", chain: str = "B", first: int = 40) -> gemmi.Structure:
    """Full residues of a helix, with a CB each, MSE as HETATM, a ligand and water."""
    structure = gemmi.Structure()
    structure.add_model(gemmi.Model(1))
    structure[0].add_chain(gemmi.Chain(chain))
    words = names.split()
    for i, (name, places) in enumerate(zip(words, _chain(len(words)), strict=True)):
        residue = _residue(name, first + i, places, "H" if name == "MSE" else "A")
        structure[0][0].add_residue(residue)
    structure[0][0].add_residue(_residue("GLY", 900, _chain(1)[0] + 20, "H"))
    structure[0][0].add_residue(_residue("HOH", 901, _chain(1)[0][:0], "H"))
    return structure


def _residue(name: str, number: int, places: np.ndarray, record: str) -> gemmi.Residue:
    residue = gemmi.Residue()
    residue.name, residue.seqid, residue.het_flag = name, gemmi.SeqId(number, " "), record
    for atom, place in zip(("N", "CA", "C", "O", "CB"), [*places, (1, 2, 3)], strict=False):
        added = gemmi.Atom()
        added.name, added.element, added.pos = atom, gemmi.Element(atom[0]), gemmi.Position(*place)
        residue.add_atom(added)
    return residue


def _save(structure: gemmi.Structure, path: Path) -> None:
    structure.setup_entities()
    structure.assign_label_seq_id()
    if path.suffix == ".cif":
        structure.make_mmcif_document().write_file(str(path))
    else:
        structure.write_pdb(str(path))


@pytest.mark.parametrize("suffix", FRAMES.suffixes)
def test_of_a_foreign_file_the_chain_is_kept(tmp_path: Path, suffix: str) -> None:
    _save(_foreign(), tmp_path / f"d{suffix}")
    found = FRAMES.read(tmp_path / f"d{suffix}")
    assert (found.letters, found.chain, found.numbers) == ("AGXW", "B", ("40", "41", "42", "43"))
    np.testing.assert_allclose(found.atoms(), _chain(4), atol=6e-4)


@pytest.mark.parametrize("suffix", FRAMES.suffixes)
def test_only_the_first_model_and_the_likelier_place_are_read(tmp_path: Path, suffix: str) -> None:
    structure = _foreign("ALA GLY")
    other = structure[0].clone()
    other.num = 2
    for residue in other[0]:
        for atom in residue:
            atom.pos = gemmi.Position(0, 0, 0)
    structure.add_model(other)
    atom = structure[0][0][1][1]
    rare = atom.clone()
    atom.altloc, atom.occ, rare.altloc, rare.occ = "A", 0.7, "B", 0.3
    rare.pos = gemmi.Position(50, 50, 50)
    structure[0][0][1].add_atom(rare)
    _save(structure, tmp_path / f"d{suffix}")
    np.testing.assert_allclose(FRAMES.read(tmp_path / f"d{suffix}").atoms(), _chain(2), atol=6e-4)


def test_a_gap_is_kept_and_reported(tmp_path: Path) -> None:
    structure = _foreign("ALA GLY ALA VAL LEU ALA ALA ALA")
    for number in (45, 44, 43):
        del structure[0][0][number - 40]
    _save(structure, tmp_path / "d.pdb")
    found = FRAMES.read(tmp_path / "d.pdb")
    assert found.numbers == ("40", "41", "42", "46", "47")
    (broken,) = FRAMES.violations(found)
    assert (broken.rule, broken.start, broken.end) == ("break", 2, 4)
    assert "B:42 to 46" in broken.message


def test_a_blank_chain_is_a(tmp_path: Path) -> None:
    FRAMES.write(_protein(3), tmp_path / "d.pdb", {})
    text = (tmp_path / "d.pdb").read_text().splitlines()
    blank = [line[:21] + " " + line[22:] if line.startswith(("ATOM", "TER")) else line for line in text]
    (tmp_path / "d.pdb").write_text("\n".join(blank))
    assert FRAMES.read(tmp_path / "d.pdb") == _protein(3)


def _without(atom: str, number: int) -> Callable[[gemmi.Structure], None]:
    def change(structure: gemmi.Structure) -> None:
        residue = next(r for r in structure[0][0] if r.seqid.num == number)
        residue.remove_atom(atom, "\0")

    return change


def _second_chain(structure: gemmi.Structure) -> None:
    structure[0].add_chain(_foreign("ALA ALA", "C")[0][0])


def _ligands_only(structure: gemmi.Structure) -> None:
    for _ in range(4):
        del structure[0][0][0]


@pytest.mark.parametrize("suffix", FRAMES.suffixes)
@pytest.mark.parametrize(
    ("change", "words"),
    [
        (_without("CA", 40), "residue ALA B:40 lacks CA"),
        (_without("N", 41), r"line \d+: residue GLY B:41 lacks N; a backbone has N, CA, C in each"),
        (_second_chain, "has 2 protein chains: B, C; one is read"),
        (_ligands_only, "has 0 protein chains; one is read"),
    ],
)
def test_foreign_files_that_are_refused(
    tmp_path: Path, suffix: str, change: Callable[[gemmi.Structure], None], words: str
) -> None:
    structure = _foreign()
    change(structure)
    _save(structure, tmp_path / f"d{suffix}")
    with pytest.raises(DesignError, match=words) as caught:
        FRAMES.read(tmp_path / f"d{suffix}")
    assert "\n" not in str(caught.value)


GOOD = "ATOM      1  CA  ALA A   1      11.000  12.000  13.000  1.00  0.00           C\n"


@pytest.mark.parametrize(
    ("name", "content", "words"),
    [
        ("d.pdb", "", "has 0 protein chains|cannot be read"),
        ("d.pdb", "hello\n", "has 0 protein chains|cannot be read"),
        ("d.pdb", GOOD, "d.pdb, line 1: residue ALA A:1 lacks N, C;"),
        ("d.pdb", GOOD.replace("11.000", "   nan"), "lacks"),
        ("d.pdb", GOOD.replace("11.000", "x1.000"), "at line 1"),
        ("d.pdb", GOOD[:50], "at line 1"),
        ("d.pdb", GOOD + GOOD, "at line 2"),
        ("d.pdb", GOOD.replace("   1    ", "        "), "cannot be read as .pdb"),
        ("d.cif", "", "cannot be read as .cif"),
        ("d.cif", "data_x\nloop_\n_atom_site.id\n1\n", "cannot be read as .cif"),
        ("d.cif", "data_x\n_a.b 'open\n", "cannot be read as .cif"),
        ("d.pdb", b"\xff\xfe", "byte 0xff at 0"),
        ("d.pdb", b" " * (residues.MOST_BYTES + 1), "larger than"),
        ("d.xyz", GOOD, r"ends in '.xyz'; .*\.pdb or \.cif"),
        ("absent.pdb", None, "cannot be read"),
    ],
)
def test_broken_files_are_refused_in_one_line(
    tmp_path: Path, name: str, content: str | bytes | None, words: str
) -> None:
    path = tmp_path / name
    if content is not None:
        path.write_bytes(content.encode() if isinstance(content, str) else content)
    with pytest.raises(DesignError, match=words) as caught:
        FRAMES.read(path)
    assert "\n" not in str(caught.value)


def test_coordinates_that_are_not_numbers_are_named(tmp_path: Path) -> None:
    FRAMES.write(_protein(3), tmp_path / "d.pdb", {})
    lines = (tmp_path / "d.pdb").read_text().splitlines()
    i = next(i for i, line in enumerate(lines) if line.startswith("ATOM") and line[22:26] == "   2")
    lines[i] = lines[i][:30] + "     nan" + lines[i][38:]
    (tmp_path / "d.pdb").write_text("\n".join(lines))
    with pytest.raises(DesignError, match="residue 2: x of N is not finite"):
        FRAMES.read(tmp_path / "d.pdb")


# What cannot be written


def _with(letters: str = "AA", shift: float = 0, chain: str = "A", numbers: tuple[str, ...] = ()) -> Protein:
    return Protein(letters, _chain(len(letters)) + shift, chain, numbers)


@pytest.mark.parametrize(
    ("design", "name", "words"),
    [
        (Protein("AA"), "d.pdb", "has no backbone"),
        (Protein("", np.zeros((0, 4, 3))), "d.pdb", "0 residues"),
        (Protein("A" * 10000, np.zeros((10000, 4, 3))), "d.cif", "10000 residues; a file holds 1 to 9999"),
        (_with(shift=10000), "d.pdb", "residue 1 is outside -999.999 to 9999.999"),
        (_with(shift=-1002), "d.pdb", "residue 1 is outside"),
        (_with(chain="ABCDE"), "d.cif", "1 to 4 letters"),
        (_with(chain=" "), "d.cif", "chain ' '"),
        (_with(numbers=("5A", "5A")), "d.cif", "occur twice"),
        (_with("AB"), "d.pdb", "letter 'B'"),
        (_with(), "d.ent", r"ends in '.ent'"),
    ],
)
def test_what_a_structure_file_cannot_hold(tmp_path: Path, design: Protein, name: str, words: str) -> None:
    with pytest.raises(DesignError, match=words):
        FRAMES.write(design, tmp_path / name, {})
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("design", [_with(shift=50000), _with(chain="AB"), _with(numbers=("1", "10000"))])
def test_mmcif_holds_more(tmp_path: Path, design: Protein) -> None:
    FRAMES.write(design, tmp_path / "d.cif", {})
    assert FRAMES.read(tmp_path / "d.cif") == design


def test_a_failed_write_keeps_the_old_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "d.pdb"
    FRAMES.write(_protein(3), path, {})

    def fail(*_: object) -> None:
        raise OSError("disk full")

    monkeypatch.setattr(Path, "replace", fail)
    with pytest.raises(OSError, match="disk full"):
        FRAMES.write(_protein(4), path, {})
    assert FRAMES.read(path) == _protein(3)
    assert list(tmp_path.iterdir()) == [path]


# FASTA


@settings(max_examples=20, deadline=None)
@given(letters=st.text("ACDEFGHIKLMNPQRSTVWYXBZUO", min_size=1, max_size=200))
def test_sequences_are_read_back(letters: str) -> None:
    with TemporaryDirectory() as folder:
        path = Path(folder, "d.fasta")
        SEQUENCES.write(Protein(letters), path, {"seed": "1"})
        assert SEQUENCES.read(path) == Protein(letters)
        assert path.read_text().startswith(">d seed=1\n")


def test_lower_case_and_foreign_records_are_read(tmp_path: Path) -> None:
    (tmp_path / "d.fa").write_text(">sp|P1|X some=thing else\r\nacd\r\nEF\r\n")
    assert SEQUENCES.read(tmp_path / "d.fa") == Protein("ACDEF")
    assert fasta.provenance(tmp_path / "d.fa") == {"some": "thing"}


@pytest.mark.parametrize(
    ("name", "content", "words"),
    [
        ("d.fa", "", "holds 0 FASTA records"),
        ("d.fa", "ACD\n", "not a FASTA file|holds 0"),
        ("d.fa", ">a\nAC\n>b\nAC\n", "holds 2 FASTA records"),
        ("d.fa", ">a\n\n", "has no letters"),
        ("d.fa", ">a\nAC*\n", r"'\*' at letter 3"),
        ("d.fa", ">a\nA-C\n", "'-' at letter 2"),
        ("d.txt", ">a\nAC\n", r"'.txt'.*\.fasta or \.fa"),
    ],
)
def test_fasta_files_that_are_refused(tmp_path: Path, name: str, content: str, words: str) -> None:
    (tmp_path / name).write_text(content)
    with pytest.raises(DesignError, match=words) as caught:
        SEQUENCES.read(tmp_path / name)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("design", "words"),
    [
        (_protein(3), "with a backbone; FASTA holds letters alone"),
        (Protein("A", None, "B"), "chain B"),
        (Protein("A", None, "A", ("5",)), "numbered from 5"),
        (Protein(""), "has no letters"),
        (Protein("A a"), "' ' at letter 2"),
        (Protein("é"), "'é'"),
    ],
)
def test_what_fasta_cannot_hold(tmp_path: Path, design: Protein, words: str) -> None:
    with pytest.raises(DesignError, match=words):
        SEQUENCES.write(design, tmp_path / "d.fasta", {})
    assert list(tmp_path.iterdir()) == []


def test_endings_that_are_promised_can_be_written() -> None:
    assert set(FRAMES.suffixes) <= set(structures.SUFFIXES)
    assert set(SEQUENCES.suffixes) <= set(fasta.SUFFIXES)
