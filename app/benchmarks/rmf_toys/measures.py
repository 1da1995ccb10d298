"""How far a sample is from another: maximum mean discrepancy, and one number each for fidelity and coverage."""

from __future__ import annotations

import math
from functools import cache

import torch
from torch import Tensor

from data.noise import StepNoise, stable_seed

RATES = (1.0, 10.0, 50.0)
"""Of the kernel, the mean of exp(-rate d^2) for the chord d."""
PERMUTATIONS = 200


def kernel(squares: Tensor) -> Tensor:
    """The kernel's values for squared chords."""
    found, term = torch.zeros_like(squares), torch.empty_like(squares)
    for rate in RATES:
        # Numbers below the smallest normal one would be a hundred times slower.
        found += torch.mul(squares, -rate, out=term).clamp_min_(-80).exp_()
    return found.div_(len(RATES))


def squared_chords(a: Tensor, b: Tensor) -> Tensor:
    """(n, m) for points (n, d) and (m, d)."""
    lengths = a.square().sum(-1)[:, None] + b.square().sum(-1)
    return lengths.addmm_(a, b.T, alpha=-2).clamp_min_(0)


def discrepancy(between: Tensor, first: Tensor) -> Tensor:
    """The unbiased estimate of MMD^2, (p,) (Gretton et al. 2012, JMLR 13, 723, lemma 6).

    `between` is the kernel (N, N) of two samples one after the other; `first` (N, p) says, p times over, with 1 and 0
    which rows are the first sample, always equally many. A point is not compared with itself.
    """
    own = between.diagonal()
    n = first[:, 0].sum()
    m = len(first) - n
    toward = between @ first
    both = (first * toward).sum(0) - own @ first
    cross = toward.sum(0) - (first * toward).sum(0)
    other = between.sum() - own.sum() - both - 2 * cross
    return both / (n * (n - 1)) + other / (m * (m - 1)) - 2 * cross / (n * m)


@cache
def splits(n: int, total: int) -> Tensor:
    """(total, 1 + PERMUTATIONS), columns of n ones and zeros: the first n points, and then n points at random."""
    rng = StepNoise(stable_seed("permutations", n, total))
    orders = rng.uniform(1 + PERMUTATIONS, total).argsort(-1).argsort(-1)
    orders[0] = torch.arange(total)
    return (orders < n).float().T.contiguous()


def measured(sample: Tensor, reference: Tensor) -> dict[str, float]:
    """How a sample (n, d) differs from a reference (m, d).

    `mmd2` is unbiased, and may be negative; `p` is the share of random splits of all points into two samples that are
    at least as far apart. `fidelity` is the mean chord from a point to the nearest of the reference, `coverage` the
    mean chord from a reference point to the nearest of the sample.
    """
    n, points = len(sample), torch.cat([sample, reference])
    squares = squared_chords(points, points)
    found = discrepancy(kernel(squares), splits(n, len(points)))
    between = squares[:n, n:]
    return {
        "mmd2": found[0].item(),
        "p": (found >= found[0]).float().mean().item(),
        "fidelity": between.amin(1).sqrt().mean().item(),
        "coverage": between.amin(0).sqrt().mean().item(),
    }


def root(squared: float, resolution: float) -> float:
    """MMD from the estimate of its square, which cannot tell less than `resolution` from nothing."""
    return math.sqrt(max(squared, resolution))
