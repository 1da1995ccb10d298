"""Tiles: each design in the row that its number decides, whoever else is drawn."""

import pytest
import torch

from data.noise import DesignNoise
from data.space import State
from generators import tiles


@pytest.mark.parametrize("designs", [[0], list(range(40)), [5, 21, 37], [3, 2, 18, 1], list(range(10, 27))])
def test_each_design_is_drawn_once_in_its_row(designs: list[int]) -> None:
    seen: list[tuple[int, ...]] = []

    def draw(noise: DesignNoise) -> State:
        seen.append(noise.designs)
        return {"x": torch.tensor(noise.designs, dtype=torch.float32)[:, None], "row": torch.arange(tiles.SIZE)}

    heard: list[int] = []
    state = tiles.drawn(len(designs), DesignNoise(0, designs), draw, heard.append)
    assert state["x"][:, 0].tolist() == designs
    assert state["row"].tolist() == [design % tiles.SIZE for design in designs]
    assert all(len(tile) == tiles.SIZE for tile in seen)
    assert heard == sorted(heard)
    assert heard[-1] == len(designs)
    most = max(sum(other % tiles.SIZE == design % tiles.SIZE for other in designs) for design in designs)
    assert len(seen) == most
