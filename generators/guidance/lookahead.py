"""Gradient guidance on the look-ahead: climb the score of the finished design that a half-finished one will become.

The direction is that of the reference inference code of Riemannian MeanFlow (arXiv 2602.07744), the gradient by x
of score(X_{t,1}(x)). Its length is fixed in the generator's own units, so that the scale of a score does not matter,
and a move that does not raise a design's own score is not made.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from data.noise import Noise
from data.space import State
from generators.base import Flight, GeneratorError, Score

STRONGEST = 100.0


@dataclass(frozen=True)
class LookAhead:
    """Before each step, move every design up the score by `2 strength (1 - t) dt`, root mean square over its sites.

    That is `strength` in all from t = 0 to 1, and ever less as there is less noise: what is moved when it is nearly
    finished, no later step can mend.
    """

    strength: float = 1.0
    needs_gradient: bool = True

    def __call__(self, flight: Flight, score: Score, rng: Noise) -> State:
        """The flight's x, moved where that raises the score of its look-ahead. Raises for scores without gradient."""
        before, gradient = _climb(flight, score)
        length = 2 * self.strength * (1 - flight.t) * flight.dt
        moved = flight.move(flight.x, {name: length * part for name, part in _unit(gradient).items()})
        better = score(flight.finish(moved)) > before
        return {
            name: torch.where(better.reshape(-1, *[1] * (value.ndim - 1)), moved[name], value)
            for name, value in flight.x.items()
        }


def build(strength: float = 1.0) -> LookAhead:
    """Guidance of a given strength, in units of the generator's coordinates, of all steps together."""
    if not 0 <= strength <= STRONGEST:
        raise GeneratorError(f"strength is {strength}; it must be from 0 to {STRONGEST:g}")
    return LookAhead(strength)


def _climb(flight: Flight, score: Score) -> tuple[Tensor, State]:
    """The score (B,) of the look-ahead and its gradient by x."""
    with torch.enable_grad():
        leaves = {name: value.detach().requires_grad_() for name, value in flight.x.items()}
        value = score(flight.finish(leaves))
        if not value.requires_grad:
            raise GeneratorError("guidance=lookahead needs rewards with a gradient; use guidance=free with these")
        parts = torch.autograd.grad(value.sum(), list(leaves.values()))
    return value.detach(), dict(zip(leaves, parts, strict=True))


def _unit(gradient: State) -> State:
    """The gradient of each design divided by its root mean square length over sites; zero stays zero."""
    sites = next(iter(gradient.values())).shape[1]
    square = sum(part.square().flatten(1).sum(-1) for part in gradient.values())
    norm = (torch.as_tensor(square) / sites).sqrt().clamp_min(1e-12)
    return {name: part / norm[:, None, None] for name, part in gradient.items()}
