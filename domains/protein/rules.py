"""What a backbone must not have: strained bonds and angles, breaks, clashes, torsions that real residues avoid.

The limits are the 0.01 % and 99.99 % quantiles of the corpus's train split, rounded outwards; those of breaks are its
extremes, and the shortest distance between CA atoms is passed by one chain in a thousand.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from domains.base import Violation
from domains.protein import geometry, ramachandran, residues
from domains.protein.residues import CA, LETTERS, C, N, Protein

BREAK = 4.3
"""Neighbours whose CA atoms are further apart, in angstrom, are not bonded."""
CLASH = 3.4
"""CA atoms of residues that are not neighbours are further apart than this, in angstrom."""
LEFT_HANDED = 5
"""So many residues in a row with the torsions of a left-handed helix are one."""
_LEFT = np.radians([[20, 120], [-30, 90]])  # from and to, of phi and of psi


@dataclass(frozen=True)
class Measure:
    """A length or an angle of each residue, or between each residue and the next, and what it may be."""

    rule: str
    what: str
    unit: str
    least: float
    most: float
    span: int
    """1 inside a residue, 2 with the next."""
    of: Callable[[np.ndarray], np.ndarray]
    """Atoms N, CA, C (n, 3 or 4, 3) -> values (n - span + 1,)."""


def _length(first: np.ndarray, second: np.ndarray) -> np.ndarray:
    found: np.ndarray = np.linalg.norm(second - first, axis=-1)
    return found


def _angle(a: np.ndarray, b: np.ndarray, c: np.ndarray) -> np.ndarray:
    cosine = (geometry.unit(a - b) * geometry.unit(c - b)).sum(-1)
    found: np.ndarray = np.degrees(np.arccos(cosine.clip(-1, 1)))
    return found


def ca_c_n_angles(atoms: np.ndarray) -> np.ndarray:
    """Angles (n - 1,) in degrees at C, between CA and the next N."""
    return _angle(atoms[:-1, CA], atoms[:-1, C], atoms[1:, N])


def c_n_ca_angles(atoms: np.ndarray) -> np.ndarray:
    """Angles (n - 1,) in degrees at the next N, between C and its CA."""
    return _angle(atoms[:-1, C], atoms[1:, N], atoms[1:, CA])


def twists(atoms: np.ndarray) -> np.ndarray:
    """How far the peptides (n - 1,) are from planar, cis or trans, in degrees."""
    here, after = atoms[:-1], atoms[1:]
    omega = np.degrees(np.abs(geometry.dihedral(here[:, CA], here[:, C], after[:, N], after[:, CA])))
    found: np.ndarray = np.minimum(omega, 180 - omega)
    return found


def ca_steps(atoms: np.ndarray) -> np.ndarray:
    """Distances (n - 1,) in angstrom between the CA atoms of neighbours."""
    return _length(atoms[:-1, CA], atoms[1:, CA])


def peptide_bonds(atoms: np.ndarray) -> np.ndarray:
    """Lengths (n - 1,) in angstrom between C and the next N."""
    return _length(atoms[:-1, C], atoms[1:, N])


MEASURES = (
    Measure("bond", "N-CA bond", "Å", 1.37, 1.57, 1, lambda x: _length(x[:, N], x[:, CA])),
    Measure("bond", "CA-C bond", "Å", 1.42, 1.63, 1, lambda x: _length(x[:, CA], x[:, C])),
    Measure("bond", "C-N bond", "Å", 1.24, 1.44, 2, peptide_bonds),
    Measure("angle", "N-CA-C angle", "deg", 94, 127, 1, lambda x: _angle(x[:, N], x[:, CA], x[:, C])),
    Measure("angle", "CA-C-N angle", "deg", 106, 127, 2, ca_c_n_angles),
    Measure("angle", "C-N-CA angle", "deg", 108, 136, 2, c_n_ca_angles),
    Measure("planarity", "twist of the peptide bond", "deg", 0, 52, 2, twists),
)


def backbone_violations(design: Protein, longest: int) -> list[Violation]:
    """The rules that a backbone breaks, by place; residues are named by their authors' numbers."""
    atoms = design.atoms().astype(np.float64)
    broken = ca_steps(atoms) > BREAK
    angles = ramachandran.torsions(atoms)
    angles[1:, 0][broken] = angles[:-1, 1][broken] = np.nan
    found = [
        *_number_of_residues(design, longest),
        *_breaks(design, atoms, broken),
        *(violation for measure in MEASURES for violation in _strained(design, measure, atoms, broken)),
        *_clashes(design, atoms),
        *_outliers(design, angles),
        *_left_handed(design, angles),
    ]
    return sorted(found, key=lambda violation: (violation.start, violation.end, violation.rule, violation.message))


