"""Locked shapes of a layout: what is held, at which sites, and designs that have them."""

from pathlib import Path

import pytest
import torch

from app import cells
from data import checkpoints
from data.noise import DesignNoise
from domains import layout
from domains.base import DesignError, Lockable
from domains.layout import lock, metrics
from domains.layout.cell import Cell, Rectangle

DOMAIN = layout.build()


def written(cell: Cell, folder: Path) -> str:
    path = folder / "held.gds"
    DOMAIN.write(cell, path, {})
    return str(path)


def part_of_a_real_one(layers: set[int]) -> Cell:
    real = DOMAIN.corpus("val")[5]
    return Cell(real.technology, real.width, real.height, tuple(one for one in real.shapes if one.layer in layers))


def test_first_is_the_beginning_of_a_design(tmp_path: Path) -> None:
    assert isinstance(DOMAIN, Lockable)
    held = part_of_a_real_one({0, 1})
    found = DOMAIN.locked(file=written(held, tmp_path))
    DOMAIN.space.check(found)
    assert DOMAIN.decode(found) == [held]
    assert found["mask"][0, : len(held.shapes)].all()


def test_spread_holds_the_same_shapes_where_real_ones_are(tmp_path: Path) -> None:
    held = part_of_a_real_one({3})
    file = written(held, tmp_path)
    first, spread = DOMAIN.locked(file=file), DOMAIN.locked(file=file, place="spread")
    assert DOMAIN.decode(spread) == DOMAIN.decode(first) == [held]
    assert spread["mask"].nonzero()[:, 1].min() > 5  # li comes after all contacts


def test_usual_sites_are_mean_ranks() -> None:
    """Two cells, of which one has two and the other four rectangles before ours; then all that follow close up."""
    row = [Rectangle(0, 10 * k, 0, 10 * k + 5, 5) for k in range(8)]
    corpus = [Cell("sky130", 2000, 2000, tuple(row[:2] + row[5:])), Cell("sky130", 2000, 2000, tuple(row[:4]))]
    assert lock.usual(Cell("sky130", 2000, 2000, (row[4],)), corpus, 9) == [3]
    assert lock.usual(Cell("sky130", 2000, 2000, (row[0], row[4])), corpus, 9) == [0, 3]
    assert lock.usual(Cell("sky130", 2000, 2000, tuple(row)), corpus, 8) == list(range(8))


def test_overlapping_shapes_are_held_as_what_they_cover(tmp_path: Path) -> None:
    two = Cell("sky130", 2000, 2000, (Rectangle(0, 100, 100, 600, 400), Rectangle(0, 300, 100, 900, 400)))
    found = DOMAIN.locked(file=written(two, tmp_path))
    assert DOMAIN.decode(found)[0].shapes == (Rectangle(0, 100, 100, 900, 400),)


@pytest.mark.parametrize("place", lock.PLACES)
def test_designs_of_the_shipped_network_cover_what_is_held(place: str, tmp_path: Path) -> None:
    held = part_of_a_real_one({0, 1})
    found = DOMAIN.locked(file=written(held, tmp_path), place=place)
    folder = checkpoints.find("layout-hybrid", DOMAIN.space)
    generator = cells.loaded("hybrid", folder, DOMAIN.space, torch.device("cpu"))
    state = generator.sample(4, 2, None, None, DesignNoise(0, range(4)), lambda step: None, found)  # type: ignore[call-arg]
    for design in DOMAIN.decode(state):
        assert set(held.shapes) <= set(design.shapes)
        assert len(design.shapes) > len(held.shapes)
        assert metrics.off_grid([design]) == 0


def test_what_cannot_be_held_is_refused(tmp_path: Path) -> None:
    with pytest.raises(DesignError, match="file is empty"):
        DOMAIN.locked()
    with pytest.raises(DesignError, match="place='last'"):
        DOMAIN.locked(file="x.gds", place="last")
    with pytest.raises(DesignError):
        DOMAIN.locked(file=str(tmp_path / "none.gds"))
    many = Cell("sky130", 2000, 2000, tuple(Rectangle(0, 20 * k, 0, 20 * k + 5, 5) for k in range(57)))
    with pytest.raises(DesignError, match="57 rectangles"):
        DOMAIN.locked(file=written(many, tmp_path))


def test_repair_moves_nothing_that_is_held() -> None:
    wrong = Cell("sky130", 2000, 2000, (Rectangle(0, 100, 200, 600, 400), Rectangle(0, 100, 600, 600, 640)))
    assert DOMAIN.violations(wrong)
    assert DOMAIN.repaired(wrong, [0, 1]) == wrong
    assert not DOMAIN.violations(DOMAIN.repaired(wrong, []))
    assert wrong.shapes[0] in DOMAIN.repaired(wrong, [0]).shapes
    assert not DOMAIN.violations(DOMAIN.repaired(wrong, [0]))


def test_sites_are_those_of_the_state_whatever_else_is_made() -> None:
    """The held rectangle is at site 5; one without area is dropped before it, and one that sorts first comes after."""
    state = DOMAIN.encode([Cell("sky130", 2000, 2000, (Rectangle(1, 400, 400, 600, 800),))])
    held = lock.spread(state, [5])
    for site, corners in ((3, (0.5, 0.5, 0.5, 0.5)), (7, (-0.5, -0.5, -0.25, 0.75))):
        held["layer"][0, site, 0], held["mask"][0, site] = 1, True
        held["corners"][0, site] = torch.tensor(corners)
    (design,) = DOMAIN.decode(held)
    assert (design.dropped, design.sites) == (1, (7, 5))
    assert design.shapes[1] == Rectangle(1, 400, 400, 600, 800)
