"""Bad input is one line with the value, what is legal and the remedy; exit code 2; nothing is written."""

import json
import os
import pickle
import shutil
from pathlib import Path

import numpy as np
import pytest
import torch

from app import cli
from data import checkpoints


def refused(arguments: list[str], capsys: pytest.CaptureFixture[str], verb: str = "generate") -> str:
    """The one line that is said."""
    assert cli.run([verb, *arguments]) == 2
    caught = capsys.readouterr()
    assert caught.out == ""
    assert caught.err.count("\n") == 1
    return caught.err


@pytest.mark.parametrize(
    ("override", "said"),
    [
        ("domain=rna", ["rna", "dna"]),
        ("generator=gan", ["gan", "rmf"]),
        ("guidance=magic", ["magic", "free, lookahead"]),
        ("rewards.beauty.weight=1", ["beauty", "gc_content", "motif"]),
        ("rewards.gc_content.goal=1", ["goal", "target"]),
        ("rewards.gc_content.target=2", ["target", "2.0"]),
        ("rewards.gc_content.target=nan", ["target", "finite"]),
        ("rewards.gc_content.target=high", ["high", "finite number"]),
        ("rewards.gc_content.weight=heavy", ["heavy", "number"]),
        ("rewards.gc_content.weight=inf", ["inf", "-1000"]),
        ("rewards=[1]", ["rewards", "table"]),
        ("rewards.gc_content=[1]", ["gc_content", "table"]),
        ("~rewards.nothing", ["rewards.nothing", "gc_content"]),
        ("domain.forbidden_sites=EcoRI", ["EcoRI", "a list"]),
        ("domain.forbidden_sites=[1,2]", ["forbidden_sites[0]", "text"]),
        ("domain.longest_run=4294967296", ["longest_run", "512"]),
        ("guidance.strength.x=1", ["strength"]),
        ("rewards.motif.name=XYZ", ["XYZ", "TATA-Box"]),
        ("domain.length=64", ["64", "128"]),
        ("domain.width=3", ["width", "length"]),
        ("guidance.power=3", ["power", "none"]),
        ("generator.channels=3", ["channels", "foreshape train"]),
        ("n=0", ["n is 0", "from 1 to"]),
        ("n=-3", ["-3", "from 1 to"]),
        ("n=many", ["many", "whole number"]),
        ("n=2.5", ["2.5", "whole number"]),
        ("n=true", ["True", "whole number"]),
        ("steps=0", ["steps is 0", "from 1 to"]),
        ("steps=1000000000", ["1000000000", "from 1 to"]),
        ("batch=1e99", ["batch", "whole number"]),
        ("seed=99999999999999999999999", ["seed", "from 0 to"]),
        ("batch=0", ["batch is 0", "from 1 to"]),
        ("seed=-1", ["-1", "from 0"]),
        ("device=tpu", ["tpu", "auto, cpu, cuda"]),
        ("colour=red", ["colour", "checkpoint"]),
        ("+colour=red", ["colour", "checkpoint"]),
        ("nonsense", ["nonsense", "key=value"]),
        ("domain._target_=os.system", ["_target_", "not allowed"]),
        ("domain.length=${oc.env:HOME}", ["not allowed"]),
        ("checkpoint=nowhere", ["nowhere", "foreshape train"]),
        ("checkpoint.x=1", ["checkpoint", "no parts"]),
        ("checkpoint=", ["checkpoint=PATH"]),
        ("spec=", ["spec=PATH"]),
        ("n=[", ["n=[", "quotes"]),
        ("n=1,2", ["n=1,2", "several"]),
        ("seed=range(1,4)", ["several"]),
    ],
)
def test_one_line(arguments: list[str], tmp_path: Path, capsys, override: str, said: list[str]) -> None:
    line = refused([*arguments, override], capsys)
    assert all(word in line for word in said), line
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "not a table"),
        ("- a\n- b\n", "not a table"),
        ("1: 2\n", "not a table"),
        ("n: [", "cannot be read"),
        ("n: 0\n", "domain"),
        ("nn: 3\n", "nn"),
        ("domain: {name: rna}\n", "rna"),
        ("a: !!python/object:os.system\n", "cannot be read"),
        ("a: &x [1]\nb: [*x, *x]\n", "aliases"),
        ("a: " + "[" * 5000, "cannot be read"),
        ("seed: 2020-13-45\n", "cannot be read"),
    ],
)
def test_a_bad_spec_file(tmp_path: Path, capsys: pytest.CaptureFixture[str], text: str, said: str) -> None:
    (tmp_path / "spec.yaml").write_text(text)
    assert said in refused([f"spec={tmp_path / 'spec.yaml'}", f"out={tmp_path / 'run'}"], capsys)
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize("name", ["no.fasta", "notes.txt", "foreign.fasta", "folder"])
def test_a_file_without_a_spec(tmp_path: Path, capsys: pytest.CaptureFixture[str], name: str) -> None:
    (tmp_path / "folder").mkdir()
    (tmp_path / "notes.txt").write_text("hello")
    (tmp_path / "foreign.fasta").write_text(">x\nACGT\n")
    assert name in refused([str(tmp_path / name)], capsys, "restore")


