"""How well a backbone rebuilds the residues of a motif at given sites, by the CA atoms after superposition.

Of designs that were made with the same motif locked the deviation is 0 by construction.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from data.space import State
from domains.base import DesignError
from domains.protein import Frames, Protein, motif
from domains.protein.frames import ca_trace
from domains.protein.residues import CA
from rewards.base import RewardError, RewardResult, check_form

FEWEST = 3
"""Fewer atoms can be superposed in any number of ways."""
NEAREST, FARTHEST = 0.01, 100.0


class MotifRmsd:
    """1 where the motif is met, 1 / (1 + (rmsd / scale)^2) elsewhere: 1/2 at a root mean square deviation of `scale`.

    The superposition is by rotations and translations only, so that a mirror image does not meet it.
    """

    domains: tuple[str, ...] = ("protein",)

    def __init__(self, wanted: motif.Motif, scale: float) -> None:
        self.sites = torch.from_numpy(wanted.sites)
        self.places = torch.from_numpy(wanted.backbone[:, CA])
        self.scale = scale

    def __call__(self, designs: Sequence[Protein]) -> RewardResult:
        """Score backbones; `parts` has the deviation in angstrom. Designs too short for a site are not valid, and 0."""
        state = self._long_enough(ca_trace(designs))
        return RewardResult(self.relaxed(state), self._there(state), {"rmsd": self._square(state).sqrt()})

    def relaxed(self, state: State) -> Tensor:
        """The value (B,) of `position` (B, length, 3) in angstrom."""
        return self._there(state) / (1 + self._square(state) / self.scale**2)

    def _there(self, state: State) -> Tensor:
        return state["mask"][:, self.sites.to(state["mask"].device)].all(-1)

    def _square(self, state: State) -> Tensor:
        """Mean square deviation (B,) after the best superposition (Kabsch 1976, Acta Cryst. A32, 922).

        The rotation has no gradient. It needs none: where it is the best one, turning it changes nothing to first
        order, so this is the gradient of the whole, and it is finite where singular values coincide.
        """
        there = state["position"][:, self.sites.to(state["position"].device)]  # (B, n, 3)
        there = there - there.mean(1, keepdim=True)
        here = (self.places - self.places.mean(0)).to(there)
        turned = here @ _rotation(there.detach(), here).mT
        return (there - turned).square().sum(-1).mean(-1)

    def _long_enough(self, state: State) -> State:
        short = max(int(self.sites.max()) + 1 - state["mask"].shape[1], 0)
        pad = torch.nn.functional.pad
        return {"position": pad(state["position"], (0, 0, 0, short)), "mask": pad(state["mask"], (0, short))}


def _rotation(there: Tensor, here: Tensor) -> Tensor:
    """The rotations (B, 3, 3) that bring places `here` (n, 3) nearest to `there` (B, n, 3), all with mean zero."""
    left, _, right = torch.linalg.svd(there.double().mT @ here.double())
    sign = torch.linalg.det(left @ right)[:, None]
    rotation: Tensor = torch.cat([left[..., :2], left[..., 2:] * sign[..., None]], dim=-1) @ right
    return rotation.to(there)


def build(domain: Frames, file: str = "", residues: str = "", at: Sequence[int] = (), scale: float = 2.0) -> MotifRmsd:
    """The reward of the `residues` of a `file`, as A10-A24,A40-A48, at the sites `at` (from 1; evenly spread if none).

    `scale` is the deviation in angstrom at which it is worth half.
    """
    check_form(domain, Frames, "motif_rmsd", "frames")
    if not NEAREST <= scale <= FARTHEST:
        raise RewardError(f"scale={scale}; it is from {NEAREST:g} to {FARTHEST:g} angstrom; choose e.g. 2")
    try:
        wanted = motif.motif(file, residues, at, domain.length)
    except DesignError as error:
        raise RewardError(str(error)) from error
    if len(wanted.sites) < FEWEST:
        raise RewardError(f"residues={residues!r:.60} are {len(wanted.sites)}; it takes {FEWEST} or more; give more")
    return MotifRmsd(wanted, scale)
