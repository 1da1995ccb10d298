"""`foreshape check`: what a run will take, by a clock and a memory that are known, and beside a run that is made."""

import re
from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from app import cli, devices, preflight, service
from app.composition import composed
from app.spec import RunSpec, from_plain
from data.store import Run

MEGABYTE = 10**6


@pytest.fixture
def world(monkeypatch: pytest.MonkeyPatch) -> SimpleNamespace:
    """A machine on which a design takes 0.1 s a step and 3 MB in its batch."""
    made = SimpleNamespace(now=0.0, fixed=0.0, peak=100.0, capacity=1e9, batches=[], steps=[])

    def add_batch(run: Run, ready: Any, spec: RunSpec, batch: Sequence[int], progress: Any) -> None:
        if len(batch) > made.capacity:
            raise MemoryError("full")
        made.now += made.fixed + 0.1 * len(batch) * spec.steps
        made.peak = max(made.peak, 100.0 + 3 * len(batch))
        made.batches.append(len(batch))
        made.steps.append(spec.steps)
        for index in batch:
            run.add({"design": index, "total": 0.0}, {}, b"picture", ())

    monkeypatch.setattr(service, "add_batch", add_batch)
    monkeypatch.setattr(preflight.time, "perf_counter", lambda: made.now)
    monkeypatch.setattr(devices, "used", lambda device: int(made.peak * MEGABYTE))
    monkeypatch.setattr(devices, "free", lambda device: 1000 * MEGABYTE)
    return made


def estimate(arguments: list[str], *more: str) -> preflight.Estimate:
    spec = from_plain(RunSpec, composed("generate", [*arguments, *more]))
    return preflight.estimate(service.prepare(spec), spec)


def test_a_run_takes_what_its_batches_do(arguments: list[str], world: SimpleNamespace) -> None:
    found = estimate(arguments, "n=100", "batch=10", "steps=2")
    assert world.batches == [1, 1, 4, 8, 10]
    assert (found.left, found.measured) == (100, 10)
    assert found.seconds == pytest.approx(100 * 2 * 0.1)
    assert found.memory == pytest.approx(100 + 3 * 10)


def test_a_large_batch_is_extrapolated(arguments: list[str], world: SimpleNamespace) -> None:
    found = estimate(arguments, "n=1000", "batch=200", "steps=2")
    assert world.batches[-1] == found.measured == 64  # 12.8 s, which is enough
    assert found.seconds == pytest.approx(1000 * 2 * 0.1)
    assert found.memory == pytest.approx(100 + 3 * 200)


def test_what_every_batch_needs_is_not_counted_for_every_design(arguments: list[str], world: SimpleNamespace) -> None:
    world.fixed = 2.0
    found = estimate(arguments, "n=1000", "batch=100", "steps=2")
    assert found.measured == 32
    assert found.seconds == pytest.approx(10 * (2.0 + 100 * 2 * 0.1))


def test_two_batches_are_measured_however_long_they_take(arguments: list[str], world: SimpleNamespace) -> None:
    world.fixed = 20.0
    found = estimate(arguments, "n=30", "batch=10", "steps=2")
    assert world.batches == [1, 1, 4]
    assert found.seconds == pytest.approx(3 * (20.0 + 10 * 2 * 0.1))


def test_many_steps_are_extrapolated(arguments: list[str], world: SimpleNamespace) -> None:
    found = estimate(arguments, "n=4", "steps=2000")
    assert set(world.steps) == {found.steps} == {preflight.MOST_STEPS}
    assert found.seconds == pytest.approx(4 * 2000 * 0.1)


def test_a_batch_that_does_not_fit_is_told(arguments: list[str], world: SimpleNamespace) -> None:
    assert "halved" not in str(estimate(arguments, "n=1000", "batch=100"))
    world.peak = 100
    assert "larger ones are halved" in str(estimate(arguments, "n=1000", "batch=900"))
    world.capacity, world.peak = 16, 100
    found = estimate(arguments, "n=1000", "batch=100", "steps=1")
    assert found.memory is None
    assert "a batch of 16 fits" in str(found)


def test_one_design_that_does_not_fit_breaks(arguments: list[str], world: SimpleNamespace) -> None:
    world.capacity = 0
    with pytest.raises(MemoryError):
        estimate(arguments)


def test_what_is_there_is_not_made_again(arguments: list[str]) -> None:
    assert cli.run(["generate", *arguments]) == 0
    assert estimate(arguments).left == 0
    assert estimate(arguments, "n=8").left == 3
    assert estimate(arguments, "n=4").left == 0


def test_check_says_it_and_writes_nothing(arguments: list[str], tmp_path: Path, capsys, monkeypatch) -> None:
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    before = sorted(tmp_path.rglob("*"))
    assert cli.run(["check", *arguments]) == 0
    told = capsys.readouterr().out.splitlines()
    assert len(told) == 2
    assert re.fullmatch(r"5 are to be made: about \d+ s, \d+ MB of memory, \S+ MB of disk \(.*\)", told[1])
    assert sorted(tmp_path.rglob("*")) == before


def test_the_disk_is_what_a_run_takes(arguments: list[str], tmp_path: Path) -> None:
    told = estimate(arguments, "n=40").disk
    assert cli.run(["generate", *arguments, "n=40"]) == 0
    taken = sum(path.stat().st_size for path in (tmp_path / "run").rglob("*") if path.name != "report.html") / 1e6
    assert told == pytest.approx(taken, rel=0.2)


def test_memory_is_that_of_the_process() -> None:
    cpu, before = torch.device("cpu"), devices.used(torch.device("cpu"))
    held = torch.ones(50 * MEGABYTE)
    grown = devices.used(cpu) - before
    assert held.sum() > 0
    assert grown >= 0
    assert 200 * MEGABYTE < devices.used(cpu) < devices.free(cpu) + devices.used(cpu)
