"""Several runs by one command: every combination of values, each a run that goes on, with names that stay."""

from pathlib import Path

import pytest
import yaml

from app import cli
from app.composition import combinations, composed
from data.store import Run


@pytest.fixture
def words(arguments: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Of a small run, without what varies, in a home of its own."""
    monkeypatch.setenv("FORESHAPE_HOME", str(tmp_path / "home"))
    return [word for word in arguments if not word.startswith(("seed=", "steps=", "out=", "n="))] + ["n=2"]


def folders(capsys: pytest.CaptureFixture[str], count: int, verb: str, *words: str) -> list[Path]:
    assert cli.run([verb, "-m", *words]) == 0, capsys.readouterr().err
    return [Path(line) for line in capsys.readouterr().out.splitlines()[-count:]]


def test_every_combination_is_the_run_that_one_command_makes(words: list[str], tmp_path: Path, capsys) -> None:
    found = folders(capsys, 4, "generate", *words, "seed=1,2", "steps=1,2", f"out={tmp_path / 'all'}")
    assert [path.name for path in found] == [f"seed={a},steps={b}" for a in (1, 2) for b in (1, 2)]
    for path in found:
        alone = tmp_path / "alone" / path.name
        assert cli.run(["generate", *words, *path.name.split(","), f"out={alone}"]) == 0
        assert (alone / "scores.csv").read_bytes() == (path / "scores.csv").read_bytes()
        assert yaml.safe_load((alone / "spec.yaml").read_text()) == yaml.safe_load((path / "spec.yaml").read_text())


@pytest.mark.parametrize("verb", ["generate", "submit"])
def test_the_same_command_goes_on_and_grows(words: list[str], verb: str, capsys) -> None:
    """In the home too, where the folder of a single run is new each time."""
    before = folders(capsys, 2, verb, *words, "seed=1,2")
    again = folders(capsys, 3, verb, *words, "seed=1,2,3", "n=3")
    assert again[:2] == before
    if verb == "submit":
        assert cli.run(["worker", "--drain"]) == 0
    assert [len(Run(path).finished()) for path in again] == [3, 3, 3]


def test_what_was_interrupted_goes_on(words: list[str], tmp_path: Path, monkeypatch, capsys) -> None:
    add, room = Run.add, iter(range(3))

    def interrupted(self: Run, *values: object) -> None:
        if next(room, None) is None:
            raise KeyboardInterrupt
        add(self, *values)

    monkeypatch.setattr(Run, "add", interrupted)
    line = [*words, "seed=range(1,4)", f"out={tmp_path / 'all'}"]
    assert cli.run(["generate", "-m", *line]) == 130
    assert sum(len(Run(path).finished()) for path in (tmp_path / "all").iterdir()) == 3
    monkeypatch.setattr(Run, "add", add)
    assert [len(Run(path).finished()) for path in folders(capsys, 3, "generate", *line)] == [2, 2, 2]


def test_nothing_is_made_where_one_of_them_is_wrong(words: list[str], tmp_path: Path, capsys) -> None:
    line = [*words, "seed=1,2", "rewards.gc_content.target=0.4,7", f"out={tmp_path / 'all'}"]
    for verb in ("generate", "submit"):
        assert cli.run([verb, "-m", *line]) == 2
        assert capsys.readouterr().err.count("\n") == 1
    assert not (tmp_path / "all").exists()


@pytest.mark.parametrize(
    ("overrides", "names"),
    [
        (["seed=1,2", "guidance=free,best_of_n"], ["seed=1,guidance=free", "seed=1,guidance=best_of_n"]),
        (["seed=range(1,3)", "n=3"], ["seed=1", "seed=2"]),
        (["seed=choice(5,4)"], ["seed=5", "seed=4"]),
        (["n=3"], [""]),
    ],
)
def test_names_tell_what_varies(overrides: list[str], names: list[str]) -> None:
    assert [name for name, _ in combinations("generate", overrides)][: len(names)] == names


def test_names_are_names_of_files_and_differ() -> None:
    found = [name for name, _ in combinations("generate", ["rewards.motif.name='a/b','a:b','../../etc'," + "A" * 300])]
    assert len(set(found)) == 4
    assert all("/" not in name and len(name) < 120 for name in found)


def test_a_combination_is_composed_like_one_run() -> None:
    found = dict(combinations("generate", ["domain=dna,svg", "generator=hybrid"]))
    assert found["domain=svg"] == composed("generate", ["domain=svg", "generator=hybrid"])
    assert found["domain=dna"] == composed("generate", ["domain=dna", "generator=hybrid"])


@pytest.mark.parametrize(
    ("overrides", "said"),
    [
        (["seed=range(0,100000000)"], "at most"),
        (["seed=range(0,100)", "steps=range(1,100)"], "at most"),
        (["seed=interval(0,1)"], "no list of values"),
        (["guidance=glob(*)"], "no list of values"),
        (["seed=1,2", "seed=3"], "twice"),
        (["hydra.launcher=x,y"], "hydra"),
        (["rewards.x._target_=os.system,os.remove"], "not allowed"),
        (["seed=1,many"], "many"),
        (["domain=dna,moon"], "moon"),
    ],
)
def test_wrong_values_are_one_line(overrides: list[str], said: str, tmp_path: Path, monkeypatch, capsys) -> None:
    monkeypatch.setenv("FORESHAPE_HOME", str(tmp_path / "home"))
    assert cli.run(["generate", "-m", *overrides]) == 2
    caught = capsys.readouterr()
    assert (caught.out, caught.err.count("\n")) == ("", 1)
    assert said in caught.err
    assert not (tmp_path / "home").exists()


def test_without_m_several_values_are_refused_with_what_to_do(capsys) -> None:
    assert cli.run(["generate", "seed=1,2"]) == 2
    assert "-m" in capsys.readouterr().err


def test_a_run_does_not_hold_runs(words: list[str], tmp_path: Path, capsys) -> None:
    assert cli.run(["generate", *words, f"out={tmp_path / 'one'}"]) == 0
    assert cli.run(["generate", "-m", *words, "seed=1,2", f"out={tmp_path / 'one'}"]) == 2
    assert "is a run" in capsys.readouterr().err
