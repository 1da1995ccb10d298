"""Small runs drawn together: each is what it is alone, and none is harmed by its company."""

import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file

from app import batching, cells, cli, service
from app.service import Prepared
from app.spec import Choice
from app.worker import Worker
from data import checkpoints
from data.noise import DesignNoise
from data.store import Run, runs_folder
from data.store.queue import Queue
from generators.rmf.generator import RiemannianMeanFlow
from tests.app.test_runs import contents, said, states

TRAINED = [name.rsplit("-", 1) for name in checkpoints.names() if name.count("-") == 1 and not name.endswith("mpnn")]
ALIKE: dict[str, list[str]] = {
    "a": ["n=3"],
    "b": ["n=5", "seed=4"],
    "c": ["n=2", "batch=1", "rewards={gc_content: {weight: 2}}"],
}
"""Runs of one model: another seed, another batch, another reward."""
OTHERS: dict[str, list[str]] = {"steps": ["n=2", "steps=3"], "guided": ["n=1", "guidance=lookahead"]}


@pytest.fixture
def common(arguments: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What all runs have, in a home of their own."""
    monkeypatch.setenv("FORESHAPE_HOME", str(tmp_path / "home"))
    return [word for word in arguments if not word.startswith(("n=", "out="))]


@pytest.fixture
def drawn(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many designs each call of the generator was asked for."""
    sample, sizes = RiemannianMeanFlow.sample, list[int]()

    def counted(self: RiemannianMeanFlow, n: int, *values: Any, **more: Any) -> Any:
        sizes.append(n)
        return sample(self, n, *values, **more)

    monkeypatch.setattr(RiemannianMeanFlow, "sample", counted)
    return sizes


def queued(capsys: pytest.CaptureFixture[str], common: list[str], runs: dict[str, list[str]]) -> None:
    for name, words in runs.items():
        said(capsys, "submit", *common, *words, f"out={runs_folder() / name}")


def alone(capsys: pytest.CaptureFixture[str], common: list[str], runs: dict[str, list[str]], folder: Path) -> None:
    """Each run is what `generate` makes of it."""
    for name, words in runs.items():
        said(capsys, "generate", *common, *words, f"out={folder / name}")
        assert contents(runs_folder() / name) == contents(folder / name), name


@pytest.mark.parametrize("cell", TRAINED, ids="-".join)
def test_a_design_of_a_shipped_network_is_the_same_in_any_company(cell: list[str]) -> None:
    """Designs of one number from several seeds, which so are in other rows than alone."""
    domain = cells.domain(Choice(cell[0], {}), cell[1])
    folder = cells.checkpoint(cell[0], Choice(cell[1], {}), "auto", domain)
    generator = cells.ready(Choice(cell[1], {}), domain, folder, 0, torch.device("cpu"))
    wanted = [(seed, design) for seed in (3, 2**60) for design in (0, 7)]
    together = batching.together(generator, 2, wanted, lambda step: None)
    for seed, design in wanted[1:]:
        rng = DesignNoise(seed, [design])
        single = generator.sample(1, 2, None, None, rng, lambda step: None)
        found = together.of(rng)
        assert found is not None
        assert all(torch.equal(single[name], found[name]) for name in single)
    assert together.of(DesignNoise(3, [1])) is None


def test_runs_of_one_model_share_a_draw_and_are_what_they_are_alone(
    common: list[str], drawn: list[int], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    queued(capsys, common, ALIKE | OTHERS)
    said(capsys, "worker", "--drain")
    assert drawn == [3 + 5 + 2, 2, 1]
    assert set(states(capsys).values()) == {"done"}
    alone(capsys, common, ALIKE | OTHERS, tmp_path)


def test_a_run_that_does_not_fit_into_the_tile_waits_for_its_turn(
    common: list[str], drawn: list[int], capsys: pytest.CaptureFixture[str]
) -> None:
    queued(capsys, common, {"a": ["n=10"], "b": ["n=7", "seed=4"], "c": ["n=6", "seed=5"]})
    said(capsys, "worker", "--drain")
    assert drawn == [10 + 6, 7]


def test_what_is_made_already_is_not_drawn_again(
    common: list[str], drawn: list[int], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    said(capsys, "generate", *common, "n=2", f"out={runs_folder() / 'a'}")
    queued(capsys, common, ALIKE)
    said(capsys, "worker", "--drain")
    assert drawn == [2, 1 + 5 + 2]
    assert len(Run(runs_folder() / "a").finished()) == 3
    alone(capsys, common, {name: ALIKE[name] for name in "bc"}, tmp_path)


def test_of_a_long_run_only_the_shard_that_fits_comes_along(
    common: list[str], drawn: list[int], capsys: pytest.CaptureFixture[str]
) -> None:
    queued(capsys, common, {"a": ["n=2"], "b": ["n=34", "seed=4", "batch=32"]})
    said(capsys, "worker", "--drain")
    assert drawn == [2 + 2, 32]
    assert set(states(capsys).values()) == {"done"}


def test_runs_that_were_finished_meanwhile_are_settled(
    common: list[str], drawn: list[int], capsys: pytest.CaptureFixture[str]
) -> None:
    queued(capsys, common, ALIKE)
    for name, words in ALIKE.items():
        said(capsys, "generate", *common, *words, f"out={runs_folder() / name}")
    drawn.clear()
    said(capsys, "worker", "--drain")
    assert set(states(capsys).values()) == {"done"}
    assert drawn == []


def test_weights_that_are_replaced_are_loaded_anew(
    common: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Though another run had the same model a moment ago."""
    (tiny,) = [Path(word.partition("=")[2]) for word in common if word.startswith("checkpoint=")]
    copied = tmp_path / "copied"
    shutil.copytree(tiny, copied)
    own = [word for word in common if not word.startswith("checkpoint=")] + [f"checkpoint={copied}"]
    one = Worker(Queue())
    queued(capsys, own, {"before": ["n=1"]})
    one.serve()
    weights = load_file(copied / checkpoints.WEIGHTS)
    save_file({name: 2 * value for name, value in weights.items()}, copied / checkpoints.WEIGHTS)
    after = {"after": ALIKE["c"]}
    queued(capsys, own, after)
    one.serve()
    digests = {Run(runs_folder() / name).provenance["checkpoint"]["sha256"] for name in ("before", "after")}
    assert len(digests) == 2
    alone(capsys, own, after, tmp_path)


def test_time_spent_together_is_shared(
    common: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    together = batching.together
    monkeypatch.setattr(batching, "together", lambda *values: replace(together(*values), seconds=1000.0))
    queued(capsys, common, ALIKE)
    said(capsys, "worker", "--drain")
    spent = [Run(runs_folder() / name).provenance["seconds"] // 1000 for name in ALIKE]
    assert spent == [3, 5, 2]


def test_a_run_that_is_wrong_fails_alone(common: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    queued(capsys, common, ALIKE | {"wrong": ["n=1"], "gone": ["n=1"]})
    spec = runs_folder() / "wrong" / "spec.yaml"
    spec.write_text(spec.read_text().replace("seed: 3", "seed: none"))
    (runs_folder() / "gone" / "spec.yaml").unlink()
    said(capsys, "worker", "--drain")
    found = {one.name: one.state for one in Queue().standings()}
    assert {found.pop("wrong"), found.pop("gone")} == {"failed"}
    assert set(found.values()) == {"done"}
    alone(capsys, common, ALIKE, tmp_path)


def test_one_that_is_cancelled_while_all_are_drawn_is_not_made(
    common: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    queued(capsys, common, ALIKE)
    together = batching.together

    def cancelling(*values: Any) -> batching.Drawn:
        Queue().cancel("b")
        return together(*values)

    monkeypatch.setattr(batching, "together", cancelling)
    monkeypatch.setattr("app.worker.BEAT_EVERY", 0.01)
    said(capsys, "worker", "--drain")
    assert states(capsys) == {"a": "done", "b": "cancelled", "c": "done"}
    alone(capsys, common, {name: ALIKE[name] for name in "ac"}, tmp_path)


@pytest.mark.parametrize("error", [MemoryError("too many"), RuntimeError("broke"), KeyError(0)])
def test_designs_that_cannot_be_drawn_together_are_drawn_alone(
    common: list[str],
    error: Exception,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    def never(*_: Any) -> batching.Drawn:
        raise error

    monkeypatch.setattr(batching, "together", never)
    queued(capsys, common, ALIKE)
    assert cli.run(["worker", "--drain"]) == 0
    assert f"3 runs are drawn alone, not together ({type(error).__name__}" in capsys.readouterr().err
    assert set(states(capsys).values()) == {"done"}
    alone(capsys, common, ALIKE, tmp_path)


def test_a_worker_that_is_interrupted_gives_all_back(
    common: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    queued(capsys, common, ALIKE)
    make, made = service.make, list[str]()

    def interrupted(ready: Prepared, *values: Any, **more: Any) -> Path:
        made.append("one")
        if len(made) == 2:
            raise KeyboardInterrupt
        return make(ready, *values, **more)

    monkeypatch.setattr(service, "make", interrupted)
    assert cli.run(["worker", "--drain"]) == 130
    assert states(capsys) == {"a": "done", "b": "queued", "c": "queued"}
    said(capsys, "worker", "--drain")
    alone(capsys, common, ALIKE, tmp_path)
    assert [len(Run(runs_folder() / name).finished()) for name in ALIKE] == [3, 5, 2]
