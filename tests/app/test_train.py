"""`foreshape train`: a training that was stopped goes on as if it had not been, and makes a checkpoint that works."""

import json
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
import torch
import yaml
from safetensors.torch import load_file

from app import cli, training
from data.noise import StepNoise
from domains import protein
from generators.rmf.training import Trainer

RECIPE = [
    "domain.length=128",
    "generator.channels=8",
    "generator.depth=1",
    "generator.recipe.steps=6",
    "generator.recipe.flow_matching_steps=2",
    "batch=4",
    "save_every=2",
    "threads=1",
]


@pytest.fixture(autouse=True)
def threads():  # training sets them for the process
    before = torch.get_num_threads()
    yield
    torch.set_num_threads(before)


def train(folder: Path, *more: str) -> int:
    return cli.run(["train", *RECIPE, f"out={folder}", *more])


def weights(folder: Path) -> dict[str, torch.Tensor]:
    return load_file(folder / "diffusion_pytorch_model.safetensors")


def test_a_checkpoint_is_made_and_works(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = tmp_path / "ckpt"
    assert train(folder) == 0
    assert capsys.readouterr().out.splitlines()[-1] == str(folder)
    names = {path.name for path in folder.iterdir()}
    weights_name = "diffusion_pytorch_model.safetensors"
    assert names >= {"config.json", weights_name, "scheduler_config.json", "training.yaml"}
    assert not {path.suffix for path in folder.iterdir()} & {".pt", ".bin"}
    run = tmp_path / "run"
    assert cli.run(["generate", "domain.length=128", f"checkpoint={folder}", "n=2", f"out={run}"]) == 0
    assert yaml.safe_load((folder / "training.yaml").read_text())["generator"]["recipe"]["steps"] == 6


@pytest.mark.parametrize("parameterisation", ["x1", "xt", "average_velocity"])
@pytest.mark.parametrize("objective", ["semigroup", "eulerian", "jacobi", "lagrangian_push", "lagrangian_pull"])
def test_every_objective_can_be_asked_for(tmp_path: Path, objective: str, parameterisation: str) -> None:
    folder, run = tmp_path / "ckpt", tmp_path / "run"
    asked = [f"generator.recipe.objective={objective}", f"generator.parameterisation={parameterisation}"]
    assert train(folder, *asked, "generator.recipe.steps=3") == 0
    assert json.loads((folder / "config.json").read_text())["parameterisation"] == parameterisation
    assert cli.run(["generate", "domain.length=128", f"checkpoint={folder}", "n=2", f"out={run}"]) == 0


@pytest.mark.parametrize("what", ["generator.recipe.objective=naive", "generator.parameterisation=x2"])
def test_an_unknown_method_is_refused_with_those_there_are(tmp_path: Path, capsys, what: str) -> None:
    assert train(tmp_path / "ckpt", what) == 2
    line = capsys.readouterr().err.splitlines()[-1]
    assert "must be one of" in line
    assert what.split("=")[1] in line
    assert not (tmp_path / "ckpt").exists()


def test_a_training_begins_from_a_checkpoint(tmp_path: Path) -> None:
    """Of a recipe of its own; where nothing is learned, the weights are those of the start."""
    first, second = tmp_path / "first", tmp_path / "second"
    assert train(first) == 0
    still = ["generator.recipe.learning_rate=1e-8", "generator.recipe.weight_decay=0", "generator.recipe.steps=2"]
    assert train(second, f"start={first}", *still, "generator.recipe.objective=eulerian", "seed=3") == 0
    before, after = weights(first), weights(second)
    assert all(torch.allclose(before[name], after[name], atol=1e-6) for name in before)
    assert yaml.safe_load((second / "training.yaml").read_text())["start"] == str(first)


def test_a_training_on_long_designs_begins_from_one_on_short(tmp_path: Path) -> None:
    first, second = tmp_path / "first", tmp_path / "second"
    small = ["domain=protein", "generator.recipe.steps=2", "generator.kernel=3"]
    assert train(first, *small, "domain.length=44") == 0
    still = ["generator.recipe.learning_rate=1e-8", "generator.recipe.weight_decay=0"]
    assert train(second, *small, "domain.length=50", f"start={first}", *still) == 0
    assert all(torch.allclose(value, weights(second)[name], atol=1e-6) for name, value in weights(first).items())
    for i, lengths in enumerate((range(40, 51), range(40, 44), range(42, 49))):
        asked = [f"domain.length={lengths[-1]}", f"domain.shortest={lengths[0]}", f"checkpoint={second}"]
        assert cli.run(["generate", "domain=protein", *asked, "n=3", "steps=1", f"out={tmp_path / str(i)}"]) == 0
        made = [protein.build().read(path) for path in (tmp_path / str(i) / "designs").glob("*.pdb")]
        assert {len(design) for design in made} <= set(lengths)
    asked = ["domain=protein", f"checkpoint={second}", "n=1", f"out={tmp_path / 'no'}"]
    assert cli.run(["generate", *asked, "domain.length=51"]) == 2
    assert not (tmp_path / "no").exists()


def test_torsions_can_be_learned_and_drawn(tmp_path: Path) -> None:
    small = ["domain=protein", "domain.form=torsions", "domain.length=44"]
    assert train(tmp_path / "ckpt", *small, "generator.recipe.steps=3") == 0
    asked = [*small, f"checkpoint={tmp_path / 'ckpt'}", "n=2", "~rewards.radius_of_gyration"]
    assert cli.run(["generate", *asked, f"out={tmp_path / 'run'}"]) == 0
    made = [protein.build().read(path) for path in (tmp_path / "run" / "designs").glob("*.pdb")]
    assert len(made) == 2
    bonds = np.concatenate([np.linalg.norm(x.atoms()[1:, 0] - x.atoms()[:-1, 2], axis=-1) for x in made])
    np.testing.assert_allclose(bonds, 1.33, atol=3e-3)
    assert cli.run(["generate", *asked, "domain.length=43", f"out={tmp_path / 'shorter'}"]) == 0


@pytest.mark.parametrize(
    ("override", "said"),
    [
        ("generator.channels=16", "generator.channels as it has it"),
        ("generator.parameterisation=xt", "generator.parameterisation as it has it"),
        ("start=dna-rmf", "generator.channels as it has it"),
        ("start=protein-rmf", "change the parameters"),
        ("start=nowhere", "no checkpoint 'nowhere'"),
    ],
)
def test_a_start_of_another_network_is_refused(tmp_path: Path, capsys, override: str, said: str) -> None:
    assert train(tmp_path / "first") == 0
    capsys.readouterr()
    start = [] if override.startswith("start=") else [f"start={tmp_path / 'first'}"]
    assert train(tmp_path / "second", *start, override) == 2
    assert said in capsys.readouterr().err.splitlines()[-1]
    assert not (tmp_path / "second").exists()


def test_an_interrupted_training_goes_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert train(tmp_path / "whole") == 0
    advance = Trainer.advance

    def interrupt(self: Trainer, *arguments) -> dict[str, float]:
        if self.step == 5:
            raise KeyboardInterrupt
        return advance(self, *arguments)

    monkeypatch.setattr(Trainer, "advance", interrupt)
    assert train(tmp_path / "pieces") == 130
    assert (tmp_path / "pieces" / "state.pt").exists()
    monkeypatch.setattr(Trainer, "advance", advance)
    assert train(tmp_path / "pieces") == 0
    whole, pieces = weights(tmp_path / "whole"), weights(tmp_path / "pieces")
    assert all(torch.equal(whole[name], pieces[name]) for name in whole)


def test_a_finished_training_is_left_alone(tmp_path: Path) -> None:
    assert train(tmp_path) == 0
    before = (tmp_path / "diffusion_pytorch_model.safetensors").stat().st_mtime_ns
    assert train(tmp_path) == 0
    assert (tmp_path / "diffusion_pytorch_model.safetensors").stat().st_mtime_ns == before


@pytest.mark.parametrize(
    ("override", "said"),
    [
        ("generator.recipe.learning_rate=0.1", "generator="),
        ("seed=5", "seed=0, not 5"),
        ("generator.recipe.step=3", "step"),
        ("generator.recipe.steps=ten", "ten"),
    ],
)
def test_another_training_is_refused(tmp_path: Path, capsys, override: str, said: str) -> None:
    assert train(tmp_path) == 0
    capsys.readouterr()
    assert train(tmp_path, override) == 2
    assert said in capsys.readouterr().err


def test_the_log_has_the_losses(tmp_path: Path) -> None:
    assert (
        train(
            tmp_path,
            "generator.recipe.steps=100",
            "generator.recipe.flow_matching_steps=0",
            "generator.recipe.warm_up=1",
        )
        == 0
    )
    line = json.loads((tmp_path / "log.jsonl").read_text().splitlines()[-1])
    assert line["step"] == 100
    assert line["flow_matching"] > 0
    assert line["semigroup"] > 0


def test_batches_of_a_pool_share_its_designs_out_by_length() -> None:
    lengths = torch.from_numpy(np.random.default_rng(0).integers(40, 129, 500))
    rng = StepNoise(3)
    batches = [training.alike(lengths, 16, k, rng) for k in range(training.POOL, 2 * training.POOL)]
    drawn = rng.fork(1).integers(500, 16 * training.POOL)
    assert torch.equal(torch.cat(batches).sort().values, drawn.sort().values)
    bounds = sorted((int(lengths[rows].min()), int(lengths[rows].max())) for rows in batches)
    assert all(upper <= lower for (_, upper), (lower, _) in pairwise(bounds))
    assert bounds != [(int(lengths[rows].min()), int(lengths[rows].max())) for rows in batches]
    assert torch.equal(batches[2], training.alike(lengths, 16, training.POOL + 2, StepNoise(3)))
