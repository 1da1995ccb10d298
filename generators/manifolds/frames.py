"""Chains of frames, SE(3)^N: a place and a turn for each site."""

from __future__ import annotations

from generators.manifolds.centred_chains import CentredChains
from generators.manifolds.product import Product
from generators.manifolds.rotations import Rotations


def frames() -> Product:
    """The product of chains of `place`s `[..., sites, 3]` with mean zero and of `turn`s `[..., sites, 9]`.

    It is a product of metrics, as in FrameDiff (Yim et al. 2023): places go straight while rotations turn. The screw
    motions that are geodesics of the group SE(3) itself have no place here. Turning all places and, from the left, all
    rotations by the same rotation is an isometry.
    """
    return Product({"place": CentredChains(), "turn": Rotations()})
