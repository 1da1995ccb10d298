"""`foreshape generate`: the run folder, the same designs in any way of making them, and going on."""

import csv
import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import yaml
from Bio import SeqIO
from safetensors.torch import load_file, save_file

from app import cli
from app.composition import composed
from domains import dna


def generate(arguments: list[str]) -> Path:
    assert cli.run(["generate", *arguments]) == 0
    return Path(next(a for a in arguments if a.startswith("out=")).removeprefix("out="))


def sequences(folder: Path) -> list[str]:
    return [str(SeqIO.read(path, "fasta").seq) for path in sorted((folder / "designs").glob("*.fasta"))]


def table(folder: Path) -> list[dict[str, str]]:
    return list(csv.DictReader((folder / "scores.csv").read_text().splitlines()))


def into(arguments: list[str], folder: Path, *more: str) -> list[str]:
    return [a for a in arguments if not a.startswith("out=")] + [f"out={folder}", *more]


def test_the_folder_is_whole(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    folder = generate(arguments)
    assert capsys.readouterr().out.splitlines()[-1] == str(folder)
    names = {path.name for path in folder.iterdir()}
    tables = {"spec.yaml", "provenance.json", "scores.csv", "violations.jsonl", "events.jsonl", "report.html"}
    assert names == tables | {"designs", "thumbnails"}
    assert {path.suffix for path in (folder / "designs").iterdir()} == {".fasta", ".gb"}
    rows = table(folder)
    assert [int(row["design"]) for row in rows] == list(range(5))
    for row, sequence in zip(rows, sequences(folder), strict=True):
        gc = sum(letter in "GC" for letter in sequence) / len(sequence)
        assert float(row["gc_content.gc"]) == pytest.approx(gc, abs=1e-5)
        assert float(row["total"]) == pytest.approx(float(row["gc_content"]), abs=1e-5)
        assert int(row["violations"]) == len(dna.build(128).violations(sequence))
    provenance = json.loads((folder / "provenance.json").read_text())
    assert len(provenance["checkpoint"]["sha256"]) == 64
    events = [json.loads(line)["event"] for line in (folder / "events.jsonl").read_text().splitlines()]
    assert [event for event in events if event != "progress"] == ["started", "designs", "finished"]


def test_files_carry_what_makes_them_again(arguments: list[str]) -> None:
    folder = generate(arguments)
    for suffix in (".fasta", ".gb"):
        notes = dna.files.provenance(folder / "designs" / f"000003{suffix}")
        assert notes["design"] == "3"
        assert json.loads(notes["spec"]) == yaml.safe_load((folder / "spec.yaml").read_text())


@pytest.mark.parametrize("suffix", [".fasta", ".gb"])
def test_a_file_gives_back_the_run_that_made_it(arguments: list[str], tmp_path: Path, capsys, suffix: str) -> None:
    folder = generate([*arguments, "rewards.motif.name=TATAWAAR", "rewards.motif.weight=0.5"])
    capsys.readouterr()
    assert cli.run(["restore", str(folder / "designs" / f"000001{suffix}")]) == 0
    spec = tmp_path / "again.yaml"
    spec.write_text(capsys.readouterr().out)
    assert yaml.safe_load(spec.read_text()) == yaml.safe_load((folder / "spec.yaml").read_text())
    again = generate([f"spec={spec}", "n=6", f"out={tmp_path / 'again'}"])
    assert sequences(again)[:5] == sequences(folder)
    assert len(sequences(again)) == 6
    assert yaml.safe_load((again / "spec.yaml").read_text())["rewards"]["motif"]["weight"] == 0.5


@pytest.mark.parametrize("batch", [1, 2, 64])
@pytest.mark.parametrize("guidance", ["free", "lookahead"])
def test_batch_size_changes_no_design(arguments: list[str], tmp_path: Path, batch: int, guidance: str) -> None:
    whole = generate(into(arguments, tmp_path / "a", f"guidance={guidance}"))
    pieces = generate(into(arguments, tmp_path / "b", f"guidance={guidance}", f"batch={batch}"))
    assert sequences(whole) == sequences(pieces)


def test_a_run_goes_on_where_it_stopped(arguments: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Interrupted after two designs, then grown: the same designs, and those that were there are not made again."""
    whole = sequences(generate(into(arguments, tmp_path / "whole", "n=7")))
    write = dna.Dna.write

    def interrupt(self: dna.Dna, design: str, path: Path, provenance: dict[str, str]) -> None:
        if path.name.startswith("000002"):
            raise KeyboardInterrupt
        write(self, design, path, provenance)

    monkeypatch.setattr(dna.Dna, "write", interrupt)
    assert cli.run(["generate", *arguments]) == 130
    folder = tmp_path / "run"
    assert sequences(folder) == whole[:2]
    assert not (folder / "report.html").exists()
    monkeypatch.setattr(dna.Dna, "write", write)
    before = {path: path.stat().st_mtime_ns for path in (folder / "designs").iterdir()}
    generate(into(arguments, folder, "n=7"))
    assert sequences(folder) == whole
    assert all(path.stat().st_mtime_ns == time for path, time in before.items())
    assert len(table(folder)) == 7


@pytest.mark.parametrize("name", ["with space", "a=b", "it's", "a,b", "(1)", "back\\slash", "ünï"])
def test_any_folder_name_will_do(arguments: list[str], tmp_path: Path, name: str) -> None:
    assert len(sequences(generate(into(arguments, tmp_path / name)))) == 5


def test_seeds_differ(arguments: list[str], tmp_path: Path) -> None:
    first = sequences(generate(into(arguments, tmp_path / "a")))
    second = sequences(generate(into(arguments, tmp_path / "b", "seed=4")))
    assert not set(first) & set(second)


def test_without_out_a_run_is_made_in_the_home(
    arguments: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("FORESHAPE_HOME", str(tmp_path / "home"))
    assert cli.run(["generate", *(a for a in arguments if not a.startswith("out="))]) == 0
    folder = Path(capsys.readouterr().out.splitlines()[-1])
    assert folder.parent == tmp_path / "home" / "runs"
    assert len(sequences(folder)) == 5


def test_a_missing_file_is_made_again(arguments: list[str]) -> None:
    folder = generate(arguments)
    before = sequences(folder)
    (folder / "designs" / "000001.fasta").unlink()
    (folder / "designs" / "000003.gb").unlink()
    generate(arguments)
    assert sequences(folder) == before
    assert len(table(folder)) == 5


def test_a_run_is_of_one_checkpoint(arguments: list[str], tiny: Path, tmp_path: Path, capsys) -> None:
    own = tmp_path / "own"
    shutil.copytree(tiny, own)
    mine = [a for a in arguments if not a.startswith("checkpoint=")] + [f"checkpoint={own}"]
    generate(mine)
    weights = load_file(own / "diffusion_pytorch_model.safetensors")
    save_file({name: value + 0.01 for name, value in weights.items()}, own / "diffusion_pytorch_model.safetensors")
    assert cli.run(["generate", *mine, "n=9"]) == 2
    assert "weights=" in capsys.readouterr().err


@pytest.mark.parametrize("change", ["guidance=lookahead guidance.strength=2.0", "~rewards.gc_content", "steps=3"])
def test_an_override_means_the_same_on_presets_and_on_a_spec_file(
    arguments: list[str], tmp_path: Path, change: str
) -> None:
    (tmp_path / "spec.yaml").write_text(yaml.safe_dump(composed("generate", arguments)))
    on_presets = composed("generate", [*arguments, *change.split()])
    on_a_file = composed("generate", [f"spec={tmp_path / 'spec.yaml'}", *change.split()])
    assert on_a_file == on_presets


def test_output_that_nobody_reads_is_no_failure(arguments: list[str]) -> None:
    command = [sys.executable, "-c", "from app.cli import main; main()", "generate", *arguments]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        process.stdout.close()
        assert process.wait() == 0


def test_lookahead_raises_what_it_is_asked_to_raise(arguments: list[str], tmp_path: Path) -> None:
    means = {}
    for guidance in ("free", "lookahead"):
        more = (f"guidance={guidance}", "n=16", "steps=4", "rewards.gc_content.target=0.9")
        folder = generate(into(arguments, tmp_path / guidance, *more))
        rows = table(folder)
        means[guidance] = sum(float(row["total"]) for row in rows) / len(rows)
    assert means["lookahead"] > means["free"] + 0.02


def test_the_console_command_is_installed(arguments: list[str]) -> None:
    command = Path(sys.executable).parent / "foreshape"
    found = subprocess.run([command, "check", *arguments], capture_output=True, text=True, check=False)
    assert (found.returncode, found.stderr) == (0, "")
    assert "5 dna designs" in found.stdout
    assert not Path(arguments[-1].removeprefix("out=")).exists()
