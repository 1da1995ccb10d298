"""A backbone as a ribbon: helices, strands with arrow heads, coil as a tube (after Carson 1987, J. Mol. Graph. 5, 103).

Coordinates are turned so that the longest axes lie in the picture's plane and z points at the reader.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from domains.protein import geometry, rules, secondary, svg
from domains.protein.residues import CA, C, O, Protein
from domains.protein.secondary import COIL, HELIX, STRAND

WIDTH, HEIGHT = 320, 256
_LEGEND = 20
"""Pixels below the backbone for the shares of helix and strand."""
_MARGIN = 16
_MOST_SCALE = 9.0
_BESIDE = 13
"""Pixels from an end of the chain to its letter."""
_LETTER = (
    'text-anchor="middle" font-weight="bold" font-size="13" stroke="white" stroke-width="2.5" paint-order="stroke"'
)
_PIECES = 4
"""Pieces of ribbon from one residue to the next."""
_HALF_WIDTH = {HELIX: 1.3, STRAND: 1.05, COIL: 0.36}
_ARROW, _ARROW_LENGTH = 1.9, 1.5
_THICKNESS = 0.25
"""Half of what a ribbon shows from its side; in angstrom like the others, but for the arrow's length in residues."""
_SHORTEST = {HELIX: 4, STRAND: 3}
_COLOURS = {HELIX: svg.HELIX, STRAND: svg.STRAND, COIL: svg.COIL}


@dataclass(frozen=True)
class _Sweep:
    """Cross-sections along an unbroken stretch of chain: place, tangent and side (k, 3), residue number (k,)."""

    place: np.ndarray
    tangent: np.ndarray
    side: np.ndarray
    at: np.ndarray


@dataclass(frozen=True)
class _Piece:
    """A quadrilateral of ribbon: corners (4, 2) around it in angstrom, and how it looks."""

    corners: np.ndarray
    depth: float
    light: float
    state: str
    starts: bool
    ends: bool
    """Whether its outline is closed there."""


def draw(design: Protein) -> bytes:
    """A backbone as SVG, 320 x 256, far parts first; breaks of the chain are dotted red lines."""
    atoms = seen(design.atoms().astype(np.float64))
    found = secondary.assign(design.atoms(), design.letters)
    shown = _long(found)
    scale, origin = _fit(atoms)
    places = _on_page(atoms[:, CA, :2], scale, origin)
    drawn = [_drawn(piece, scale, origin, _haze(piece.depth, atoms)) for piece in _pieces(atoms, shown)]
    gaps = [_gap(*places[i : i + 2]) for i in np.flatnonzero(rules.ca_steps(atoms) > rules.BREAK).tolist()]
    look = 'fill="none" stroke-width=".8" stroke-linecap="round" stroke-linejoin="round"'
    body = f"<g {look}>{''.join(drawn)}</g>"
    return svg.page(WIDTH, HEIGHT, [*gaps, body, *_termini(places), *_legend(shown)], _title(found))


def seen(atoms: np.ndarray) -> np.ndarray:
    """Atoms (n, 4, 3) centred and turned, never mirrored: longest axis along x, shortest along z, first residue left.

    The picture is the same for a chain that was moved or turned.
    """
    if not len(atoms):
        return atoms
    centred = atoms - atoms[:, CA].mean(0)
    _, _, axes = np.linalg.svd(centred[:, CA])
    right, up = (axis if centred[0, CA] @ axis <= 0 else -axis for axis in axes[:2])
    turned: np.ndarray = centred @ np.stack([right, up, np.cross(right, up)]).T
    return turned


def _long(states: str) -> str:
    """Secondary structure without stretches too short to be drawn as such."""
    kept = list(states)
    for state, shortest in _SHORTEST.items():
        for start, end in rules.runs([found == state for found in states]):
            if end - start < shortest:
                kept[start:end] = COIL * (end - start)
    return "".join(kept)


def _pieces(atoms: np.ndarray, states: str) -> list[_Piece]:
    """The pieces of all unbroken stretches, the furthest first."""
    breaks = np.flatnonzero(rules.ca_steps(atoms) > rules.BREAK) + 1
    ends = [0, *breaks.tolist(), len(atoms)]
    found: list[_Piece] = []
    for start, end in pairwise(ends):
        if end - start > 1:
            found += _ribbon(_sweep(atoms[start:end], states[start:end]), states[start:end])
    return sorted(found, key=lambda piece: piece.depth)


