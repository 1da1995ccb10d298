"""`lock:` in a spec: what is held is in the files, the run is the same run without one, and refusals are one line."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest
import torch
import yaml
from Bio import SeqIO
from Bio.SVDSuperimposer import SVDSuperimposer

from app import cli
from app.composition import composed
from app.spec import RunSpec, from_plain
from domains import protein
from generators import rmf


@pytest.fixture(scope="session")
def tiny_frames(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An untrained checkpoint of chains of 30 to 40 residues."""
    torch.manual_seed(1)
    generator = rmf.build(protein.build("frames", 40).space, channels=16, depth=2, kernel=3)
    generator.flow_map.register_to_config(lengths=[0] * 29 + [1] * 11)
    folder = tmp_path_factory.mktemp("checkpoints") / "tiny_frames"
    generator.save(folder)
    return folder


@pytest.fixture
def chain(tmp_path: Path) -> Path:
    domain = protein.build()
    domain.write(domain.corpus("val")[0], tmp_path / "a motif, really.pdb", {})
    return tmp_path / "a motif, really.pdb"


def proteins(checkpoint: Path, out: Path, *more: str) -> list[str]:
    fixed = ["domain=protein", "domain.length=40", "n=3", "steps=2", "seed=3"]
    return [*fixed, f"checkpoint={checkpoint}", f"out={out}", *more]


def letters(folder: Path) -> list[str]:
    return [str(SeqIO.read(path, "fasta").seq) for path in sorted((folder / "designs").glob("*.fasta"))]


def locked(chain: Path, residues: str = "A5-A14/A20-A25", at: str = "[3,30]") -> list[str]:
    return [f"lock.file='{chain}'", f"lock.residues={residues}", f"lock.at={at}"]


@pytest.mark.parametrize("at", ["61", "[61]", "[-68]"])
def test_bases_are_held(arguments: list[str], tmp_path: Path, at: str) -> None:
    assert cli.run(["generate", *arguments, "lock.text=TATAAA", f"lock.at={at}"]) == 0
    found = letters(tmp_path / "run")
    assert [sequence[60:66] for sequence in found] == ["TATAAA"] * 5
    assert len(set(found)) == 5


@pytest.mark.parametrize("guidance", ["free", "lookahead", "best_of_n"])
def test_bases_are_held_in_any_batch_and_guidance(arguments: list[str], tmp_path: Path, guidance: str) -> None:
    found = []
    for batch in (2, 64):
        rest = [x for x in arguments if not x.startswith("out=")]
        more = [f"guidance={guidance}", f"batch={batch}", "lock.text=[TATAAA,CCC]", f"out={tmp_path / str(batch)}"]
        assert cli.run(["generate", *rest, *more]) == 0
        found.append(letters(tmp_path / str(batch)))
    assert found[0] == found[1]
    assert all("TATAAA" in sequence for sequence in found[0])


@pytest.mark.parametrize("suffix", [".pdb", ".cif"])
def test_a_motif_is_in_the_files(tiny_frames: Path, chain: Path, tmp_path: Path, suffix: str) -> None:
    domain = protein.build()
    assert cli.run(["generate", *proteins(tiny_frames, tmp_path / "run", *locked(chain))]) == 0
    sites, residues = [*range(2, 12), *range(29, 35)], [*range(4, 14), *range(19, 25)]
    given = domain.read(chain).atoms()[residues, 1].astype(np.float64)
    files = sorted((tmp_path / "run" / "designs").glob(f"*{suffix}"))
    assert len(files) == 3
    for path in files:
        design = domain.read(path)
        assert len(design) >= 35
        fit = SVDSuperimposer()
        fit.set(given, design.atoms()[sites, 1].astype(np.float64))
        fit.run()
        assert fit.get_rms() < 1.5e-3  # coordinates in files have three digits


def test_a_motif_is_held_in_any_batch(tiny_frames: Path, chain: Path, tmp_path: Path) -> None:
    found = []
    for batch in (2, 64):
        out = tmp_path / str(batch)
        assert cli.run(["generate", *proteins(tiny_frames, out, *locked(chain), f"batch={batch}")]) == 0
        found.append([protein.build().read(path) for path in sorted((out / "designs").glob("*.cif"))])
    assert found[0] == found[1]


