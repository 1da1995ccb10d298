"""Frechet distance of two sets of chains on statistics of their CA distance maps, without a network.

The measure is that of Heusel et al. 2017 (arXiv 1706.08500), as Geffner et al. 2025 (arXiv 2503.00710) use it for
backbones with the features of a trained network. These features are plain ones. They do not change with the place,
the orientation or the mirror image of a chain.
"""

from __future__ import annotations

import numpy as np

from domains.protein.residues import CA

SEPARATIONS = (2, 3, 4, 5, 6, 8, 10, 13, 16, 20, 25, 30)
"""Residues along the chain whose distances get a mean and a spread each."""
CONTACT = 8.0
_REACHES = (3, 6, 12, 24)
"""Contacts are counted apart for residues that are so far along the chain, or further up to the next of these."""
_BINS = np.linspace(0.25, 4, 16)
_CLOSE_BY = 3
FEATURES = 2 * len(SEPARATIONS) + len(_REACHES) + len(_BINS) - 1
_RARE = 0.05
"""Standard deviations below this share of the largest of their kind count as it, so that no feature explodes."""
_KINDS = np.repeat(np.arange(4), [len(SEPARATIONS), len(SEPARATIONS), len(_REACHES), len(_BINS) - 1])
SHRINKAGE = 0.1
"""Share of the diagonal in a covariance."""


def features(atoms: np.ndarray, radius: float) -> np.ndarray:
    """Those (43,) of a chain whose typical radius of gyration is `radius` angstrom.

    Mean and standard deviation of the distances at each of `SEPARATIONS`; contacts within `CONTACT` a residue, near
    and far along the chain; shares of the distances in bins of a quarter radius, to 4 radii.
    """
    places = np.asarray(atoms[:, CA], np.float64)
    n = len(places)
    apart = np.linalg.norm(places[:, None] - places[None], axis=-1)
    along = [apart.diagonal(min(gap, n - 1)) for gap in SEPARATIONS]
    first, second = np.triu_indices(n, _CLOSE_BY)
    far, gaps = apart[first, second], second - first
    reach = np.searchsorted(_REACHES, gaps[far < CONTACT], side="right") - 1
    contacts = np.bincount(reach, minlength=len(_REACHES)) / n
    shares = np.histogram((far / radius).clip(_BINS[0], _BINS[-1]), _BINS)[0] / max(len(far), 1)
    return np.array([*(gap.mean() for gap in along), *(gap.std() for gap in along), *contacts, *shares])


def distance(made: np.ndarray, real: np.ndarray, weights: np.ndarray | None = None) -> float:
    """Squared Frechet distance of the Gaussians fitted to features (n, k) and (m, k), over k.

    In units of the weighted standard deviations of `real`, whose rows have `weights` (m,), or one each. A sample of n
    real chains is not at 0, but at a floor that falls with n.
    """
    weights = np.ones(len(real)) if weights is None else weights
    scale = _spread(real, weights)
    return gaussian_distance(*_fitted(made / scale, np.ones(len(made))), *_fitted(real / scale, weights)) / len(scale)


def gaussian_distance(mean: np.ndarray, covariance: np.ndarray, its_mean: np.ndarray, its: np.ndarray) -> float:
    """Squared Frechet distance of two Gaussians (Dowson and Landau 1982, J. Multivariate Anal. 12, 450)."""
    root = _root(its)
    shared = np.sqrt(np.linalg.eigvalsh(root @ covariance @ root).clip(min=0)).sum()
    found = np.square(mean - its_mean).sum() + np.trace(covariance) + np.trace(its) - 2 * shared
    return float(max(found, 0.0))


def _fitted(rows: np.ndarray, weights: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Mean (k,) and covariance (k, k), shrunk towards its diagonal."""
    mean = np.average(rows, axis=0, weights=weights)
    covariance = np.cov(rows, rowvar=False, aweights=weights, ddof=0)
    return mean, (1 - SHRINKAGE) * covariance + SHRINKAGE * np.diag(np.diag(covariance))


def _spread(rows: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """Standard deviations (k,); 1 where all of a kind are 0."""
    mean = np.average(rows, axis=0, weights=weights)
    found = np.sqrt(np.average((rows - mean) ** 2, axis=0, weights=weights))
    least = np.array([found[kind == _KINDS].max() for kind in range(_KINDS.max() + 1)]) * _RARE
    floored = np.maximum(found, least[_KINDS])
    return np.where(floored > 0, floored, 1.0)


def _root(covariance: np.ndarray) -> np.ndarray:
    values, vectors = np.linalg.eigh(covariance)
    root: np.ndarray = (vectors * np.sqrt(values.clip(min=0))) @ vectors.T
    return root
