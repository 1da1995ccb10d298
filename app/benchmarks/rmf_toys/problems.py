"""The eleven problems: a manifold with a prior, and data whose law is known or real."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cache

import numpy as np
import torch
from numpy.random import Generator
from torch import Tensor

from app.benchmarks.rmf_toys import samplers
from data.noise import Noise, stable_seed
from data.space import Angle, Rotation
from domains.protein import corpus, ramachandran
from generators.manifolds.poincare_ball import PoincareBall
from generators.manifolds.sphere import Sphere
from generators.rmf.geometry import Chart, chart

Sample = Callable[[int, Generator], np.ndarray]
"""`sample(n, rng)`: n points of a law, (n, width)."""
Map = Callable[[Tensor], Tensor]
TRAINED_ON = 20_000
"""Points that every arm is trained on."""


@dataclass(frozen=True)
class Problem:
    """What is to be learned. Points are (n, width), float32."""

    title: str
    chart: Chart
    law: Sample
    held_out: Sample | None = None
    """Another sample of nature, where the law is not known."""
    coordinates: Map = lambda points: points
    """From points to the flat space in which chords are measured, and Euclidean MeanFlow is at home."""
    nearest: Map = torch.clone
    """From anywhere in that space to the coordinates of the nearest point."""

    def train(self) -> Tensor:
        """The training set (TRAINED_ON, width)."""
        return self._draw(self.law, "train", TRAINED_ON)

    def fresh(self, n: int, key: int) -> Tensor:
        """A sample (n, width) of the law that is no part of the training set, one for each key."""
        return self._draw(self.law, f"fresh {key}", n)

    def reference(self, n: int, key: int) -> Tensor:
        """A sample (n, width) to compare with, one for each key."""
        return self._draw(self.held_out or self.law, f"reference {key}", n)

    def _draw(self, sample: Sample, what: str, n: int) -> Tensor:
        drawn = sample(n, np.random.default_rng(stable_seed("rmf_toys", self.title, what)))
        return torch.from_numpy(drawn.astype(np.float32))


def _helix(dimension: int) -> Problem:
    """A helix on a great two-sphere in S^(D-1), which lies in a direction drawn at random."""
    rng = np.random.default_rng(stable_seed("rmf_toys", "frame", dimension))
    frame = np.linalg.qr(rng.standard_normal((dimension, 3)))[0]
    return _on_sphere(
        f"helix on S^{dimension - 1}", dimension, Sphere(), lambda n, rng: samplers.helix(n, rng) @ frame.T
    )


PLACES = samplers.unit(
    np.array([[1, 0, 0.2], [-0.4, 0.9, 0.3], [-0.3, -0.6, -0.8], [0.2, -0.9, 0.5], [-0.9, 0.1, 0.4]])
)
SHARPNESS = (20.0, 50.0, 100.0, 50.0, 20.0)


def _von_mises_fisher() -> Problem:
    """Five equal spots on S^2."""

    def law(n: int, rng: Generator) -> np.ndarray:
        """n independent points."""
        spots = [samplers.von_mises_fisher(np.tile(m, (n, 1)), k, rng) for m, k in zip(PLACES, SHARPNESS, strict=True)]
        return _mixed(spots, rng)

    return _on_sphere("von Mises-Fisher on S^2", 3, Sphere(), law)


class _Cap(Sphere):
    """S^2 with a prior that is tight round the north pole."""

    def random(self, like: Tensor, rng: Noise, mask: Tensor | None = None) -> Tensor:
        """Exp at the pole of a normal tangent with standard deviation `CAP` in each direction."""
        v = CAP * torch.nn.functional.pad(rng.normal(*like.shape[:-1], 2), (0, 1)).to(like)
        return self.exp(torch.eye(3).to(like)[2].expand_as(v), v)


CAP = 0.3
FAR = np.pi * np.array([0.72, 0.76, 0.80, 0.74, 0.78, 0.82])
"""Colatitudes of the six spots of the large-angle problem: jumps of 2.3 to 2.6."""


def _large_angles() -> Problem:
    """From a cap at the north pole to six spots near the south pole: nearly every path is longer than 2 radians."""
    around = 2 * np.pi * np.arange(len(FAR)) / len(FAR)
    centres = np.stack([np.sin(FAR) * np.cos(around), np.sin(FAR) * np.sin(around), np.cos(FAR)], axis=-1)

    def law(n: int, rng: Generator) -> np.ndarray:
        """n independent points."""
        return samplers.von_mises_fisher(centres[rng.integers(len(FAR), size=n)], 100.0, rng)

    return _on_sphere("large angles on S^2", 3, _Cap(), law)


def _on_sphere(title: str, width: int, sphere: Sphere, law: Sample) -> Problem:
    there = Chart(
        sphere, width, lambda raw, x, mask: sphere.log(x, sphere.project(raw)), near=lambda y, mask: sphere.project(y)
    )
    return Problem(title, there, law, nearest=sphere.project)


def _torsions() -> Problem:
    """phi and psi of the residues of real proteins; compared with chains of families that were not trained on."""

    def of(split: str) -> Sample:
        """Draws from the residues of a split."""
        chains = corpus.shipped(split)
        ends = chains.lengths.cumsum()
        angles = np.delete(
            ramachandran.torsions(chains.atoms), np.concatenate([ends - chains.lengths, ends - 1]), axis=0
        )
        return lambda n, rng: angles[rng.integers(len(angles), size=n)]

    return _on_torus("protein torsions on T^2", of("train"), of("val"))


CENTRES = np.array([[3.1, 3.0], [-1.5, 0.5], [1.0, -2.0], [0.3, 1.4], [-2.5, -2.2]])
SPREADS = np.array([[0.3, 0.3], [0.15, 0.6], [0.5, 0.15], [0.1, 0.1], [0.2, 0.2]])


def _wrapped_normals() -> Problem:
    """Five equal spots on T^2, the first one across the corner where both angles wrap."""

    def law(n: int, rng: Generator) -> np.ndarray:
        """n independent points."""
        spots = CENTRES[:, None] + SPREADS[:, None] * rng.standard_normal((len(CENTRES), n, 2))
        return (_mixed(list(spots), rng) + np.pi) % (2 * np.pi) - np.pi

    return _on_torus("wrapped normals on T^2", law)


def _on_torus(title: str, law: Sample, held_out: Sample | None = None) -> Problem:
    def nearest(chord: Tensor) -> Tensor:
        """Each circle's (cos, sin), at length 1."""
        return torch.nn.functional.normalize(chord.reshape(*chord.shape[:-1], 2, -1), dim=-2).flatten(-2)

    angles = chart(Angle(width=2))
    return Problem(title, angles, law, held_out, angles.told, nearest)