def _sweep(atoms: np.ndarray, states: str) -> _Sweep:
    """Splines through the CA atoms, those of strands smoothed, and through the directions of the C=O."""
    at = np.arange((len(atoms) - 1) * _PIECES + 1) / _PIECES
    place = _spline(_smoothed(atoms[:, CA], np.array([state == STRAND for state in states])), at)
    side = _spline(_aligned(geometry.unit(atoms[:, O] - atoms[:, C])), at)
    tangent = geometry.unit(np.gradient(place, axis=0))
    side = geometry.unit(side - (side * tangent).sum(-1, keepdims=True) * tangent)
    return _Sweep(place, tangent, side, at)


def _smoothed(places: np.ndarray, chosen: np.ndarray) -> np.ndarray:
    """Chosen places nearer to the middle of their neighbours, twice, which takes out the pleat of strands."""
    for _ in range(2):
        padded = np.concatenate([places[:1], places, places[-1:]])
        places = np.where(chosen[:, None], (padded[:-2] + 2 * places + padded[2:]) / 4, places)
    return places


def _aligned(sides: np.ndarray) -> np.ndarray:
    """Directions with those turned round that point away from the one before, then averaged with their neighbours."""
    signs = np.where((sides[1:] * sides[:-1]).sum(-1) < 0, -1, 1).cumprod()
    aligned = sides * np.concatenate([[1], signs])[:, None]
    padded = np.concatenate([aligned[:1], aligned, aligned[-1:]])
    found: np.ndarray = (padded[:-2] + 2 * aligned + padded[2:]) / 4
    return found


def _spline(points: np.ndarray, at: np.ndarray) -> np.ndarray:
    """Catmull-Rom spline through points (n, 3) at places (k,) from 0 to n - 1."""
    padded = np.concatenate([2 * points[:1] - points[1:2], points, 2 * points[-1:] - points[-2:-1]])
    i = np.minimum(at.astype(int), len(points) - 2)
    t = (at - i)[:, None]
    a, b, c, d = (padded[i + k] for k in range(4))
    found: np.ndarray = b + t / 2 * (c - a + t * (2 * a - 5 * b + 4 * c - d + t * (3 * (b - c) + d - a)))
    return found


def _ribbon(sweep: _Sweep, states: str) -> Iterator[_Piece]:
    """The pieces between neighbouring cross-sections, each of the state of the residue that it is nearest to."""
    residue = np.floor((sweep.at[:-1] + sweep.at[1:]) / 2 + 0.5).astype(int)
    heads = [end - 0.5 for start, end in rules.runs([state == STRAND for state in states])]
    looks = [(states[i], _in_head(at, heads)) for i, at in zip(residue, sweep.at[:-1], strict=True)]
    for k, look in enumerate(looks):
        state, head = look
        near, far = (_offset(sweep, k + end, state, head) for end in (0, 1))
        here, there = sweep.place[k, :2], sweep.place[k + 1, :2]
        yield _Piece(
            np.stack([here + near, there + far, there - far, here - near]),
            float(sweep.place[k : k + 2, 2].mean()),
            _light(sweep, k, state),
            state,
            state != COIL and (k == 0 or looks[k - 1] != look),
            state == HELIX and (k + 1 == len(looks) or looks[k + 1] != look),
        )


def _in_head(at: float, heads: list[float]) -> float | None:
    """The end of the arrow head that a place lies in."""
    return next((end for end in heads if end - _ARROW_LENGTH - 1e-6 < at < end - 1e-6), None)


def _offset(sweep: _Sweep, k: int, state: str, head: float | None) -> np.ndarray:
    """From the middle of a cross-section to its edge, in the plane of the picture."""
    half = _HALF_WIDTH[state] if head is None else _ARROW * max(head - sweep.at[k], 0) / _ARROW_LENGTH
    across = sweep.tangent[k, 1::-1] * (-1, 1)
    across = across / max(float(np.linalg.norm(across)), 1e-6)
    if state == COIL:
        return np.asarray(half * across)
    edge = half * sweep.side[k, :2]
    least = min(half, _THICKNESS)
    if np.linalg.norm(edge) < least:
        return np.asarray(least * across * (1 if edge @ across >= 0 else -1))
    return np.asarray(edge)


