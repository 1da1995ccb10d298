"""The domain of layouts: encoding, junk states, corpus, foreign reference files, baselines."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from data import corpora
from domains import layout
from domains.base import DesignError, Overview
from domains.layout import Cell, Rectangle, metrics, technology

GRID = 5
SIDES = st.lists(st.integers(0, 400), min_size=2, max_size=2, unique=True).map(sorted)
RECTANGLES = st.builds(
    lambda layer, x, y: Rectangle(layer, x[0] * GRID, y[0] * GRID, x[1] * GRID, y[1] * GRID),
    st.integers(0, 3), SIDES, SIDES,
)  # fmt: skip
CELLS = st.builds(
    lambda shapes: Cell("ihp_sg13g2", 2000, 2000, tuple(shapes)), st.lists(RECTANGLES, min_size=0, max_size=12)
)
DOMAIN = layout.build("ihp_sg13g2", 56)
SKY = layout.build("sky130")


@cache
def val(domain: layout.Layout) -> list[Cell]:
    return domain.corpus("val")


def cell(*shapes: tuple[int, int, int, int, int], dropped: int = 0) -> Cell:
    return Cell("ihp_sg13g2", 2000, 2000, tuple(Rectangle(*shape) for shape in shapes), dropped)


@settings(max_examples=30, deadline=None)
@given(designs=st.lists(CELLS, max_size=4))
def test_decoding_undoes_encoding(designs: list[Cell]) -> None:
    state = DOMAIN.encode(designs)
    DOMAIN.space.check(state)
    assert DOMAIN.decode(state) == designs


@pytest.mark.parametrize("domain", [DOMAIN, SKY])
def test_decoding_undoes_encoding_of_the_corpus(domain: layout.Layout) -> None:
    clips = val(domain)[::10]
    state = domain.encode(clips)
    assert domain.decode(state) == clips
    lengths = state["mask"].sum(1)
    assert torch.equal(state["mask"], torch.arange(domain.length) < lengths[:, None])  # a prefix
    assert 0.5 < state["corners"][state["mask"]].std() < 2  # of the size that the space declares


def test_rectangles_are_in_order_of_fabrication_then_place() -> None:
    made = cell((3, 0, 0, 200, 200), (0, 600, 0, 900, 300), (0, 0, 700, 200, 900), (0, 0, 300, 200, 500))
    state = DOMAIN.encode([made])
    assert state["layer"][0, :4].argmax(-1).tolist() == [0, 0, 0, 3]
    unit = layout.UNIT * GRID
    assert (state["corners"][0, :4] * unit + 1000).tolist() == [
        [0, 300, 200, 500], [0, 700, 200, 900], [600, 0, 900, 300], [0, 0, 200, 200],
    ]  # fmt: skip


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 2**32 - 1), st.sampled_from([0.1, 1.0, 5.0, 1e30]))
def test_any_state_that_fits_is_a_design(seed: int, size: float) -> None:
    rng = torch.Generator().manual_seed(seed)
    state = {
        "layer": torch.rand(2, 56, 4, generator=rng),
        "corners": torch.randn(2, 56, 4, generator=rng) * size,
        "mask": torch.rand(2, 56, generator=rng) < 0.7,
    }
    for design, used in zip(DOMAIN.decode(state), state["mask"], strict=True):
        assert len(design.shapes) + design.dropped == int(used.sum())
        assert not (design.array()[:, 1:] % GRID).any()
        rules = [violation.rule for violation in DOMAIN.violations(design)]
        assert ("empty" in rules) == (design.dropped > 0 or not design.shapes)
        DOMAIN.draw(design)


@pytest.mark.parametrize(
    ("steps", "nm"), [(0.49, 0), (0.5, 5), (1.5, 10), (-0.5, 0), (-0.51, 0), (-7, 0), (399.5, 2000), (1e6, 2000)]
)
def test_half_a_step_is_rounded_up_and_all_stays_in_the_window(steps: float, nm: int) -> None:
    state = DOMAIN.encode([cell((1, 0, 0, 2000, 2000))])
    side = 1 if nm < 1000 else 0
    state["corners"][0, 0] = (
        torch.tensor([[steps, 0, 400, 400], [0, 0, steps, 400]][1 - side]) / layout.UNIT - 200 / 128
    )
    (made,) = DOMAIN.decode(state)
    found = [made.shapes[0].x0 if side else made.shapes[0].x1]
    assert found == [nm]


@pytest.mark.parametrize("corners", [[10, 10, 10, 90], [90, 10, 10, 90], [10, 90, 90, 10], [500, 0, 600, 90]])
def test_rectangles_without_area_are_dropped_and_reported(corners: list[int]) -> None:
    state = DOMAIN.encode([cell((1, 0, 0, 500, 500), (1, 0, 0, 600, 600))])
    state["corners"][0, 1] = (torch.tensor(corners) - 200) / layout.UNIT
    (made,) = DOMAIN.decode(state)
    assert made == cell((1, 0, 0, 500, 500), dropped=1)
    (violation,) = DOMAIN.violations(made)
    assert violation.rule == "empty"
    assert violation.message.startswith("1 rectangles")


@pytest.mark.parametrize(
    ("shape", "words"),
    [
        ((4, 0, 0, 5, 5), "layer 0 to 3"),
        ((-1, 0, 0, 5, 5), "layer 0 to 3"),
        ((0, 5, 0, 5, 5), "x0 < x1"),
        ((0, 0, 9, 5, 5), "y0 < y1"),
        ((0, -5, 0, 5, 5), "within 2000"),
        ((0, 0, 0, 5, 2005), "within 2000"),
    ],
)
def test_a_cell_has_only_rectangles_in_its_window(shape: tuple[int, int, int, int, int], words: str) -> None:
    with pytest.raises(DesignError, match=words):
        cell(shape)


@pytest.mark.parametrize(
    ("design", "words"),
    [
        (Cell("sky130", 2000, 2000, ()), "design 1 is sky130"),
        (Cell("ihp_sg13g2", 2000, 1000, ()), "2000 x 1000 nm"),
        (cell((0, 0, 0, 3, 5)), "off the grid of 5 nm"),
        (cell(*[(0, 0, 0, 5, 5)] * 57), "57 rectangles; this domain has at most 56"),
    ],
)
def test_what_cannot_be_encoded_is_named(design: Cell, words: str) -> None:
    with pytest.raises(DesignError, match=words):
        DOMAIN.encode([cell(), design])


def test_the_order_of_rectangles_means_nothing() -> None:
    a, b = (0, 0, 0, 5, 5), (2, 0, 0, 5, 5)
    assert cell(a, b) == cell(b, a)
    assert hash(cell(a, b)) == hash(cell(b, a))


@pytest.mark.parametrize(("domain", "count"), [(SKY, 3093), (DOMAIN, 711)])
def test_corpus_keeps_nearly_all_clips_of_its_technology(domain: layout.Layout, count: int) -> None:
    clips = val(domain)
    arrays = corpora.load(layout.CORPUS)
    there = ((arrays["split"] == "val") & (arrays["pdk"] == domain.technology.name)).sum()
    assert len(clips) == count > 0.99 * there
    assert max(len(clip.shapes) for clip in clips) <= domain.length
    assert {clip.technology for clip in clips} == {domain.technology.name}


def test_corpus_is_made_up_of_rectangles_as_large_as_they_can_be() -> None:
    assert all(metrics.pattern(clip) == clip.shapes for clip in val(SKY)[::100])


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"technology": "tsmc7"}, "technology='tsmc7'; there are gf180mcu, ihp_sg13g2, sky130"),
        ({"technology": "../sky130"}, "there are gf180mcu, ihp_sg13g2, sky130"),
        ({"length": 0}, "length=0; .*1 to 256"),
        ({"length": 257}, "length=257"),
    ],
)
def test_domains_that_cannot_be_built(arguments: dict[str, object], words: str) -> None:
    with pytest.raises(DesignError, match=words):
        layout.build(**arguments)


def test_no_other_split() -> None:
    with pytest.raises(DesignError, match="'test'; there are train and val"):
        DOMAIN.corpus("test")


@pytest.mark.parametrize("name", technology.names())
def test_technologies_have_numbers_of_their_own(name: str) -> None:
    found = technology.load(name)
    layers = [layer.gds for layer in found.layers]
    assert found.name == name
    assert len({*layers, found.boundary}) == len(layers) + 1
    assert all(bool(layer.width) != bool(layer.size) for layer in found.layers)
    assert all(r.nm % found.grid == 0 for layer in found.layers for r in (layer.space, layer.width, layer.size) if r)


def _clips(n: int = 3) -> dict[str, np.ndarray]:
    """The first clips of the technology, as in the corpus's file but cut into strips, and one of another technology."""
    arrays = corpora.load(layout.CORPUS)
    rows = np.flatnonzero((arrays["pdk"] == "ihp_sg13g2") & (arrays["split"] == "train"))[:n]
    parts = [arrays["rects"][arrays["ptr"][r] : arrays["ptr"][r + 1]] for r in rows]
    halved = [
        np.concatenate([p, p[:, [0, 1, 2, 1, 4]] + (p[:, [3]] - p[:, [1]]) // 2 * [0, 0, 0, 1, 0]]) for p in parts
    ]
    solid = [p[p[:, 3] > p[:, 1]] for p in halved]
    ends = np.cumsum([0, *map(len, solid), 1])
    other = np.array([[0, 0, 100, 100, 0]])
    return {"rects": np.concatenate([*solid, other]), "ptr": ends, "pdk": np.array(["ihp_sg13g2"] * n + ["sky130"])}


def test_reference_makes_up_clips_as_the_corpus_does(tmp_path: Path) -> None:
    np.savez(tmp_path / "other.npz", **_clips())
    assert DOMAIN.reference(tmp_path / "other.npz") == DOMAIN.corpus("train")[:3]


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"rects": np.array([[0, 0, 401, 5, 0]]), "ptr": np.array([0, 1, 1, 1, 1])}, "to 400 steps"),
        ({"rects": np.array([[-1, 0, 4, 5, 0]]), "ptr": np.array([0, 1, 1, 1, 1])}, "from -1"),
        ({"rects": np.array([[0, 0, 4, 5, 4]]), "ptr": np.array([0, 1, 1, 1, 1])}, "4 layers"),
        ({"rects": np.zeros((5, 4), int)}, "rects must be"),
        ({"ptr": np.array([0, 5])}, "rects must be"),
        ({"ptr": np.array([0, 9, 5, 20, 10**6])}, "rects must be"),
        ({"rects": np.zeros((0, 5), int), "ptr": np.array([0]), "pdk": np.zeros(0, "U4")}, "0 clips"),
        ({"pdk": np.array(["a", "b", "c", "d"])}, "no clip of ihp_sg13g2"),
        ({"rects": np.zeros((5, 5))}, "float64"),
        ({"pdk": np.array([None] * 4)}, "plain arrays"),
    ],
)
def test_reference_refuses_other_arrays(tmp_path: Path, change: dict[str, np.ndarray], words: str) -> None:
    np.savez(tmp_path / "bad.npz", **_clips() | change)
    with pytest.raises(DesignError, match=words) as caught:
        DOMAIN.reference(tmp_path / "bad.npz")
    assert "\n" not in str(caught.value)


