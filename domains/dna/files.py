"""Promoters as FASTA and GenBank files, with their provenance inside."""

from __future__ import annotations

import io
import re
import textwrap
from collections.abc import Mapping
from pathlib import Path

from Bio import SeqIO
from Bio.Seq import Seq
from Bio.SeqFeature import SeqFeature, SimpleLocation
from Bio.SeqRecord import SeqRecord

from domains import files
from domains.base import DesignError
from domains.dna import letters, motifs

FORMATS = {".fasta": "fasta", ".fa": "fasta", ".gb": "genbank", ".gbk": "genbank"}
MOST_BYTES = 1 << 20
"""No file of one promoter is larger."""
_LINE = 60


def read(path: Path, length: int) -> str:
    """The sequence in a file of one record, upper-case; `DesignError` unless it has `length` IUPAC letters."""
    sequence = _sequence(path, _record(path))
    _check(sequence, length, str(path))
    return sequence


def provenance(path: Path) -> dict[str, str]:
    """What `write` was told about the design in a file; empty for a file that came from elsewhere."""
    record = _record(path)
    if FORMATS[path.suffix.lower()] == "fasta":
        return files.unpack(record.description.split()[1:])
    lines = str(record.annotations.get("comment", "")).splitlines()
    return files.unpack_lines(lines)


def write(design: str, path: Path, told: Mapping[str, str], length: int) -> None:
    """Write one design in the format of the suffix; the file appears whole or not at all."""
    kind = _format(path)
    _check(design, length, "the design")
    make = _fasta if kind == "fasta" else _genbank
    files.write_text(path, make(design, files.name(path), told))


def _fasta(design: str, name: str, told: Mapping[str, str]) -> str:
    rows = [design[i : i + _LINE] for i in range(0, len(design), _LINE)]
    return "\n".join([" ".join([f">{name}", *files.pack(told)]), *rows, ""])


def _genbank(design: str, name: str, told: Mapping[str, str]) -> str:
    record = SeqRecord(Seq(design), id=name, name=name, description=f"promoter design, {len(design)} bp")
    record.annotations["molecule_type"] = "DNA"
    record.annotations["topology"] = "linear"
    record.annotations["data_file_division"] = "SYN"
    if told:
        record.annotations["comment"] = "\n".join(files.pack_lines(told, _LINE))
    record.features = [_feature(hit) for hit in motifs.hits(design)]
    note = "transcription starts at the base after this one, +1"
    record.features.append(_annotate("misc_feature", len(design) - 1, len(design), 1, {"note": [note]}))
    text = io.StringIO()
    SeqIO.write(record, text, "genbank")
    return text.getvalue()


def _feature(hit: motifs.Hit) -> SeqFeature:
    kind = "TATA_box" if hit.motif == "TATA-Box" else "other"
    motif = motifs.core_motifs()[hit.motif]
    note = f"{motif.name} ({motif.identifier}), {hit.score:.1f} of at most {motif.most:.1f} bits"
    return _annotate("regulatory", hit.start, hit.end, hit.strand, {"regulatory_class": [kind], "note": [note]})


def _annotate(kind: str, start: int, end: int, strand: int, qualifiers: dict[str, list[str]]) -> SeqFeature:
    place = SimpleLocation(start, end, strand)
    return SeqFeature(place, type=kind, qualifiers=qualifiers)


def _format(path: Path) -> str:
    try:
        return FORMATS[path.suffix.lower()]
    except KeyError:
        raise DesignError(
            f"{path} ends in {path.suffix!r}; a promoter file ends in {', '.join(FORMATS)}; rename or convert it"
        ) from None


def _record(path: Path) -> SeqRecord:
    kind = _format(path)
    text = files.read_text(path, MOST_BYTES, "promoter")
    try:
        records: list[SeqRecord] = list(SeqIO.parse(io.StringIO(text), kind))
    except Exception as error:  # Biopython's parsers raise whatever their internals raise on a broken file
        why = textwrap.shorten(str(error), 100)
        raise DesignError(f"{path} is not a {kind} file ({why}); export it again") from error
    if len(records) != 1:
        raise DesignError(f"{path} holds {len(records)} {kind} records; one is read; give each record its own file")
    return records[0]


def _sequence(path: Path, record: SeqRecord) -> str:
    try:
        return str(record.seq).upper()
    except Exception as error:  # a GenBank record may lack its sequence
        raise DesignError(f"{path} describes a record without its sequence; export it with the bases") from error


def _check(sequence: str, length: int, what: str) -> None:
    bad = re.search(f"[^{''.join(letters.IUPAC)}]", sequence)
    if bad:
        raise DesignError(
            f"{what} has {bad[0]!r} at letter {bad.start() + 1}; legal are {''.join(letters.IUPAC)}; correct it"
        )
    if len(sequence) != length:
        raise DesignError(
            f"{what} has {len(sequence)} letters; this domain has the {length} before the transcription start; "
            f"cut it to them, or build the domain with another length"
        )
