"""What a promoter design must not contain: unknown letters, long homopolymers, restriction sites."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence

from Bio.Restriction.Restriction_Dictionary import rest_dict

from domains.base import DesignError, Violation
from domains.dna import letters

FORBIDDEN = ("EcoRI", "BamHI", "HindIII", "BsaI", "BsmBI", "NotI")
"""Enzymes of the usual cloning kits, whose sites would be cut while a design is assembled."""
LONGEST_RUN = 8
"""More equal bases in a row than this are hard to synthesise and to sequence."""


def sites(names: Sequence[str]) -> dict[str, str]:
    """Recognition sequence, in IUPAC letters, of each enzyme name or raw IUPAC sequence."""
    return {name: _site(name) for name in names}


def _site(name: str) -> str:
    site = str(rest_dict[name]["site"]) if name in rest_dict else name
    if not site or not set(site) <= set(letters.IUPAC):
        raise DesignError(
            f"forbidden site {name!r} is neither one of the {len(rest_dict)} known enzymes, such as EcoRI, nor a "
            f"sequence of the letters {''.join(letters.IUPAC)}; correct the name"
        )
    return site


def violations(design: str, forbidden: Mapping[str, str], longest_run: int = LONGEST_RUN) -> list[Violation]:
    """The rules that a sequence breaks, by place; `forbidden` is name -> IUPAC recognition sequence."""
    found = [*_other_letters(design), *_runs(design, longest_run), *_sites(design, forbidden)]
    return sorted(found, key=lambda violation: (violation.start, violation.end, violation.rule, violation.message))


def _other_letters(design: str) -> Iterator[Violation]:
    for match in re.finditer("[^ACGT]+", design):
        message = f"{match[0]} at {_place(match, design)}: a finished design has only A, C, G, T; choose one of them"
        yield Violation("letters", match.start(), match.end(), message)


def _runs(design: str, longest: int) -> Iterator[Violation]:
    for match in re.finditer(rf"([ACGT])\1{{{longest},}}", design):
        message = f"{len(match[0])} {match[1]} in a row at {_place(match, design)}: at most {longest}; break the run"
        yield Violation("homopolymer", match.start(), match.end(), message)


def _sites(design: str, forbidden: Mapping[str, str]) -> Iterator[Violation]:
    for name, site in forbidden.items():
        for strand, pattern in dict.fromkeys([("+", site), ("-", letters.reverse_complement(site))]):
            if strand == "-" and pattern == site:
                continue  # a palindrome: the same molecule, not a second site
            for match in re.finditer(f"(?=({_expression(pattern)}))", design):
                words = f"{name} site {site}" if name != site else f"site {site}"
                message = f"{words} on strand {strand} at {_place(match, design, 1)}: forbidden; change one base of it"
                yield Violation("restriction site", match.start(1), match.end(1), message)


def _expression(pattern: str) -> str:
    return "".join(f"[{letters.IUPAC[letter]}]" for letter in pattern)


def _place(match: re.Match[str], design: str, group: int = 0) -> str:
    """Positions from the transcription start: the last base is -1."""
    first, last = match.start(group) - len(design), match.end(group) - 1 - len(design)
    return str(first) if first == last else f"{first}..{last}"
