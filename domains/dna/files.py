"""Promoters as FASTA and GenBank files, with their provenance inside."""

from __future__ import annotations

import io
import os
import re
import textwrap
from collections.abc import Iterable, Mapping
from pathlib import Path
from urllib.parse import quote, unquote

from Bio import SeqIO
from Bio.Seq import Seq
from Bio.SeqFeature import SeqFeature, SimpleLocation
from Bio.SeqRecord import SeqRecord

from domains.base import DesignError
from domains.dna import letters, motifs

FORMATS = {".fasta": "fasta", ".fa": "fasta", ".gb": "genbank", ".gbk": "genbank"}
MOST_BYTES = 1 << 20
"""No file of one promoter is larger."""
_PLAIN = "/:,@()[]{}'\"*!?|$"  # characters that stay readable in provenance; white space and ; = % never do
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
        return _unpack(record.description.split()[1:])
    lines = str(record.annotations.get("comment", "")).splitlines()
    return _unpack("".join(lines).split(";"))


def write(design: str, path: Path, told: Mapping[str, str], length: int) -> None:
    """Write one design in the format of the suffix; the file appears whole or not at all."""
    kind = _format(path)
    _check(design, length, "the design")
    name = re.sub(r"[^A-Za-z0-9_.-]", "_", path.stem)[:16] or "design"
    text = _fasta(design, name, told) if kind == "fasta" else _genbank(design, name, told)
    part = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        part.write_text(text, encoding="ascii")
        part.replace(path)
    finally:
        part.unlink(missing_ok=True)


def _fasta(design: str, name: str, told: Mapping[str, str]) -> str:
    rows = [design[i : i + _LINE] for i in range(0, len(design), _LINE)]
    return "\n".join([" ".join([f">{name}", *_pack(told)]), *rows, ""])


def _genbank(design: str, name: str, told: Mapping[str, str]) -> str:
    record = SeqRecord(Seq(design), id=name, name=name, description=f"promoter design, {len(design)} bp")
    record.annotations["molecule_type"] = "DNA"
    record.annotations["topology"] = "linear"
    record.annotations["data_file_division"] = "SYN"
    if told:
        words = (f"{word};" for word in _pack(told))
        record.annotations["comment"] = "\n".join(w[i : i + _LINE] for w in words for i in range(0, len(w), _LINE))
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


def _pack(told: Mapping[str, str]) -> list[str]:
    return [f"{quote(key, safe='')}={quote(value, safe=_PLAIN)}" for key, value in told.items()]


def _unpack(words: Iterable[str]) -> dict[str, str]:
    pairs = (word.partition("=") for word in words)
    return {unquote(key): unquote(value) for key, equals, value in pairs if equals}


def _format(path: Path) -> str:
    try:
        return FORMATS[path.suffix.lower()]
    except KeyError:
        raise DesignError(
            f"{path} ends in {path.suffix!r}; a promoter file ends in {', '.join(FORMATS)}; rename or convert it"
        ) from None


def _record(path: Path) -> SeqRecord:
    kind = _format(path)
    text = _text(path)
    try:
        records: list[SeqRecord] = list(SeqIO.parse(io.StringIO(text), kind))
    except Exception as error:  # Biopython's parsers raise whatever their internals raise on a broken file
        why = textwrap.shorten(str(error), 100)
        raise DesignError(f"{path} is not a {kind} file ({why}); export it again") from error
    if len(records) != 1:
        raise DesignError(f"{path} holds {len(records)} {kind} records; one is read; give each record its own file")
    return records[0]


def _text(path: Path) -> str:
    try:
        with path.open("rb") as file:
            content = file.read(MOST_BYTES + 1)
    except OSError as error:
        raise DesignError(f"{path} cannot be read ({error.strerror}); give an existing file") from error
    if len(content) > MOST_BYTES:
        raise DesignError(f"{path} is larger than {MOST_BYTES} bytes; give a file of one promoter")
    try:
        return content.decode("utf-8")
    except UnicodeDecodeError as error:
        raise DesignError(f"{path} has byte {content[error.start]:#04x} at {error.start}; give a text file") from error


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
