"""How far a set of proteins is from real ones, without a model that folds them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from domains.base import DesignError
from domains.protein import frechet, geometry, ramachandran, residues, rules, secondary, sequence_design, similarity
from domains.protein.residues import CA, Protein
from domains.statistics import divergence, wasserstein

BACKBONE_NAMES: tuple[str, ...] = (
    "ca_bonds", "peptide_bonds", "bond_error", "angle_error", "omega_error", "breaks", "clashes", "clash_free",
    "rama_outliers", "left_handed", "rg_error", "helix", "strand", "ss_error", "frechet", "mpnn_nll", "diversity",
    "tm_novelty",
)  # fmt: skip
SEQUENCE_NAMES: tuple[str, ...] = ("aa_js", "dipeptide_js", "exact_copies")
CA_STEP, CA_TOLERANCE = 3.8, 0.2
BOND_TOLERANCE = 0.1
RADIUS_FACTOR, RADIUS_EXPONENT = 2.2, 0.38
"""Of compact chains (Skolnick, Kolinski and Ortiz 1997, J. Mol. Biol. 265, 217), in angstrom."""
_SEQUENCED = 64
"""Designs that sequences are drawn for, which takes most of the time."""
_NEIGHBOURS = 4
_STRATUM = 10
_KEPT = 1 << 13
"""Chains whose portrait is remembered, so that a reference is looked at once for all rows of a table."""
_STATES = secondary.HELIX + secondary.STRAND + secondary.COIL


@dataclass(frozen=True, eq=False)
class Portrait:
    """What the metrics want to know of one chain of n residues; lengths in angstrom, angles in degrees."""

    steps: np.ndarray
    """CA to the next CA (n - 1,)."""
    bonds: np.ndarray
    """C to the next N (n - 1,)."""
    angles: np.ndarray
    """CA-C-N, then C-N-CA (2, n - 1)."""
    twists: np.ndarray
    """How far the peptides are from planar (n - 1,)."""
    clashes: int
    outliers: np.ndarray
    """Bool, of the residues that have both phi and psi."""
    hands: np.ndarray
    """Of its helices, see `secondary.hands`."""
    radius: float
    """Of gyration, over that of a compact chain."""
    states: np.ndarray
    """Residues (3,) in helix, strand and coil."""
    features: np.ndarray
    """See `frechet.features`."""


def of_backbones(designs: Sequence[Protein], reference: Sequence[Protein]) -> dict[str, float]:
    """The metrics in `BACKBONE_NAMES`. What is said of residues or bonds is pooled over the designs.

    Of the designs alone:
    ca_bonds       share of neighbouring CA atoms within 3.8 +- 0.2 A (a cis peptide, 0.3 % of real ones, is outside)
    peptide_bonds  share of C-N bonds within 0.1 A of their ideal length
    bond_error     mean distance of C-N bonds from their ideal length, in angstrom
    breaks         share of neighbours that are not bonded, see `rules.BREAK`
    clashes        pairs of CA atoms that clash, a residue; see `rules.CLASH`
    clash_free     share of designs without one
    rama_outliers  share of residues outside the allowed region, see `ramachandran.outliers`
    left_handed    share of helices that are left-handed, see `secondary.hands`; 0 where there is no helix
    helix, strand  shares of residues, by hydrogen bonds
    mpnn_nll       mean negative log likelihood of a residue, in nats, of sequences that ProteinMPNN draws for the
                   first 64 designs, see `sequence_design.self_likelihood`. It is low for coils as well: a likely
                   sequence is not yet a fold
    diversity      1 - mean TM-score of two designs, see `diversity`

    Against the reference:
    angle_error    first Wasserstein distance of the angles CA-C-N, and of C-N-CA, in degrees: the mean of the two
    omega_error    the same of how far peptides are from planar
    rg_error       first Wasserstein distance of the radii of gyration, each over `typical_radius`
    ss_error       total variation distance between the shares of helix, strand and coil
    frechet        see `frechet.distance`
    tm_novelty     1 - highest TM-score to a chain of the reference, normalised by the design: the mean over designs.
                   Only the chains of the most similar shape are superposed, see `similarity.closest`

    `rg_error`, `ss_error` and `frechet` weigh the chains of the reference so that they have the lengths of the designs.
    """
    _check(designs, reference)
    made, real = ([portrait(design) for design in some] for some in (designs, reference))
    chains, known = ([design.atoms()[:, CA].astype(np.float64) for design in some] for some in (designs, reference))
    weights = length_weights(list(map(len, designs)), list(map(len, reference)))
    bonds, twists = _pooled(made, lambda x: x.bonds), [_pooled(some, lambda x: x.twists) for some in (made, real)]
    helix, strand, coil = _shares(made, np.ones(len(made)))
    return {
        "ca_bonds": _mean(np.abs(_pooled(made, lambda x: x.steps) - CA_STEP) <= CA_TOLERANCE),
        "peptide_bonds": _mean(np.abs(bonds - geometry.C_N) <= BOND_TOLERANCE),
        "bond_error": _mean(np.abs(bonds - geometry.C_N)),
        "angle_error": float(np.mean([_apart(*_angles(made, real, which)) for which in range(2)])),
        "omega_error": _apart(*twists),
        "breaks": _mean(_pooled(made, lambda x: x.steps) > rules.BREAK),
        "clashes": sum(x.clashes for x in made) / sum(map(len, designs)),
        "clash_free": float(np.mean([x.clashes == 0 for x in made])),
        "rama_outliers": _mean(_pooled(made, lambda x: x.outliers)),
        "left_handed": _mean(_pooled(made, lambda x: x.hands) < 0),
        "rg_error": wasserstein(_radii(made), _weighted(_radii(real), weights)),
        "helix": helix,
        "strand": strand,
        "ss_error": float(np.abs(np.array([helix, strand, coil]) - _shares(real, weights)).sum() / 2),
        "frechet": frechet.distance(_features(made), _features(real), weights),
        "mpnn_nll": float(sequence_design.self_likelihood(designs[:_SEQUENCED]).mean()),
        "diversity": diversity(chains),
        "tm_novelty": float(1 - similarity.closest(chains, known).mean()),
    }


def of_sequences(
    designs: Sequence[Protein], reference: Sequence[Protein], train: Sequence[Protein]
) -> dict[str, float]:
    """The metrics in `SEQUENCE_NAMES`: divergences, in nats, of letters and of pairs of neighbours; copies of `train`.

    Letters outside the 20 are left out.
    """
    _check(designs, reference)
    made, real = ([residues.codes(design.letters) for design in some] for some in (designs, reference))
    known = {design.letters for design in train}
    return {
        "aa_js": divergence(_words(made, 1), _words(real, 1)),
        "dipeptide_js": divergence(_words(made, 2), _words(real, 2)),
        "exact_copies": float(np.mean([design.letters in known for design in designs])),
    }


@lru_cache(maxsize=_KEPT)
def portrait(design: Protein) -> Portrait:
    """What there is to know of a chain."""
    atoms = design.atoms().astype(np.float64)
    torsions, size = ramachandran.torsions(atoms), typical_radius(len(design))
    outside = ramachandran.outliers(torsions, residues.codes(design.letters))
    states = secondary.assign(atoms, design.letters)
    return Portrait(
        steps=rules.ca_steps(atoms),
        bonds=rules.peptide_bonds(atoms),
        angles=np.stack([rules.ca_c_n_angles(atoms), rules.c_n_ca_angles(atoms)]),
        twists=rules.twists(atoms),
        clashes=len(rules.clashes(atoms)),
        outliers=outside[~np.isnan(torsions).any(-1)],
        hands=secondary.hands(atoms),
        radius=radius_of_gyration(atoms) / size,
        states=np.array([states.count(state) for state in _STATES]),
        features=frechet.features(atoms, size),
    )


def diversity(chains: Sequence[np.ndarray]) -> float:
    """1 - mean TM-score of pairs of chains of CA atoms (n, 3), normalised by either; 0 for a single chain.

    A pair is a chain and one of the `_NEIGHBOURS` after it, the first coming after the last.
    """
    n = len(chains)
    steps = range(1, min(n, _NEIGHBOURS + 1))
    pairs = np.array([(i, (i + k) % n) for k in steps for i in range(n)], dtype=np.int64).reshape(-1, 2)
    return 1 - _mean(similarity.tm_scores(chains, chains, pairs)) if len(pairs) else 0.0


def length_weights(lengths: Sequence[int], known: Sequence[int]) -> np.ndarray:
    """Weights (m,) of chains of `known` lengths with which they have those of others, in strata of 10 residues.

    With a mean of 1; all 1 where no stratum has both.
    """
    strata, theirs = (np.array(some) // _STRATUM for some in (lengths, known))
    wanted, there = (np.bincount(some, minlength=max(strata.max(), theirs.max()) + 1) for some in (strata, theirs))
    weights = wanted[theirs] / there[theirs]
    found: np.ndarray = weights / weights.mean() if weights.any() else np.ones(len(theirs))
    return found


def radius_of_gyration(atoms: np.ndarray) -> float:
    """Root mean square distance of the CA atoms from their mean, in angstrom."""
    places = atoms[:, CA] - atoms[:, CA].mean(0)
    return float(np.sqrt((places**2).sum(-1).mean()))


def typical_radius(n: int) -> float:
    """Radius of gyration of a compact chain of n residues, in angstrom."""
    return float(RADIUS_FACTOR * n**RADIUS_EXPONENT)


def _check(designs: Sequence[Protein], reference: Sequence[Protein]) -> None:
    empty = next((name for name, some in (("designs", designs), ("reference", reference)) if not some), None)
    if empty:
        raise DesignError(f"no {empty}; metrics want one or more of each")
    if any(not len(design) for design in (*designs, *reference)):
        raise DesignError("a design of 0 residues; metrics want one or more in each; leave it out")


def _mean(values: np.ndarray) -> float:
    return float(values.mean()) if len(values) else 0.0


def _pooled(portraits: Sequence[Portrait], what: Callable[[Portrait], np.ndarray]) -> np.ndarray:
    return np.concatenate([what(found) for found in portraits])


def _angles(made: Sequence[Portrait], real: Sequence[Portrait], which: int) -> list[np.ndarray]:
    return [_pooled(some, lambda x: x.angles[which]) for some in (made, real)]


def _apart(made: np.ndarray, real: np.ndarray) -> float:
    return wasserstein(made, real) if len(made) and len(real) else 0.0


def _radii(portraits: Sequence[Portrait]) -> np.ndarray:
    return np.array([found.radius for found in portraits])


def _features(portraits: Sequence[Portrait]) -> np.ndarray:
    return np.stack([found.features for found in portraits])


def _shares(portraits: Sequence[Portrait], weights: np.ndarray) -> list[float]:
    """Of residues in helix, strand and coil, in chains that count so much."""
    states: np.ndarray = weights @ np.stack([found.states for found in portraits])
    return [float(share) for share in states / states.sum()]


def _weighted(values: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """As many values (m,) that count alike, with the distribution of `values` (m,) that do not."""
    levels = (np.arange(len(values)) + 0.5) / len(values)
    found: np.ndarray = np.quantile(values, levels, weights=weights, method="inverted_cdf")
    return found


def _words(found: Sequence[np.ndarray], k: int) -> np.ndarray:
    """Frequencies (20^k,) of the words of k letters, pooled over the sequences."""
    windows = [np.lib.stride_tricks.sliding_window_view(codes, k) for codes in found if len(codes) >= k]
    words = np.concatenate([np.zeros((0, k), np.uint8), *windows]).astype(np.int64)
    definite = words[(words < residues.OTHER).all(1)] @ residues.OTHER ** np.arange(k)
    frequencies: np.ndarray = np.bincount(definite, minlength=residues.OTHER**k) / max(len(definite), 1)
    return frequencies
