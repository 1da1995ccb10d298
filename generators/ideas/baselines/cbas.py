"""Conditioning by adaptive sampling (Brookes et al. 2019, arXiv 1901.10060) with a small variational autoencoder."""

from __future__ import annotations

from copy import deepcopy

import torch
from torch import Tensor, nn

from data.noise import StepNoise
from generators.ideas import surrogate
from generators.ideas.alphabet import Alphabet
from generators.ideas.meter import Meter
from generators.ideas.protocol import CANDIDATES, MEMBERS

LATENT, HIDDEN = 8, 64
FIRST, ITERATIONS, UPDATES = 40, 3, 10
"""Updates of the prior, and of each of the adaptations of a round."""
QUANTILE = 0.8
"""Of the predictions, which the next samples shall exceed."""
RATE = 1e-2
BATCH = 64


class CbAS:
    """Samples of a model that is moved, by weights, to designs that are likely to be better than a rising threshold."""

    def __init__(self, alphabet: Alphabet) -> None:
        self.alphabet = alphabet

    def propose(self, meter: Meter, n: int, rng: StepNoise) -> Tensor:
        """The `n` samples of the highest mean prediction."""
        model = surrogate.fit(self.alphabet, meter.designs, meter.values, MEMBERS, rng.fork(0))
        best = meter.designs[meter.ranking()[: max(10, len(meter.values) // 2)]]
        prior = _Autoencoder(self.alphabet, rng)
        _train(prior, self.alphabet.one_hot(best), torch.ones(len(best)), FIRST, rng)
        moved, level, found = deepcopy(prior), -torch.inf, []
        for _ in range(ITERATIONS):
            z = rng.normal(CANDIDATES // ITERATIONS, LATENT)
            letters = self._drawn(moved, z, best, rng)
            mean, spread = model.predict(letters)
            found.append((letters, mean))
            level = max(level, float(mean.quantile(QUANTILE)))
            cells = self.alphabet.one_hot(letters)
            ratio = (prior.likelihood(z, cells) - moved.likelihood(z, cells)).clamp(-5, 5).exp()
            likely = 1 - torch.special.ndtr((level - mean) / spread.clamp(min=1e-6))
            _train(moved, cells, (ratio * likely).detach(), UPDATES, rng)
        letters, mean = (torch.cat(parts) for parts in zip(*found, strict=True))
        return meter.fresh(letters[mean.argsort(descending=True, stable=True)])[:n]

    @torch.no_grad()
    def _drawn(self, model: _Autoencoder, z: Tensor, best: Tensor, rng: StepNoise) -> Tensor:
        """Letters (N, L, F) of latents (N, Z), with the sites in use of the best designs."""
        noise = -(-rng.uniform(len(z), self.alphabet.space.length, sum(self.alphabet.sizes)).log()).log()
        letters = self.alphabet.best(model(z) + noise)[1]
        like = best[rng.integers(len(best), len(z))]
        return torch.where(self.alphabet.free(like), letters, like)


class _Autoencoder(nn.Module):
    """Gaussian latents (N, Z) and independent letters, one hidden layer each way."""

    def __init__(self, alphabet: Alphabet, rng: StepNoise) -> None:
        super().__init__()
        self.alphabet = alphabet
        cells = alphabet.space.length * sum(alphabet.sizes)
        self.encoder = nn.Sequential(nn.Linear(cells, HIDDEN), nn.ReLU(), nn.Linear(HIDDEN, 2 * LATENT))
        self.decoder = nn.Sequential(nn.Linear(LATENT, HIDDEN), nn.ReLU(), nn.Linear(HIDDEN, cells))
        with torch.no_grad():
            for parameter in self.parameters():
                parameter.copy_(rng.normal(*parameter.shape) / max(1, parameter[0].numel()) ** 0.5)

    def forward(self, z: Tensor) -> Tensor:
        """Log-probabilities (N, L, W) of letters."""
        cells: Tensor = self.decoder(z).view(len(z), self.alphabet.space.length, -1)
        return torch.cat([part.log_softmax(-1) for part in self.alphabet.split(cells)], -1)

    def likelihood(self, z: Tensor, cells: Tensor) -> Tensor:
        """Log-likelihood (N,) of cells (N, L, W)."""
        found: Tensor = (self(z) * cells).sum((1, 2))
        return found

    def loss(self, cells: Tensor, weights: Tensor, rng: StepNoise) -> Tensor:
        """The weighted negative evidence lower bound."""
        mean, log_variance = self.encoder(cells.flatten(1)).chunk(2, -1)
        z = mean + (log_variance / 2).exp() * rng.normal(len(cells), LATENT)
        apart = (mean.square() + log_variance.exp() - 1 - log_variance).sum(-1) / 2
        total: Tensor = (weights * (apart - self.likelihood(z, cells))).sum() / weights.sum().clamp(min=1e-9)
        return total


def _train(model: _Autoencoder, cells: Tensor, weights: Tensor, updates: int, rng: StepNoise) -> None:
    optimiser = torch.optim.Adam(model.parameters(), RATE)
    for _ in range(updates):
        rows = rng.integers(len(cells), min(BATCH, len(cells)))
        optimiser.zero_grad()
        torch.autograd.backward(model.loss(cells[rows], weights[rows], rng))
        nn.utils.clip_grad_norm_(model.parameters(), 10.0)
        optimiser.step()
