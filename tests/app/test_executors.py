"""Executors: each starts workers on the queue, which make what one process makes; what is missing or wrong is told."""

import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest

from app import cli, jobs
from app.executors import base, slurm
from data.errors import InputError
from data.store import Run
from tests.postgres import server


@pytest.fixture
def words(arguments: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Of a small run of several shards in a home of its own."""
    monkeypatch.setenv("FORESHAPE_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    more = [word for word in arguments if not word.startswith(("n=", "out="))]
    return [*more, "n=40", "batch=8", f"out={tmp_path / 'home' / 'runs' / 'one'}"]


def submitted(words: list[str], capsys: pytest.CaptureFixture[str], *executor: str) -> Run:
    assert cli.run(["submit", *words, *executor]) == 0, capsys.readouterr().err
    caught = capsys.readouterr()
    assert "worker: " in caught.err
    return Run(Path(caught.out.splitlines()[-1]))


def waited(run: Run) -> None:
    end = time.monotonic() + 180
    while (status := jobs.status(run)).state != jobs.DONE:
        assert time.monotonic() < end, status
        time.sleep(0.1)


def check_same_as_inline(run: Run, words: list[str], tmp_path: Path) -> None:
    assert cli.run(["generate", *words[:-1], f"out={tmp_path / 'inline'}"]) == 0
    assert (run.path / "scores.csv").read_bytes() == (tmp_path / "inline" / "scores.csv").read_bytes()


def test_local_workers_outlive_the_command(words: list[str], tmp_path: Path, capsys) -> None:
    run = submitted(words, capsys, "executor=local", "executor.workers=2")
    waited(run)
    check_same_as_inline(run, words, tmp_path)


@pytest.mark.filterwarnings("ignore:subprocess:ResourceWarning", "ignore::pytest.PytestUnraisableExceptionWarning")
def test_jobs_of_submitit_make_a_run(words: list[str], tmp_path: Path, capsys) -> None:
    """On its local cluster, which does with a job what Slurm does."""
    pytest.importorskip("submitit")
    run = submitted(words, capsys, "executor=slurm", "executor.cluster=local")
    waited(run)
    check_same_as_inline(run, words, tmp_path)
    assert (tmp_path / "home" / "slurm").stat().st_mode & 0o77 == 0


def test_a_job_whose_time_is_up_goes_on_as_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("submitit")
    worker = slurm.Worker({"FORESHAPE_HOME": "/somewhere"})
    again = worker.checkpoint()
    assert again.function.variables == worker.variables
    monkeypatch.setattr(slurm, "work", lambda: 3)
    monkeypatch.setenv("FORESHAPE_HOME", "/elsewhere")
    with pytest.raises(SystemExit, match="3"):
        again.function()


def test_actors_of_a_local_ray_make_a_run(words: list[str], tmp_path: Path, capsys) -> None:
    pytest.importorskip("ray")
    run = submitted(words, capsys, "executor=ray", "executor.workers=2")
    assert jobs.status(run).state == jobs.DONE
    check_same_as_inline(run, words, tmp_path)


def test_actors_of_a_ray_cluster_outlive_the_command(words: list[str], tmp_path: Path, capsys, monkeypatch) -> None:
    pytest.importorskip("ray")
    ray = shutil.which("ray") or str(Path(sys.executable).with_name("ray"))
    start = [ray, "start", "--head", "--num-cpus=2", "--port=6390", "--disable-usage-stats"]
    with server() as store:
        monkeypatch.setenv("FORESHAPE_STORE", store)
        subprocess.run([*start, "--include-dashboard=false"], check=True, stdout=subprocess.DEVNULL)
        try:
            run = submitted(words, capsys, "executor=ray", "executor.address='127.0.0.1:6390'", "executor.workers=2")
            waited(run)
        finally:
            subprocess.run([ray, "stop"], check=True, stdout=subprocess.DEVNULL)
        check_same_as_inline(run, words, tmp_path)


@pytest.mark.parametrize("package", ["ray", "submitit"])
def test_a_missing_package_is_one_line(words: list[str], package: str, tmp_path: Path, monkeypatch, capsys) -> None:
    monkeypatch.setitem(sys.modules, package, None)
    name = {"ray": "ray", "submitit": "slurm"}[package]
    assert cli.run(["submit", *words, f"executor={name}"]) == 2
    caught = capsys.readouterr()
    assert (caught.out, caught.err.count("\n")) == ("", 1)
    assert f"foreshape[{name}]" in caught.err
    assert not (tmp_path / "home").exists()


@pytest.mark.parametrize(
    ("executor", "said"),
    [
        (["executor=moon"], "moon"),
        (["executor.workers=2"], "no executor"),
        (["executor=local", "executor.workers=0"], "workers is 0"),
        (["executor=local", "executor.workers=many"], "many"),
        (["executor=local", "executor.minutes=2"], "minutes"),
        (["executor=slurm"], "FORESHAPE_STORE"),
        (["executor=slurm", "executor.cluster=moon"], "moon"),
        (["executor=slurm", "executor.parameters=3"], "parameters"),
        (["executor=slurm", "executor.cluster=local", "executor.minutes=0"], "minutes is 0"),
        (["executor=slurm", "executor.cluster=local", "executor.gpus=-1"], "gpus is -1"),
    ],
)
def test_wrong_executors_are_one_line(words: list[str], executor: list[str], said: str, tmp_path: Path, capsys) -> None:
    assert cli.run(["submit", *words, *executor]) == 2
    caught = capsys.readouterr()
    assert (caught.out, caught.err.count("\n")) == ("", 1)
    assert said in caught.err
    assert not (tmp_path / "home").exists()


def test_a_machine_without_slurm_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("submitit")
    monkeypatch.setenv("FORESHAPE_STORE", "postgresql://127.0.0.1/x")
    monkeypatch.setenv("PATH", "")
    with pytest.raises(InputError, match="srun"):
        slurm.build()


def test_only_submit_starts_workers(words: list[str], capsys) -> None:
    assert cli.run(["generate", *words, "executor=local"]) == 2
    assert "executor" in capsys.readouterr().err


def test_workers_find_the_home_from_any_folder(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("FORESHAPE_HOME", "here")
    monkeypatch.delenv("FORESHAPE_STORE", raising=False)
    assert base.environment()["FORESHAPE_HOME"] == str(tmp_path / "here")
    assert base.environment()["FORESHAPE_STORE"].endswith(str(tmp_path / "here" / "foreshape.db"))
