"""Rewards of layouts: values of known designs, and what cannot be built."""

from __future__ import annotations

import pytest
import torch

from domains import layout
from domains.layout import Cell, Rectangle
from rewards import density, design_rules
from rewards.base import RewardError

DOMAIN = layout.build("sky130")
CLIPS = DOMAIN.corpus("val")[:50]


def made(*shapes: tuple[int, int, int, int, int], dropped: int = 0) -> Cell:
    return Cell("sky130", 2000, 2000, tuple(Rectangle(*shape) for shape in shapes), dropped)


@pytest.mark.parametrize(
    ("target", "values"), [(0.0, [1, 0.5, 0]), (1.0, [0, 0.5, 1]), (0.5, [0, 1, 0]), (0.25, [2 / 3, 2 / 3, 0])]
)
def test_density_falls_evenly_to_the_share_furthest_off(target: float, values: list[float]) -> None:
    designs = [made((0, 0, 0, 5, 5)), made((3, 0, 0, 1000, 2000), (3, 0, 0, 900, 900)), made((3, 0, 0, 2000, 2000))]
    result = density.build(DOMAIN, "li_or_met1", target)(designs)
    assert result.value.tolist() == pytest.approx(values, abs=1e-5)
    assert result.parts["density"].tolist() == pytest.approx([0, 0.5, 1])
    assert result.valid.all()


def test_density_is_of_one_layer() -> None:
    design = made((1, 0, 0, 2000, 1000), (3, 0, 0, 2000, 500))
    shares = {layer: density.build(DOMAIN, layer)([design]).parts["density"].item() for layer in ("poly", "li_or_met1")}
    assert shares == {"poly": 0.5, "li_or_met1": 0.25}


@pytest.mark.parametrize("target", [-0.01, 1.01, float("nan")])
def test_density_targets_are_shares(target: float) -> None:
    with pytest.raises(RewardError, match=r"target=.*between 0 and 1"):
        density.build(DOMAIN, target=target)


def test_density_names_the_layers_there_are() -> None:
    with pytest.raises(RewardError, match="no layer 'met7' in sky130; there are diff, poly, contact, li_or_met1"):
        density.build(DOMAIN, layer="met7")


def test_each_broken_rule_costs() -> None:
    designs = [
        made((3, 0, 0, 400, 400)),
        made((3, 500, 500, 505, 900), (2, 500, 500, 675, 670)),
        made((3, 0, 0, 400, 400), dropped=2),
        made(),
    ]
    result = design_rules.build(DOMAIN)(designs)
    assert result.value.tolist() == pytest.approx([1, 1 / 3, 1 / 2, 0])
    assert result.valid.tolist() == [True, True, True, False]
    assert result.parts["width"].tolist() == [0, 1, 0, 0]
    assert result.parts["size"].tolist() == [0, 1, 0, 0]
    assert result.parts["empty"].tolist() == [0, 0, 1, 1]


@pytest.mark.parametrize("reward", [density.build(DOMAIN), design_rules.build(DOMAIN)])
def test_values_are_shares_of_a_batch(reward: density.Density) -> None:
    result = reward(DOMAIN.baselines(CLIPS, 6, 0)["uniform"])
    assert result.value.shape == result.valid.shape == (6,)
    assert result.value.dtype == torch.float32
    assert bool(((result.value >= 0) & (result.value <= 1)).all())
    assert reward([]).value.shape == (0,)
    assert reward.domains == ("layout",)
