"""How the numbers of a network become an average velocity; one way in each file (arXiv 2602.07744, section 3)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

from torch import Tensor

from generators.manifolds.product import Points
from generators.rmf.geometry import Geometry
from generators.rmf.parameterisations.average_velocity import average_velocity
from generators.rmf.parameterisations.x1 import x1
from generators.rmf.parameterisations.xt import xt

__all__ = ["PARAMETERISATIONS", "Parameterisation", "average_velocity", "x1", "xt"]


class Parameterisation(Protocol):
    """u_{s,t}(x), tangents at x, from the network's raw numbers there."""

    def __call__(self, geometry: Geometry, raw: Points, x: Points, mask: Tensor, s: Tensor, t: Tensor) -> Points: ...


PARAMETERISATIONS: Mapping[str, Parameterisation] = {"x1": x1, "xt": xt, "average_velocity": average_velocity}
