"""`foreshape doctor`: what is well is said to be, and what is not is named with its remedy."""

import errno
import json
import shutil
import tempfile
from pathlib import Path

import pytest
import torch

from app import cells, cli, doctor, inventory
from data import checkpoints


@pytest.fixture(autouse=True)
def own_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("FORESHAPE_HOME", str(tmp_path / "home"))
    monkeypatch.delenv("FORESHAPE_STORE", raising=False)
    return tmp_path / "home"


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without the designs of the cells, which take most of the time."""
    monkeypatch.setattr(inventory, "contents", lambda: {"cells": []})


def examined(capsys: pytest.CaptureFixture[str], code: int) -> dict[str, dict]:
    assert cli.run(["doctor", "--json"]) == code
    return {entry["name"]: entry for entry in json.loads(capsys.readouterr().out)["checks"]}


def test_all_is_well_and_every_ready_cell_makes_a_design(own_home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    checks = examined(capsys, 0)
    assert all(entry["ok"] for entry in checks.values()), checks
    for cell in inventory.contents()["cells"]:
        if cell["state"] == cells.READY:
            assert f"{cell['generator']} on {cell['domain']}" in checks
    assert {f"checkpoint {name}" for name in checkpoints.names()} <= set(checks)
    assert {"python", "torch", "gpu", "memory", "home", "store", "extra postgres", "extra slurm"} <= set(checks)
    assert not own_home.exists()


def test_a_damaged_checkpoint_is_named_and_the_others_are_well(tmp_path: Path, quick, capsys, monkeypatch) -> None:
    folder = tmp_path / "checkpoints"
    shutil.copytree(checkpoints.FOLDER, folder)
    monkeypatch.setattr(checkpoints, "FOLDER", folder)
    weights = next((folder / "dna-rmf").glob("*.safetensors"))
    weights.write_bytes(weights.read_bytes()[:-1] + b"x")
    bad = [name for name, entry in examined(capsys, 1).items() if not entry["ok"]]
    assert bad == ["checkpoint dna-rmf"]


def test_a_folder_that_refuses_is_told_with_the_remedy(quick, capsys, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise OSError(errno.EROFS, "Read-only file system")

    monkeypatch.setattr(tempfile, "TemporaryFile", refuse)
    checks = examined(capsys, 1)
    assert [name for name, entry in checks.items() if not entry["ok"]] == ["home", "folder for passing files"]
    assert "Read-only file system" in checks["home"]["detail"]
    assert "FORESHAPE_HOME" in checks["home"]["detail"]


def test_a_store_that_cannot_be_reached_is_told_without_its_password(quick, capsys, monkeypatch) -> None:
    monkeypatch.setenv("FORESHAPE_STORE", "postgresql://nobody:secret@127.0.0.1:1/none")
    checks = examined(capsys, 1)
    assert not checks["store"]["ok"]
    assert "secret" not in json.dumps(checks)


def test_extras_are_told_with_what_installs_them(monkeypatch: pytest.MonkeyPatch) -> None:
    lines = ["numpy<3", 'pytest; extra == "moon"', "no-such-package>=2; extra == 'moon'", 'ruff; extra == "dev"']
    monkeypatch.setattr(doctor.importlib.metadata, "requires", lambda name: lines)
    assert doctor.extras() == {"moon": ["pytest", "no-such-package"]}
    told = doctor._extra("moon", ["pytest", "no-such-package"])
    assert "no-such-package is not installed" in told
    assert "foreshape[moon]" in told
    assert "pip install" not in doctor._extra("moon", ["pytest"])


@pytest.mark.parametrize(
    ("cuda", "driver", "said"),
    [
        (None, "", "none, no driver"),
        (None, "NVRM version: NVIDIA UNIX x86_64 Kernel Module  535.104.05  Sat", "535.104.05 is here, but PyTorch"),
        ("13.0", "", "none, no driver"),
        ("13.0", "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  470.57.02  Tue", "470.57.02"),
    ],
)
def test_a_gpu_that_is_not_used_is_told(
    cuda: str | None, driver: str, said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if torch.cuda.is_available():
        pytest.skip("this machine has a GPU that is used")
    if driver:
        (tmp_path / "version").write_text(driver)
    monkeypatch.setattr(doctor, "DRIVER", tmp_path / "version")
    monkeypatch.setattr(torch.version, "cuda", cuda)
    found = doctor._checked("gpu", doctor._gpu)
    assert found["ok"] is not bool(cuda and driver)
    assert said in found["detail"]


def test_words_are_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.run(["doctor", "now"]) == 2
    assert "now" in capsys.readouterr().err
