"""What a flow map is trained on: flow matching at s = t, and one of the identities between two times.

Each identity is one file with its residual, which is zero for a flow's own average velocity, and its loss
(Woo et al., arXiv 2602.07744). Flow matching is the boundary s = t of them all.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

from torch import Tensor

from data.noise import Noise
from generators.manifolds.product import Points
from generators.rmf.mean_flow import MeanFlow
from generators.rmf.objectives import eulerian, jacobi, lagrangian, semigroup
from generators.rmf.objectives.flow_matching import flow_matching

__all__ = ["OBJECTIVES", "Objective", "flow_matching"]


class Objective(Protocol):
    """The loss (B,) of a flow map on designs; the teacher, an average of the flow maps so far, gets no gradient."""

    def __call__(
        self, flow: MeanFlow, teacher: MeanFlow, ones: Points, mask: Tensor, rng: Noise, clip: float
    ) -> Tensor: ...


OBJECTIVES: Mapping[str, Objective] = {
    "semigroup": semigroup.loss,
    "eulerian": eulerian.loss,
    "jacobi": jacobi.loss,
    "lagrangian_push": lagrangian.push_loss,
    "lagrangian_pull": lagrangian.pull_loss,
}
