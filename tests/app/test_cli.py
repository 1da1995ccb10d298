"""The command line's manners."""

import subprocess
import sys

import pytest

from app import cli
from app.terminal import ProgressLine


@pytest.mark.parametrize("arguments", [[], ["help"], ["--help"]])
def test_help_names_every_verb(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.run(arguments) == 0
    out = capsys.readouterr().out
    assert all(f"  {verb} " in out for verb in cli.VERBS)


def test_bad_input_is_answered_without_loading_torch() -> None:
    code = "import sys; from app import cli; cli.run(['generate', 'n=0']); print('torch' in sys.modules)"
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == "False"
    assert "n is 0" in found.stderr


def test_what_breaks_is_exit_code_1(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    def break_down(rest: list[str]) -> int:
        raise OSError(28, "No space left on device")

    monkeypatch.setitem(cli.VERBS, "generate", break_down)
    assert cli.run(["generate"]) == 1
    assert "No space left on device" in capsys.readouterr().err.splitlines()[-1]


@pytest.fixture
def line(monkeypatch: pytest.MonkeyPatch) -> tuple[ProgressLine, list[float]]:
    """Progress, and the time that it reads."""
    now = [0.0]
    return ProgressLine(clock=lambda: now[0]), now


def test_on_a_terminal_progress_is_one_line_with_rate_and_time_to_go(line, monkeypatch, capsys) -> None:
    progress, now = line
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True, raising=False)
    for done in range(0, 101, 10):
        progress("work", done, 100)
        now[0] += 5.0
    caught = capsys.readouterr()
    assert caught.out == ""
    told = caught.err.split("\r\033[K")[1:]
    assert len(told) == 11
    assert [part.count("\n") for part in told] == [0] * 10 + [1]
    assert told[4] == "work: [########------------] 40/100, 2/s, 30 s left"
    assert told[10] == "work: [####################] 100/100, 2/s\n"


def test_elsewhere_progress_is_a_line_now_and_then(line, capsys) -> None:
    progress, now = line
    for done in range(1001):
        progress("work", done, 1000)
        now[0] += 0.1
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) == 7  # 100 s, one in 15, and the end
    assert "\r" not in "".join(lines)
    assert lines[-1].startswith("work: [####################] 1000/1000")


def test_many_tellings_are_few_lines(line, monkeypatch, capsys) -> None:
    progress, now = line
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True, raising=False)
    for done in range(1001):
        progress("work", done, 1000)
        now[0] += 0.001
    assert 10 <= capsys.readouterr().err.count("\r") <= 12


def test_a_new_part_and_a_new_run_have_times_of_their_own(line, capsys) -> None:
    progress, now = line
    progress("slow", 0, 2)
    now[0] = 100.0
    progress("slow", 2, 2)
    for what in ("fast", "fast"):  # the second time for another run
        progress(what, 0, 10)
        now[0] += 1.0
        progress(what, 10, 10)
    assert [line.split(", ")[-1] for line in capsys.readouterr().err.splitlines()] == ["0.02/s", "10/s", "10/s"]


def test_what_went_on_before_is_not_in_the_rate(line, capsys) -> None:
    progress, now = line
    progress("resumed", 90, 100)
    now[0] = 20.0
    progress("resumed", 95, 100)
    assert capsys.readouterr().err.endswith("95/100, 0.25/s, 20 s left\n")


def test_nothing_to_do_is_done(line, capsys) -> None:
    progress, _ = line
    progress("nothing", 0, 0)
    assert "0/0" in capsys.readouterr().err
