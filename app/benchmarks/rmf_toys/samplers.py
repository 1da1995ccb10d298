"""Exact samples of laws on spheres and rotations; each of shape (n, d), float64."""

from __future__ import annotations

import numpy as np
from numpy.random import Generator

TURNS, PITCH, WIDTH = 5, 0.5, 0.05


def helix(n: int, rng: Generator) -> np.ndarray:
    """Points (n, 3) round the equator of S^2: a helix of `TURNS` turns on a cylinder, blurred, seen from the centre."""
    turn = rng.uniform(-np.pi, np.pi, n)
    curve = np.stack([np.cos(TURNS * turn), np.sin(TURNS * turn), PITCH * turn], axis=-1)
    return unit(unit(curve) + WIDTH * rng.standard_normal((n, 3)))


def von_mises_fisher(means: np.ndarray, concentration: float, rng: Generator) -> np.ndarray:
    """Points of S^2 with density proportional to exp(k <m, x>), one for each unit vector m (n, 3).

    The height along m has an inverse distribution function in closed form on S^2 (Ulrich 1984, Appl. Stat. 33, 158).
    """
    n = len(means)
    height = 1 + np.log(rng.uniform(np.exp(-2 * concentration), 1, n)) / concentration
    across = rng.standard_normal((n, 3))
    across = unit(across - (across * means).sum(-1, keepdims=True) * means)
    found: np.ndarray = height[:, None] * means + np.sqrt((1 - height**2).clip(0))[:, None] * across
    return found


def matrix_fisher(parameter: np.ndarray, n: int, rng: Generator) -> np.ndarray:
    """Rotation matrices (n, 9) with density proportional to exp(tr(F^T R)) for F (3, 3).

    As quaternions they have a Bingham law, drawn by rejection from an angular central Gaussian (Kent, Ganeiber and
    Mardia 2013, arXiv 1310.8110).
    """
    energy, axes = np.linalg.eigh(davenport(parameter))
    lacking = energy[-1] - energy  # of exp(-sum lacking_i q_i^2), one of them 0
    breadth = _breadth(lacking)
    precision = 1 + 2 * lacking / breadth
    highest = np.exp((breadth - 4) / 2) * (4 / breadth) ** 2
    found = np.zeros((0, 4))
    while len(found) < n:
        tried = unit(rng.standard_normal((2 * n, 4)) / np.sqrt(precision))
        envelope = highest * ((tried**2) @ precision) ** -2
        kept = rng.uniform(0, 1, 2 * n) * envelope < np.exp(-(tried**2) @ lacking)
        found = np.concatenate([found, tried[kept]])
    return rotations(found[:n] @ axes.T)


def davenport(parameter: np.ndarray) -> np.ndarray:
    """The symmetric K (4, 4) with q^T K q = tr(F^T R(q)) for unit quaternions q, real part first."""
    basis = np.eye(4)
    pairs = rotations(unit((basis[:, None] + basis[None]).reshape(16, 4))) @ parameter.reshape(9)
    own = pairs.reshape(4, 4).diagonal()
    # Of (e_i + e_j) / sqrt(2) the form is (K_ii + K_jj) / 2 + K_ij.
    found: np.ndarray = np.where(np.eye(4, dtype=bool), own, pairs.reshape(4, 4) - (own[:, None] + own) / 2)
    return found


def rotations(quaternions: np.ndarray) -> np.ndarray:
    """The matrices (n, 9), row by row, of unit quaternions (n, 4), real part first."""
    w, x, y, z = quaternions.T
    rows = [
        *(1 - 2 * (y * y + z * z), 2 * (x * y - w * z), 2 * (x * z + w * y)),
        *(2 * (x * y + w * z), 1 - 2 * (x * x + z * z), 2 * (y * z - w * x)),
        *(2 * (x * z - w * y), 2 * (y * z + w * x), 1 - 2 * (x * x + y * y)),
    ]
    return np.stack(rows, axis=-1)


def unit(x: np.ndarray) -> np.ndarray:
    """x / |x|."""
    found: np.ndarray = x / np.linalg.norm(x, axis=-1, keepdims=True)
    return found


def _breadth(lacking: np.ndarray) -> float:
    """The b in (0, 4] with sum 1 / (b + 2 lacking_i) = 1, at which fewest are rejected; by bisection."""
    low, high = 0.0, 4.0
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if (1 / (middle + 2 * lacking)).sum() > 1 else (low, middle)
    return high
