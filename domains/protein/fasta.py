"""Sequences as FASTA files of one record, with provenance in the description."""

from __future__ import annotations

import io
from collections.abc import Mapping
from pathlib import Path

from Bio import SeqIO
from Bio.SeqRecord import SeqRecord

from domains import files
from domains.base import DesignError
from domains.protein.residues import MOST_BYTES, Protein

SUFFIXES = (".fasta", ".fa")
_LINE = 60


def read(path: Path) -> Protein:
    """The sequence in a file of one record, upper-case; letters outside the 20 are kept for `violations` to name."""
    letters = str(_record(path).seq).upper()
    _check(letters, str(path))
    return Protein(letters)


def provenance(path: Path) -> dict[str, str]:
    """What `write` was told about the design in a file; empty for a file that came from elsewhere."""
    return files.unpack(_record(path).description.split()[1:])


def write(design: Protein, path: Path, told: Mapping[str, str]) -> None:
    """Write one record; `DesignError` for what FASTA cannot hold: a backbone, a chain or numbers."""
    _check_suffix(path)
    letters = design.letters
    _check(letters, "the design")
    if design != Protein(letters):
        raise DesignError(
            f"the design is chain {design.chain}, numbered from {design.numbers[0]}"
            f"{'' if design.backbone is None else ', with a backbone'}; FASTA holds letters alone; write .pdb or .cif"
        )
    rows = [letters[i : i + _LINE] for i in range(0, len(letters), _LINE)]
    files.write_text(path, "\n".join([" ".join([f">{files.name(path)}", *files.pack(told)]), *rows, ""]))


def _record(path: Path) -> SeqRecord:
    _check_suffix(path)
    try:
        records: list[SeqRecord] = list(SeqIO.parse(io.StringIO(files.read_text(path, MOST_BYTES, "chain")), "fasta"))
    except ValueError as error:
        why = str(error).splitlines()[0]
        raise DesignError(f"{path} is not a FASTA file ({why:.100}); export it again") from error
    if len(records) != 1:
        raise DesignError(f"{path} holds {len(records)} FASTA records; one is read; give each record its own file")
    return records[0]


def _check_suffix(path: Path) -> None:
    if path.suffix.lower() not in SUFFIXES:
        raise DesignError(
            f"{path} ends in {path.suffix!r}; a file of a protein sequence ends in {' or '.join(SUFFIXES)}; "
            f"rename or convert it"
        )


def _check(letters: str, what: str) -> None:
    if not letters:
        raise DesignError(f"{what} has no letters; a sequence has one or more")
    bad = next((i for i, letter in enumerate(letters) if not ("A" <= letter <= "Z")), None)
    if bad is not None:
        raise DesignError(f"{what} has {letters[bad]!r} at letter {bad + 1}; legal are A to Z; correct it")
