"""Rasters against resvg, and metrics against closed forms and other implementations."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from scipy import linalg
from scipy.spatial import distance

from domains import svg
from domains.base import DesignError
from domains.svg import files, metrics, raster, units
from domains.svg.icon import Icon
from tests.domains.test_svg_domain import CORPUS, DOMAIN, icon, junk
from tests.domains.test_svg_files import rendered

SMALL = svg.build(12)
TRAIN, VAL = SMALL.corpus("train"), CORPUS["val"]


@pytest.mark.parametrize("size", [24, 32, 96])
def test_ink_is_what_resvg_draws(size: int) -> None:
    junk_on_canvas = [design for design in DOMAIN.decode(junk(1, n=12, size=0.5)) if len(design.segments) > 5]
    designs = [*VAL[::25], *junk_on_canvas]
    ours = raster.ink(designs, size).numpy()
    theirs = np.stack([rendered(files.document(design, {}), size) for design in designs])
    error = np.abs(ours - theirs).mean((1, 2))
    overlap = np.minimum(ours, theirs).sum((1, 2)) / np.maximum(ours, theirs).sum((1, 2))
    assert error.mean() < 0.01
    assert error.max() < 0.025
    assert np.median(overlap) > 0.95


@pytest.mark.parametrize(
    ("words", "area"),
    [
        (["M 6 12", "L 18 12"], 24 + math.pi),
        (["M 12 6", "L 12 6"], math.pi),
        (["M 12 6", "Z"], math.pi),
        (["M 12 6"], 0),
        (["M 6 6", "L 18 6", "L 18 18", "L 6 18", "Z"], 4 * 24 + math.pi - 4),
        (["M 6 6", "M 4 4", "C 4 4 4 4 20 20"], 2 * 16 * math.sqrt(2) + math.pi),
        (["M -9 12", "L 33 12"], 48),
    ],
)
def test_ink_has_the_area_of_the_strokes(words: list[str], area: float) -> None:
    assert raster.ink([icon(*words)], 192).mean().item() * 24**2 == pytest.approx(area, rel=0.01, abs=0.01)


def test_ink_does_not_depend_on_the_batch() -> None:
    together = raster.ink(TRAIN[:70])
    assert torch.equal(together, torch.cat([raster.ink([design]) for design in TRAIN[:70]]))
    assert raster.ink([]).shape == (0, 24, 24)
    assert raster.ink([Icon(())]).sum() == 0


def test_ink_of_a_state_has_finite_gradients_even_on_a_stroke() -> None:
    state = DOMAIN.encode([icon("M 2.5 4.5", "L 8.5 4.5", "L 8.5 4.5", "C 8 9 8 9 8 9", "Z"), Icon(())])
    arguments = state["arguments"].requires_grad_()
    raster.coverage(units.strokes(state)).sum().backward()
    assert arguments.grad is not None
    assert bool(arguments.grad.isfinite().all())
    assert arguments.grad[0].abs().sum() > 0


def test_a_set_is_at_no_distance_from_itself_and_copies_are_found() -> None:
    found = SMALL.metrics(TRAIN[:200], TRAIN[:200])
    assert tuple(found) == DOMAIN.metric_names
    assert found == pytest.approx(
        {"renders": 1, "frechet": 0, "length_w1": 0, "command_js": 0, "ink_error": 0, "copies": 1, "exact_copies": 1,
         "nearest_similarity": 1}, abs=1e-4,
    )  # fmt: skip


def test_baselines_are_further_away_than_real_icons() -> None:
    made = SMALL.baselines(TRAIN, 128, seed=0)
    rows = {name: SMALL.metrics(designs, TRAIN) for name, designs in (made | {"real": TRAIN[::9]}).items()}
    assert rows["real"]["frechet"] < 0.5 * rows["independent"]["frechet"] < 0.5 * rows["uniform"]["frechet"]
    assert rows["real"]["command_js"] < rows["uniform"]["command_js"]
    assert rows["uniform"]["copies"] == 0 == rows["uniform"]["exact_copies"]


def test_a_slight_change_is_a_copy_but_not_an_exact_one() -> None:
    moved = [icon("M 3 3", "L 21 3", "L 21 21"), icon("M 3 3", "L 21 3", "L 21 20.9"), icon("M 3 18", "L 9 9")]
    inks = raster.ink(moved)
    found = metrics.copying(moved[1:], inks[1:], moved[:1], inks[:1])
    assert (found["copies"], found["exact_copies"]) == (0.5, 0)


def test_similarity_is_that_of_the_nearest() -> None:
    inks = raster.ink([icon("M 3 3", "L 9 3"), icon("M 3 20", "L 9 20"), icon("M 3 3", "L 9 3", "M 3 20", "L 9 20")])
    assert metrics.nearest_similarity(inks[2:], inks[:2]).item() == pytest.approx(2 / 3, abs=1e-5)
    assert metrics.nearest_similarity(inks[:1], inks[1:2]).item() == 0


@pytest.mark.parametrize("seed", range(3))
def test_frechet_is_the_textbooks(seed: int) -> None:
    rng = np.random.default_rng(seed)
    made, real = rng.normal(size=(60, 5)) @ rng.normal(size=(5, 5)) + 1, rng.normal(size=(90, 5))
    a, b = made / real.std(0), real / real.std(0)
    first, second = np.cov(a.T, bias=True), np.cov(b.T, bias=True)
    root = linalg.sqrtm(first @ second).real
    wanted = np.square(a.mean(0) - b.mean(0)).sum() + np.trace(first + second - 2 * root)
    assert metrics.frechet(made, real) == pytest.approx(wanted / 5)


def test_frechet_of_a_shift_is_its_square() -> None:
    real = np.random.default_rng(0).normal(size=(500, 4))
    real /= real.std(0)
    assert metrics.frechet(real + 3, real) == pytest.approx(9)
    assert math.isfinite(metrics.frechet(real[:1], real))


def test_command_divergence_is_scipys() -> None:
    made, real = [icon("M 3 3", "M 3 3", "Z")], TRAIN[:9]
    a, b = metrics.bigrams(made), metrics.bigrams(real)
    words = sorted(a | b)
    wanted = distance.jensenshannon([a[word] for word in words], [b[word] for word in words]) ** 2
    assert SMALL.metrics(made, real)["command_js"] == pytest.approx(wanted)
    assert metrics.bigrams([icon("M 3 3", "L 4 4", "Z")]) == {"^M": 1, "ML": 1, "LZ": 1, "Z$": 1}
    assert SMALL.metrics([Icon(())], real)["command_js"] == pytest.approx(math.log(2))


def test_sets_of_nothing_drawn_still_have_numbers() -> None:
    found = SMALL.metrics([Icon(()), icon("M 3 3")], VAL[:20])
    assert found["renders"] == 0
    assert all(math.isfinite(value) for value in found.values())


def test_no_metrics_of_nothing() -> None:
    with pytest.raises(DesignError, match="0 designs against 1"):
        SMALL.metrics([], TRAIN[:1])
