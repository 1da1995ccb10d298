"""Metrics of layouts: closed forms and independent implementations."""

from __future__ import annotations

import math
from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import entropy, wasserstein_distance

from domains import layout
from domains.base import DesignError
from domains.layout import Cell, Rectangle, metrics

DOMAIN = layout.build("ihp_sg13g2")
CLIPS = DOMAIN.corpus("val")


def made(*shapes: tuple[int, int, int, int, int], dropped: int = 0) -> Cell:
    return Cell("ihp_sg13g2", 2000, 2000, tuple(Rectangle(*shape) for shape in shapes), dropped)


def test_a_set_is_at_no_distance_from_itself() -> None:
    found = DOMAIN.metrics(CLIPS[:25], CLIPS[:25])
    assert tuple(found) == DOMAIN.metric_names
    assert found["length_w1"] == found["layer_js"] == found["density_error"] == 0
    assert found["raw_clean"] == 1
    assert found["dropped"] == found["violations_per_shape"] == 0
    assert (found["legal_clean"], found["displacement"]) == (1, 0)


def test_legality_counts_designs_and_rectangles() -> None:
    clean, broken = made((3, 200, 200, 600, 600)), made((3, 200, 200, 600, 210), (3, 900, 900, 910, 1200))
    found = metrics.legality([clean, broken, made((3, 200, 200, 600, 600), dropped=1), made()])
    assert found == {
        "raw_clean": 0.25,
        "violations_per_shape": pytest.approx((2 + 1 + 1) / 5),
        "dropped": pytest.approx(1 / 5),
    }


def test_repair_counts_what_can_be_made_legal_how_far_edges_move_and_faults() -> None:
    clean, narrow = made((3, 200, 200, 600, 600)), made((3, 200, 200, 600, 350))  # 10 nm too narrow, on 4 edges
    small = made((2, 600, 600, 760, 760), (2, 700, 600, 860, 760))  # two cuts, nearer to one, on nothing
    found = metrics.repair([clean, narrow, made()])
    assert found == {
        "legal_clean": pytest.approx(2 / 3),
        "displacement": pytest.approx(10 / 4 / 3),
        "connectivity_faults": pytest.approx(2 / 3),  # metal that no cut reaches
    }
    assert metrics.repair([small])["connectivity_faults"] == 1


@settings(max_examples=30, deadline=None)
@given(*[st.lists(st.integers(0, 9), min_size=1, max_size=8)] * 2)
def test_length_distance_is_scipys(a: list[int], b: list[int]) -> None:
    def cells(lengths: list[int]) -> list[Cell]:
        return [made(*[(0, 0, 0, 5, 5)] * n) for n in lengths]

    found = metrics.closeness(cells(a), cells(b))["length_w1"]
    assert found == pytest.approx(wasserstein_distance(a, b), abs=1e-9)


def test_layers_apart_are_at_ln_2() -> None:
    a, b = [made((0, 0, 0, 5, 5))], [made((3, 0, 0, 5, 5), (3, 0, 0, 9, 9))]
    assert metrics.closeness(a, b)["layer_js"] == pytest.approx(math.log(2))


def test_densities_count_overlaps_once() -> None:
    design = made((1, 0, 0, 1000, 2000), (1, 500, 0, 1000, 1000), (3, 0, 0, 200, 200))
    assert metrics.densities(design).tolist() == [0, 0.5, 0, 0.01]
    found = metrics.closeness([design], [made((1, 0, 0, 2000, 2000))])
    assert found["density_error"] == pytest.approx((0.5 + 0.01) / 4)


def test_pattern_entropy_is_that_of_the_complexities() -> None:
    one, other = made((3, 0, 0, 300, 300)), made((3, 0, 0, 300, 300), (3, 600, 0, 900, 300))
    assert metrics.pattern_entropy([one] * 5) == 0
    assert metrics.pattern_entropy([one, other]) == pytest.approx(1 / 4)  # one bit, in one layer of four
    per_layer = []
    for layer in range(4):
        pairs = []
        for clip in CLIPS[:60]:
            rows = np.array([shape[1:] for shape in clip.shapes if shape.layer == layer]).reshape(-1, 4)
            pairs.append((len(np.unique(rows[:, [0, 2]])), len(np.unique(rows[:, [1, 3]]))))
        per_layer.append(entropy(list(Counter(pairs).values()), base=2))
    assert metrics.pattern_entropy(CLIPS[:60]) == pytest.approx(np.mean(per_layer))


def test_copies_are_found_however_they_are_made_up() -> None:
    train = DOMAIN.corpus("train")[:1]
    tall = next(shape for shape in train[0].shapes if shape.y1 - shape.y0 >= 10)
    layer, x0, y0, x1, y1 = tall
    halves = (Rectangle(layer, x0, y0, x1, y0 + 5), Rectangle(layer, x0, y0 + 5, x1, y1))
    rest = tuple(shape for shape in train[0].shapes if shape != tall)
    cut = Cell("ihp_sg13g2", 2000, 2000, rest + halves)
    changed = Cell("ihp_sg13g2", 2000, 2000, (*rest, Rectangle(layer, x0, y0, x1, y1 - 5)))
    assert cut.shapes != train[0].shapes
    assert DOMAIN.metrics([*train, cut, changed, made()], CLIPS)["copies"] == 0.5


def test_a_sample_stands_for_a_large_reference() -> None:
    many = [made((1, 0, 0, 1000, 2000))] * 3000 + [made()] * 3000
    assert metrics.closeness([made()], many)["density_error"] == pytest.approx(0.25 / 4, abs=1e-3)


@pytest.mark.parametrize(("designs", "reference"), [([], [made()]), ([made()], [])])
def test_no_metrics_of_nothing(designs: list[Cell], reference: list[Cell]) -> None:
    with pytest.raises(DesignError, match="one or more of each"):
        DOMAIN.metrics(designs, reference)
