"""The README's complete domain and reward, each one file dropped into its room, work as the README says."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
BLOCKS = re.findall(
    r"`(domains/\w+\.py|rewards/\w+\.py)`, the whole file.*?```python\n(.*?)```",
    ROOT.joinpath("README.md").read_text(),
    re.S,
)


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The program with the README's files in it; everything else is the repository's own."""
    top = tmp_path_factory.mktemp("tree")
    for room in ("app", "generators", "data"):
        (top / room).symlink_to(ROOT / room)
    for room in ("domains", "rewards"):
        (top / room).mkdir()
        for entry in (ROOT / room).iterdir():
            if entry.name != "__pycache__":
                (top / room / entry.name).symlink_to(entry)
    for name, text in BLOCKS:
        (top / name).write_text(text)
    return top


def foreshape(tree: Path, *words: str) -> str:
    program = "import sys; from app.cli import run; sys.exit(run(sys.argv[1:]))"
    environment = os.environ | {"PYTHONPATH": str(tree), "FORESHAPE_HOME": str(tree / "var"), "OMP_NUM_THREADS": "1"}
    done = subprocess.run(
        [sys.executable, "-c", program, *words], cwd=tree, env=environment, capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_the_readme_has_both() -> None:
    assert [name for name, _ in BLOCKS] == ["rewards/cpg.py", "domains/melody.py"]
    assert all(len(text.splitlines()) <= 80 for _, text in BLOCKS)


def test_the_reward_is_listed_and_scores(tree: Path) -> None:
    assert {"cpg"} <= {entry["name"] for entry in json.loads(foreshape(tree, "list", "--json"))["plugins"]["reward"]}
    folder = Path(foreshape(tree, "generate", "domain=dna", "n=2", "steps=1", "rewards.cpg.weight=2").splitlines()[-1])
    header, *rows = (tree / folder / "scores.csv").read_text().splitlines()
    assert "cpg" in header.split(",")
    assert len(rows) == 2


def test_the_domain_trains_generates_and_restores(tree: Path) -> None:
    cells = json.loads(foreshape(tree, "list", "--json"))["cells"]
    states = {cell["generator"]: cell["state"] for cell in cells if cell["domain"] == "melody"}
    assert states["rmf"] == states["hybrid"] == "no checkpoint"
    assert states["ideas"] == "ready"
    recipe = ["generator.recipe.steps=3", "generator.channels=16", "generator.depth=2", "batch=8"]
    foreshape(tree, "train", "domain=melody", "generator=rmf", *recipe, "out=model")
    printed = foreshape(
        tree, "generate", "domain=melody", "generator=rmf", "checkpoint=model", "n=3", "steps=2", "out=run"
    )
    assert printed.splitlines()[-1] == "run"
    designs = sorted((tree / "run" / "designs").glob("*.txt"))
    assert len(designs) == 3
    assert "melody" in foreshape(tree, "restore", str(designs[0]))
    assert "uniform" in foreshape(tree, "evaluate", "domain=melody", "checkpoint=model", "n=2", "steps=[1]")
