"""A linear programme of difference constraints: edges on one axis moved the least, each constraint at a price."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from scipy import optimize, sparse  # type: ignore[import-untyped]

RULE, ORDER = 1e5, 1e3
"""Price of a step by which a rule, or the order of edges, is missed; all edges together cost less than this a step."""


class Link(NamedTuple):
    """The edge `high` has to be `least` or more above the edge `low`; edges 2k and 2k + 1 are those of shape k."""

    low: int
    high: int
    least: int
    name: str
    price: float = RULE


@dataclass(frozen=True)
class Conflict:
    """A rule that could not be satisfied, by how many nm, and the others that stand against it on this axis."""

    rule: str
    short: int
    against: tuple[str, ...]


def least_moves(
    target: np.ndarray, free: np.ndarray, most: int, links: Sequence[Link]
) -> tuple[np.ndarray, list[Conflict]]:
    """Places of edges (m,) in 0 .. `most` that satisfy the links, with the least sum of |place - target|, and the rest.

    Edges that are not `free` (m,) stay. Of several optima it is one that the simplex method finds.
    """
    if not links:
        return target.copy(), []
    low, high, least, price = (np.array([link[k] for link in links]) for k in (0, 1, 2, 4))
    lack = least - (target[high] - target[low])
    if (lack <= 0).all():
        return target.copy(), []
    m, rows = len(target), np.arange(len(links))
    signs = np.repeat([-1.0, 1.0], len(links))
    differences = sparse.coo_array((signs, (np.r_[rows, rows], np.r_[high, low])), shape=(len(links), m))
    matrix = sparse.hstack([differences, -differences, -sparse.eye_array(len(links))]).tocsr()
    up, down = np.where(free, most - target, 0), np.where(free, target, 0)
    upper = np.concatenate([up, down, np.maximum(lack, 0) + 2.0 * most])
    result = optimize.linprog(
        np.concatenate([np.ones(2 * m), price]),
        A_ub=matrix,
        b_ub=-lack,
        bounds=np.stack([np.zeros(len(upper)), upper], 1),
        method="highs-ds",
    )
    if not result.success:  # misses are allowed at a price, so a solution there is
        raise ArithmeticError(f"HiGHS gave up on {len(links)} constraints: {result.message}")
    step = np.rint(result.x[:m] - result.x[m : 2 * m]).astype(np.int64)
    place = target + step
    short = least - (place[high] - place[low])
    push = -result.ineqlin.marginals
    return place, list(_conflicts(links, short, push))


def _conflicts(links: Sequence[Link], short: np.ndarray, push: np.ndarray) -> Iterator[Conflict]:
    for k in np.flatnonzero(short > 0).tolist():
        against = {links[i].name for i in np.flatnonzero(push > links[k].price / 2).tolist() if i != k}
        yield Conflict(links[k].name, int(short[k]), tuple(sorted(against - {links[k].name})) or ("window",))
