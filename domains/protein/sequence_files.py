"""The sequences that were designed for one backbone, as FASTA: a record each, the run's provenance in the first.

A record says which residues it is for, by chain and author's number as `motif` reads them, and how likely it is.
"""

from __future__ import annotations

import io
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path

from Bio import SeqIO

from data import checkpoints
from domains import files
from domains.base import DesignError
from domains.protein import sequence_design
from domains.protein.residues import MOST_BYTES, Protein
from domains.protein.sequence_design import Designed

SUFFIX = ".fasta"
MOST = 256
"""No backbone is given more sequences."""
_LINE = 60


def write(sequences: Sequence[Designed], path: Path, provenance: Mapping[str, str]) -> None:
    """Write them all, or nothing after an error."""
    lines: list[str] = []
    for k, sequence in enumerate(sequences):
        told = _told(sequence) | (dict(provenance) if k == 0 else {})
        letters = sequence.protein.letters
        lines.append(" ".join([f">{files.name(path)}_{k + 1}", *files.pack(told)]))
        lines += [letters[i : i + _LINE] for i in range(0, len(letters), _LINE)]
    files.write_text(path, "\n".join([*lines, ""]))


def provenance(path: Path) -> dict[str, str]:
    """What `write` was told, and about the first record; empty for a file that came from elsewhere."""
    text = files.read_text(path, MOST * MOST_BYTES, "backbone's sequences")
    try:
        first = next(iter(SeqIO.parse(io.StringIO(text), "fasta")), None)
    except ValueError as error:
        why = str(error).splitlines()[0]
        raise DesignError(f"{path} is not a FASTA file ({why:.100}); export it again") from error
    return files.unpack(first.description.split()[1:]) if first else {}


def stretches(design: Protein) -> str:
    """The residues of a chain, in words such as A:1-A:24,A:24A,A:25-A:80."""
    runs: list[list[str]] = []
    for number in design.numbers:
        if runs and runs[-1][-1].lstrip("-").isdigit() and number == str(int(runs[-1][-1]) + 1):
            runs[-1].append(number)
        else:
            runs.append([number])
    return ",".join("-".join(f"{design.chain}:{end}" for end in _ends(run)) for run in runs)


def _ends(run: Sequence[str]) -> Iterator[str]:
    yield run[0]
    if len(run) > 1:
        yield run[-1]


def _told(sequence: Designed) -> dict[str, str]:
    return {
        "residues": stretches(sequence.protein),
        "nll": f"{sequence.nll:.4f}",
        "temperature": f"{sequence.temperature:g}",
        "model": _model(),
    }


@cache
def _model() -> str:
    digest = checkpoints.weights_digest(checkpoints.FOLDER / sequence_design.CHECKPOINT)
    return f"{sequence_design.CHECKPOINT}@{digest[:16]}"
