"""What stands in for the oracle: an ensemble of Gaussian processes, trained anew on all that was measured.

With some hundred measurements these predict better than perceptrons or convolutions, and what they were not told about
a letter they leave at zero, where a random initialisation would be taken for an explanation.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from data.noise import Noise
from generators.ideas.alphabet import Alphabet

REACH = 0.5
"""Share of the positions that differ between two designs whose values correlate by 1 / e."""
NOISE = 0.01
"""Variance that is not explained, as a share of that of the values."""
FEWEST_VALUES = 3
"""With fewer distinct values there is nothing to learn."""


@dataclass(frozen=True)
class Surrogate:
    """Predicts values, as normal scores: 0 is the median of those measured, 1 is better than 84 % of them.

    The mean of each member is a sum of Gaussian kernels around measured designs, which fall off exponentially with the
    Hamming distance (Rasmussen and Williams 2006, Gaussian Processes for Machine Learning, equation 2.25).
    """

    alphabet: Alphabet
    centres: Tensor
    """(K, L * W), measured designs as cells."""
    weights: Tensor
    """(K, members), of the kernels; zero for designs that a member was not shown."""
    precision: Tensor
    """(members, K, K), the inverse covariance of what a member was shown, zero for the others."""
    trust: float
    """Spearman's correlation of predictions and values of designs that a member was not shown, no less than 0."""

    def members(self, cells: Tensor) -> Tensor:
        """Predictions (N, members) for probabilities of letters (N, L, W); differentiable."""
        return _kernel(self.alphabet, cells.flatten(1), self.centres) @ self.weights

    def mean(self, cells: Tensor) -> Tensor:
        """The ensemble's prediction (N,) for probabilities of letters (N, L, W); differentiable."""
        return self.members(cells).mean(-1)

    @torch.no_grad()
    def predict(self, letters: Tensor) -> tuple[Tensor, Tensor]:
        """Mean and standard deviation (N,) for letters (N, L, F), of the mixture of the members' distributions."""
        near = _kernel(self.alphabet, self.alphabet.one_hot(letters).flatten(1), self.centres)
        means = near @ self.weights
        known = ((near @ self.precision) * near).sum(-1)  # (members, N)
        variance = (1 - known).clamp(min=0).mean(0) + means.var(-1, correction=0)
        return means.mean(-1), variance.sqrt()

    @torch.no_grad()
    def joint(self, letters: Tensor) -> tuple[Tensor, Tensor]:
        """Mean (N,) and covariance (N, N), whose diagonal is the variance of `predict`."""
        cells = self.alphabet.one_hot(letters).flatten(1)
        near = _kernel(self.alphabet, cells, self.centres)
        means = near @ self.weights
        apart = means - means.mean(-1, keepdim=True)
        known = near @ self.precision.mean(0) @ near.T
        return means.mean(-1), _kernel(self.alphabet, cells, cells) - known + apart @ apart.T / means.shape[1]


@torch.no_grad()
def fit(alphabet: Alphabet, letters: Tensor, values: Tensor, members: int, rng: Noise) -> Surrogate:
    """Train on designs (N, L, F) and their values (N,), each member on a bootstrap sample; the rest judge it."""
    centres = alphabet.one_hot(letters).flatten(1)
    kernel = _kernel(alphabet, centres, centres)
    counts = _bootstrap(len(values), members, rng)
    precision = torch.stack([_inverse(kernel, count) for count in counts])
    if len(torch.unique(values)) < FEWEST_VALUES:
        return Surrogate(alphabet, centres, torch.zeros(len(values), members), precision, 0.0)
    targets = standard(values)
    weights = (precision @ targets).T
    unseen = (counts == 0).T
    judged = unseen.any(-1)
    predicted = ((kernel @ weights) * unseen).sum(-1) / unseen.sum(-1).clamp(min=1)
    trust = max(0.0, spearman(predicted[judged], targets[judged]))
    return Surrogate(alphabet, centres, weights, precision, trust)


def spearman(a: Tensor, b: Tensor) -> float:
    """Rank correlation of (N,) and (N,), ties sharing their mean rank; 0 where one of them is constant."""
    ranks = torch.stack([_ranks(a), _ranks(b)])
    if len(a) < 2 or not (ranks.std(-1) > 0).all():
        return 0.0
    return float(torch.corrcoef(ranks)[0, 1])


def standard(values: Tensor) -> Tensor:
    """Normal scores (N,) of values (N,): what matters is which design is better, and no outlier hides the others."""
    scores: Tensor = torch.special.ndtri((_ranks(values) - 0.5) / len(values))
    return scores


def _ranks(x: Tensor) -> Tensor:
    _, inverse, counts = torch.unique(x, return_inverse=True, return_counts=True)
    mean_rank: Tensor = counts.cumsum(0) - (counts - 1) / 2
    return mean_rank[inverse]


def _kernel(alphabet: Alphabet, a: Tensor, b: Tensor) -> Tensor:
    """(N, K) for cells (N, L * W) and (K, L * W); the expected Hamming distance of letters drawn from them."""
    distance = (a.sum(-1, keepdim=True) + b.sum(-1)) / 2 - a @ b.T
    return (-distance / (REACH * alphabet.positions)).exp()


def _bootstrap(rows: int, members: int, rng: Noise) -> Tensor:
    """How often (members, rows) each row is drawn into the sample of each member."""
    drawn = (rng.uniform(members, rows) * rows).long()
    return torch.stack([torch.bincount(sample, minlength=rows) for sample in drawn])


def _inverse(kernel: Tensor, counts: Tensor) -> Tensor:
    """(K, K) of the designs that were drawn; one that was drawn k times has a k-th of the noise."""
    shown = counts > 0
    covariance = kernel[shown][:, shown] + torch.diag(NOISE / counts[shown])
    inverse = torch.zeros_like(kernel)
    inverse[shown[:, None] & shown] = torch.linalg.inv(covariance).flatten()
    return inverse
