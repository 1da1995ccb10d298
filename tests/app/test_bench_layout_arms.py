"""The bench of the ways to write numbers: its arms, its measures on cells with known faults, and its goals."""

import json
from pathlib import Path

import pytest
import torch

from app.benchmarks import layout_arms
from domains import layout
from domains.layout import metrics
from domains.layout.cell import Cell, Rectangle
from generators import hybrid

FEW = ("hybrid", "bins256_centres", "joint")
CONTACT = layout.build().technology.index("contact")


def contacts(*sizes: tuple[int, int]) -> Cell:
    """One contact of each size in nm, on the grid, well inside the window."""
    boxes = (Rectangle(CONTACT, 100 + 300 * k, 500, 100 + 300 * k + w, 500 + h) for k, (w, h) in enumerate(sizes))
    return Cell("sky130", 2000, 2000, tuple(boxes))


def test_the_quick_form_has_a_row_for_each_arm(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(layout_arms, "ARMS", {arm: layout_arms.ARMS[arm] for arm in FEW})
    found = json.loads(json.dumps(layout_arms.run(quick=True)))
    assert {"name", "seeds", "n", "reference", "rows", "goals"} == set(found)
    assert [row["method"] for row in found["rows"]] == ["floor", *FEW]
    for row in found["rows"]:
        assert {"method", "steps", "nfe", "seconds", "metrics"} <= set(row)
        assert {"raw_clean", "legal_clean", "capped", "nearest_iou", "off_grid_exported"} <= set(row["metrics"])
        assert row["metrics"]["off_grid_exported"] == row["metrics"]["off_grid"] == 0
    ground = found["rows"][0]["metrics"]
    assert (ground["raw_clean"], ground["contact_exact"], ground["grid_error"]) == (1, 1, 0)
    assert "contact_error" in layout_arms.table(found)


@pytest.mark.parametrize("arm", layout_arms.ARMS)
def test_every_arm_is_a_training_that_can_be_asked_for(arm: str, tmp_path: Path) -> None:
    for quick in (False, True):
        asked = layout_arms.spec(arm, tmp_path, quick)
        assert layout_arms.layout_of(asked).form == ("centres" if arm.endswith("centres") else "corners")
        assert asked.seed == 0


@pytest.mark.parametrize("form", layout.FORMS)
def test_contacts_of_the_right_size_have_no_error(form: str) -> None:
    domain = layout.build(form=form)
    right = layout_arms.numbers(domain, domain.encode([contacts((170, 170), (170, 170))]))
    assert right == {"grid_error": 0, "contact_error": 0, "contact_mean": 0, "contact_exact": 1}
    wrong = layout_arms.numbers(domain, domain.encode([contacts((170, 180), (160, 175))]))  # 0, 2, 2 and 1 steps off
    assert (wrong["contact_mean"], wrong["contact_exact"]) == (1.25, 0.25)


def test_contacts_that_the_window_cuts_do_not_count() -> None:
    domain = layout.build()
    cut = Cell("sky130", 2000, 2000, (Rectangle(CONTACT, 0, 500, 60, 670),))
    found = layout_arms.numbers(domain, domain.encode([cut]))
    assert found["contact_error"] == 0  # its height is whole, its width is not looked at
    assert found["contact_exact"] == 1


@pytest.mark.parametrize(("bins", "places", "most"), [(401, 1, 1e-4), (17, 25, 1e-4), (81, 0, 1e-4), (256, 1, 0.8)])
def test_only_bins_off_the_grid_lose_something(bins: int, places: int, most: float) -> None:
    domain = layout.build()
    made = hybrid.build(domain.space, 12, 1, 1, bins, 1.5625, places)
    error = layout_arms.coding_error(domain, made)
    assert error <= most
    assert (error > 0.1) == (bins == 256)


def test_likeness_is_a_share_of_pixels() -> None:
    """Against areas: squares of 400 nm that share half of each have a third in common."""
    one, other = (Cell("sky130", 2000, 2000, (Rectangle(0, x, 0, x + 400, 400),)) for x in (0, 200))
    apart = Cell("sky130", 2000, 2000, (Rectangle(1, 0, 0, 400, 400),))
    images = metrics.raster([one, other, apart])
    assert images.sum(1).tolist() == [25, 25, 25]  # of 80 nm
    assert metrics.nearest_iou(images[:1], images) == 1
    assert metrics.nearest_iou(images[:1], images[2:]) == 0
    shared = metrics.nearest_iou(images[:1], images[1:])
    assert shared == pytest.approx(10 / 40) or shared == pytest.approx(15 / 35)  # 2 or 3 of 5 columns of pixels
    assert metrics.nearest_iou(torch.zeros_like(images), images) == 0


def test_what_is_off_the_grid_is_counted_by_corner() -> None:
    cell = Cell("sky130", 2000, 2000, (Rectangle(0, 0, 0, 401, 402), Rectangle(0, 1000, 0, 1200, 400)))
    assert metrics.off_grid([cell]) == 2 / 8
    assert metrics.off_grid([]) == 0


def test_goals_are_the_means_of_ours_against_the_others() -> None:
    def row(method: str, value: float) -> dict[str, object]:
        names = ("violations_per_shape", "contact_error", "copies", "length_w1", "capped", "off_grid_exported")
        return {"method": method, "metrics": dict.fromkeys(names, value) | {"legal_clean": 1 - value}}

    rows = [row("hybrid", 0.0), row("hybrid", 0.04), row("floor", 0.01), row("bins256", 0.3), row("plain_end", 0.05)]
    found = layout_arms.goals(rows)
    assert found["violations_per_shape: hybrid <= 1 x bins256"] == {"value": 0.02, "goal": 0.3, "met": True}
    assert found["length_w1: hybrid <= 0.5 x plain_end"] == {"value": 0.02, "goal": 0.025, "met": True}
    assert not found["copies: hybrid <= 1 x floor"]["met"]
    assert not found["off_grid_exported <= 0"]["met"]
    assert found["legal_clean >= 0.95"]["met"]
