"""The bench of the design-rule check, and KLayout as a referee."""

from __future__ import annotations

import numpy as np
import pytest

from app.benchmarks import drc
from data.errors import InputError
from domains.layout import technology
from domains.layout.technology import Area, Layer, Pair, Rule, Technology

LAYERS = (
    Layer("a", (1, 0), Rule("a.s", 100), Rule("a.w", 60), None, Rule("a.n", 80), Area("a.a", 10000)),
    Layer("b", (2, 0), Rule("b.s", 90), Rule("b.w", 50), None),
    Layer("cut", (3, 0), Rule("cut.s", 50), None, Rule("cut.z", 40)),
)
PAIRS = (
    Pair("enclosure", "e.1", 0, (2,), (0, 1), ()),
    Pair("enclosure", "e.2", 20, (2,), (0,), (0,)),
    Pair("extension", "x.1", 70, (0,), (1,), ()),
    Pair("separation", "s.1", 30, (0,), (1,), ()),
)
MADE = Technology("made", 1, 5, (0, 0), LAYERS, PAIRS)


def junk(n: int, count: int, rng: np.random.Generator) -> drc.Stock:
    """Cells of so many rectangles anywhere in 1 um, far from the window's edge."""
    shapes = []
    for _ in range(n):
        corner, side = 5 * rng.integers(0, 160, (count, 2)), 5 * rng.integers(4, 50, (count, 2))
        shapes.append(np.c_[rng.integers(0, 3, count), corner + drc.ROOM, corner + side + drc.ROOM])
    return drc.Stock(MADE, shapes, [(8000, 8000)] * n)


@pytest.mark.parametrize("count", [2, 4, 8])
def test_klayout_breaks_the_same_rules_of_rectangles_anywhere(count: int) -> None:
    pytest.importorskip("klayout")
    stock = junk(60, count, np.random.default_rng(count))
    (theirs,) = drc.referee_verdicts([stock])
    ours = drc.own_verdicts(stock)
    judged = 60 * len(drc.asked(MADE))
    differ = [{k for k, _ in a} ^ {k for k, _ in b} for a, b in zip(ours.found, theirs.found, strict=True)]
    assert sum(map(len, differ)) <= 0.005 * judged, differ
    assert {k for own in theirs.found for k, _ in own} >= {k for own in ours.found for k, _ in own} != set()


def test_the_bench_sets_both_checks_side_by_side() -> None:
    pytest.importorskip("klayout")
    result = drc.run(quick=True)
    assert {"name", "seeds", "n", "reference", "rows", "goals"} == set(result)
    ours = {row["method"]: row["metrics"] for row in result["rows"] if row["library"] == "ours"}
    theirs = [row["metrics"] for row in result["rows"] if row["library"] == "klayout"]
    assert len(ours) == len(theirs) == 4
    assert ours["real, ours"]["clean"] == 1
    assert ours["one side off grid, ours"]["clean"] == 0  # a positive control
    assert ours["5 % of sides moved, ours"]["clean"] == 0
    for own, other in zip(ours.values(), theirs, strict=True):
        assert own["agree"] >= 0.9
        assert own["klayout_over_ours"] == pytest.approx(other["ms_per_cell"] / own["ms_per_cell"], rel=0.02)
    assert result["goals"]["violations missed <= 0"]["met"]


def test_findings_are_missed_where_nothing_of_the_same_rule_meets_them() -> None:
    theirs = [(0, [0, 0, 10, 10]), (1, [0, 0, 10, 10])]
    assert drc.missing([(0, (10, 10, 20, 20)), (1, (0, 0, 1, 1))], theirs) == 0
    assert drc.missing([(0, (11, 10, 20, 20)), (1, (0, 0, 1, 1))], theirs) == 1
    assert drc.missing([(0, (0, 0, 10, 10))], theirs) == 1
    assert drc.missing([], theirs) == 2


def test_one_side_moves_and_the_rest_stays() -> None:
    rng = np.random.default_rng(0)
    for stock in drc.stocks(every=50):
        for move in (drc.off_grid, lambda *given: drc.moved(*given, share=0.0, least=1, most=20)):
            by = move(stock.shapes[0], stock.technology.grid, rng)
            assert (by != 0).sum() == 1
        assert abs(drc.off_grid(stock.shapes[0], 5, rng)).max() < 5


def test_every_rule_is_asked_once() -> None:
    for name in technology.names():
        asked = drc.asked(technology.load(name + technology.CELLS))
        keys = [(rule["check"], rule["layer"], rule.get("name")) for rule in asked]
        assert len({*keys}) == len(keys) > 15


def test_what_to_install_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(drc.importlib.util, "find_spec", lambda name: None)
    with pytest.raises(InputError, match="klayout, which is not installed: pip install klayout"):
        drc.run(quick=True)