def test_evolution_holds_bases(tmp_path: Path) -> None:
    evolution = ["domain=dna", "generator=ideas", "generator.budget=40", "generator.start=8", "steps=2", "n=5"]
    asked = ["generate", *evolution, "rewards.gc_content.target=0.9", f"out={tmp_path / 'run'}", "lock.text=TATAAA"]
    assert cli.run([*asked, "lock.at=61"]) == 0
    found = letters(tmp_path / "run")
    assert [sequence[60:66] for sequence in found] == ["TATAAA"] * 5
    assert len(set(found)) == 5


def test_the_reward_of_a_locked_motif_is_one(tiny_frames: Path, chain: Path, tmp_path: Path) -> None:
    reward = [x.replace("lock.", "rewards.motif_rmsd.") for x in locked(chain)]
    assert cli.run(["generate", *proteins(tiny_frames, tmp_path / "run", *locked(chain), *reward)]) == 0
    table = (tmp_path / "run" / "scores.csv").read_text().splitlines()
    column = table[0].split(",").index("motif_rmsd.rmsd")
    assert all(float(row.split(",")[column]) < 2e-3 for row in table[1:])


def test_the_lock_is_in_the_spec_and_in_every_file(arguments: list[str], tmp_path: Path, capsys) -> None:
    assert cli.run(["generate", *arguments, "lock.text=TATAAA", "lock.at=61"]) == 0
    spec = yaml.safe_load((tmp_path / "run" / "spec.yaml").read_text())
    assert spec["lock"] == {"text": "TATAAA", "at": 61}
    capsys.readouterr()
    assert cli.run(["restore", str(tmp_path / "run" / "designs" / "000001.gb")]) == 0
    assert yaml.safe_load(capsys.readouterr().out) == spec
    assert cli.run(["generate", *arguments, "lock.text=TATAAA", "lock.at=62"]) == 2
    assert "lock" in capsys.readouterr().err


@pytest.mark.parametrize("more", [[], ["lock={}"], ["lock=null"]])
def test_without_a_lock_the_spec_is_as_ever(arguments: list[str], more: list[str]) -> None:
    identity = from_plain(RunSpec, composed("generate", [*arguments, *more])).identity()
    assert "lock" not in identity
    assert from_plain(RunSpec, identity).lock is None


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["domain=svg", "generator=hybrid", "lock.text=A"], "svg of .* has nothing that can be locked"),
        (["domain=dna", "lock.file=x"], "lock has no parameter 'file'; it has text, at"),
        (["domain=dna", "lock.text=TATAWAAR"], "locked bases are A, C, G, T"),
        (["domain=dna", "lock.at=3"], "text=''; locked bases are"),
        (["domain=dna", "lock.text=TATAAA", "lock.at=[1,9]"], "for 1 segments"),
        (["domain=dna", "lock.text=TATAAA", "lock.at=x"], "lock.at is 'x'; it must be a list"),
        (["domain=dna", "lock.text=5"], "lock.text is 5; it must be text"),
        (["domain=dna", "lock=5"], "lock is 5; it must be a table"),
        (["domain=protein", "lock.at=[3]"], "give both, as motif.pdb"),
        (["domain=protein", "lock.file=none.pdb", "lock.residues=A1-A9"], "none.pdb cannot be read"),
    ],
)
def test_what_cannot_be_locked_is_one_line(arguments: list[str], message: str, capsys: pytest.CaptureFixture) -> None:
    assert cli.run(["check", *arguments]) == 2
    error = capsys.readouterr().err.strip()
    assert "\n" not in error
    assert re.search(message, error), error


def test_a_site_beyond_every_design_is_refused(tiny_frames: Path, chain: Path, tmp_path: Path, capsys) -> None:
    assert cli.run(["check", *proteins(tiny_frames, tmp_path / "run", *locked(chain, "A5-A14", "[31]"))]) == 0
    assert cli.run(["check", *proteins(tiny_frames, tmp_path / "run", *locked(chain, "A5-A14", "[32]"))]) == 2
    assert "must be from 1 to 31" in capsys.readouterr().err
