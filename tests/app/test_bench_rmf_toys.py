"""The bench of Riemannian MeanFlow on small problems: its laws, its measures, its table."""

import json
import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from app.benchmarks import rmf_toys
from app.benchmarks.rmf_toys import arms, findings, measures, picture, problems, samplers, work
from app.benchmarks.rmf_toys.arms import ARMS
from data.noise import StepNoise
from data.store import locked
from generators.rmf.objectives import OBJECTIVES

RNG_SEED = 7
NAMES = list(problems.PROBLEMS)


def rng() -> np.random.Generator:
    return np.random.default_rng(RNG_SEED)


def naive(a: torch.Tensor, b: torch.Tensor) -> float:
    """The unbiased estimate of MMD^2, pair by pair."""

    def k(x: torch.Tensor, y: torch.Tensor) -> float:
        square = float(((x - y) ** 2).sum())
        return sum(math.exp(-rate * square) for rate in measures.RATES) / len(measures.RATES)

    n, m = len(a), len(b)
    own = sum(k(a[i], a[j]) for i in range(n) for j in range(n) if i != j) / (n * (n - 1))
    other = sum(k(b[i], b[j]) for i in range(m) for j in range(m) if i != j) / (m * (m - 1))
    return own + other - 2 * sum(k(x, y) for x in a for y in b) / (n * m)


def test_the_discrepancy_is_that_of_a_double_loop() -> None:
    noise = StepNoise(0)
    a, b = noise.normal(9, 3) * 0.4, noise.normal(13, 3) * 0.4 + 0.1
    assert measures.measured(a, b)["mmd2"] == pytest.approx(naive(a, b), abs=1e-6)


def test_it_is_unbiased_and_p_is_uniform_where_the_laws_are_the_same() -> None:
    found = [measures.measured(StepNoise(k).normal(40, 2), StepNoise(10_000 + k).normal(60, 2)) for k in range(300)]
    values, p = np.array([each["mmd2"] for each in found]), np.array([each["p"] for each in found])
    assert abs(values.mean()) < 4 * values.std() / len(values) ** 0.5
    assert (values < 0).any()
    for level in (0.1, 0.25, 0.5, 0.75):
        assert abs((p <= level).mean() - level) < 4 * math.sqrt(level * (1 - level) / len(p)) + 0.01


def test_it_finds_a_difference() -> None:
    found = measures.measured(StepNoise(0).normal(100, 2), StepNoise(1).normal(100, 2) + 0.8)
    assert found["mmd2"] > 0.02
    assert found["p"] == pytest.approx(1 / (1 + measures.PERMUTATIONS))


def test_fidelity_sees_strays_and_coverage_sees_what_is_missing() -> None:
    two = torch.tensor([[0.0, 0.0], [3.0, 4.0]]).repeat(5, 1)
    one = torch.zeros(10, 2)
    assert measures.measured(one, two)["fidelity"] == pytest.approx(0, abs=1e-3)
    assert measures.measured(one, two)["coverage"] == pytest.approx(2.5, abs=1e-3)
    assert measures.measured(two, one)["fidelity"] == pytest.approx(2.5, abs=1e-3)


@pytest.mark.parametrize("name", NAMES)
def test_data_and_prior_are_on_the_manifold(name: str) -> None:
    toy = problems.problem(name)
    for points in (toy.fresh(50, 0), toy.reference(50, 0), arms.prior(toy, 50, StepNoise(0))):
        assert points.shape == (50, toy.chart.width)
        assert torch.allclose(toy.chart.manifold.project(points), points, atol=1e-5)
        flat = toy.coordinates(points)
        assert torch.allclose(toy.nearest(flat), flat, atol=1e-5)
    assert not torch.equal(toy.fresh(50, 0), toy.fresh(50, 1))
    assert torch.equal(toy.fresh(50, 0), toy.fresh(50, 0))


@pytest.mark.parametrize("concentration", [0.5, 5.0, 100.0])
def test_von_mises_fisher_has_its_mean(concentration: float) -> None:
    mean = samplers.unit(np.array([1.0, -2.0, 0.5]))
    drawn = samplers.von_mises_fisher(np.tile(mean, (20_000, 1)), concentration, rng())
    length = 1 / math.tanh(concentration) - 1 / concentration
    assert np.allclose(np.linalg.norm(drawn, axis=1), 1)
    assert np.allclose(drawn.mean(0), length * mean, atol=4 / math.sqrt(3 * len(drawn)))


GENERIC = np.array([[1.0, 2, 0], [0, -1, 3], [2, 0, 1]])


