"""TM-score: its formula, invariance, a slow alignment, and TM-align where it is installed."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from domains import protein
from domains.protein import geometry, similarity

RNG = np.random.default_rng(0)


@pytest.fixture(scope="module")
def chains() -> list[np.ndarray]:
    """CA atoms of some real chains."""
    return [design.atoms()[:, 1].astype(np.float64) for design in protein.build(length=100).corpus("val")[:80:4]]


def _scores(first: list[np.ndarray], second: list[np.ndarray]) -> np.ndarray:
    return similarity.tm_scores(first, second, np.stack([np.arange(len(first))] * 2, axis=1))


def _turned(chain: np.ndarray) -> np.ndarray:
    turn = geometry.nearest_rotations(np.random.default_rng(1).normal(size=(3, 3)))
    return chain @ turn.T + [10.0, -70.0, 3.0]


def test_a_chain_is_like_itself_wherever_it_is_and_unlike_its_mirror_image(chains: list[np.ndarray]) -> None:
    np.testing.assert_allclose(_scores(chains, [_turned(chain) for chain in chains]), 1, atol=1e-4)
    assert _scores(chains, [chain * [1, 1, -1] for chain in chains]).max() < 0.75


def test_a_piece_is_found_at_its_offset_and_divided_by_the_first(chains: list[np.ndarray]) -> None:
    pieces = [_turned(chain)[7:-9] for chain in chains]
    np.testing.assert_allclose(_scores(pieces, chains), 1, atol=1e-4)
    shares = [len(piece) / len(chain) for piece, chain in zip(pieces, chains, strict=True)]
    found = _scores(chains, pieces)
    assert (found >= np.array(shares) - 1e-4).all()
    assert (found <= np.array(shares) + 1e-4).all()


def test_a_deletion_is_bridged_by_a_gap(chains: list[np.ndarray]) -> None:
    cut = [np.concatenate([chain[:20], chain[26:]]) for chain in chains]
    wanted = [1 - 6 / len(chain) for chain in chains]
    assert (np.array(wanted) - _scores(chains, cut)).max() < 0.02


def test_noise_lowers_the_score_as_its_formula_says() -> None:
    """Every other point of a long walk is moved by 2 d0, where it counts one fifth."""
    n = 101
    d0 = float(similarity.length_scale(np.array([n]))[0])
    assert d0 == pytest.approx(1.24 * 86 ** (1 / 3) - 1.8)
    walk = np.cumsum(RNG.normal(size=(n, 3)) * 20, axis=0)
    moved = walk.copy()
    moved[::2] += geometry.unit(RNG.normal(size=(51, 3))) * 2 * d0
    assert _scores([walk], [moved])[0] == pytest.approx((50 + 51 / 5) / n, abs=0.02)


def _slow(matches: np.ndarray, gap: float) -> float:
    """The best sum over all alignments, by trying each."""
    n, m = matches.shape
    best = -np.inf
    for k in range(1, min(n, m) + 1):
        for rows, columns in itertools.product(
            itertools.combinations(range(n), k), itertools.combinations(range(m), k)
        ):
            steps = zip(np.diff(rows), np.diff(columns), strict=True)
            gaps = sum((a, b) != (1, 1) for a, b in steps)
            best = max(best, matches[rows, columns].sum() - gap * gaps)
    return float(best)


@pytest.mark.parametrize(("n", "m"), [(4, 5), (5, 4), (1, 3), (3, 1)])
@pytest.mark.parametrize("gap", [0.0, 0.3, 0.6])
def test_alignments_are_the_best_there_are(n: int, m: int, gap: float) -> None:
    matches = np.random.default_rng(n).random((10, n, m)).astype(np.float32)
    for partners, own in zip(similarity.align(matches, gap), matches, strict=True):
        rows = np.flatnonzero(partners >= 0)
        columns = partners[rows]
        assert (np.diff(columns) > 0).all()
        gaps = sum((a, b) != (1, 1) for a, b in zip(np.diff(rows), np.diff(columns), strict=True))
        assert own[rows, columns].sum() - gap * gaps == pytest.approx(_slow(own, gap), abs=1e-5)


def test_the_closest_is_found_among_others(chains: list[np.ndarray]) -> None:
    noisy = [chain + RNG.normal(size=chain.shape) * 0.3 for chain in chains[:4]]
    found = similarity.closest(noisy, chains, count=2)
    assert (found > 0.9).all()
    assert (found >= similarity.closest(noisy, chains, count=1) - 1e-9).all()
    assert similarity.closest(noisy, chains[4:]).max() < 0.8


@pytest.mark.parametrize("n", [1, 2, 3, 5, 12])
def test_short_chains_have_a_score(n: int) -> None:
    one, other = RNG.normal(size=(n, 3)) * 4, RNG.normal(size=(9, 3)) * 4
    found = similarity.tm_scores([one, other], [other, one], np.array([[0, 0], [1, 1]]))
    assert np.isfinite(found).all()
    assert (found > 0).all()
    assert (found <= 1 + 1e-6).all()


def test_pairs_do_not_depend_on_their_company(chains: list[np.ndarray]) -> None:
    pairs = np.array([[0, 1], [2, 3], [4, 0]])
    together = similarity.tm_scores(chains, chains, pairs)
    alone = [similarity.tm_scores(chains, chains, pair[None])[0] for pair in pairs]
    np.testing.assert_allclose(together, alone, atol=1e-5)


def test_scores_are_nearly_those_of_tm_align_and_hardly_above(chains: list[np.ndarray]) -> None:
    tmtools = pytest.importorskip("tmtools")
    pairs = np.stack([np.arange(len(chains)), np.roll(np.arange(len(chains)), 3)], axis=1)
    relatives = [np.concatenate([c[:15], c[18:]]) + RNG.normal(size=(len(c) - 3, 3)) for c in chains]
    for others, margin in ((chains, 0.08), (relatives, 0.01)):
        pairs = pairs if others is chains else np.stack([np.arange(len(chains))] * 2, axis=1)
        found = similarity.tm_scores(chains, others, pairs)
        theirs = [
            tmtools.tm_align(chains[i], others[j], "A" * len(chains[i]), "A" * len(others[j])).tm_norm_chain1
            for i, j in pairs.tolist()
        ]
        assert np.mean(np.array(theirs) - found) < margin
        assert np.max(found - np.array(theirs)) < 0.06
