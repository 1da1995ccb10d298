"""`foreshape generate sequences=N`: the same sequences in any way of making them, and who takes none."""

from __future__ import annotations

import io
import json
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
import yaml
from Bio import SeqIO

from app import cli
from app.spec import RunSpec, SpecError, from_plain
from data.store import Run
from domains import protein
from generators import rmf

Generate = Callable[..., Path]


@pytest.fixture(scope="module")
def generate(tmp_path_factory: pytest.TempPathFactory) -> Generate:
    """Runs of backbones of 40 residues by an untrained network."""
    torch.manual_seed(1)
    weights, runs = tmp_path_factory.mktemp("weights") / "tiny", tmp_path_factory.mktemp("runs")
    rmf.build(protein.build(length=40).space, channels=16, depth=1).save(weights)

    def made(name: str, *more: str) -> Path:
        """A run's folder."""
        cell = ["domain=protein", "generator=rmf", "domain.length=40", f"checkpoint={weights}"]
        assert cli.run(["generate", *cell, "steps=1", "seed=3", f"out={runs / name}", *more]) == 0
        return runs / name

    return made


@pytest.fixture(scope="module")
def whole(generate: Generate) -> Path:
    return generate("whole", "n=3", "sequences=2")


def sequences(folder: Path) -> list[list[str]]:
    """Of each design."""
    texts = [path.read_text() for path in sorted((folder / "designs").glob("*.fasta"))]
    return [[str(record.seq) for record in SeqIO.parse(io.StringIO(text), "fasta")] for text in texts]


def test_each_design_has_its_sequences_and_the_best_is_in_its_files(whole: Path) -> None:
    domain = protein.build(length=40)
    found = sequences(whole)
    assert [len(some) for some in found] == [2, 2, 2]
    assert len({letters for some in found for letters in some}) == 6
    for i, some in enumerate(found):
        path = Run(whole).design_path(i, ".fasta")
        records = [line for line in path.read_text().splitlines() if line.startswith(">")]
        nll = [float(record.split("nll=")[1].split()[0]) for record in records]
        for suffix in domain.suffixes:
            assert domain.read(Run(whole).design_path(i, suffix)).letters == some[nll.index(min(nll))]
        notes = domain.provenance(path)
        assert notes["design"] == str(i)
        assert json.loads(notes["spec"]) == yaml.safe_load((whole / "spec.yaml").read_text())
    assert json.loads(notes["spec"])["sequences"] == 2
    rows = {row["design"]: int(row["violations"]) for row in Run(whole).rows()}
    for i, messages in Run(whole).violations().items():
        assert rows[str(i)] == len(messages)


def test_batches_and_growth_change_no_sequence(generate: Generate, whole: Path) -> None:
    grown = generate("grown", "n=1", "sequences=2", "batch=1")
    assert sequences(grown) == sequences(whole)[:1]
    assert sequences(generate("grown", "n=3", "sequences=2", "batch=1")) == sequences(whole)


def test_the_first_sequences_do_not_depend_on_how_many_there_are(generate: Generate, whole: Path) -> None:
    assert [some[:1] for some in sequences(whole)] == sequences(generate("one", "n=3", "sequences=1"))


def test_backbones_do_not_depend_on_sequences(generate: Generate, whole: Path) -> None:
    without, domain = generate("without", "n=3"), protein.build(length=40)
    for i in range(3):
        plain, lettered = (domain.read(Run(run).design_path(i, ".cif")) for run in (without, whole))
        assert (plain.backbone == lettered.backbone).all()
        assert set(plain.letters) == {"X"}
    assert not sequences(without)
    assert "sequences" not in yaml.safe_load((without / "spec.yaml").read_text())
    files = sorted((without / "designs").iterdir())
    assert generate("without", "n=3", "sequences=0") == without
    assert sorted((without / "designs").iterdir()) == files


def test_a_missing_file_of_sequences_is_made_again(generate: Generate) -> None:
    folder = generate("mended", "n=2", "sequences=1")
    before = sequences(folder)
    Run(folder).design_path(1, ".fasta").unlink()
    generate("mended", "n=2", "sequences=1")
    assert sequences(folder) == before


def test_a_file_of_sequences_gives_back_the_run(whole: Path, capsys: pytest.CaptureFixture[str]) -> None:
    capsys.readouterr()
    assert cli.run(["restore", str(Run(whole).design_path(1, ".fasta"))]) == 0
    assert yaml.safe_load(capsys.readouterr().out) == yaml.safe_load((whole / "spec.yaml").read_text())


def test_a_run_has_one_number_of_sequences(whole: Path, capsys: pytest.CaptureFixture[str]) -> None:
    spec = whole / "spec.yaml"
    assert cli.run(["generate", f"spec={spec}", "sequences=3", f"out={whole}"]) == 2
    assert "sequences=2, not 3" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["domain=dna", "generator=rmf", "sequences=2"], "dna of 256 x (base: Categorical(4)) takes none"),
        (["domain=protein", "generator=ideas", "sequences=2"], "residue: Categorical(20)) takes none"),
        (["domain=protein", "generator=rmf", "sequences=257"], "sequences is 257"),
        (["domain=protein", "generator=rmf", "sequences=-1"], "sequences is -1"),
        (["domain=protein", "generator=rmf", "sequences=2.5"], "sequences is 2.5"),
    ],
)
def test_refusals(words: list[str], told: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.run(["generate", *words, f"out={tmp_path / 'run'}"]) == 2
    error = capsys.readouterr().err
    assert told in error
    assert error.count("\n") == 1
    assert not (tmp_path / "run").exists()


def test_specs_from_before_there_were_sequences_are_read(whole: Path) -> None:
    plain = yaml.safe_load((whole / "spec.yaml").read_text())
    plain.pop("sequences")
    assert from_plain(RunSpec, plain).sequences == 0
    assert from_plain(RunSpec, plain).identity() == plain
    with pytest.raises(SpecError, match="n is None"):
        from_plain(RunSpec, {key: value for key, value in plain.items() if key != "n"})
