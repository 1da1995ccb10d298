"""The Frechet distance of Gaussians and of sets of chains: closed forms, a law of metrics, noise."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.linalg import sqrtm

from domains import protein
from domains.protein import Protein, frechet, geometry, metrics


@pytest.fixture(scope="module")
def val() -> list[Protein]:
    return protein.build(length=100).corpus("val")


def _features(designs: list[Protein]) -> np.ndarray:
    return np.stack([frechet.features(x.atoms(), metrics.typical_radius(len(x))) for x in designs])


def _gaussian(seed: int, k: int = 5) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    root = rng.normal(size=(k, k))
    return rng.normal(size=k), root @ root.T


@pytest.mark.parametrize("seed", range(5))
def test_the_distance_of_gaussians_is_the_textbooks(seed: int) -> None:
    (mean, spread), (its_mean, its) = _gaussian(seed), _gaussian(seed + 50)
    shared = np.trace(sqrtm(spread @ its).real)
    wanted = ((mean - its_mean) ** 2).sum() + np.trace(spread) + np.trace(its) - 2 * shared
    assert frechet.gaussian_distance(mean, spread, its_mean, its) == pytest.approx(wanted)
    assert frechet.gaussian_distance(its_mean, its, mean, spread) == pytest.approx(wanted)


def test_of_gaussians_along_the_axes_in_closed_form() -> None:
    one, other = np.array([4.0, 9.0, 0.0]), np.array([1.0, 25.0, 0.0])
    found = frechet.gaussian_distance(np.zeros(3), np.diag(one), np.array([0, 3.0, 0]), np.diag(other))
    assert found == pytest.approx(9 + (2 - 1) ** 2 + (3 - 5) ** 2)


def test_equal_sets_are_at_zero_and_a_shift_at_its_square() -> None:
    real = np.random.default_rng(0).normal(size=(300, frechet.FEATURES))
    assert frechet.distance(real, real) == pytest.approx(0, abs=1e-9)
    scale = real.std(0)
    assert frechet.distance(real + 3 * scale, real) == pytest.approx(9)
    assert np.isfinite(frechet.distance(real[:1], real))
    assert np.isfinite(frechet.distance(real[:3], real[:1]))


def test_weights_are_repeats() -> None:
    real = np.random.default_rng(0).normal(size=(40, frechet.FEATURES))
    weights = np.arange(40) % 3
    made = real[:20] + 0.5
    repeated = frechet.distance(made, np.repeat(real, weights, axis=0))
    assert frechet.distance(made, real, weights.astype(float)) == pytest.approx(repeated)


def test_features_are_finite_and_keep_their_number_and_meaning(val: list[Protein]) -> None:
    atoms = val[0].atoms().astype(np.float64)
    n = len(atoms)
    found = frechet.features(atoms, metrics.typical_radius(n))
    assert found.shape == (frechet.FEATURES,)
    apart = np.linalg.norm(atoms[:, None, 1] - atoms[None, :, 1], axis=-1)
    assert found[3] == pytest.approx(np.mean([apart[i, i + 5] for i in range(n - 5)]))
    contacts = sum(apart[i, j] < 8 for i in range(n) for j in range(i + 3, n)) / n
    assert found[24:28].sum() == pytest.approx(contacts)
    assert found[28:].sum() == pytest.approx(1)
    for short in (1, 2, 3, 5):
        assert np.isfinite(frechet.features(atoms[:short], 1.0)).all()


def test_features_do_not_change_with_place_orientation_and_hand(val: list[Protein]) -> None:
    atoms = val[0].atoms().astype(np.float64)
    turn = geometry.nearest_rotations(np.random.default_rng(0).normal(size=(3, 3)))
    for other in (atoms @ turn.T + 50, atoms * [1, 1, -1]):
        np.testing.assert_allclose(frechet.features(other, 10.0), frechet.features(atoms, 10.0), atol=1e-9)


def test_the_distance_rises_with_noise_from_the_floor(val: list[Protein]) -> None:
    rng = np.random.default_rng(0)
    real = _features(val[::3])
    some = val[1::3]
    found = [frechet.distance(_features(some), real)]
    for scale in (0.3, 0.6, 1.2, 2.4):
        noisy = [Protein(x.letters, x.atoms() + rng.normal(size=x.atoms().shape) * scale) for x in some]
        found.append(frechet.distance(_features(noisy), real))
    assert (np.diff(found) > 0).all()
    assert found[0] < 0.1 < 1 < found[3]
