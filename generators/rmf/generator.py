"""Riemannian MeanFlow as a generator: training by its recipe, any-step sampling, look-ahead in one call."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from data.noise import Noise
from data.space import Space, State
from generators.base import Flight, GeneratorError, Guidance, Score
from generators.rmf.flow_map import FlowMap
from generators.rmf.geometry import Points
from generators.rmf.scheduler import FlowMapScheduler
from generators.rmf.training import Recipe, Trainer

TILE = 16
"""Designs per network call. The shape is always the same, so the rounding and thus the design is too."""


class RiemannianMeanFlow:
    """Few-step generation with a flow map (Woo et al., arXiv 2602.07744)."""

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
        self.flow_map.load_state_dict(trainer.teacher.state_dict())
        self.flow_map.eval()

    @property
    def trainer(self) -> Trainer:
        """The training in progress; made when first asked for."""
        if self._trainer is None:
            self._trainer = Trainer(self.flow_map, self.recipe)
        return self._trainer

    def training_state(self) -> dict[str, Any]:
        """All that the next step depends on."""
        return self.trainer.state_dict()

    def resume(self, state: dict[str, Any]) -> int:
        """Take up such a state before `fit`; returns the steps already done."""
        self.trainer.load_state_dict(state)
        return self.trainer.step

    @torch.no_grad()
    def sample(
        self,
        n: int,
        steps: int,
        score: Score | None,
        guidance: Guidance | None,
        rng: Noise,
        on_step: Callable[[int], None],
    ) -> State:
        """Draw `n` finished states with `steps` network calls, and those of the guidance where one is given."""
        if (score is None) != (guidance is None):
            raise GeneratorError("guidance and score go together; give both or neither")
        x, mask = self._prior(n, rng)
        self.scheduler.set_timesteps(steps)
        for k, (s, t) in enumerate(zip(self.scheduler.timesteps.tolist(), self.scheduler.ends.tolist(), strict=True)):
            if guidance is not None and score is not None:
                x = guidance(self._flight(x, mask, s, t), score, rng.fork(k))
            x = self.scheduler.step(self._endpoint(x, mask, s, t), s, x, t).prev_sample
            on_step(k + 1)
        return self.flow_map.geometry.state(x, mask)

    def save(self, folder: Path) -> None:
        """Write `config.json`, safetensors weights and `scheduler_config.json`."""
        self.flow_map.save_pretrained(folder)
        self.scheduler.save_pretrained(folder)

    def _prior(self, n: int, rng: Noise) -> tuple[Points, Tensor]:
        device = next(self.flow_map.parameters()).device
        geometry, length = self.flow_map.geometry, self.space.length
        like = {name: torch.empty(n, length, width, device=device) for name, width in geometry.widths.items()}
        return geometry.random(like, rng), torch.ones(n, length, dtype=torch.bool, device=device)

    def _flight(self, x: Points, mask: Tensor, s: float, t: float) -> Flight:
        def finish(y: State) -> State:
            end = self._endpoint(y, mask, s, 1.0)
            return self.flow_map.geometry.state(end, mask)

        return Flight(x, s, t - s, finish, self.flow_map.geometry.move)

    def _endpoint(self, x: Points, mask: Tensor, s: float, t: float) -> Points:
        """x1(x, s, t), computed in tiles of one size; the last is filled up with repeated designs."""
        n = len(mask)
        rows = torch.arange(n + -n % TILE, device=mask.device) % n
        parts = []
        for tile in torch.split(rows, TILE):
            times = mask.new_full((TILE,), s, dtype=torch.float32), mask.new_full((TILE,), t, dtype=torch.float32)
            with torch.autocast(mask.device.type, torch.bfloat16, enabled=_has_bfloat16(mask.device)):
                parts.append(self.flow_map.endpoint({name: y[tile] for name, y in x.items()}, mask[tile], *times))
        return {name: torch.cat([part[name] for part in parts])[:n] for name in x}


def _has_bfloat16(device: torch.device) -> bool:
    """Whether bfloat16 is faster than float32 there: on GPUs, and on processors with instructions for it."""
    return device.type != "cpu" or bool(torch.ops.mkldnn._is_mkldnn_bf16_supported())
