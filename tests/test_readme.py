"""What the README shows is what the program says."""

import json
import re
import shlex
from pathlib import Path

import pytest
import torch

from app import cli
from app.evaluation import table
from data import checkpoints
from domains import dna
from rewards.base import Differentiable

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text()
COLUMNS = ["kmer4_js", "kmer6_js", "tata_enrichment", "gc_error", "exact_copies", "near_copies"]


def test_the_table_is_the_committed_result() -> None:
    result = json.loads((checkpoints.FOLDER / "dna-rmf" / "evaluation.json").read_text())
    assert table(result, COLUMNS) in README


def test_the_example_reward_works() -> None:
    [source] = [code for code in re.findall(r"```python\n(.*?)```", README, re.S) if "FewCpG" in code]
    names: dict = {}
    exec(compile(source.replace("from __future__ import annotations\n", ""), "cpg.py", "exec"), names)
    reward = names["build"](dna.build(128))
    designs = ["A" * 126 + "CG", "CG" * 64, "AC" * 64]
    value = reward(designs).value
    assert isinstance(reward, Differentiable)
    assert torch.allclose(reward.relaxed(dna.build(128).encode(designs)), value)
    assert value.argmin() == 1


@pytest.mark.parametrize("verb", ["generate", "check", "train", "evaluate", "list", "models list", "doctor", "restore"])
def test_every_verb_is_explained(verb: str) -> None:
    assert verb.split()[0] in cli.VERBS
    assert f"`{verb}`" in README
    assert f"  {verb.split()[0]} " in cli.USAGE


def test_the_example_command_is_legal(capsys: pytest.CaptureFixture[str]) -> None:
    [command] = re.findall(r"foreshape (generate n=64 .*?) out=RUN", README, re.S)
    assert cli.run(["check", *shlex.split(command.replace("\\\n", " "))[1:]]) == 0
    assert "64 dna designs" in capsys.readouterr().out
