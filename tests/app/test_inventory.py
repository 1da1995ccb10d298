"""`foreshape list` and `models`, and plug-ins of strangers."""

import importlib.metadata
import json
import sys
from pathlib import Path

import pytest

from app import cli, plugins
from data import checkpoints


def told(verb: list[str], capsys: pytest.CaptureFixture[str]) -> dict:
    assert cli.run([*verb, "--json"]) == 0
    return json.loads(capsys.readouterr().out)


def test_list_names_every_plugin_with_its_parameters(capsys: pytest.CaptureFixture[str]) -> None:
    found = told(["list"], capsys)
    kinds = {kind: {entry["name"] for entry in entries} for kind, entries in found["plugins"].items()}
    assert kinds["domain"] == {"dna", "protein", "svg", "layout"}
    assert kinds["generator"] == {"rmf", "hybrid", "ideas"}
    assert kinds["guidance"] == {"free", "lookahead", "best_of_n"}
    assert kinds["reward"] >= {"gc_content", "motif"}
    states = {(cell["generator"], cell["domain"]): cell["state"] for cell in found["cells"]}
    ready = {("rmf", "dna"), ("rmf", "protein"), ("hybrid", "svg"), ("hybrid", "layout"), ("ideas", "dna")}
    assert {cell for cell, state in states.items() if state == "ready"} == ready | {("ideas", "protein")}
    assert states["ideas", "svg"] == states["ideas", "layout"] == "planned"
    assert states["hybrid", "dna"] == "no checkpoint"
    dna = next(entry for entry in found["plugins"]["domain"] if entry["name"] == "dna")
    assert dna["parameters"]["length"] == 256
    assert dna["about"]


@pytest.mark.parametrize("verb", [["list"], ["models", "list"], ["models", "verify"]])
def test_text_and_json_say_the_same(verb: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    found = told(verb, capsys)
    assert cli.run(verb) == 0
    text = capsys.readouterr().out
    names = [entry["name"] for entries in found.get("plugins", {}).values() for entry in entries]
    names += [entry["name"] for entry in found.get("models", [])]
    assert all(name in text for name in names)


@pytest.mark.parametrize("words", [["models", "burn"], ["list", "--xml"]])
def test_unknown_words_are_refused(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.run(words) == 2
    assert words[1] in capsys.readouterr().err


@pytest.mark.parametrize("name", checkpoints.names())
def test_shipped_checkpoints_are_whole_and_small(name: str) -> None:
    folder = checkpoints.FOLDER / name
    checkpoints.verify(folder)
    assert (folder / "card.md").exists()
    assert sum(path.stat().st_size for path in folder.iterdir()) < 25e6


@pytest.fixture
def stranger(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Installs a module as the reward plug-in `stranger` of another package."""

    def install(source: str) -> None:
        (tmp_path / "strange_reward.py").write_text(source)
        point = importlib.metadata.EntryPoint("stranger", "strange_reward", "foreshape.rewards")
        found = importlib.metadata.entry_points

        def entry_points(*, group: str):
            return [point] if group == "foreshape.rewards" else found(group=group)

        monkeypatch.setattr(importlib.metadata, "entry_points", entry_points)
        monkeypatch.syspath_prepend(str(tmp_path))
        monkeypatch.delitem(sys.modules, "strange_reward", raising=False)

    return install


def test_a_strangers_plugin_is_found(stranger) -> None:
    stranger('"""Counts A."""\ndef build(domain, power: int = 2): return power\n')
    assert "stranger" in plugins.names("reward")
    assert plugins.build("reward", "stranger", {"power": 3}, None) == 3


def test_a_broken_plugin_is_listed_with_its_error_and_harms_nobody(stranger, capsys) -> None:
    stranger("import no_such_package\n")
    found = told(["list"], capsys)
    entries = {entry["name"]: entry for entry in found["plugins"]["reward"]}
    assert "no_such_package" in entries["stranger"]["error"]
    assert "error" not in entries["gc_content"]
    assert cli.run(["check", "rewards.stranger.weight=1"]) == 2
