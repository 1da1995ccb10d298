"""`condition:` and `cfg` in a spec: learned by `train`, asked for in `generate`, refused in one line."""

from __future__ import annotations

import csv
from pathlib import Path

import pytest
import torch
import yaml

from app import cells, cli
from domains import layout
from generators import hybrid

SIZES = ["generator.channels=16", "generator.depth=1", "generator.heads=2", "generator.bins=9"]


@pytest.fixture(scope="module")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A network that has learned conditions of small windows, in four steps."""
    folder = tmp_path_factory.mktemp("checkpoints") / "tiny"
    before = torch.get_num_threads()
    made = cli.run(
        ["train", "domain=layout", "generator=hybrid", "domain.length=12", *SIZES, "generator.conditioned=true",
         "generator.recipe.steps=4", "batch=4", "threads=1", f"out={folder}"]
    )  # fmt: skip
    torch.set_num_threads(before)
    assert made == 0
    return folder


def asked(checkpoint: Path, out: Path, *more: str) -> list[str]:
    fixed = ["domain=layout", "generator=hybrid", "domain.length=12", "n=4", "steps=1", "batch=4", "repair=false"]
    return ["generate", *fixed, f"checkpoint={checkpoint}", f"out={out}", *more]


def test_both_technologies_are_learned_and_the_domains_own_is_drawn(tiny: Path) -> None:
    tables = hybrid.load(
        tiny, torch.device("cpu")
    ).model.condition_input.tables  # density, function, layers, technology
    assert tables[0].any()
    assert tables[3][2].any()
    assert not tables[3][0].any()  # no clips of gf180mcu
    for name in ("sky130", "ihp_sg13g2"):
        built = layout.build(name, 12)
        generator = cells.ready(cells.Choice("hybrid", {}), built, tiny, 0, torch.device("cpu"))
        assert torch.equal(generator._asked.codes.nan_to_num(-1), built.facts([layout.Cell(name, 2000, 2000, ())])
                           .index_fill(1, torch.tensor([0]), -1).nan_to_num(-1))  # fmt: skip


def test_a_run_with_conditions_has_only_the_layers_asked_for(tiny: Path, tmp_path: Path) -> None:
    words = ["condition.density=0.3", "condition.layers=[poly,li_or_met1]", "condition.function=nand2", "cfg=1.5"]
    assert cli.run(asked(tiny, tmp_path / "run", *words)) == 0
    spec = yaml.safe_load((tmp_path / "run" / "spec.yaml").read_text())
    assert spec["condition"] == {"density": 0.3, "layers": ["poly", "li_or_met1"], "function": "nand2"}
    assert spec["cfg"] == 1.5
    domain = layout.build("sky130", 12)
    designs = [domain.read(path) for path in sorted((tmp_path / "run" / "designs").glob("*.gds"))]
    assert {shape.layer for design in designs for shape in design.shapes} <= {1, 3}
    assert len(designs) == 4
    # the same spec, from its file, is the same run
    before = (tmp_path / "run" / "scores.csv").read_text()
    assert cli.run(["generate", f"spec={tmp_path / 'run' / 'spec.yaml'}", f"out={tmp_path / 'again'}"]) == 0
    rows = [list(csv.DictReader(text.splitlines())) for text in (before, (tmp_path / "again/scores.csv").read_text())]
    assert rows[0] == rows[1]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["condition.density=2"], "condition.density is 2; it must be a number from 0 to 0.6"),
        (["condition.colour=red"], "no condition 'colour'; there are density, function, layers, technology"),
        (["condition.layers=met5"], "condition.layers is 'met5'; it must be a list of some of diff, poly, contact"),
        (["condition.function=perpetuum"], "condition.function is 'perpetuum'; it must be one of a2111o"),
        (["condition.technology=ihp_sg13g2"], "all designs of this domain have 'sky130'; give domain.technology"),
        (["condition=3"], "condition is 3; it must be a table"),
        (["condition.density=.3", "cfg=-1"], "cfg is -1; it must be from 0 to 10"),
        (["cfg=high"], "spec.cfg is 'high'"),
    ],
)
def test_what_cannot_be_asked_is_one_line(
    tiny: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], words: list[str], said: str
) -> None:
    assert cli.run(asked(tiny, tmp_path / "run", *words)) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert said in line
    assert not (tmp_path / "run").exists()


def test_the_domains_own_technology_may_be_named(tiny: Path, tmp_path: Path) -> None:
    assert cli.run([*asked(tiny, tmp_path / "run", "condition.technology=sky130"), "n=1"]) == 0


def test_a_generator_without_conditions_refuses_them(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.run(["check", "domain=dna", "generator=rmf", "condition.density=.3"]) == 2
    assert (
        "condition.density: this generator learns no conditions; leave it out, or use hybrid" in capsys.readouterr().err
    )
