"""FASTA and GenBank: round trips, what other tools read in them, and files that are refused."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from Bio import SeqIO
from hypothesis import given, settings
from hypothesis import strategies as st

from domains import dna
from domains.base import DesignError
from domains.dna import files, motifs

DOMAIN = dna.build(128)
PLAIN = "ACGTTGCA" * 16
PROVENANCE = st.dictionaries(st.text(min_size=1, max_size=30), st.text(max_size=200), max_size=5)


@pytest.mark.parametrize("suffix", DOMAIN.suffixes)
@settings(max_examples=25, deadline=None)
@given(design=st.text("ACGTRYSWKMBDHVN", min_size=128, max_size=128), told=PROVENANCE)
def test_reading_undoes_writing_and_keeps_provenance(suffix: str, design: str, told: dict[str, str]) -> None:
    with TemporaryDirectory() as folder:
        path = Path(folder, f"design{suffix}")
        DOMAIN.write(design, path, told)
        assert DOMAIN.read(path) == design
        assert files.provenance(path) == told
        assert list(Path(folder).iterdir()) == [path]


@pytest.mark.parametrize("suffix", [".fasta", ".gb"])
@pytest.mark.parametrize("stem", ["000017", "a b;c=d", "x" * 60, "é"])
def test_any_file_name_will_do(tmp_path: Path, stem: str, suffix: str) -> None:
    path = tmp_path / (stem + suffix)
    DOMAIN.write(PLAIN, path, {"seed": "7"})
    assert (DOMAIN.read(path), files.provenance(path)) == (PLAIN, {"seed": "7"})


def test_provenance_stays_readable(tmp_path: Path) -> None:
    told = {"seed": "7", "commit": "0a1b2c", "spec": '{"n":64,"steps":[1,4]}'}
    for name in ("d.fa", "d.gbk"):
        DOMAIN.write(PLAIN, tmp_path / name, told)
    assert (tmp_path / "d.fa").read_text().startswith('>d seed=7 commit=0a1b2c spec={"n":64,"steps":[1,4]}\n')
    assert "COMMENT     seed=7;\n            commit=0a1b2c;\n" in (tmp_path / "d.gbk").read_text()


@pytest.mark.parametrize("strand", [1, -1])
def test_genbank_features_lie_on_the_motif(tmp_path: Path, strand: int) -> None:
    box = "GTATAAAAGGCGGGG"
    design = "C" * 60 + (box if strand > 0 else "CCCCGCCTTTTATAC") + "C" * 53
    DOMAIN.write(design, tmp_path / "d.gb", {})
    record = SeqIO.read(tmp_path / "d.gb", "genbank")
    (feature,) = (f for f in record.features if f.qualifiers.get("regulatory_class") == ["TATA_box"])
    assert feature.location.strand == strand
    assert str(feature.extract(record.seq)) == box
    assert record.features[-1].location.start == 127
    assert "+1" in record.features[-1].qualifiers["note"][0]
    assert record.annotations["molecule_type"] == "DNA"


def test_genbank_has_every_hit(tmp_path: Path) -> None:
    design = max(DOMAIN.corpus("val")[:100], key=lambda s: len(motifs.hits(s)))
    DOMAIN.write(design, tmp_path / "d.gb", {})
    features = SeqIO.read(tmp_path / "d.gb", "genbank").features[:-1]
    found = {(int(f.location.start), int(f.location.end), f.location.strand) for f in features}
    assert found == {(hit.start, hit.end, hit.strand) for hit in motifs.hits(design)} != set()


def test_lower_case_and_foreign_records_are_read(tmp_path: Path) -> None:
    path = tmp_path / "other.fa"
    path.write_text(">NM_1 some=thing else\r\n" + PLAIN[:64].lower() + "\r\n" + PLAIN[64:] + "\r\n")
    assert DOMAIN.read(path) == PLAIN
    assert files.provenance(path) == {"some": "thing"}


def _genbank_without_bases(path: Path) -> None:
    DOMAIN.write(PLAIN, path, {})
    path.write_text(path.read_text().split("ORIGIN")[0] + "//\n")


@pytest.mark.parametrize(
    ("name", "content", "words"),
    [
        ("d.fa", "", "holds 0 fasta records"),
        ("d.fa", f">a\n{PLAIN}\n>b\n{PLAIN}\n", "holds 2 fasta records"),
        ("d.fa", f">a\n{PLAIN[:-1]}U\n", "'U' at letter 128"),
        ("d.fa", f">a\n{PLAIN[:9]}-{PLAIN[10:]}\n", "'-' at letter 10"),
        ("d.fa", f">a\n{PLAIN}A\n", "129 letters"),
        ("d.fa", ">a\n", "0 letters"),
        ("d.fa", PLAIN, "not a fasta file|holds 0"),
        ("d.fa", b"\xff\xfe" + PLAIN.encode(), "byte 0xff at 0"),
        ("d.fa", f">a\n{PLAIN * 9000}\n", "larger than"),
        ("d.gb", "LOCUS\n//\n", "not a genbank file|holds 0"),
        ("d.gb", "", "holds 0 genbank records"),
        ("d.gb", _genbank_without_bases, "not a genbank file|without its sequence"),
        ("d.txt", PLAIN, "ends in '.txt'; a promoter file ends in .fasta, .fa, .gb, .gbk"),
        ("d.fa", None, "cannot be read"),
    ],
)
def test_other_files_are_refused_in_one_line(
    tmp_path: Path, name: str, content: str | bytes | Callable[[Path], None] | None, words: str
) -> None:
    path = tmp_path / name
    if isinstance(content, str):
        path.write_text(content)
    elif isinstance(content, bytes):
        path.write_bytes(content)
    elif content:
        content(path)
    with pytest.raises(DesignError, match=words) as caught:
        DOMAIN.read(path)
    assert name in str(caught.value)
    assert "\n" not in str(caught.value)


def _outcome(path: Path) -> str:
    """What reading gives: the design, or the words of the refusal; any other error passes."""
    try:
        return DOMAIN.read(path)
    except DesignError as error:
        return str(error)


@settings(max_examples=60, deadline=None)
@given(content=st.binary(max_size=300), suffix=st.sampled_from([".fa", ".gb"]), seed=st.integers(0, 2000))
def test_broken_files_never_raise_anything_else(content: bytes, suffix: str, seed: int) -> None:
    with TemporaryDirectory() as folder:
        path = Path(folder, f"d{suffix}")
        DOMAIN.write(PLAIN, path, {"seed": "7"})
        whole = path.read_bytes()
        place = seed % len(whole)
        path.write_bytes(whole[:place] + content + whole[place + len(content) // 2 :])
        outcome = _outcome(path)
    assert len(outcome) == 128 or outcome.startswith(str(path))


@pytest.mark.parametrize(("design", "name"), [("ACGT", "d.fa"), (PLAIN[:-1] + "-", "d.gb"), (PLAIN, "d.pdb")])
def test_what_cannot_be_written_leaves_nothing(tmp_path: Path, design: str, name: str) -> None:
    with pytest.raises(DesignError):
        DOMAIN.write(design, tmp_path / name, {})
    assert list(tmp_path.iterdir()) == []


def test_a_failed_write_keeps_the_old_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "d.fa"
    DOMAIN.write(PLAIN, path, {})

    def fail(*_: object) -> None:
        raise OSError("disk full")

    monkeypatch.setattr(Path, "replace", fail)
    with pytest.raises(OSError, match="disk full"):
        DOMAIN.write(PLAIN[::-1], path, {})
    assert DOMAIN.read(path) == PLAIN
    assert list(tmp_path.iterdir()) == [path]