def test_baselines_follow_their_models() -> None:
    train = val(DOMAIN)
    made = DOMAIN.baselines(train, 400, seed=1)
    assert list(made) == ["uniform", "independent"]
    pool = {shape for clip in train for shape in clip.shapes}
    assert all(shape in pool for design in made["independent"] for shape in design.shapes)
    known = {tuple(shape.layer for shape in clip.shapes) for clip in train}
    assert all(tuple(shape.layer for shape in design.shapes) in known for design in made["independent"])
    sides = np.concatenate([design.array() for design in made["uniform"]])
    assert np.abs(np.bincount(sides[:, 0], minlength=4) / len(sides) - 0.25).max() < 0.02
    assert sides[:, 1].mean() == pytest.approx(2000 / 3, abs=20)  # the lesser of two uniform numbers


@pytest.mark.parametrize("name", ["uniform", "independent"])
def test_baselines_depend_on_the_seed_alone(name: str) -> None:
    train = val(DOMAIN)
    one, same, other = (DOMAIN.baselines(train, 3, seed)[name] for seed in (5, 5, 6))
    assert one == same != other
    assert len(one) == 3


def test_overview_is_there_for_those_who_ask() -> None:
    assert isinstance(DOMAIN, Overview)


def test_centres_hold_the_same_cells() -> None:
    """Both forms give real cells back exactly, and say the same corners."""
    corners, centres = layout.build(), layout.build(form="centres")
    designs = corners.corpus("val")[:40]
    state = centres.encode(designs)
    centres.space.check(state)
    assert centres.decode(state) == designs
    assert torch.equal(centres.steps(state)[state["mask"]], corners.steps(corners.encode(designs))[state["mask"]])
    assert (state["centres"][~state["mask"]] == 0).all()


def test_an_unknown_form_is_refused() -> None:
    with pytest.raises(DesignError, match="form='polar'"):
        layout.build(form="polar")
