"""What is compared: a small network for each way to train it, three of them at once, and samples from them."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor, nn

from app.benchmarks.rmf_toys.problems import Problem
from data.noise import Noise, StepNoise, stable_seed
from generators.base import GeneratorError
from generators.manifolds.euclidean import Euclidean
from generators.networks.multilayer_perceptron import MultilayerPerceptron
from generators.rmf import SHORTEST
from generators.rmf.flow_map import NEVER
from generators.rmf.geometry import Chart, Geometry, Points
from generators.rmf.mean_flow import MeanFlow
from generators.rmf.objectives import OBJECTIVES
from generators.rmf.parameterisations import PARAMETERISATIONS
from generators.rmf.training import Recipe, Trainer

CHANNELS, DEPTH = 128, 4
BATCH, LONG_BATCH = 128, 256
"""Points in a step, for each seed."""
RECIPE = Recipe(
    steps=700,
    flow_matching_steps=100,
    learning_rate=1e-2,
    warm_up=50,
    weight_decay=0.0,
    decay=0.99,
    identity_weight=1 / 3,
    identity_share=1.0,
    bfloat16=False,
)
"""Flow matching has three times the weight of an identity, as in MeanFlow, where s = t in three pairs of four."""
TAUGHT: Mapping[str, dict[str, Any]] = {"semigroup": {"identity_weight": 5.0, "decay": 0.95}}
"""An identity whose target is the average of the maps so far: it is not noisy, and must not lag behind."""
LONG = replace(
    RECIPE,
    steps=5_000,
    flow_matching_steps=1_000,
    learning_rate=5e-3,
    identity_weight=5.0,
    identity_share=0.5,
    decay=0.98,
)
"""About ten times the compute, for the recipe that is recommended and for flow matching."""
FLOW_MATCHING = "flow_matching"
MORE, LONG_MORE = 2.5, 1.8
"""How many more steps flow matching alone is given: a step with the semigroup identity takes so much more time."""


@dataclass(frozen=True)
class Arm:
    """A way to train: by an identity or by flow matching alone; on the manifold, or in flat space and projected."""

    objective: str
    parameterisation: str
    flat: bool = False
    long: bool = False

    @property
    def name(self) -> str:
        """As the table has it."""
        name = f"{'euclidean' if self.flat else self.objective} {self.parameterisation}"
        return f"{name} long" if self.long else name

    def recipe(self, part: float) -> Recipe:
        """The one recipe, or the long one, with a part of its steps."""
        whole = LONG if self.long else RECIPE
        steps, first = round(part * whole.steps), round(part * whole.flow_matching_steps)
        if self.objective == FLOW_MATCHING:
            more = LONG_MORE if self.long else MORE
            return replace(whole, steps=round(more * steps), identity_weight=0.0)
        own = {} if self.long else TAUGHT.get(self.objective, {})
        return replace(whole, steps=steps, flow_matching_steps=first, objective=self.objective, **own)

    @property
    def batch(self) -> int:
        """Points in a step, for each seed."""
        return LONG_BATCH if self.long else BATCH

    @property
    def shortest(self) -> float:
        """The shortest jump that is not a step along the velocity."""
        return {FLOW_MATCHING: NEVER, "semigroup": SHORTEST}.get(self.objective, 0.0)


ARMS: Mapping[str, Arm] = {
    arm.name: arm
    for arm in (
        Arm("semigroup", "x1", long=True),
        Arm(FLOW_MATCHING, "x1", long=True),
        Arm("semigroup", "x1"),
        *(Arm(FLOW_MATCHING, way) for way in ("x1", "average_velocity")),
        *(Arm(objective, "x1") for objective in OBJECTIVES if objective != "semigroup"),
        *(Arm("eulerian", way, flat=True) for way in ("average_velocity", "x1")),
        *(Arm(objective, way) for way in ("average_velocity", "xt") for objective in OBJECTIVES),
    )
}
"""Name -> arm, those of the goals first. Where s = t, `xt` is `average_velocity`, so flow matching has two."""


class _Flat(Euclidean):
    """The flat space round a manifold, with the manifold's prior."""

    def __init__(self, problem: Problem) -> None:
        self.problem = problem

    def random(self, like: Tensor, rng: Noise, mask: Tensor | None = None) -> Tensor:
        """Points of the manifold's prior, in flat coordinates."""
        return self.problem.coordinates(prior(self.problem, like.shape[0], rng))[:, None]


