"""How far a set of cells is from real ones, how many are legal or can be made so, and how much was copied."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Sequence

import numpy as np
import torch
from torch import Tensor

from domains.layout import connectivity, legaliser, regions, rules
from domains.layout.cell import Cell, Rectangle
from domains.statistics import divergence, wasserstein

NAMES: tuple[str, ...] = (
    "raw_clean", "violations_per_shape", "dropped", "legal_clean", "displacement", "connectivity_faults", "length_w1",
    "layer_js", "density_error", "pattern_entropy", "copies", "off_grid", "capped",
)  # fmt: skip
PIXELS = 25
"""Of a raster, along each side of the window."""
_CHUNK = 4096
_MOST = 2000
"""Of a larger set, so many designs evenly apart are looked at where each one takes long."""
_REPAIRED = 64
"""The same where each one takes up to a second."""


def legality(designs: Sequence[Cell]) -> dict[str, float]:
    """Share of designs that break no rule, as they came; broken rules, and dropped rectangles, by rectangle made."""
    broken = [len(rules.violations(design)) for design in designs]
    dropped = sum(design.dropped for design in designs)
    made = max(sum(len(design.shapes) for design in designs) + dropped, 1)
    return {
        "raw_clean": float(np.mean([n == 0 for n in broken])),
        "violations_per_shape": sum(broken) / made,
        "dropped": dropped / made,
    }


def repair(designs: Sequence[Cell]) -> dict[str, float]:
    """Legality after `legaliser.legalise`, and what connects wrongly in designs as they came.

    `legal_clean` is the share of designs that then have rectangles and break no rule, `displacement` the mean distance
    in nm by which an edge moved for it, and `connectivity_faults` the number of dangling cuts and floating conductors
    in a design. All three are of at most 64 designs, evenly apart in the set.
    """
    few = _evenly(designs, _REPAIRED)
    made = [legaliser.legalise(design) for design in few]
    return {
        "legal_clean": float(np.mean([bool(one.cell.shapes) and not one.left for one in made])),
        "displacement": float(np.mean([one.displacement for one in made])),
        "connectivity_faults": float(np.mean([len(connectivity.faults(design)) for design in few])),
    }


def closeness(designs: Sequence[Cell], reference: Sequence[Cell]) -> dict[str, float]:
    """Distances of the statistics of two sets, best at 0, and the designs' own `pattern_entropy`.

    `length_w1` is in rectangles; `density_error` is the mean over layers of how far the mean covered share is off.
    """
    return {
        "length_w1": wasserstein(*(np.array([len(d.shapes) for d in some]) for some in (designs, reference))),
        "layer_js": divergence(_layers(designs), _layers(reference)),
        "density_error": float(np.abs(_mean_density(designs) - _mean_density(reference)).mean()),
        "pattern_entropy": pattern_entropy(designs),
    }


def copying(designs: Sequence[Cell], known: Collection[tuple[Rectangle, ...]]) -> dict[str, float]:
    """Share of designs whose layers cover exactly what those of some known cell cover; `known` has their `pattern`."""
    return {"copies": float(np.mean([pattern(design) in known for design in designs]))}


def off_grid(designs: Sequence[Cell]) -> float:
    """Share of corners that are not on the grid of their technology."""
    found = [(design.array()[:, 1:] % design.rules.grid != 0).ravel() for design in designs]
    return float(np.concatenate(found).mean()) if any(map(len, found)) else 0.0


def raster(designs: Sequence[Cell]) -> Tensor:
    """(n, layers x `PIXELS` x `PIXELS`) bool: what covers the middle of each pixel of the window."""
    layers = len(designs[0].rules.layers)
    found = np.zeros((len(designs), layers, PIXELS, PIXELS), dtype=bool)
    for image, design in zip(found, designs, strict=True):
        pixel = np.array([design.width, design.height] * 2) / PIXELS
        for layer, x0, y0, x1, y1 in np.column_stack(
            [design.array()[:, :1], np.ceil(design.array()[:, 1:] / pixel - 0.5).astype(int)]
        ).tolist():
            image[layer, y0:y1, x0:x1] = True
    return torch.from_numpy(found.reshape(len(designs), -1))


def nearest_iou(images: Tensor, known: Tensor) -> float:
    """Mean over images (n, p) of the largest intersection over union with any of `known` (m, p), both from `raster`."""
    ours, best = images.float(), torch.zeros(len(images))
    for part in torch.split(known, _CHUNK):
        both = ours @ part.float().T
        either = images.sum(1)[:, None] + part.sum(1) - both
        best = torch.maximum(best, (both / either.clamp_min(1)).amax(1))
    return best.mean().item()


def pattern(cell: Cell) -> tuple[Rectangle, ...]:
    """The rectangles that `regions.cover` finds: equal for cells whose layers cover the same, however they do it."""
    boxes = (regions.cover(region).tolist() for region in layer_regions(cell))
    return tuple(Rectangle(layer, *box) for layer, rows in enumerate(boxes) for box in rows)


def densities(cell: Cell) -> np.ndarray:
    """Share of the window (layers,) that each layer covers."""
    return np.array([region.area for region in layer_regions(cell)]) / (cell.width * cell.height)


def layer_regions(cell: Cell) -> list[regions.Region]:
    """What each layer covers."""
    shapes = cell.array()
    layers = range(len(cell.rules.layers))
    return [regions.union(shapes[shapes[:, 0] == k, 1:], cell.width, cell.height) for k in layers]


def pattern_entropy(designs: Sequence[Cell]) -> float:
    """Diversity in bits: entropy of the pattern complexity (cx, cy), mean over layers.

    cx and cy are the numbers of different x and y at which a layer's shapes have sides (Yang et al. 2019, DeePattern,
    Design Automation Conference, article 148). It is at most log2 of the number of designs: compare equal numbers.
    """
    found = [_complexities(design) for design in designs]
    return float(np.mean([_entropy(layer) for layer in zip(*found, strict=True)]))


def _complexities(cell: Cell) -> list[tuple[int, int]]:
    counts = []
    for layer in range(len(cell.rules.layers)):
        own = [shape for shape in cell.shapes if shape.layer == layer]
        xs, ys = ({side for shape in own for side in (shape[k], shape[k + 2])} for k in (1, 2))
        counts.append((len(xs), len(ys)))
    return counts


def _entropy(items: Iterable[tuple[int, int]]) -> float:
    counts = np.array(list(Counter(items).values()))
    shares = counts / counts.sum()
    return float(-(shares * np.log2(shares)).sum())


def _layers(designs: Sequence[Cell]) -> np.ndarray:
    """Frequencies (layers,) of rectangles on each layer, pooled over designs."""
    counts = Counter(shape.layer for design in designs for shape in design.shapes)
    found = np.array([counts[layer] for layer in range(len(designs[0].rules.layers))])
    frequencies: np.ndarray = found / max(found.sum(), 1)
    return frequencies


def _mean_density(designs: Sequence[Cell]) -> np.ndarray:
    mean: np.ndarray = np.mean([densities(design) for design in _evenly(designs, _MOST)], axis=0)
    return mean


def _evenly(designs: Sequence[Cell], most: int) -> Sequence[Cell]:
    """At most so many of the designs, evenly apart."""
    return designs[:: -(-len(designs) // most)]
