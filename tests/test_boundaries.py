"""Who may import whom; a rule worth stating is a test."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
ROOMS = ("app", "domains", "generators", "rewards", "data")
MAY_IMPORT = {
    "app": {"domains", "generators", "rewards", "data"},
    "rewards": {"domains", "data"},
    "domains": {"data"},
    "generators": {"data"},
    "data": set(),
}
ONLY_IN_APP = {"hydra", "omegaconf", "streamlit"}
MODULES = sorted(path for room in ROOMS for path in (ROOT / room).rglob("*.py"))


def imported(path: Path) -> set[str]:
    """The top-level names that a module imports, at any depth of its code."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            found |= {alias.name.split(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            found.add(node.module.split(".")[0])
    return found


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(ROOT)))
def test_imports_point_down(path: Path) -> None:
    room = path.relative_to(ROOT).parts[0]
    assert (imported(path) & set(ROOMS)) - {room} <= MAY_IMPORT[room]
    assert room == "app" or not imported(path) & ONLY_IN_APP


@pytest.mark.parametrize("room", ROOMS)
def test_rooms_are_ours(room: str) -> None:
    """The five bare names are not shadowed by an installed package."""
    code = f"import {room}; print({room}.__file__)"
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd="/")
    assert Path(found.stdout.strip()).parent == ROOT / room


def test_no_pickle_is_read() -> None:
    for path in MODULES:
        text = path.read_text()
        assert "pickle.load" not in text, path
        assert text.count("torch.load(") == text.count("weights_only=True"), path
        assert text.count("np.load(") == text.count("allow_pickle=False"), path