FISHER = (np.diag([20.0, 15.0, 5.0]), np.diag([10.0, 0.0, -10.0]), np.diag([-30.0, 30.0, -20.0]))


def _matrix_fishers() -> Problem:
    """Three equal matrix-Fisher laws on SO(3), turned apart."""
    turns = samplers.rotations(np.eye(4)[:3]).reshape(3, 3, 3)

    def law(n: int, rng: Generator) -> np.ndarray:
        """n independent points."""
        spots = [samplers.matrix_fisher(t @ f, n, rng) for t, f in zip(turns, FISHER, strict=True)]
        return _mixed(spots, rng)

    return _of_rotations("matrix-Fisher on SO(3)", law)


SLOPE, LONGEST, BLUR = math.pi / 4, 2.5, 0.05


def _cone() -> Problem:
    """Turns by up to 2.5 about the axes at 45 degrees from z: a cone in the space of rotation vectors, blurred."""

    def law(n: int, rng: Generator) -> np.ndarray:
        """n independent points."""
        around, angle = rng.uniform(0, 2 * np.pi, n), LONGEST * np.sqrt(rng.uniform(0, 1, n))
        axes = [np.sin(SLOPE) * np.cos(around), np.sin(SLOPE) * np.sin(around), np.full(n, np.cos(SLOPE))]
        vectors = angle[:, None] * np.stack(axes, axis=-1) + BLUR * rng.standard_normal((n, 3))
        half = np.linalg.norm(vectors, axis=-1, keepdims=True) / 2
        return samplers.rotations(np.concatenate([np.cos(half), np.sin(half) * samplers.unit(vectors)], axis=-1))

    return _of_rotations("cone on SO(3)", law)


def _of_rotations(title: str, law: Sample) -> Problem:
    rotation = chart(Rotation())
    there = replace(rotation, point=Problem.coordinates, value=Problem.coordinates)
    return Problem(
        title, there, lambda n, rng: law(n, rng) / math.sqrt(2), nearest=lambda y: rotation.manifold.project(y)
    )


CORNERS = np.array([[1.6, 0.0], [-0.8, 1.4], [-0.8, -1.4], [0.0, 0.0], [2.2, 2.2]])
"""Tangents at the centre of the disc, in units of the metric."""
SIGMAS = np.array([0.25, 0.25, 0.4, 0.15, 0.3])


def _poincare() -> Problem:
    """Five equal wrapped normals on the Poincare disc, the last one far out."""
    ball = PoincareBall()

    def law(n: int, rng: Generator) -> np.ndarray:
        """n independent points."""
        origin = torch.zeros(n, 2, dtype=torch.float64)
        spots = []
        for corner, sigma in zip(CORNERS, SIGMAS, strict=True):
            centre = ball.exp(origin, torch.from_numpy(np.tile(corner / 2, (n, 1))))
            step = torch.from_numpy(sigma * rng.standard_normal((n, 2)))
            spots.append(ball.exp(centre, step * (1 - centre.square().sum(-1, keepdim=True)) / 2).numpy())
        return _mixed(spots, rng)

    def normal(points: Tensor) -> Tensor:
        """The tangents at the centre that lead there, in units of the metric."""
        return 2 * ball.log(torch.zeros_like(points), points)

    def toward(raw: Tensor, x: Tensor, mask: Tensor) -> Tensor:
        """`raw` is a tangent at the centre."""
        return ball.log(x, ball.exp(torch.zeros_like(raw), raw / 2))

    there = Chart(ball, 2, toward, near=lambda y, mask: ball.project(y))
    return Problem("wrapped normals, Poincare disc", there, law, coordinates=normal)


def _mixed(spots: list[np.ndarray], rng: Generator) -> np.ndarray:
    """Row i of one of the samples, all of the same shape (n, width), drawn for each i."""
    found: np.ndarray = np.stack(spots)[rng.integers(len(spots), size=len(spots[0])), np.arange(len(spots[0]))]
    return found


PROBLEMS: Mapping[str, Callable[[], Problem]] = {
    "helix_3": lambda: _helix(3),
    "helix_32": lambda: _helix(32),
    "helix_128": lambda: _helix(128),
    "helix_512": lambda: _helix(512),
    "vmf": _von_mises_fisher,
    "torsions": _torsions,
    "matrix_fisher": _matrix_fishers,
    "cone": _cone,
    "wrapped_normal": _wrapped_normals,
    "poincare": _poincare,
    "large_angles": _large_angles,
}


@cache
def problem(name: str) -> Problem:
    """The problem of a name in `PROBLEMS`."""
    return PROBLEMS[name]()
