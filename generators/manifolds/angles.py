"""The angle of a sine and a cosine, rounded alike wherever in a tensor it stands."""

from __future__ import annotations

import math

import torch
from torch import Tensor


def angle(sine: Tensor, cosine: Tensor) -> Tensor:
    """The angle in [0, pi] of a sine >= 0 and a cosine, both times any positive number; 0 where both are 0.

    `torch.atan2` rounds the last numbers of a tensor otherwise than the first ones, which vector instructions compute,
    so that a design would depend on the company that it is made in.
    """
    steep = sine > cosine.abs()
    over, under = torch.where(steep, cosine, sine), torch.where(steep, sine, cosine)
    tangent = torch.atan(over / torch.where(under == 0, 1.0, under))
    return torch.where(steep, math.pi / 2 - tangent, torch.where(cosine < 0, math.pi + tangent, tangent))
