"""Conditions of layouts: what is known of cells, and the lessons that tell it."""

import numpy as np
import pytest
import torch

from data import corpora
from data.space import CONDITIONS
from domains import layout
from domains.base import Conditional
from domains.layout import Cell, Rectangle, clips, conditions

SKY = layout.build("sky130", 20)


def cell(*shapes: tuple[int, int, int, int, int], function: str = "") -> Cell:
    return Cell("sky130", 2000, 2000, tuple(Rectangle(*shape) for shape in shapes), function=function)


def known(design: Cell) -> dict[str, float]:
    return dict(zip(SKY.space.conditions, SKY.facts([design])[0].tolist(), strict=True))


def test_density_is_the_share_that_is_covered_the_mean_over_layers() -> None:
    half, overlapping = (1, 0, 0, 1000, 2000), (1, 500, 0, 1000, 2000)
    assert known(cell(half, overlapping))["density"] == pytest.approx(0.5 / 4)
    assert known(cell(half, (0, 0, 0, 2000, 2000)))["density"] == pytest.approx(1.5 / 4)
    assert known(cell(*((k, 0, 0, 2000, 2000) for k in range(4))))["density"] == pytest.approx(conditions.DENSEST)


def test_layers_technology_and_function_are_told() -> None:
    facts = known(cell((1, 0, 0, 9, 9), (3, 0, 0, 9, 9), function="nand2"))
    assert facts["layers"] == 0b1010
    labels = SKY.space.conditions["technology"].names, SKY.space.conditions["function"].names
    assert labels[0][int(facts["technology"])] == "sky130"
    assert labels[1][int(facts["function"])] == "nand2"


def test_what_is_not_known_is_not_told() -> None:
    facts = known(cell(function="perpetuum"))
    assert np.isnan([facts["function"], facts["layers"]]).all()
    assert facts["density"] == 0
    assert SKY.facts([]).shape == (0, 4)


@pytest.mark.parametrize(
    ("source", "function"),
    [
        ("sky130_fd_sc_hd__a2111o_1", "a2111o"),
        ("sky130_fd_sc_hvl__lsbuflv2hv_clkiso_hlkg_3", "lsbuflv2hv_clkiso_hlkg"),
        ("sky130_fd_sc_hd__dlymetal6s2s_1", "dlymetal6s2s"),
        ("sky130_fd_sc_hd__macro_sparecell", "macro_sparecell"),
        ("sg13g2_nand2b_2", "nand2b"),
        ("mine", ""),
    ],
)
def test_a_cells_name_tells_its_function(source: str, function: str) -> None:
    assert clips.function(source) == function


def test_the_functions_are_those_of_the_train_split_and_val_has_others() -> None:
    arrays = corpora.load(layout.CORPUS)
    sources = {split: np.unique(arrays["source"][arrays["split"] == split]) for split in ("train", "val")}
    by = {split: {clips.function(str(source)) for source in some} for split, some in sources.items()}
    assert sorted(by["train"]) == list(conditions.functions())
    assert not by["train"] & by["val"]
    assert clips.technologies() == ["ihp_sg13g2", "sky130"]


def test_lessons_are_the_train_splits_with_what_is_known() -> None:
    short = layout.build("sky130", 12)
    assert isinstance(short, Conditional)
    lessons = short.lessons()
    told = lessons.pop(CONDITIONS)
    short.space.check(lessons)
    both = [layout.build(name, 12).corpus("train") for name in ("ihp_sg13g2", "sky130")]
    assert told.shape == (sum(map(len, both)), 1, 4)
    assert torch.equal(told[:, 0], torch.cat([short.facts(some) for some in both]))
    assert not told.isnan().any()
    assert short.decode({key: value[-len(both[1]) :] for key, value in lessons.items()}) == both[1]
    assert short.given == {"technology": "sky130"}
