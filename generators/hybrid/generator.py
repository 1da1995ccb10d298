"""Hybrid sequences as a generator: training by its recipe, sampling unit by unit."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
from diffusers import DDIMScheduler
from torch import Tensor

from data.conditions import codes
from data.noise import DesignNoise, Noise
from data.space import Space, State
from generators import loading, tiles
from generators.base import UNLIMITED, GeneratorError, Guidance, Score
from generators.hybrid.conditions import Asked
from generators.hybrid.heads import TIMES
from generators.hybrid.model import HybridSequence
from generators.hybrid.sampling import Draws, Sampler
from generators.hybrid.training import Recipe, Trainer

HEAVIEST = 10.0
"""The largest weight of guidance by conditions."""


class Hybrid:
    """Autoregressive generation in joint discrete and continuous spaces, after Shin et al., arXiv 2601.05680."""

    steerable = False
    optimises = False
    most_designs, most_steps = UNLIMITED, TIMES

    def __init__(self, model: HybridSequence, scheduler: DDIMScheduler, recipe: Recipe) -> None:
        self.space: Space = model.space
        self.model, self.scheduler, self.recipe = model, scheduler, recipe
        self.steps = recipe.steps
        self._trainer: Trainer | None = None
        self._asked: Asked | None = None

    def to(self, device: torch.device) -> Hybrid:
        """The same generator with its weights on a device."""
        self.model.to(device)
        return self

    def fit(self, batches: Iterable[State], rng: Noise, on_step: Callable[[int, dict[str, float]], None]) -> None:
        """Train on batches until they run out; then the network is the moving average of its past weights.

        The noise of step k is `rng.fork(k)`, so a training that was resumed goes on as if it had never stopped.
        """
        trainer = self.trainer
        self.model.train()
        for batch in batches:
            losses = trainer.advance(batch, rng.fork(trainer.step))
            on_step(trainer.step, losses)
        self.model.load_state_dict(trainer.average.state_dict())
        self.model.eval()

    @property
    def trainer(self) -> Trainer:
        """The training in progress; made when first asked for."""
        if self._trainer is None:
            self._trainer = Trainer(self.model, self.recipe)
        return self._trainer

    def training_state(self) -> dict[str, Any]:
        """All that the next step depends on."""
        return self.trainer.state_dict()

    def resume(self, state: dict[str, Any]) -> int:
        """Take up such a state before `fit`; returns the steps already done."""
        self.trainer.load_state_dict(state)
        return self.trainer.step

    def begin_from(self, folder: Path) -> None:
        """Take the weights of a checkpoint before `fit`; those of conditions stay 0 where it has learned none."""
        loading.take_weights(self.model, folder, "hybrid network", free=("space",), new=("condition_input",))

    def ask(self, given: Mapping[str, Any], asked: Mapping[str, Any], weight: float) -> None:
        """Draw designs of these conditions from now on; see `Conditioned`."""
        if not 0 <= weight <= HEAVIEST:
            raise GeneratorError(f"cfg is {weight:g}; it must be from 0 to {HEAVIEST:g}")
        if asked and not self.space.conditions:
            raise GeneratorError(
                f"condition.{next(iter(asked))}: this network has learned no conditions; leave it out, or train one "
                f"with generator.conditioned=true"
            )
        given = {name: value for name, value in given.items() if name in self.space.conditions}
        base = codes(self.space.conditions, given)
        whole = codes(self.space.conditions, {**given, **asked})
        self._asked = Asked(whole, base, weight if asked else 1.0) if self.space.conditions else None

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
        """Draw `n` finished states; `steps` is the number of denoising steps of each unit's residuals.

        With a `lock`, each has its values at the sites in its mask; see `Holding` and `Sampler`.
        """
        if score is not None or guidance is not None:
            raise GeneratorError("hybrid has no flight that could be steered; leave the guidance out, or use best_of_n")
        if not 1 <= steps <= TIMES:
            raise GeneratorError(f"steps is {steps}; it must be from 1 to {TIMES}")
        if not self.model.transitions.any():
            raise GeneratorError("this network has not seen any design; train it first")
        if lock is not None:
            self.check_lock(lock)
        self.scheduler.set_timesteps(steps, device=self.model.begin.device)
        with _one_thread():
            return tiles.drawn(n, rng, lambda noise: self._tile(noise, lock), lambda done: on_step(done * steps))

    def check_lock(self, lock: State) -> None:
        """Raise `GeneratorError` for values that no design of the space has."""
        self.space.check(lock)
        sites = lock["mask"]
        if len(sites) != 1 or not sites.any():
            raise GeneratorError(f"a lock has {len(sites)} designs, {int(sites.sum())} sites; give one, with some")
        if any(real.centred for real in self.model.vocabulary.reals.values()):
            raise GeneratorError(
                f"numbers of {self.space} are told from their mean, so none can be held; leave lock out"
            )
        for name in self.model.vocabulary.categoricals:
            if not torch.equal(lock[name][sites].sort(-1).values, _one_hot_like(lock[name][sites])):
                raise GeneratorError(f"{name} of a locked site is not one category; give each site exactly one")
        for name, real in self.model.vocabulary.reals.items():
            most = self.model.config.span * real.scale + self.model.vocabulary.widths.max().item() / 2
            if lock[name][sites].abs().max() > most:
                raise GeneratorError(f"{name} of a locked site goes beyond {most:g}, where this network ends; move it")

    def save(self, folder: Path) -> None:
        """Write `config.json`, safetensors weights and `scheduler_config.json`."""
        self.model.save_pretrained(folder)
        self.scheduler.save_pretrained(folder)

    def _tile(self, rng: DesignNoise, lock: State | None) -> State:
        vocabulary, length, device = self.model.vocabulary, self.space.length, self.model.begin.device
        digits = 2 if vocabulary.places > 1 else 1
        uniform = rng.uniform(tiles.SIZE, length, len(vocabulary.categoricals) + digits * vocabulary.slots)
        normal = rng.normal(tiles.SIZE, length, vocabulary.slots)
        draws = Draws(uniform.to(device), normal.to(device))
        asked = None if self._asked is None else self._asked.to(device)
        if lock is None:
            return vocabulary.state(Sampler(self.model, self.scheduler, None, asked).tile(draws))
        there = {name: value.to(device) for name, value in lock.items()}
        held = vocabulary.read(there)
        state = vocabulary.state(Sampler(self.model, self.scheduler, held, asked).tile(draws))
        sites = there["mask"][..., None]
        return {name: state[name] if name == "mask" else torch.where(sites, there[name], state[name]) for name in state}


def _one_hot_like(x: Tensor) -> Tensor:
    """0 .. 0 1 along the last axis: any one-hot vector, sorted."""
    last = torch.zeros_like(x)
    last[..., -1] = 1
    return last


@contextmanager
def _one_thread() -> Iterator[None]:
    """On many threads, matrices as small as those of one unit take longer: the threads wait for each other."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)
