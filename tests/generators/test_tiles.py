"""Tiles: each design once, whoever else is drawn, and where it must be in the row that its number decides."""

import pytest
import torch

from data.noise import DesignNoise
from data.space import State
from generators import tiles


@pytest.mark.parametrize("in_row", [False, True])
@pytest.mark.parametrize("designs", [[0], list(range(40)), [5, 21, 37], [3, 2, 18, 1], list(range(10, 27))])
def test_each_design_is_drawn_once_and_in_its_row(designs: list[int], in_row: bool) -> None:
    seen: list[tuple[int, ...]] = []

    def draw(noise: DesignNoise) -> State:
        seen.append(noise.designs)
        return {"x": torch.tensor(noise.designs, dtype=torch.float32)[:, None], "row": torch.arange(tiles.SIZE)}

    heard: list[int] = []
    state = tiles.drawn(len(designs), DesignNoise(0, designs), draw, heard.append, in_row)
    assert state["x"][:, 0].tolist() == designs
    rows = designs if in_row else range(len(designs))
    assert state["row"].tolist() == [row % tiles.SIZE for row in rows]
    assert all(len(tile) == tiles.SIZE for tile in seen)
    assert heard == sorted(heard)
    assert heard[-1] == len(designs)
    most = max(sum(other % tiles.SIZE == row % tiles.SIZE for other in rows) for row in rows)
    assert len(seen) == most
