"""How many hotspots of a target a backbone touches, without running into the target.

The target stays where it is while a design, whose own centre is the middle of its CA atoms, is put beside it: that
centre lies `away` from the middle of the hotspots, on the side that the target's middle is not. It is not turned, so
whoever climbs this reward turns the design too.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from data.space import State
from domains.base import DesignError
from domains.protein import Frames, Protein, motif
from domains.protein.frames import ca_trace
from rewards.base import RewardError, RewardResult, check_form

CONTACT = 8.0
"""A hotspot is touched by a CA as near as this, in angstrom."""
CLASH = 3.4
"""A CA nearer than this to a heavy atom of the target runs into it, in angstrom."""
MOST_ATOMS = 10_000
FARTHEST = 100.0


class HotspotContacts:
    """1 where every hotspot is touched and nothing clashes.

    A hotspot whose nearest CA is further away than `CONTACT` counts 1 / (1 + (distance / CONTACT - 1)^2); the mean over
    hotspots is divided by 1 + what residues overlap with the target, each by its largest share of `CLASH`.
    """

    domains: tuple[str, ...] = ("protein",)

    def __init__(self, hotspots: np.ndarray, target: np.ndarray) -> None:
        """Places (h, 3) and (t, 3) in angstrom, relative to where the centre of a design is."""
        self.hotspots, self.target = torch.from_numpy(hotspots).float(), torch.from_numpy(target).float()

    def __call__(self, designs: Sequence[Protein]) -> RewardResult:
        """Score backbones; `parts` has the share of hotspots touched and the number of residues that clash.

        A design without residues is not valid and scores 0.
        """
        state = ca_trace(designs)
        used, near, deep = state["mask"], *self._measured(state)
        parts = {"touched": (near <= CONTACT).float().mean(-1), "clashes": ((deep > 0) & used).sum(-1)}
        return RewardResult(self.relaxed(state), used.any(-1), parts)

    def relaxed(self, state: State) -> Tensor:
        """The value (B,) of `position` (B, length, 3) in angstrom, over the sites in use."""
        near, deep = self._measured(state)
        touched = 1 / (1 + (near / CONTACT - 1).clamp(min=0).square())
        return state["mask"].any(-1) * touched.mean(-1) / (1 + deep.sum(-1))

    def _measured(self, state: State) -> tuple[Tensor, Tensor]:
        """Distance (B, h) of each hotspot from its nearest CA; overlap (B, length) of each site, as a share."""
        used, places = state["mask"], state["position"]
        if not used.shape[1]:
            return places.new_full((len(used), len(self.hotspots)), FARTHEST), places.sum(-1)
        count = used.sum(-1).clamp(min=1)[:, None, None]
        centred = places - (places * used[..., None]).sum(1, keepdim=True) / count
        near = _distances(centred, self.hotspots).masked_fill(~used[..., None], FARTHEST).amin(1)
        closest = _distances(centred, self.target).amin(-1)
        return near, (1 - closest / CLASH).clamp(min=0) * used


def _distances(places: Tensor, others: Tensor) -> Tensor:
    """(B, L, n) between places (B, L, 3) and others (n, 3)."""
    return torch.cdist(places, others.to(places), compute_mode="donot_use_mm_for_euclid_dist")


def build(domain: Frames, file: str = "", hotspots: str = "", away: float = 15.0) -> HotspotContacts:
    """The reward of touching `hotspots` of the target in a `file`: residues as A30,A33, or atoms of them as A30.NZ.

    A residue's own atom is CB, or CA where it has none. `away` is the distance of a design's centre from theirs, in
    angstrom.
    """
    check_form(domain, Frames, "hotspot_contacts", "frames")
    if not file or not hotspots:
        raise RewardError(f"file={file!r:.100} hotspots={hotspots!r:.100}; give both, as target.pdb and A30,A33")
    if not 0 <= away <= FARTHEST:
        raise RewardError(f"away={away}; it is from 0 to {FARTHEST:g} angstrom; choose e.g. 15")
    try:
        there = motif.read(Path(file))
        chosen = np.array([_atom(there, word, Path(file)) for word in re.split(r"[,/\s]+", hotspots.strip(",/ "))])
    except DesignError as error:
        raise RewardError(str(error)) from error
    target = np.array([place for atoms in there.values() for place in atoms.values()])
    if len(target) > MOST_ATOMS:
        raise RewardError(f"{file} has {len(target)} heavy atoms; a target has at most {MOST_ATOMS}; cut it")
    outwards = chosen.mean(0) - target.mean(0)
    size = float(np.linalg.norm(outwards))
    centre = chosen.mean(0) + away * (outwards / size if size > 1e-6 else np.array([0.0, 0.0, 1.0]))
    return HotspotContacts(chosen - centre, target - centre)


def _atom(there: motif.Residues, word: str, path: Path) -> np.ndarray:
    """The place (3,) of a hotspot such as A30 or A30.NZ."""
    residue, _, atom = word.partition(".")
    ((first, last),) = motif.stretches(residue)
    (key, *more) = motif.between(there, first, last, path)
    if more:
        raise DesignError(f"hotspot {word!r:.40} is a stretch; name single residues, as A30,A33")
    atoms = there[key]
    atom = atom or ("CB" if "CB" in atoms else "CA")
    if atom not in atoms:
        raise DesignError(f"{path}: residue {motif.name(key)} has {', '.join(atoms):.60}, no {atom:.10}; name another")
    return atoms[atom]
