"""The command line's manners."""

import subprocess
import sys

import pytest

from app import cli


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


@pytest.mark.parametrize(("tty", "lines"), [(False, 1), (True, 1)])
def test_progress_is_on_stderr(tty: bool, lines: int, monkeypatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(sys.stderr, "isatty", lambda: tty, raising=False)
    for done in (1, 2, 3):
        cli.on_terminal("work", done, 3)
    caught = capsys.readouterr()
    assert caught.out == ""
    assert caught.err.count("\n") == lines
    assert "3/3" in caught.err