def prior(problem: Problem, n: int, rng: Noise) -> Tensor:
    """Points of the prior (n, width)."""
    return problem.chart.manifold.random(torch.empty(n, problem.chart.width), rng)


class FlowMaps(nn.Module):
    """Flow maps of one problem, one for each of `seeds` seeds; row i of a batch is for seed i % seeds."""

    def __init__(self, problem: Problem, arm: Arm, seeds: int, rng: Noise) -> None:
        super().__init__()
        self.problem, self.arm, self.seeds = problem, arm, seeds
        self.chart = flat(problem) if arm.flat else problem.chart
        self.geometry = Geometry({"x": self.chart})
        says = self.chart.end_width if arm.parameterisation == "x1" else self.chart.width
        self.network = MultilayerPerceptron(self.chart.told_width, says, CHANNELS, DEPTH, seeds, rng)

    @property
    def flow(self) -> MeanFlow:
        """What the networks tell."""
        return MeanFlow(self.geometry, self._raw, PARAMETERISATIONS[self.arm.parameterisation], self.arm.shortest)

    def _raw(self, x: Points, mask: Tensor, s: Tensor, t: Tensor) -> Points:
        return {"x": self.network(self.chart.told(x["x"])[:, 0], s, t)[:, None]}

    @torch.no_grad()
    def sample(self, n: int, steps: int, rng: Noise) -> Tensor:
        """`n` points of each seed in `steps` network calls, in flat coordinates (seeds, n, width)."""
        rows = n * self.seeds
        like = {"x": torch.empty(rows, 1, self.chart.width)}
        mask = torch.ones(rows, 1, dtype=torch.bool)
        x = self.geometry.manifold.random(like, rng)
        for k in range(steps):
            x = self.flow.jump(x, mask, torch.full((rows,), k / steps), torch.full((rows,), (k + 1) / steps))
        there = x["x"][:, 0]
        found = self.problem.nearest(there) if self.arm.flat else self.problem.coordinates(there)
        return found.reshape(n, self.seeds, -1).transpose(0, 1)


def flat(problem: Problem) -> Chart:
    """The chart of the flat space round a manifold: a network's numbers are the point."""
    width = problem.coordinates(torch.zeros(1, problem.chart.width)).shape[-1]
    return Chart(_Flat(problem), width, lambda raw, x, mask: raw - x, near=lambda y, mask: y)


@dataclass(frozen=True)
class Trained:
    """Flow maps, the CPU seconds that they took, and why the training ended where it was not at its end."""

    maps: FlowMaps
    seconds: float
    failure: str = ""


def trained(problem: Problem, arm: Arm, part: float, seeds: int, seed: int) -> Trained:
    """Flow maps of one problem by a part of one arm's steps; a training that diverges ends there and says so."""
    rng = StepNoise(stable_seed("rmf_toys", problem.title, seed))
    maps = FlowMaps(problem, arm, seeds, rng.fork(0))
    recipe, points = arm.recipe(part), problem.train()
    points = problem.coordinates(points) if arm.flat else points
    trainer, mask = Trainer(maps, recipe, length=1), torch.ones(seeds * arm.batch, 1, dtype=torch.bool)
    batches, noise, started = rng.fork(1), rng.fork(2), time.process_time()
    failure = ""
    try:
        for step in range(recipe.steps):
            batch: dict[str, Any] = {"x": points[batches.integers(len(points), len(mask))][:, None], "mask": mask}
            trainer.advance(batch, noise.fork(step))
    except GeneratorError as error:
        failure = str(error)
    return Trained(trainer.average.eval(), time.process_time() - started, failure)
