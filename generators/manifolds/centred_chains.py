"""Chains of places whose mean is zero, with a random walk as prior and a metric that feels the links of the chain.

A walk is to a chain what the standard normal is to a single place: neighbours are near each other from the start, so
that a path from noise to data need not bring them together (the polymer prior of Chroma, Ingraham et al. 2023).
"""

from __future__ import annotations

import torch
from torch import Tensor

from data.noise import Noise
from generators.manifolds.euclidean import Euclidean

STEP = 0.22
"""Standard deviation of each coordinate of a step of the walk. At 60 sites the places then have one of 0.7."""


class CentredChains(Euclidean):
    """R^(sites x d) without its common translations; geodesics are straight.

    The metric is sum |v_i|^2 + sum |v_{i+1} - v_i|^2 / STEP^2: places and links, both in units of the prior. Its mean
    is the mean of any other flat metric, so what flow matching learns with it is the same.
    """

    def square(self, x: Tensor, v: Tensor, mask: Tensor | None = None) -> Tensor:
        """Each site's part of the squared length, `[..., sites]`: its own, and that of the link which ends there."""
        link = (v[..., 1:, :] - v[..., :-1, :]).square().sum(-1) / STEP**2
        if mask is not None:
            link = link * (mask[..., 1:] & mask[..., :-1])
        return v.square().sum(-1) + torch.nn.functional.pad(link, (1, 0))

    def project(self, x: Tensor, mask: Tensor | None = None) -> Tensor:
        """x without its mean over the sites in use, `[..., sites, d]`; zero at the others."""
        if mask is None:
            return x - x.mean(-2, keepdim=True)
        keep = mask[..., None].to(x)
        mean = (x * keep).sum(-2, keepdim=True) / keep.sum(-2, keepdim=True).clamp_min(1)
        return (x - mean) * keep

    def tangent(self, x: Tensor, v: Tensor, mask: Tensor | None = None) -> Tensor:
        """v without its mean over the sites in use, `[..., sites, d]`; zero at the others."""
        return self.project(v, mask)

    def random(self, like: Tensor, rng: Noise, mask: Tensor | None = None) -> Tensor:
        """Centred random walks with the shape of `like`."""
        return self.project(STEP * rng.normal(*like.shape).cumsum(-2).to(like), mask)