@pytest.mark.parametrize(
    ("name", "said"), [("x.svg", "x.svg"), ("x.gds", "x.gds"), ("x.cif", "x.cif"), ("x.pdb", "x.pdb")]
)
def test_a_file_is_refused_by_the_domain_of_its_kind(tmp_path: Path, capsys, name: str, said: str) -> None:
    (tmp_path / name).write_bytes(b"junk")
    line = refused([str(tmp_path / name)], capsys, "restore")
    assert said in line
    assert "promoter" not in line


def test_a_pipe_is_not_waited_for(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    os.mkfifo(tmp_path / "x.gb")
    assert "not a regular file" in refused([str(tmp_path / "x.gb")], capsys, "restore")


def test_a_demo_leaves_other_folders_alone(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "spec.yaml").write_text("n: 1")
    assert "holds spec.yaml; give one that is new" in refused([str(tmp_path)], capsys, "demo")
    assert [path.name for path in tmp_path.iterdir()] == ["spec.yaml"]


def test_an_export_names_a_folder(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert "give --to DIR" in refused([str(tmp_path), "--to", ""], capsys, "export")


def test_guidance_without_rewards(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    line = refused([*arguments, "guidance=lookahead", "~rewards.gc_content"], capsys)
    assert "guidance=free" in line


def test_a_verb_that_is_none(capsys: pytest.CaptureFixture[str]) -> None:
    assert "generate, check, train" in refused([], capsys, "conjure")


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a CUDA device")
def test_a_device_that_is_not_there(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert "device=cpu" in refused([*arguments, "device=cuda"], capsys)


def test_a_checkpoint_of_another_space(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    line = refused([*arguments, "domain.length=256"], capsys)
    assert "128 x" in line
    assert "256 x" in line


@pytest.mark.parametrize("name", ["pytorch_model.bin", "weights.pt", "state.pkl"])
def test_a_pickle_is_not_opened(arguments: list[str], tiny: Path, tmp_path: Path, capsys, name: str) -> None:
    folder = tmp_path / "evil"
    shutil.copytree(tiny, folder)
    (folder / name).write_bytes(pickle.dumps({}))
    assert "never a pickle" in refused([*arguments, f"checkpoint={folder}"], capsys)


@pytest.mark.parametrize("name", ["config.json", "diffusion_pytorch_model.safetensors", "scheduler_config.json"])
def test_a_damaged_checkpoint(arguments: list[str], tiny: Path, tmp_path: Path, capsys, name: str) -> None:
    folder = tmp_path / "damaged"
    shutil.copytree(tiny, folder)
    (folder / name).write_bytes((folder / name).read_bytes()[:40])
    assert "restore" in refused([*arguments, f"checkpoint={folder}"], capsys)
    assert not (tmp_path / "run").exists()


def test_a_shipped_checkpoint_with_another_sha256(arguments, tiny: Path, tmp_path: Path, capsys, monkeypatch) -> None:
    shipped = tmp_path / "shipped"
    shutil.copytree(tiny, shipped / "dna-rmf")
    (shipped / "manifest.json").write_text(json.dumps({"dna-rmf/config.json": "0" * 64}))
    monkeypatch.setattr(checkpoints, "FOLDER", shipped)
    monkeypatch.setattr(checkpoints, "MANIFEST", shipped / "manifest.json")
    assert "sha256" in refused([*arguments, "checkpoint=auto"], capsys)


@pytest.mark.parametrize("verb", ["generate", "check"])
def test_a_reward_without_gradient_cannot_be_climbed(arguments, tmp_path: Path, capsys, monkeypatch, verb: str) -> None:
    from rewards import gc_content

    class Flat:
        def __init__(self, reward: gc_content.GcContent) -> None:
            self.reward = reward

        def __call__(self, designs):
            return self.reward(designs)

    build = gc_content.build

    def build_flat(domain: gc_content.Dna, target: float = 0.5) -> Flat:
        return Flat(build(domain, target))

    monkeypatch.setattr(gc_content, "build", build_flat)
    line = refused([*arguments, "guidance=lookahead"], capsys, verb)
    assert "gc_content" in line
    assert "guidance=free" in line
    assert not (tmp_path / "run").exists()


def test_a_link_to_a_shipped_checkpoint_is_checked_all_the_same(
    tiny: Path, tmp_path: Path, capsys, monkeypatch
) -> None:
    shipped = tmp_path / "shipped"
    shutil.copytree(tiny, shipped / "elsewhere")
    (shipped / "dna-rmf").symlink_to(shipped / "elsewhere")
    (shipped / "manifest.json").write_text(json.dumps({"dna-rmf/config.json": "0" * 64}))
    monkeypatch.setattr(checkpoints, "FOLDER", shipped)
    monkeypatch.setattr(checkpoints, "MANIFEST", shipped / "manifest.json")
    assert "sha256" in refused(["verify"], capsys, "models")


def test_a_shipped_checkpoint_that_is_gone_is_missed(tmp_path: Path, capsys, monkeypatch) -> None:
    (tmp_path / "manifest.json").write_text(json.dumps({"dna-rmf/config.json": "0" * 64}))
    monkeypatch.setattr(checkpoints, "FOLDER", tmp_path)
    monkeypatch.setattr(checkpoints, "MANIFEST", tmp_path / "manifest.json")
    assert "config.json" in refused(["verify"], capsys, "models")


@pytest.mark.parametrize("verb", ["generate", "check"])
def test_the_folder_of_another_run(arguments: list[str], capsys: pytest.CaptureFixture[str], verb: str) -> None:
    assert cli.run(["generate", *arguments]) == 0
    capsys.readouterr()
    assert "seed=3, not 4" in refused([*arguments, "seed=4"], capsys, verb)


def test_a_folder_that_cannot_be_written(arguments: list[str], tmp_path: Path, capsys) -> None:
    (tmp_path / "file").write_text("mine")
    line = refused([*arguments, f"out={tmp_path / 'file' / 'run'}"], capsys)
    assert "another out=DIR" in line
    assert (tmp_path / "file").read_text() == "mine"


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_folder_without_permission(arguments: list[str], tmp_path: Path, capsys) -> None:
    (tmp_path / "locked").mkdir(mode=0o500)
    assert "cannot be written" in refused([*arguments, f"out={tmp_path / 'locked' / 'run'}"], capsys)


@pytest.mark.parametrize(
    "arrays",
    [
        {"letters": np.zeros((2, 3), np.uint8)},
        {"bits": np.zeros((2, 3), np.float32), "shape": np.array([2, 12])},
        {"bits": np.zeros((2, 3), np.uint8), "shape": np.array([2, 12])},
        {"bits": np.zeros((2, 64), np.uint8), "shape": np.array([5, 256])},
        {"bits": np.zeros((0, 64), np.uint8), "shape": np.array([0, 256])},
    ],
)
def test_a_reference_of_another_format(arguments, tmp_path: Path, capsys, arrays: dict[str, np.ndarray]) -> None:
    np.savez(tmp_path / "reference.npz", **arrays)
    kept = [a for a in arguments if a.split("=")[0] in ("domain.length", "checkpoint")]
    line = refused([*kept, f"reference={tmp_path / 'reference.npz'}"], capsys, "evaluate")
    assert "reference.npz" in line