def sequence_violations(design: Protein, longest: int) -> list[Violation]:
    """The rules that a sequence breaks, by place."""
    found = list(_number_of_residues(design, longest))
    for start, end in runs(residues.codes(design.letters) == residues.OTHER):
        message = f"{design.letters[start:end]:.40} at {_place(design, start, end)}: a sequence has only {LETTERS}"
        found.append(Violation("letters", start, end, f"{message}; choose one of them"))
    return found


def clashes(atoms: np.ndarray) -> np.ndarray:
    """Pairs (k, 2), first < second, of residues that are not neighbours with CA atoms closer than `CLASH`."""
    places = atoms[:, CA]
    close = _length(places[:, None], places[None]) < CLASH
    return np.argwhere(np.triu(close, 2))


def runs(marked: ArrayLike) -> list[tuple[int, int]]:
    """Start and end, half-open, of the runs of true values."""
    edges = np.flatnonzero(np.diff(np.concatenate([[False], np.asarray(marked, dtype=bool), [False]])))
    return [(int(start), int(end)) for start, end in edges.reshape(-1, 2)]


def _number_of_residues(design: Protein, longest: int) -> Iterator[Violation]:
    if not 1 <= len(design) <= longest:
        message = f"{len(design)} residues: this domain has 1 to {longest}; cut it or build a longer domain"
        yield Violation("length", 0, len(design), message)


def _breaks(design: Protein, atoms: np.ndarray, broken: np.ndarray) -> Iterator[Violation]:
    steps = ca_steps(atoms)
    for i in np.flatnonzero(broken).tolist():
        message = f"chain break at {_place(design, i, i + 2)}: CA atoms {steps[i]:.2f} Å apart, at most {BREAK:.2f} Å"
        yield Violation("break", i, i + 2, f"{message}; model what is missing")


def _strained(design: Protein, measure: Measure, atoms: np.ndarray, broken: np.ndarray) -> Iterator[Violation]:
    values = measure.of(atoms)
    excess = np.maximum(values - measure.most, measure.least - values)
    if measure.span == 2:
        excess[broken] = -math.inf  # a break is one violation, not four
    for start, end in runs(excess > 0):
        worst = values[start + int(excess[start:end].argmax())]
        last = end + measure.span - 1
        message = f"{measure.what} at {_place(design, start, last)}: {worst:.2f} {measure.unit}"
        limits = f"real ones have {measure.least:g} to {measure.most:g}; rebuild it"
        yield Violation(measure.rule, start, last, f"{message}{' at worst' if end - start > 1 else ''}, {limits}")


def _clashes(design: Protein, atoms: np.ndarray) -> Iterator[Violation]:
    for i, j in clashes(atoms).tolist():
        apart = float(np.linalg.norm(atoms[i, CA] - atoms[j, CA]))
        message = f"clash of {_place(design, i, i + 1)} with {design.numbers[j]}: CA atoms {apart:.2f} Å apart"
        yield Violation("clash", i, j + 1, f"{message}, at least {CLASH:.2f} Å; move them apart")


def _outliers(design: Protein, angles: np.ndarray) -> Iterator[Violation]:
    outside = ramachandran.outliers(angles, residues.codes(design.letters))
    for start, end in runs(outside):
        phi, psi = np.degrees(angles[start]).round().astype(int)
        message = f"Ramachandran outlier at {_place(design, start, end)}: phi {phi}, psi {psi} deg"
        rarity = f"outside what {100 * ramachandran.ALLOWED:g} % of real residues have; rebuild it"
        yield Violation("ramachandran", start, end, f"{message}{' at first' if end - start > 1 else ''}, {rarity}")


def _left_handed(design: Protein, angles: np.ndarray) -> Iterator[Violation]:
    inside = ((angles > _LEFT[:, 0]) & (angles < _LEFT[:, 1])).all(-1)  # nan is not inside
    for start, end in runs(inside):
        if end - start >= LEFT_HANDED:
            message = f"left-handed helix at {_place(design, start, end)}: real ones are right-handed; mirror it"
            yield Violation("handedness", start, end, message)


def _place(design: Protein, start: int, end: int) -> str:
    """Author's numbers of the residues [start, end), after the chain."""
    first, last = design.numbers[start], design.numbers[end - 1]
    return f"{design.chain}:{first}" if end - start == 1 else f"{design.chain}:{first} to {last}"
