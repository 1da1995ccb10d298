"""How far a set of proteins is from real ones."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from domains.base import DesignError
from domains.protein import geometry, ramachandran, residues, rules, secondary
from domains.protein.residues import CA, Protein
from domains.statistics import divergence, wasserstein

BACKBONE_NAMES: tuple[str, ...] = (
    "ca_bonds", "bond_error", "clash_free", "rama_outliers", "diversity", "rg_error", "ss_error",
)  # fmt: skip
SEQUENCE_NAMES: tuple[str, ...] = ("aa_js", "dipeptide_js", "exact_copies")
CA_STEP, CA_TOLERANCE = 3.8, 0.2
RADIUS_FACTOR, RADIUS_EXPONENT = 2.2, 0.38
"""Of compact chains (Skolnick, Kolinski and Ortiz 1997, J. Mol. Biol. 265, 217), in angstrom."""
_NEIGHBOURS = 8
_STATES = secondary.HELIX + secondary.STRAND + secondary.COIL


def of_backbones(designs: Sequence[Protein], reference: Sequence[Protein]) -> dict[str, float]:
    """The metrics in `BACKBONE_NAMES`; all but the last two are the designs' own.

    ca_bonds       share of neighbouring CA atoms within 3.8 +- 0.2 A (a cis peptide, 0.3 % of real ones, is outside)
    bond_error     mean distance of C-N bonds from their ideal length, in angstrom
    clash_free     share of designs without a clash of CA atoms, see `rules.CLASH`
    rama_outliers  share of residues outside the allowed region, see `ramachandran.outliers`
    diversity      mean root mean square difference of the CA-CA distances of two designs, see `diversity`
    rg_error       first Wasserstein distance between the radii of gyration of the sets, each over `typical_radius`
    ss_error       total variation distance between the shares of helix, strand and coil
    """
    _check(designs, reference)
    chains = [design.atoms().astype(np.float64) for design in designs]
    steps = np.concatenate([rules.ca_steps(chain) for chain in chains])
    bonds = np.concatenate([rules.peptide_bonds(chain) for chain in chains])
    return {
        "ca_bonds": _mean(np.abs(steps - CA_STEP) <= CA_TOLERANCE),
        "bond_error": _mean(np.abs(bonds - geometry.C_N)),
        "clash_free": float(np.mean([len(rules.clashes(chain)) == 0 for chain in chains])),
        "rama_outliers": _outliers(designs, chains),
        "diversity": diversity(chains),
        "rg_error": wasserstein(_relative_radii(designs), _relative_radii(reference)),
        "ss_error": float(np.abs(_states(designs) - _states(reference)).sum() / 2),
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


def diversity(chains: Sequence[np.ndarray]) -> float:
    """Mean over pairs of the dRMSD of their first residues, as many as both have, in angstrom; 0 for a single chain.

    A pair is a chain and one of the `_NEIGHBOURS` after it, the first coming after the last.
    """
    maps = [np.linalg.norm(chain[:, None, CA] - chain[None, :, CA], axis=-1) for chain in chains]
    n = len(maps)
    pairs = [(maps[i], maps[(i + k) % n]) for k in range(1, min(n, _NEIGHBOURS + 1)) for i in range(n)]
    shared = [min(len(a), len(b)) for a, b in pairs]
    return _mean(
        np.array([np.sqrt(((a[:m, :m] - b[:m, :m]) ** 2).mean()) for (a, b), m in zip(pairs, shared, strict=True)])
    )


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


def _outliers(designs: Sequence[Protein], chains: Sequence[np.ndarray]) -> float:
    angles = np.concatenate([ramachandran.torsions(chain) for chain in chains])
    codes = residues.codes("".join(design.letters for design in designs))
    outside = ramachandran.outliers(angles, codes)
    return _mean(outside[~np.isnan(angles).any(-1)])


def _relative_radii(designs: Sequence[Protein]) -> np.ndarray:
    return np.array([radius_of_gyration(design.atoms()) / typical_radius(len(design)) for design in designs])


def _states(designs: Sequence[Protein]) -> np.ndarray:
    """Shares (3,) of helix, strand and coil."""
    joined = "".join(secondary.assign(design.atoms(), design.letters) for design in designs)
    found: np.ndarray = np.array([joined.count(state) for state in _STATES]) / len(joined)
    return found


def _words(found: Sequence[np.ndarray], k: int) -> np.ndarray:
    """Frequencies (20^k,) of the words of k letters, pooled over the sequences."""
    windows = [np.lib.stride_tricks.sliding_window_view(codes, k) for codes in found if len(codes) >= k]
    words = np.concatenate([np.zeros((0, k), np.uint8), *windows]).astype(np.int64)
    definite = words[(words < residues.OTHER).all(1)] @ residues.OTHER ** np.arange(k)
    frequencies: np.ndarray = np.bincount(definite, minlength=residues.OTHER**k) / max(len(definite), 1)
    return frequencies
