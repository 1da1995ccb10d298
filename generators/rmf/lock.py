"""Sites that are held at given values while the rest of a design is made around them.

At time s a held site is where a path of training would have it: on the geodesic from its own noise to its value, and
the network tells the others of it. This is the replacement method of inpainting (Song et al., arXiv 2011.13456): it
leads to designs that fit what is held, but not exactly to the model's distribution given it.

Along a chain of frames the others follow a held one too: where it is put elsewhere than the model had it, the places
between two held sites are moved by what lies between their two ways, those behind the last by its way. That is the
change that stretches the links least, in the metric of the links of `CentredChains`.
"""

from __future__ import annotations

import torch
from torch import Tensor

from data.space import Categorical, Real, Rotation, Space, State
from generators.base import GeneratorError
from generators.manifolds.rotations import Rotations, product
from generators.rmf.flow_map import frames
from generators.rmf.geometry import Geometry, Points

_TOLERANCE = 1e-3
"""How far a value may be from the manifold of its factor."""


class Lock:
    """The values of the sites in the mask of a state of one design; see `generators.base.Holding`.

    Frames are given up to one rigid motion of them all. It is chosen anew at each step: the one that brings them
    nearest to where the model would have these sites (Kabsch 1976), in the ambient metric of places and rotations.
    """

    def __init__(self, space: Space, geometry: Geometry, given: State) -> None:
        """Raises `GeneratorError` for values that no design of the space has."""
        _check(space, geometry, given)
        self.geometry, self.chain = geometry, frames(space)
        self.given = given
        self.sites = given["mask"]
        self.last = int(self.sites[0].nonzero().max())
        self.points = geometry.points(given)
        self.shares = _shares(self.sites[0])

    def lengths(self, counts: Tensor) -> Tensor:
        """How often designs have 1, 2, ... sites, without those too short; `GeneratorError` where none are left."""
        long = counts * (torch.arange(len(counts)) >= self.last)
        if not long.any():
            most = int(counts.nonzero().max()) + 1
            raise GeneratorError(f"site {self.last + 1} is locked, and designs have at most {most}; lock earlier ones")
        return long

    def onto(self, end: Points, mask: Tensor) -> Points:
        """Points at time 1 with the held sites at their values; centred where the space is."""
        return self._fitted(end, self._posed(end), mask)

    def along(self, x: Points, end: Points, start: Points, t: float, mask: Tensor) -> Points:
        """x at time t with the held sites on the way from `start`, their noise, to their values as posed for `end`."""
        posed = self._posed(end)
        if t < 1:
            posed = self.geometry.along(start, posed, mask.new_full((len(mask),), t, dtype=torch.float32))
        return self._fitted(x, posed, mask)

    def still(self, x: Points, moved: Points) -> Points:
        """`moved`, with the held sites where they are in x."""
        return self._replaced(moved, x)

    def numb(self, x: Points) -> Points:
        """x, without a gradient at the held sites."""
        return self._replaced(x, {name: value.detach() for name, value in x.items()})

    def exact(self, state: State) -> State:
        """A finished state with the given values to the last bit, where they have no pose."""
        return state if self.chain else self._replaced(state, self.given) | {"mask": state["mask"]}

    def _replaced(self, x: Points, y: Points) -> Points:
        """y at the held sites, x at the others."""
        return {name: torch.where(self.sites[..., None], y[name], x[name]) for name in self.points}

    def _posed(self, end: Points) -> Points:
        """The given points for each design (B, L, width), of frames moved rigidly towards their sites in `end`."""
        if not self.chain:
            return {name: point.expand_as(end[name]) for name, point in self.points.items()}
        place, turn = self.chain
        held = self.sites[0]
        there, here = end[place].detach()[:, held], self.points[place][:, held]  # (B, n, 3), (1, n, 3)
        turned, turns = _grid(end[turn].detach()[:, held]), _grid(self.points[turn])
        centre, middle = there.mean(1, keepdim=True), here.mean(1, keepdim=True)
        covariance = product((there - centre).mT, here - middle) + product(turned, turns[:, held].mT).sum(1)
        motion = 2**0.5 * _grid(Rotations().project(covariance.flatten(-2)))  # (B, 3, 3)
        moved = product(self.points[place] - middle, motion.mT) + centre
        return {place: moved, turn: product(motion[:, None], turns).flatten(-2)}

    def _fitted(self, x: Points, y: Points, mask: Tensor) -> Points:
        """x with the held sites as in y; the places of a chain follow, and have mean zero."""
        fitted = self._replaced(x, y)
        if not self.chain:
            return fitted
        place, _ = self.chain
        followed = x[place] + product(self.shares, (y[place] - x[place])[:, self.sites[0]])
        places = torch.where(self.sites[..., None], y[place], followed)
        return fitted | {place: self.geometry.charts[place].manifold.project(places, mask)}


def _check(space: Space, geometry: Geometry, given: State) -> None:
    space.check(given)
    if len(given["mask"]) != 1 or not given["mask"].any():
        raise GeneratorError(
            f"a lock of {len(given['mask'])} designs and {int(given['mask'].sum())} sites; "
            f"it is one design, and one site or more of it"
        )
    chain = frames(space)
    for name, factor in space.factors.items():
        if isinstance(factor, Real) and factor.centred and name not in chain:
            raise GeneratorError(f"{name} has mean zero, and there is no pose for it; lock frames, or another space")
        if isinstance(factor, Categorical | Rotation):
            held = geometry.charts[name].point(given[name][given["mask"]])
            if not (held - geometry.charts[name].manifold.project(held)).abs().max() <= _TOLERANCE:
                kind = "probabilities" if isinstance(factor, Categorical) else "rotations"
                raise GeneratorError(f"the lock's {name} are no {kind}; give such")


def _shares(sites: Tensor) -> Tensor:
    """(L, n): which share each site has in the ways of the n held ones; linear between two of them."""
    held = sites.nonzero()[:, 0]
    place = torch.arange(len(sites), device=sites.device)
    after = torch.searchsorted(held, place).clamp_max(len(held) - 1)  # the first held site that is not before
    before = (after - (held[after] > place).long()).clamp_min(0)
    way = (place - held[before]).clamp_min(0) / (held[after] - held[before]).clamp_min(1)
    shares = torch.zeros(len(sites), len(held), device=sites.device)
    shares.scatter_add_(1, before[:, None], 1 - way[:, None])
    return shares.scatter_add_(1, after[:, None], way[:, None])


def _grid(x: Tensor) -> Tensor:
    """`[..., 9]` as `[..., 3, 3]`."""
    return x.reshape(*x.shape[:-1], 3, 3)
