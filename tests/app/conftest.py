"""A checkpoint as `foreshape train` makes it, but tiny and untrained, for promoters of 128 bases."""

from pathlib import Path

import pytest
import torch

from data.space import Categorical, Space
from generators import rmf


@pytest.fixture(scope="session")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> Path:
    torch.manual_seed(1)
    generator = rmf.build(Space(128, {"base": Categorical(4)}), channels=16, depth=2, kernel=3)
    with torch.no_grad():
        for parameter in generator.flow_map.parameters():
            parameter += 0.2 * torch.randn_like(parameter)
    folder = tmp_path_factory.mktemp("checkpoints") / "tiny"
    generator.save(folder)
    return folder


@pytest.fixture
def arguments(tiny: Path, tmp_path: Path) -> list[str]:
    """Of a small run that works."""
    return ["domain.length=128", f"checkpoint={tiny}", "n=5", "steps=2", "seed=3", f"out={tmp_path / 'run'}"]
