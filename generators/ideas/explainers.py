"""What each letter would add in place of another: by trying it, or by gradients. All behind one protocol."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

import torch
from torch import Tensor

from generators.ideas.alphabet import UNUSED, Alphabet

POINTS = 16
"""Of the path from the reference to a design."""

Model = Callable[[Tensor], Tensor]
"""Cells (N, L, W) -> values (N,)."""


class Explainer(Protocol):
    """Explains what a model predicts of designs."""

    def __call__(self, model: Model, alphabet: Alphabet, letters: Tensor) -> Tensor:
        """Effects (N, L, W) on designs (N, L, F): the gain by a letter at a site, 0 where the site is not in use."""


@torch.no_grad()
def ism(model: Model, alphabet: Alphabet, letters: Tensor) -> Tensor:
    """In-silico mutagenesis: every substitution is tried."""
    return torch.stack([_tried(model, alphabet, design) for design in letters])


def first_order(model: Model, alphabet: Alphabet, letters: Tensor) -> Tensor:
    """In-silico mutagenesis to the first order: the difference of the gradients of two letters."""
    return _differences(alphabet, letters, _gradient(model, alphabet.one_hot(letters)))


def integrated_gradients(model: Model, alphabet: Alphabet, letters: Tensor) -> Tensor:
    """The same of the mean gradient on the path from equal probabilities to the design.

    Sundararajan et al. 2017, arXiv 1703.01365. Probabilities lie on a simplex, so only differences between letters mean
    anything (Majdandzic et al. 2023, Genome Biology 24, 109).
    """
    cells, reference = alphabet.one_hot(letters), alphabet.uniform(letters)
    path = [torch.lerp(reference, cells, (k + 0.5) / POINTS) for k in range(POINTS)]
    return _differences(alphabet, letters, torch.stack([_gradient(model, point) for point in path]).mean(0))


def _tried(model: Model, alphabet: Alphabet, design: Tensor) -> Tensor:
    """Effects (L, W) on one design (L, F)."""
    site, cell = (design != UNUSED)[:, alphabet.factor_of_cell].nonzero(as_tuple=True)
    factor = alphabet.factor_of_cell[cell]
    others = design.repeat(len(site), 1, 1)
    others[torch.arange(len(site)), site, factor] = cell - alphabet.starts[factor]
    values = model(alphabet.one_hot(torch.cat([design[None], others])))
    effects = torch.zeros(len(design), len(alphabet.factor_of_cell))
    effects[site, cell] = values[1:] - values[0]
    return effects


def _gradient(model: Model, cells: Tensor) -> Tensor:
    with torch.enable_grad():
        point = cells.requires_grad_()
        return torch.autograd.grad(model(point).sum(), point)[0]


def _differences(alphabet: Alphabet, letters: Tensor, gradient: Tensor) -> Tensor:
    present = gradient.gather(-1, alphabet.cell(letters))[..., alphabet.factor_of_cell]
    return (gradient - present) * (letters != UNUSED)[..., alphabet.factor_of_cell]