def _light(sweep: _Sweep, k: int, state: str) -> float:
    """Brightness: less where the ribbon is seen from its side, and inside a helix."""
    if state == COIL:
        return 0.95
    facing = abs(float(np.cross(sweep.tangent[k], sweep.side[k])[2]))
    bend = sweep.tangent[min(k + 1, len(sweep.at) - 1), 2] - sweep.tangent[max(k - 1, 0), 2]
    return (0.74 + 0.34 * facing) * (0.68 if state == HELIX and bend > 0 else 1)


def _haze(depth: float, atoms: np.ndarray) -> float:
    """Brightness by depth, from 0.8 at the back to 1.05 in front."""
    z = atoms[:, CA, 2]
    return 0.8 + 0.25 * (depth - float(z.min())) / max(float(np.ptp(z)), 1.0)


def _fit(atoms: np.ndarray) -> tuple[float, np.ndarray]:
    """Pixels an angstrom, and the place in angstrom that goes to the middle of the page."""
    if not len(atoms):
        return 1.0, np.zeros(2)
    low, high = atoms[:, CA, :2].min(0), atoms[:, CA, :2].max(0)
    room = np.array([WIDTH, HEIGHT - _LEGEND]) - 2 * _MARGIN
    return min(_MOST_SCALE, float((room / (high - low + 2 * _ARROW)).min())), (low + high) / 2


def _on_page(points: np.ndarray, scale: float, origin: np.ndarray) -> np.ndarray:
    """Pixels, with y downwards, of points (k, 2) in angstrom."""
    found: np.ndarray = (points - origin) * (scale, -scale) + (WIDTH / 2, (HEIGHT - _LEGEND) / 2)
    return found


def _drawn(piece: _Piece, scale: float, origin: np.ndarray, haze: float) -> str:
    a, b, c, d = np.rint(10 * _on_page(piece.corners, scale, origin)).astype(int)
    fill = svg.shade(_COLOURS[piece.state], piece.light * haze)
    edge = _line(a, b) + (_line(b, c) if piece.ends else "") + _line(c, d) + (_line(d, a) if piece.starts else "")
    line = svg.shade(_COLOURS[piece.state], 0.42)
    return (
        f'<path d="M{_pair(a)}l{_pair(b - a)} {_pair(c - b)} {_pair(d - c)}z" fill="{fill}" stroke="{fill}"/>'
        f'<path d="{edge}" stroke="{line}"/>'
    )


def _line(start: np.ndarray, end: np.ndarray) -> str:
    return f"M{_pair(start)}l{_pair(end - start)}"


def _pair(tenths: np.ndarray) -> str:
    return f"{tenths[0] / 10:g} {tenths[1] / 10:g}"


def _gap(start: np.ndarray, end: np.ndarray) -> str:
    d = f"M{start[0]:.1f} {start[1]:.1f}L{end[0]:.1f} {end[1]:.1f}"
    return f'<path d="{d}" stroke="{svg.BAD}" stroke-width="1.5" stroke-dasharray="1.5 3"/>'


def _termini(places: np.ndarray) -> list[str]:
    """The letters N and C beside the ends, each on the side where the chain is furthest."""
    if not len(places):
        return [svg.text(WIDTH / 2, HEIGHT / 2, "no residues", 'text-anchor="middle"')]
    rows = []
    turns = np.arange(16) * np.pi / 8
    around = _BESIDE * np.stack([np.cos(turns), np.sin(turns)], axis=-1)
    for place, letter in zip(places[[0, -1]], "NC", strict=True):
        free = np.linalg.norm((place + around)[:, None] - places, axis=-1).min(-1)
        x, y = place + around[int(free.argmax())] + (0, 4.5)
        rows.append(svg.text(x, y, letter, _LETTER))
    return rows


def _legend(states: str) -> list[str]:
    """How much of the chain is drawn as helix and how much as strand, each in its colour."""
    shares = [(name, state, states.count(state)) for name, state in (("helix", HELIX), ("strand", STRAND))]
    return [
        svg.text(
            _MARGIN + 100 * k, HEIGHT - 6, f"{name} {100 * count / len(states):.0f} %",
            f'fill="{_COLOURS[state]}" font-size="13" font-weight="bold"',
        )
        for k, (name, state, count) in enumerate(shares) if count
    ]  # fmt: skip


def _title(states: str) -> str:
    n = len(states)
    shares = ", ".join(
        f"{100 * states.count(state) / max(n, 1):.0f} % {name}"
        for state, name in ((HELIX, "helix"), (STRAND, "strand"))
    )
    return f"backbone of {n} residues, {shares}"
