"""Riemannian MeanFlow as a generator: training by its recipe, any-step sampling, look-ahead in one call."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from data.noise import DesignNoise, Noise
from data.space import Space, State
from generators import loading, tiles
from generators.base import UNLIMITED, Flight, GeneratorError, Guidance, Score
from generators.rmf.flow_map import FlowMap
from generators.rmf.geometry import Geometry, Points, scaled
from generators.rmf.lock import Lock
from generators.rmf.residuals import identity_residuals
from generators.rmf.scheduler import FlowMapScheduler
from generators.rmf.training import Recipe, Trainer
from generators.training import has_bfloat16

LENGTH, RENEWAL = -1, -2
"""Keys of the noise of lengths, and of fresh noise at steps 0, 1, ... (-2, -3, ...); guidance has 0, 1, ..."""


class RiemannianMeanFlow:
    """Few-step generation with a flow map (Woo et al., arXiv 2602.07744)."""

    steerable = True
    optimises = False
    most_designs = most_steps = UNLIMITED

    def __init__(self, flow_map: FlowMap, scheduler: FlowMapScheduler, recipe: Recipe) -> None:
        self.space: Space = flow_map.space
        self.flow_map, self.scheduler, self.recipe = flow_map, scheduler, recipe
        self.steps = recipe.steps
        self._trainer: Trainer | None = None

    def to(self, device: torch.device) -> RiemannianMeanFlow:
        """The same generator with its weights on a device."""
        self.flow_map.to(device)
        return self

    def fit(self, batches: Iterable[State], rng: Noise, on_step: Callable[[int, dict[str, float]], None]) -> None:
        """Train on batches until they run out; then the flow map is the moving average of its past weights.

        The noise of step k is `rng.fork(k)`, so a training that was resumed goes on as if it had never stopped.
        """
        trainer = self.trainer
        self.flow_map.train()
        for batch in batches:
            losses = trainer.advance(batch, rng.fork(trainer.step))
            on_step(trainer.step, losses)
        self.flow_map.load_state_dict(trainer.average.state_dict())
        if trainer.lengths[:-1].any():
            self.flow_map.register_to_config(lengths=trainer.lengths.tolist())
        self.flow_map.eval()

    @property
    def trainer(self) -> Trainer:
        """The training in progress; made when first asked for."""
        if self._trainer is None:
            self._trainer = Trainer(self.flow_map, self.recipe, self.space.length)
        return self._trainer

    def resize(self, space: Space) -> None:
        """Draw designs of the lengths of `space` alone; raises `GeneratorError` where it was trained on none such."""
        self.flow_map.resize(space)
        self.space = space
        if not self._lengths().any():
            raise GeneratorError(f"no design of {space.shortest} to {space.length} sites was learned; choose others")

    def diagnose(self, state: State, rng: Noise) -> dict[str, float]:
        """How far the flow map is from each identity on paths to the designs of a state; see `identity_residuals`."""
        return identity_residuals(self.flow_map.flow, self.flow_map.geometry.points(state), state["mask"], rng)

    def training_state(self) -> dict[str, Any]:
        """All that the next step depends on."""
        return self.trainer.state_dict()

    def resume(self, state: dict[str, Any]) -> int:
        """Take up such a state before `fit`; returns the steps already done."""
        self.trainer.load_state_dict(state)
        return self.trainer.step

    def begin_from(self, folder: Path) -> None:
        """Take the weights of a checkpoint before `fit`; its shortest jump and its lengths need not be the same."""
        loading.take_weights(self.flow_map, folder, "flow map", free=("shortest", "lengths", "space"))

    @torch.no_grad()
    def sample(
        self,
        n: int,
        steps: int,
        score: Score | None,
        guidance: Guidance | None,
        rng: DesignNoise,
        on_step: Callable[[int], None],
        lock: State | None = None,
    ) -> State:
        """Draw `n` finished states with `steps` network calls each, and those of the guidance where one is given.

        With a `lock`, each has its values at the sites in its mask; see `Holding` and `Lock`.
        """
        if (score is None) != (guidance is None):
            raise GeneratorError("guidance and score go together; give both or neither")
        held = None if lock is None else self._lock(lock)
        return tiles.drawn(
            n,
            rng,
            lambda noise: self._fly(steps, score, guidance, noise, held),
            lambda done: on_step(done * steps),
            in_row=guidance is not None,
        )

    def check_lock(self, lock: State) -> None:
        """Raise `GeneratorError` for values that no design has, or a site beyond the longest design."""
        self._lock(lock).lengths(self._lengths())

    def save(self, folder: Path) -> None:
        """Write `config.json`, safetensors weights and `scheduler_config.json`."""
        self.flow_map.save_pretrained(folder)
        self.scheduler.save_pretrained(folder)

    def _fly(
        self, steps: int, score: Score | None, guidance: Guidance | None, rng: DesignNoise, lock: Lock | None
    ) -> State:
        """One tile from noise to finished states."""
        geometry, manifold = self.flow_map.geometry, self.flow_map.geometry.manifold
        mask = self._mask(rng, lock).to(self._device)
        like = {name: torch.empty(*mask.shape, width, device=self._device) for name, width in geometry.widths.items()}
        x = start = manifold.random(like, rng, mask)
        self.scheduler.set_timesteps(steps)
        for k, (s, t) in enumerate(zip(self.scheduler.timesteps.tolist(), self.scheduler.ends.tolist(), strict=True)):
            if guidance is not None and score is not None:
                x = guidance(self._flight(x, mask, s, t, lock), score, rng.fork(k))
            renewed = self.scheduler.renews(s, t)
            noise = manifold.random(like, rng.fork(RENEWAL - k), mask) if renewed else None
            velocity = self._velocity(x, mask, s, 1.0 if renewed else t)
            moved = self.scheduler.step(velocity, s, x, t, noise).prev_sample
            x = moved if lock is None else lock.along(moved, _ahead(geometry, x, velocity, s), noise or start, t, mask)
        state = geometry.state(x, mask)
        return state if lock is None else lock.exact(state)

    def _flight(self, x: Points, mask: Tensor, s: float, t: float, lock: Lock | None) -> Flight:
        geometry = self.flow_map.geometry

        def finish(y: Points) -> State:
            """One jump to time 1, with locked sites at their values."""
            y = y if lock is None else lock.numb(y)
            end = _ahead(geometry, y, self._velocity(y, mask, s, 1.0), s)
            return geometry.state(end if lock is None else lock.onto(end, mask), mask)

        def move(y: Points, v: Points) -> Points:
            """All sites but locked ones."""
            moved = geometry.move(y, v, mask)
            return moved if lock is None else lock.still(y, moved)

        return Flight(x, s, t - s, finish, move)

    def _lock(self, given: State) -> Lock:
        there = {name: value.to(self._device) for name, value in given.items()}
        return Lock(self.space, self.flow_map.geometry, there)

    @property
    def _device(self) -> torch.device:
        device: torch.device = next(self.flow_map.parameters()).device
        return device

    def _lengths(self) -> Tensor:
        """How often the designs that it was trained on had 1, 2, ... sites; 0 for lengths that the space has not."""
        learned = self.flow_map.config.lengths or [0] * (self.space.length - 1) + [1]
        counts = torch.tensor(learned[: self.space.length])
        counts[: self.space.shortest - 1] = 0
        return counts

    def _mask(self, rng: DesignNoise, lock: Lock | None) -> Tensor:
        """(SIZE, length) bool: as many sites in use as the designs had that it was trained on, drawn by each design."""
        counts = self._lengths() if lock is None else lock.lengths(self._lengths())
        shares = counts.double().cumsum(0) / counts.sum()
        longer = rng.fork(LENGTH).uniform(tiles.SIZE, 1) >= shares[:-1]
        return torch.nn.functional.pad(longer, (1, 0), value=True)

    def _velocity(self, x: Points, mask: Tensor, s: float, t: float) -> Points:
        """u_{s,t}(x) for times that all designs share."""
        times = (
            mask.new_full((tiles.SIZE,), s, dtype=torch.float32),
            mask.new_full((tiles.SIZE,), t, dtype=torch.float32),
        )
        with torch.autocast(mask.device.type, torch.bfloat16, enabled=has_bfloat16(mask.device)):
            return self.flow_map.flow.velocity(x, mask, *times)


def _ahead(geometry: Geometry, x: Points, velocity: Points, s: float) -> Points:
    """Where x at time s is at time 1 when it goes on with this velocity."""
    first: Tensor = next(iter(x.values()))
    return geometry.manifold.exp(x, scaled(velocity, first.new_full((len(first),), 1 - s)))
