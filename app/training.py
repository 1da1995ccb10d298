"""Training a generator on a domain's corpus, step by step, with a state on disk from which it goes on."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from pickle import UnpicklingError
from statistics import fmean
from typing import Any

import torch
import yaml
from torch import Tensor

from app import cells, devices, plugins
from app.service import Progress
from app.spec import TrainSpec, to_plain
from data import checkpoints
from data.errors import InputError
from data.noise import StepNoise, stable_seed
from data.space import State
from data.store import home
from domains.base import Conditional, Domain
from generators.base import Conditioned, Generator, Resumable

LOG_EVERY = 100
POOL = 8
"""Batches that are drawn together, so that each can have designs of nearly one length and little padding."""


def train(spec: TrainSpec, progress: Progress) -> Path:
    """Train by the generator's recipe, or go on where an earlier call stopped; returns the checkpoint's folder."""
    if not cells.is_trained(spec.generator.name):
        raise InputError(f"{spec.generator.name} has nothing to train beforehand; choose another generator")
    domain = cells.domain(spec.domain, spec.generator.name)
    device = devices.resolve(spec.device)
    torch.manual_seed(spec.seed)  # the weights at the start
    torch.set_num_threads(spec.threads)
    generator = plugins.build("generator", spec.generator.name, spec.generator.parameters, domain.space).to(device)
    folder = Path(spec.out) if spec.out else home() / "training" / f"{spec.domain.name}-{spec.generator.name}"
    begin = checkpoints.find(spec.start, domain.space, any_length=True) if spec.start else None
    if begin is not None and isinstance(generator, Resumable):
        generator.begin_from(begin)
    keeper = Keeper(folder, spec, generator, progress)
    if keeper.finished():
        return folder
    corpus = lessons(domain, generator)
    rng = StepNoise(stable_seed("train", spec.seed))
    generator.fit(keeper.remaining(corpus, rng, device), rng, keeper.on_step)
    generator.save(folder)
    keeper.finish()
    return folder


def lessons(domain: Domain[Any], generator: Generator) -> State:
    """What a generator learns from: the train split, with what is known of each design where it learns conditions."""
    if isinstance(generator, Conditioned) and generator.space.conditions and isinstance(domain, Conditional):
        return domain.lessons()
    return domain.encode(domain.corpus("train"))


def alike(lengths: Tensor, batch: int, k: int, rng: StepNoise) -> Tensor:
    """The designs (batch,) of step k: of those of `POOL` steps, sorted by length, a piece that no other step has."""
    pool = rng.fork(k // POOL)
    rows = pool.integers(len(lengths), POOL * batch)
    piece = int(pool.uniform(POOL).argsort()[k % POOL])
    return rows[lengths[rows].argsort(stable=True)].reshape(POOL, batch)[piece]


def identity(spec: TrainSpec) -> dict[str, Any]:
    """What decides the weights, as plain data: the spec without the place and the speed."""
    plain = to_plain(spec)
    return {key: value for key, value in plain.items() if key not in ("device", "threads", "save_every", "out")}


@dataclass
class Keeper:
    """Keeps a training in a folder: `training.yaml` says what it is, `log.jsonl` how it went, `state.pt` where it is.

    The state is there only until the training is finished.
    """

    folder: Path
    spec: TrainSpec
    generator: Generator
    progress: Progress
    losses: list[dict[str, float]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._open()
        self.start, self.clock, self.before = 0, time.monotonic(), 0.0
        if self.state.exists() and isinstance(self.generator, Resumable):
            self.start = self._resume(self.generator)
            self.before = self._rewind()

    @property
    def state(self) -> Path:
        """What the next step depends on."""
        return self.folder / "state.pt"

    def finished(self) -> bool:
        """Whether the folder holds the checkpoint already."""
        return (self.folder / checkpoints.WEIGHTS).exists() and not self.state.exists()

    def remaining(self, corpus: State, rng: StepNoise, device: torch.device) -> Iterator[State]:
        """The batches from `start` to the recipe's end; batch k depends on the seed and on k alone."""
        lengths = corpus["mask"].sum(1)
        for k in range(self.start, self.generator.steps):
            rows = alike(lengths, self.spec.batch, k, rng)
            yield {name: value[rows, : int(lengths[rows].max())].to(device) for name, value in corpus.items()}

    def on_step(self, step: int, losses: dict[str, float]) -> None:
        """Log the mean of the losses, and save the state, every so many steps."""
        self.losses.append(losses)
        if step % LOG_EVERY == 0:
            means = {name: round(fmean(entry[name] for entry in self.losses), 5) for name in losses}
            seconds = round(self.before + time.monotonic() - self.clock, 1)
            with (self.folder / "log.jsonl").open("a") as log:
                log.write(json.dumps({"step": step, "seconds": seconds} | means) + "\n")
            self.losses.clear()
            self.progress(f"training {means}: steps", step, self.generator.steps)
        if step % self.spec.save_every == 0 and isinstance(self.generator, Resumable):
            temporary = self.folder / f".state.{os.getpid()}"
            torch.save(self.generator.training_state(), temporary)
            temporary.replace(self.state)

    def finish(self) -> None:
        """Drop the states, which a checkpoint must not hold."""
        for path in (*self.folder.glob(".state.*"), self.state):
            path.unlink(missing_ok=True)

    def _open(self) -> None:
        """Make the folder, or find that it holds this training; raises `InputError`."""
        kept, ours = self.folder / "training.yaml", identity(self.spec)
        try:
            if not kept.exists() and self.folder.exists() and any(self.folder.iterdir()):
                raise InputError(f"{self.folder} is not empty and holds no training; give another out=DIR")
            self.folder.mkdir(parents=True, exist_ok=True)
            theirs = yaml.safe_load(kept.read_text()) if kept.exists() else ours
            if not isinstance(theirs, dict):
                raise InputError(f"{kept} is not a table of keys and values; give another out=DIR")
            for key in sorted(theirs.keys() | ours.keys()):
                if theirs.get(key) != ours.get(key):
                    raise InputError(
                        f"{self.folder} holds a training with {key}={theirs.get(key)}, not {ours.get(key)}; "
                        "give another out=DIR, or the same values to go on with it"
                    )
            kept.write_text(yaml.safe_dump(ours, sort_keys=False))
        except InputError:
            raise
        except (OSError, ValueError, yaml.YAMLError) as error:
            reason = " ".join(str(error).split())
            raise InputError(f"{self.folder} cannot be used ({reason:.200}); give another out=DIR") from error

    def _resume(self, generator: Resumable) -> int:
        try:
            return generator.resume(torch.load(self.state, weights_only=True))
        except (OSError, KeyError, TypeError, ValueError, RuntimeError, EOFError, UnpicklingError) as error:
            reason = " ".join(str(error).split())
            raise InputError(f"{self.state} is damaged ({reason:.200}); remove it to begin anew") from error

    def _rewind(self) -> float:
        """Cut the log back to the state's step; returns the seconds that had been spent by then."""
        log = self.folder / "log.jsonl"
        lines = log.read_text().splitlines() if log.exists() else []
        kept = [line for line in lines if json.loads(line)["step"] <= self.start]
        log.write_text("".join(f"{line}\n" for line in kept))
        return float(json.loads(kept[-1])["seconds"]) if kept else 0.0
