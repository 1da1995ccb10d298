"""Numbers as sines and cosines, the way networks like to be told of times and places."""

from __future__ import annotations

import math

import torch
from torch import Tensor


def waves(x: Tensor, longest: float, shortest: float, n: int) -> Tensor:
    """(..., 2 n): sines and cosines of x (...) with n periods from `longest` down to `shortest`."""
    periods = torch.logspace(math.log2(longest), math.log2(shortest), n, base=2, device=x.device)
    angles = 2 * math.pi * x.float()[..., None] / periods
    return torch.cat([angles.sin(), angles.cos()], dim=-1)
