"""Checkpoints whose files say what the class does not know, or hold other weights, are refused by name."""

import json
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file

from data.space import Categorical, Real, Space
from generators import hybrid, rmf
from generators.base import GeneratorError

WEIGHTS = "diffusion_pytorch_model.safetensors"
SPACE = Space(8, {"kind": Categorical(3), "place": Real(2)})
SMALL: dict[ModuleType, dict[str, Any]] = {
    rmf: {"channels": 8, "depth": 1, "kernel": 3},
    hybrid: {"channels": 8, "depth": 1, "heads": 1, "bins": 9},
}


@pytest.fixture(params=SMALL, ids=lambda module: module.__name__)
def saved(request: pytest.FixtureRequest, tmp_path: Path) -> ModuleType:
    request.param.build(SPACE, **SMALL[request.param]).save(tmp_path)
    module: ModuleType = request.param
    return module


def test_a_whole_folder_is_read(saved: ModuleType, tmp_path: Path) -> None:
    assert saved.load(tmp_path, torch.device("cpu")).space == SPACE


@pytest.mark.parametrize("name", ["config.json", "scheduler_config.json"])
@pytest.mark.parametrize(("key", "value"), [("colour", "red"), ("_class_name", "Tree")])
def test_strange_settings(saved: ModuleType, tmp_path: Path, name: str, key: str, value: str) -> None:
    settings = json.loads((tmp_path / name).read_text())
    (tmp_path / name).write_text(json.dumps(settings | {key: value}))
    with pytest.raises(GeneratorError, match=f"{name} (has '?colour|is of class 'Tree')"):
        saved.load(tmp_path, torch.device("cpu"))


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda weight: weight.double(), "is torch.float64; it must be torch.float32"),
        (lambda weight: weight * float("nan"), "has values that are not finite"),
    ],
)
def test_strange_weights(
    saved: ModuleType, tmp_path: Path, change: Callable[[torch.Tensor], torch.Tensor], said: str
) -> None:
    weights = load_file(tmp_path / WEIGHTS)
    name = next(key for key, value in weights.items() if value.is_floating_point())
    save_file(weights | {name: change(weights[name])}, tmp_path / WEIGHTS)
    with pytest.raises(GeneratorError, match=said):
        saved.load(tmp_path, torch.device("cpu"))
