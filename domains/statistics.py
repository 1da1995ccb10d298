"""Distances between distributions that the metrics of several domains share."""

from __future__ import annotations

import numpy as np


def divergence(p: np.ndarray, q: np.ndarray) -> float:
    """Jensen-Shannon divergence of frequencies (k,), 0 to ln 2 nats (Lin 1991, IEEE Trans. Inf. Theory 37, 145)."""
    middle = (p + q) / 2
    return (_relative_entropy(p, middle) + _relative_entropy(q, middle)) / 2


def wasserstein(a: np.ndarray, b: np.ndarray) -> float:
    """First Wasserstein distance of two samples (n,) and (m,): the area between their distribution functions."""
    values = np.unique(np.concatenate([a, b]))
    below = [np.searchsorted(np.sort(x), values[:-1], side="right") / len(x) for x in (a, b)]
    return float((np.abs(below[0] - below[1]) * np.diff(values)).sum())


def _relative_entropy(p: np.ndarray, q: np.ndarray) -> float:
    some = p > 0
    return float(np.sum(p[some] * np.log(p[some] / q[some])))
