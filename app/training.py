"""Training a generator on a domain's corpus, step by step, with a state on disk from which it goes on."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from statistics import fmean
from typing import Any, TextIO

import torch
import yaml

from app import devices, plugins
from app.service import Progress
from app.spec import TrainSpec, to_plain
from data.errors import InputError
from data.noise import StepNoise, stable_seed
from data.space import State
from data.store import home
from generators.base import Generator, Resumable

LOG_EVERY = 100


def train(spec: TrainSpec, progress: Progress) -> Path:
    """Train by the generator's recipe, or go on where an earlier call stopped; returns the checkpoint's folder."""
    domain = plugins.build("domain", spec.domain.name, spec.domain.parameters)
    torch.manual_seed(spec.seed)  # the weights at the start
    torch.set_num_threads(spec.threads)
    device = devices.resolve(spec.device)
    generator = plugins.build("generator", spec.generator.name, spec.generator.parameters, domain.space)
    folder = Path(spec.out) if spec.out else home() / "training" / f"{spec.domain.name}-{spec.generator.name}"
    keeper = Keeper(folder, spec, generator.to(device), progress)
    corpus = domain.encode(domain.corpus("train"))
    rng = StepNoise(stable_seed("train", spec.seed))
    generator.fit(keeper.remaining(corpus, rng, device), rng, keeper.on_step)
    generator.save(folder)
    (folder / "training.yaml").write_text(yaml.safe_dump(to_plain(spec), sort_keys=False))
    return folder


@dataclass
class Keeper:
    """Keeps a training's state and log in a folder, and hands out the batches that are still to come."""

    folder: Path
    spec: TrainSpec
    generator: Generator
    progress: Progress
    start: int = 0
    losses: list[dict[str, float]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.folder.mkdir(parents=True, exist_ok=True)
        self.clock = time.monotonic()
        state = self.folder / "state.pt"
        if state.exists() and isinstance(self.generator, Resumable):
            self._check_same()
            self.start = self.generator.resume(torch.load(state, weights_only=True))
        (self.folder / "spec.yaml").write_text(yaml.safe_dump(to_plain(self.spec), sort_keys=False))

    def remaining(self, corpus: State, rng: StepNoise, device: torch.device) -> Iterator[State]:
        """The batches from `start` to the recipe's end; batch k depends on the seed and on k alone."""
        for k in range(self.start, self.generator.steps):
            rows = rng.fork(k).integers(len(corpus["mask"]), self.spec.batch)
            yield {name: value[rows].to(device) for name, value in corpus.items()}

    def on_step(self, step: int, losses: dict[str, float]) -> None:
        """Log the mean of the losses, and save the state, every so many steps."""
        self.losses.append(losses)
        if step % LOG_EVERY == 0:
            means = {name: round(fmean(entry[name] for entry in self.losses), 5) for name in losses}
            with (self.folder / "log.jsonl").open("a") as log:
                self._log(log, {"step": step, "seconds": round(time.monotonic() - self.clock, 1)} | means)
            self.losses.clear()
            self.progress(f"training {means}", step, self.generator.steps)
        if step % self.spec.save_every == 0 and isinstance(self.generator, Resumable):
            temporary = self.folder / f".state.{os.getpid()}"
            torch.save(self.generator.training_state(), temporary)
            temporary.replace(self.folder / "state.pt")

    def _log(self, log: TextIO, line: dict[str, Any]) -> None:
        log.write(json.dumps(line) + "\n")

    def _check_same(self) -> None:
        theirs = yaml.safe_load((self.folder / "spec.yaml").read_text())
        free = ("device", "threads", "save_every", "out")
        ours = to_plain(self.spec)
        for key in sorted(set(theirs) - set(free)):
            if theirs[key] != ours.get(key):
                raise InputError(
                    f"{self.folder} holds a training with {key}={theirs[key]}, not {ours.get(key)}; "
                    "give another out=DIR, or the same values to go on with it"
                )