@pytest.mark.parametrize("parameter", [np.diag([4.0, 2.0, -1.0]), np.diag([-3.0, 3.0, -2.0]), GENERIC])
def test_matrix_fisher_has_its_moments(parameter: np.ndarray) -> None:
    """Against a sum over the whole of SO(3): exp(tr(F^T R)) as weights of uniform rotations."""
    drawn = samplers.matrix_fisher(parameter, 20_000, rng())
    even = samplers.rotations(samplers.unit(rng().standard_normal((200_000, 4))))
    weights = np.exp(even @ parameter.reshape(9) - np.linalg.norm(parameter, "nuc"))
    moment, effective = weights @ even / weights.sum(), weights.sum() ** 2 / (weights**2).sum()
    assert effective > 2000
    assert np.allclose(drawn.mean(0), moment, atol=4 * math.sqrt(1 / effective + 1 / len(drawn)) * 0.6)


def test_the_form_of_quaternions_is_that_of_their_rotations() -> None:
    parameter, q = rng().standard_normal((3, 3)), samplers.unit(rng().standard_normal((50, 4)))
    form = np.einsum("ni,ij,nj->n", q, samplers.davenport(parameter), q)
    assert np.allclose(form, samplers.rotations(q) @ parameter.reshape(9))


def test_wrapped_normals_have_their_moments() -> None:
    angles = problems.problem("wrapped_normal").fresh(40_000, 0).double().numpy()
    expected = (np.exp(1j * problems.CENTRES) * np.exp(-(problems.SPREADS**2) / 2)).mean(0)
    assert np.allclose(np.exp(1j * angles).mean(0), expected, atol=4 / math.sqrt(len(angles)))


def test_large_angles_are_large() -> None:
    toy = problems.problem("large_angles")
    prior, data = arms.prior(toy, 2000, StepNoise(0)), toy.fresh(2000, 0)
    assert float((toy.chart.manifold.log(prior, data).norm(dim=-1) > 2).float().mean()) > 0.8


def test_torsions_are_those_of_chains() -> None:
    """Most residues are in helices or strands: phi is negative."""
    angles = problems.problem("torsions").fresh(2000, 0)
    assert bool((angles.abs() <= math.pi + 1e-6).all())
    assert 0.9 < float((angles[:, 0] < 0).float().mean()) < 0.99


@pytest.mark.parametrize("name", ["vmf", "torsions", "cone", "poincare"])
def test_a_seed_learns_from_its_own_points_only(name: str) -> None:
    """The gradient of one seed's loss is zero in the weights of all others."""
    toy = problems.problem(name)
    maps = arms.FlowMaps(toy, ARMS["semigroup x1"], 3, StepNoise(0))
    x = {"x": toy.fresh(12, 0)[:, None]}
    s = torch.full((12,), 0.3)
    u = maps.flow.velocity(x, torch.ones(12, 1, dtype=torch.bool), s, s + 0.5)["x"]
    u[1::3].square().sum().backward()
    for weight in maps.parameters():
        assert weight.grad is not None
        assert not weight.grad[[0, 2]].any()
    assert any(weight.grad[1].any() for weight in maps.parameters())


def test_flow_matching_is_given_more_steps_and_no_identity() -> None:
    recipe = ARMS["flow_matching x1"].recipe(1)
    assert recipe.identity_weight == 0
    assert recipe.steps == ARMS["semigroup x1"].recipe(1).steps * arms.MORE
    assert ARMS["eulerian xt"].recipe(1).objective == "eulerian"
    long, alone = (ARMS[f"{name} x1 long"] for name in ("semigroup", "flow_matching"))
    assert alone.recipe(1).steps == long.recipe(1).steps * arms.LONG_MORE
    assert alone.batch == long.batch
    assert len(ARMS) == 21


@pytest.mark.parametrize("name", ["vmf", "matrix_fisher", "poincare"])
def test_flow_matching_needs_no_arm_for_xt(name: str) -> None:
    """Where s = t it is the average velocity that a network says, with the same gradient."""
    toy, s = problems.problem(name), torch.linspace(0, 0.9, 8)
    x, mask = {"x": toy.fresh(8, 0)[:, None]}, torch.ones(8, 1, dtype=torch.bool)
    found = []
    for way in ("xt", "average_velocity"):
        maps = arms.FlowMaps(toy, arms.Arm("flow_matching", way), 1, StepNoise(0))
        u = maps.flow.velocity(x, mask, s, s)["x"]
        found.append([u, *torch.autograd.grad(u.square().sum(), list(maps.parameters()))])
    assert all(map(torch.equal, *found))


