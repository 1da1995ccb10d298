"""`foreshape list` and `models`, and plug-ins of strangers."""

import importlib.metadata
import json
import re
import sys
from pathlib import Path

import pytest

from app import cells, cli, inventory, plugins
from app.composition import composed
from app.spec import Choice
from data import checkpoints
from rewards.base import Differentiable


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


@pytest.mark.parametrize("domain", plugins.names("domain"))
def test_a_domain_alone_is_enough_to_design_in_it(domain: str) -> None:
    asked = composed("generate", [f"domain={domain}"])
    assert cells.state(domain, asked["generator"]["name"]) == cells.READY
    assert asked["generator"] == composed("train", [f"domain={domain}"])["generator"]
    assert composed("generate", [f"domain={domain}", "generator=ideas"])["generator"]["name"] == "ideas"


NEED_A_FILE = {"motif_rmsd", "hotspot_contacts"}


def test_cells_list_all_rewards_of_their_form_even_those_that_need_a_file() -> None:
    for cell in inventory.contents()["cells"]:
        listed = {reward["name"]: reward["differentiable"] for reward in cell.get("rewards", [])}
        domain = cells.domain(Choice(cell["domain"], {}), cell["generator"]) if listed else None
        for name in listed.keys() - NEED_A_FILE:
            reward = plugins.build("reward", name, {}, domain)
            assert cell["domain"] in reward.domains
            assert isinstance(reward, Differentiable) == listed[name]
        if (cell["domain"], cell["generator"]) == ("protein", "rmf"):
            assert set(listed) > NEED_A_FILE


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
        plugins._entry_points.cache_clear()
        monkeypatch.syspath_prepend(str(tmp_path))
        monkeypatch.delitem(sys.modules, "strange_reward", raising=False)

    yield install
    plugins._entry_points.cache_clear()


def test_a_strangers_plugin_is_found(stranger) -> None:
    stranger('"""Counts A."""\ndef build(domain, power: int = 2): return power\n')
    assert "stranger" in plugins.names("reward")
    assert plugins.build("reward", "stranger", {"power": 3}, None) == 3


@pytest.mark.parametrize(
    "source", ["import no_such_package\n", "def build(domain: 'NoSuchClass'): return domain  # no_such_package\n"]
)
def test_a_broken_plugin_is_listed_with_its_error_and_harms_nobody(source: str, stranger, capsys) -> None:
    stranger(source)
    found = told(["list"], capsys)
    entries = {entry["name"]: entry for entry in found["plugins"]["reward"]}
    assert re.search("no_such_package|NoSuchClass", entries["stranger"]["error"])
    assert "error" not in entries["gc_content"]
    assert cli.run(["check", "rewards.stranger.weight=1"]) == 2
