"""The bench of conditions: its measures on cells of known density, and its quick form."""

import pytest

from app.benchmarks import layout_conditions
from domains.layout.cell import Cell, Rectangle


def covered(share: float) -> Cell:
    """One layer of four over so much of the window."""
    return Cell("sky130", 2000, 2000, (Rectangle(1, 0, 0, round(share * 4 * 2000), 2000),))


def test_what_is_asked_for_has_no_error_and_slope_one() -> None:
    asked = {level: [covered(level)] * 3 for level in (0.05, 0.1, 0.2)}
    found = layout_conditions.measured(asked)
    assert found["density_error"] == pytest.approx(0, abs=1e-6)
    assert found["density_slope"] == pytest.approx(1)


def test_what_is_the_same_whatever_is_asked_has_slope_zero() -> None:
    found = layout_conditions.measured({level: [covered(0.1)] for level in (0.05, 0.1, 0.15)})
    assert found["density_error"] == pytest.approx(0.1 / 3)
    assert found["density_slope"] == pytest.approx(0)


def test_contacts_have_the_size_of_their_technology_or_not() -> None:
    boxes = tuple(Rectangle(2, x, 500, x + w, 500 + w) for x, w in ((100, 170), (500, 160), (900, 170)))
    cut = Rectangle(2, 0, 900, 90, 1070)
    assert layout_conditions.own_contacts([Cell("sky130", 2000, 2000, (*boxes, cut))]) == pytest.approx(2 / 3)
    assert layout_conditions.own_contacts([Cell("ihp_sg13g2", 2000, 2000, boxes)]) == pytest.approx(1 / 3)
    assert layout_conditions.own_contacts([covered(0.1)]) == 0


def test_goals_compare_with_nothing_asked_in_the_same_technology() -> None:
    def row(method: str, error: float) -> dict[str, object]:
        return {"method": method, "metrics": {"density_error": error}}

    rows = [
        row("sky130 free", 0.1),
        row("sky130 cfg=1", 0.05),
        row("ihp_sg13g2 free", 0.02),
        row("ihp_sg13g2 cfg=1", 0.03),
    ]
    found = layout_conditions.goals(rows)
    assert found["density_error: sky130 cfg=1 < sky130 free"] == {"value": 0.05, "goal": 0.1, "met": True}
    assert not found["density_error: ihp_sg13g2 cfg=1 < ihp_sg13g2 free"]["met"]


def test_the_quick_form_has_a_row_for_each_way() -> None:
    found = layout_conditions.run(quick=True)
    assert [row["method"] for row in found["rows"]] == [
        f"{name} {way}" for name in layout_conditions.TECHNOLOGIES for way in ("free", "cfg=1.5")
    ]
    assert all(0 <= row["metrics"]["own_contacts"] <= 1 for row in found["rows"])