def test_a_training_that_diverges_is_a_row(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(arms, "RECIPE", replace(arms.RECIPE, learning_rate=1.0, flow_matching_steps=0))
    toy = problems.problem("vmf")
    monkeypatch.setattr(arms.Trainer, "advance", _diverges)
    assert "diverged" in arms.trained(toy, ARMS["eulerian x1"], 0.01, 1, 0).failure


def _diverges(self: arms.Trainer, batch: object, rng: object) -> dict[str, float]:
    self.descent.take({"loss": float("nan")})
    return {}


SMALL = work.Plan(
    problems=("vmf", "large_angles"),
    arms=("semigroup x1 long", "flow_matching x1 long", "euclidean x1"),
    part=0.002,
    steps=(1, 4),
    seeds=2,
    seed=0,
    n=40,
    pairs=3,
)


@pytest.fixture
def at_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("FORESHAPE_HOME", str(tmp_path))
    monkeypatch.setattr(rmf_toys, "QUICK", SMALL)
    return tmp_path


def test_the_table_has_every_method_and_is_drawn(at_home: Path) -> None:
    found = json.loads(json.dumps(rmf_toys.run(quick=True)))
    assert set(found) == {"name", "seeds", "n", "reference", "rows", "cpu_seconds", "goals"}
    expected = [(p, m, s) for p in SMALL.problems for m, s in _columns()]
    assert [(row["problem"], row["method"], row["steps"]) for row in found["rows"]] == expected
    for row in found["rows"]:
        assert {"method", "steps", "nfe", "n", "seconds", "metrics"} <= set(row)
        assert {"mmd2", "p", "fidelity", "coverage"} <= set(row["metrics"])
        assert len(row["mmd2_by_seed"]) == (SMALL.pairs if row["method"] == "floor" else SMALL.seeds)
    assert all(goal["met"] == (goal["value"] >= goal["goal"]) for goal in found["goals"].values())
    assert "| semigroup x1 long |" in rmf_toys.table(found)
    assert picture.drawn(found).count("<rect") == 2 * len(SMALL.problems) + 1


def _columns() -> list[tuple[str, int]]:
    return [("floor", 0), ("prior", 0), *((method, steps) for method in SMALL.arms for steps in SMALL.steps)]


def test_what_is_finished_is_taken_over(at_home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rows, seconds = work.done(SMALL, 1)
    gone = next(SMALL.folder().glob("vmf.semigroup-x1-long.json"))
    gone.unlink()
    made: list[str] = []
    own = work.rows
    monkeypatch.setattr(work, "rows", lambda *piece: made.append(piece[2]) or own(*piece))
    again, _ = work.done(SMALL, 1)
    assert made == ["semigroup x1 long"]
    assert [row["metrics"] for row in again] == [row["metrics"] for row in rows]
    assert seconds > 0


def test_what_another_process_makes_is_left_to_it(at_home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(work, "rows", lambda *piece: [])
    with (at_home / "vmf.prior.lock").open("ab") as lock:
        assert locked(lock)
        assert not work._made(SMALL, at_home, ("vmf", "prior"))
    assert work._made(SMALL, at_home, ("vmf", "prior"))
    assert json.loads((at_home / "vmf.prior.json").read_text())["rows"] == []


def test_the_whole_bench_leaves_nothing_out() -> None:
    plan = rmf_toys.FULL
    assert len(plan.problems) == 11
    assert plan.steps == (1, 2, 4, 8, 100)
    assert plan.seeds == 3
    ways = {(arm.objective, arm.parameterisation) for arm in map(ARMS.get, plan.arms) if arm and not arm.flat}
    every = {(o, w) for o in (*OBJECTIVES, "flow_matching") for w in ("x1", "xt", "average_velocity")}
    assert every - ways == {("flow_matching", "xt")}


def test_another_plan_is_measured_afresh(at_home: Path) -> None:
    assert replace(SMALL, n=41).folder() != SMALL.folder()
    assert replace(SMALL, arms=SMALL.arms[:1]).folder() == SMALL.folder()


def _row(method: str, steps: int, mmd2: float, problem: str = "vmf") -> dict[str, object]:
    return {"problem": problem, "method": method, "steps": steps, "metrics": {"mmd2": mmd2, "mmd2_sd": 1e-4}}


def test_goals_compare_with_the_best_flow_matching_in_most_steps() -> None:
    rows = [_row("floor", 0, 0.0), _row("prior", 0, 1.0)]
    rows += [_row("flow_matching x1", steps, value) for steps, value in ((1, 1.0), (4, 0.1), (100, 0.04))]
    rows += [_row("flow_matching average_velocity", steps, value) for steps, value in ((1, 1.0), (4, 0.1), (100, 0.01))]
    rows += [_row(findings.OURS, steps, value) for steps, value in ((1, 0.0224), (4, 0.0122), (100, -0.1))]
    by = findings.Table(rows)
    assert by.ratios(findings.OURS, 1) == pytest.approx([math.sqrt(2.24)])
    assert by.ratios(findings.OURS, 100) == pytest.approx([0.1])
    assert [goal["met"] for goal in findings.goals(rows).values()] == [True, False]


def test_an_arm_that_diverged_is_said_to_have() -> None:
    rows = [_row("floor", 0, 0.0), _row("prior", 0, 1.0), _row("flow_matching x1", 1, 0.04)]
    rows += [_row(findings.OURS, 1, 0.0) | {"failure": "training diverged at step 3"}]
    assert findings.Table(rows).mmd("vmf", findings.OURS, 1) == math.inf
