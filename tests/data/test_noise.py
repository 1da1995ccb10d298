"""Noise depends on seed and key alone."""

import subprocess
import sys

import pytest
import torch

from data.noise import DesignNoise, StepNoise, stable_seed


@pytest.mark.parametrize("batch", [[5], [5, 6], [0, 5, 99]])
def test_a_design_has_its_own_stream(batch: list[int]) -> None:
    alone, together = DesignNoise(3, [5]), DesignNoise(3, batch)
    at = batch.index(5)
    for _ in range(2):
        assert torch.equal(alone.normal(1, 7, 2)[0], together.normal(len(batch), 7, 2)[at])
        assert torch.equal(alone.uniform(1, 3)[0], together.uniform(len(batch), 3)[at])


def test_designs_and_seeds_differ() -> None:
    streams = DesignNoise(3, [0, 1]).normal(2, 100)
    assert not torch.equal(streams[0], streams[1])
    assert not torch.equal(streams, DesignNoise(4, [0, 1]).normal(2, 100))


@pytest.mark.parametrize("noise", [StepNoise(1), DesignNoise(1, [0, 1])])
def test_forks_do_not_depend_on_what_was_drawn(noise: StepNoise | DesignNoise) -> None:
    before = noise.fork(9).normal(2, 4)
    noise.normal(2, 50)
    assert torch.equal(before, noise.fork(9).normal(2, 4))
    assert not torch.equal(before, noise.fork(8).normal(2, 4))


def test_designs_of_several_runs_have_their_own_streams_and_forks() -> None:
    several = DesignNoise([3, 4, 3], [5, 5, 0])
    for noise, alone in (
        (several, lambda seed: DesignNoise(seed, [5])),
        (several.fork(2), lambda s: DesignNoise(s, [5]).fork(2)),
    ):
        taken = noise.take([1, 0]).normal(2, 6)
        assert torch.equal(taken, torch.cat([alone(4).normal(1, 6), alone(3).normal(1, 6)]))
    assert DesignNoise([3, 3], [0, 1]).seed == 3
    with pytest.raises(ValueError, match="unpack"):
        _ = several.seed


def test_the_law_of_the_numbers() -> None:
    normal, uniform = StepNoise(0).normal(200_000), StepNoise(0).uniform(200_000)
    assert abs(normal.mean()) < 0.01
    assert abs(normal.std() - 1) < 0.01
    assert uniform.min() >= 0
    assert uniform.max() < 1
    assert abs(uniform.mean() - 0.5) < 0.005


def test_a_seed_is_the_same_in_every_process() -> None:
    code = "from data.noise import stable_seed; print(stable_seed('design', 7, 3))"
    runs = {
        subprocess.run(
            [sys.executable, "-c", code], capture_output=True, text=True, check=True, env={"PYTHONHASHSEED": seed}
        ).stdout
        for seed in "12"
    }
    assert runs == {f"{stable_seed('design', 7, 3)}\n"}


def test_a_batch_of_another_size_is_refused() -> None:
    with pytest.raises(ValueError, match="2 designs"):
        DesignNoise(0, [0, 1]).normal(3, 4)
