"""Distances of distributions against SciPy."""

import math

import numpy as np
import pytest
from scipy.spatial.distance import jensenshannon
from scipy.stats import wasserstein_distance

from domains.statistics import divergence, wasserstein


@pytest.mark.parametrize("seed", range(5))
def test_both_are_scipys(seed: int) -> None:
    rng = np.random.default_rng(seed)
    p, q = rng.dirichlet(np.ones(9)) * rng.integers(0, 2, 9), rng.dirichlet(np.ones(9))
    p = p / p.sum()
    assert divergence(p, q) == pytest.approx(jensenshannon(p, q) ** 2)
    for a, b in ((rng.normal(size=40), rng.normal(1, 2, 70)), (rng.integers(3, 30, 50), rng.integers(5, 90, 7))):
        assert wasserstein(a, b) == pytest.approx(wasserstein_distance(a, b))


def test_extremes() -> None:
    one, other = np.array([1.0, 0.0]), np.array([0.0, 1.0])
    assert divergence(one, one) == 0
    assert divergence(one, other) == pytest.approx(math.log(2))
    assert wasserstein(np.array([2]), np.array([2])) == 0
    assert wasserstein(np.array([2]), np.array([5])) == 3
