"""The command line: a verb, then Hydra overrides. Results on stdout, progress on stderr.

What loads PyTorch is imported after the arguments are found to be good, so that a slip is answered at once.
"""

from __future__ import annotations

import argparse
import importlib
import json
import os
import pkgutil
import signal
import sys
import traceback
from collections.abc import Callable, Sequence
from pathlib import Path
from types import FrameType
from typing import Any, NoReturn

import yaml

from app.composition import composed
from app.spec import DEVICES, EvaluateSpec, RunSpec, SpecError, TrainSpec, from_plain
from app.terminal import ProgressLine
from data.errors import InputError
from data.store import Cancelled, Run, home

USAGE = """foreshape VERB [key=value …]

  generate   make designs          domain=dna generator=rmf n=64 steps=4 seed=7 guidance=lookahead out=DIR
             -m seed=1,2 steps=2,4   a run of each combination
  check      the same arguments; says what would be done and what it would take, writes nothing
  train      make a checkpoint     domain=dna generator=rmf out=DIR
  evaluate   measure a generator   domain=dna generator=rmf reference=FILE.npz steps=[1,4,100] n=512
  demo       a few designs in every domain, on one page   [FOLDER]
  bench      NAME [--json] [--quick]; without a name, says which there are
  list       what there is         [--json]
  models     list | verify | record   the shipped checkpoints, and their digests
  doctor     is all well here?     [--json]
  restore    the spec inside an exported FILE; `generate spec=` takes it
  export     copy a run's designs  RUN --to DIR [--format gb|png|…]
  ui         the same in a browser [--port 8501]
  submit     queue a run for workers; the same arguments as generate. The same command again goes on with it
             [executor=local|ray|slurm executor.workers=4 …]   starts workers too
  worker     make queued designs  [RUN] [--device cpu|cuda|cuda:0] [--drain]
  runs       [list] [--json] | pause, resume, cancel, retry, first or lineage RUN | best REWARD | labelled TEXT
             label or unlabel RUN TEXT | preset RUN NAME, which `generate preset=NAME` starts from
  reindex    make the index of all runs anew from their folders
"""


def main() -> None:
    """The console command `foreshape`."""
    signal.signal(signal.SIGTERM, _interrupt)
    sys.exit(run(sys.argv[1:]))


def _interrupt(number: int, frame: FrameType | None) -> None:
    raise KeyboardInterrupt  # whoever is asked politely to end does so as by Ctrl-C


def run(arguments: Sequence[str]) -> int:
    """Do what a command line asks; returns the exit code: 0 done, 1 broken, 2 input wrong, 130 interrupted."""
    verb, rest = (arguments[0], list(arguments[1:])) if arguments else ("help", [])
    if {"help", "-h", "--help"} & {verb, *rest}:
        print(USAGE, end="")
        return 0
    try:
        if verb not in VERBS:
            raise SpecError(f"no verb {verb!r}; there are {', '.join(VERBS)}")
        return VERBS[verb](rest)
    except InputError as error:
        print(f"foreshape: {' '.join(str(error).split()):.1000}", file=sys.stderr)
        return 2
    except BrokenPipeError:  # whoever read our output has read enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except (KeyboardInterrupt, Cancelled):
        print("foreshape: interrupted; what is finished is kept, and the same command goes on", file=sys.stderr)
        return 130
    except Exception as error:
        traceback.print_exc()
        what = f"{type(error).__name__}: {error}"
        print(f"foreshape: broke with {what}; what is finished is kept, and the same command goes on", file=sys.stderr)
        return 1


def _generate(overrides: list[str]) -> int:
    from app import runs

    specs = runs.asked(overrides)
    from app import report, service

    for spec in specs if len(specs) > 1 else ():
        service.prepare(spec)  # whatever is wrong with the last is told before the first is made
    folders, progress = [], ProgressLine()
    for spec in specs:
        folders.append(service.generate(spec, progress))
        print(report.text(Run(folders[-1]).rows()))
    print(*folders, sep="\n")
    return 0


def _check(overrides: list[str]) -> int:
    spec = from_plain(RunSpec, composed("generate", overrides))
    from app import preflight, service

    ready = service.prepare(spec)
    weights = ready.checkpoint.name if ready.checkpoint else "no checkpoint"
    rewards = ", ".join(f"{name} x {entry.weight:g}" for name, entry in spec.rewards.items()) or "none"
    print(
        f"{spec.n} {spec.domain.name} designs ({ready.domain.space}) by {spec.generator.name} with {weights} "
        f"in {spec.steps} steps, guidance {spec.guidance.name}, rewards {rewards}; all is well"
    )
    print(preflight.estimate(ready, spec))
    return 0


def _train(overrides: list[str]) -> int:
    spec = from_plain(TrainSpec, composed("train", overrides))
    from app import training

    print(training.train(spec, ProgressLine()))
    return 0


def _evaluate(overrides: list[str]) -> int:
    spec = from_plain(EvaluateSpec, composed("evaluate", overrides))
    from app import evaluation

    result = evaluation.evaluate(spec, ProgressLine())
    print(evaluation.table(result), file=sys.stderr)
    print(json.dumps(result, indent=2))
    return 0


def _demo(words: list[str]) -> int:
    if len(words) > 1:
        raise SpecError(f"demo takes one folder, not {len(words)}; give one that is new or a demo's")
    from app import demo

    print(demo.make(Path(words[0]) if words else home() / "demo", ProgressLine()))
    return 0


def _bench(words: list[str]) -> int:
    names = sorted(entry.name for entry in pkgutil.iter_modules([str(Path(__file__).parent / "benchmarks")]))
    name, *flags = words or [""]
    unknown = [flag for flag in flags if flag not in ("--json", "--quick")]
    if name not in names:
        raise SpecError(f"no bench {name!r:.100}; there are {', '.join(names)}")
    if unknown:
        raise SpecError(f"no flag {unknown[0]!r:.100}; there are --json, --quick")
    from app import evaluation

    bench = importlib.import_module(f"app.benchmarks.{name}")
    result = bench.run(quick="--quick" in flags)
    as_text = getattr(bench, "table", evaluation.table)
    print(json.dumps(result, indent=2) if "--json" in flags else as_text(result))
    return 0


def _list(flags: list[str]) -> int:
    from app import inventory

    _show(inventory.contents, flags, inventory.as_text)
    return 0


def _doctor(flags: list[str]) -> int:
    from app import doctor, inventory

    found = _show(doctor.examination, flags, inventory.as_text)
    return 0 if all(entry["ok"] for entry in found["checks"]) else 1


def _restore(words: list[str]) -> int:
    if len(words) != 1:
        raise SpecError(f"restore takes one file, not {len(words)}; give one that foreshape wrote")
    from app import provenance

    print(yaml.safe_dump(provenance.restored(Path(words[0])), sort_keys=False), end="")
    return 0


def _export(words: list[str]) -> int:
    parser = _Words("export")
    parser.add_argument("run")
    parser.add_argument("--to", required=True)
    parser.add_argument("--format")
    given = parser.parse_args(words)
    if not given.to:
        raise SpecError("--to names no folder; give --to DIR")
    suffix = None if given.format is None else f".{given.format.removeprefix('.')}"
    from app import runs

    print(f"{runs.exported(Run.find(given.run), Path(given.to), suffix)} files in {given.to}")
    return 0


def _ui(words: list[str]) -> int:
    parser = _Words("ui")
    parser.add_argument("--port", type=int, default=8501)
    from app.ui import server

    return server.serve(parser.parse_args(words).port)


def _submit(overrides: list[str]) -> int:
    from app import composition, executors, runs

    wanted, others = composition.executor(overrides)
    executor, specs = executors.chosen(wanted), runs.asked(others)
    folders = runs.submitted(specs)
    for name in executor.start() if executor is not None else ():
        print(f"worker: {name}", file=sys.stderr)
    print(*folders, sep="\n")
    return 0


def _worker(words: list[str]) -> int:
    parser = _Words("worker")
    parser.add_argument("run", nargs="?")
    parser.add_argument("--device")
    parser.add_argument("--drain", action="store_true")
    given = parser.parse_args(words)
    device = _device(given.device)
    from app import worker
    from data.store.queue import Queue

    if given.run is not None:
        worker.work(Run.find(given.run).path, device)
    else:
        worker.Worker(Queue(), device).serve(drain=given.drain)
    return 0


def _device(name: str | None) -> str | None:
    """The kind of a device such as `cuda:1`; this process sees no other one of its kind."""
    kind, _, number = (name or "").partition(":")
    if number.isdecimal() and kind == "cuda":
        os.environ["CUDA_VISIBLE_DEVICES"] = number
    elif name is not None and name not in DEVICES:
        raise SpecError(f"--device is {name!r:.100}; it must be one of {', '.join(DEVICES)}, cuda:0, cuda:1 …")
    return kind or None


def _runs(words: list[str]) -> int:
    action, *rest = words or ["list"]
    from app import records, runs

    if action in ("list", "--json"):
        _show(runs.listed, rest if action == "list" else words, runs.as_text)
        return 0
    print(records.found(action, rest) if action in records.SEARCHES else runs.act(action, rest))
    return 0


def _reindex(words: list[str]) -> int:
    if words:
        raise SpecError(f"reindex takes no {words[0]!r:.100}; it reads all runs of {home()}")
    from app import records

    print(records.reindexed())
    return 0


def _models(words: list[str]) -> int:
    from app import inventory
    from data import checkpoints

    action, *flags = words or ["list"]
    if action not in ("list", "verify", "record"):
        raise SpecError(f"no action {action!r} of models; there are list, verify, record")
    if action == "record" and not flags:
        checkpoints.record()
    _show(lambda: inventory.models(verify=action == "verify"), flags, inventory.as_text)
    return 0


VERBS: dict[str, Callable[[list[str]], int]] = {
    "generate": _generate,
    "check": _check,
    "train": _train,
    "evaluate": _evaluate,
    "demo": _demo,
    "bench": _bench,
    "list": _list,
    "models": _models,
    "doctor": _doctor,
    "restore": _restore,
    "export": _export,
    "ui": _ui,
    "submit": _submit,
    "worker": _worker,
    "runs": _runs,
    "reindex": _reindex,
}


class _Words(argparse.ArgumentParser):
    """The words after a verb; wrong ones are a `SpecError`."""

    def __init__(self, verb: str) -> None:
        super().__init__(prog=f"foreshape {verb}", add_help=False, allow_abbrev=False)

    def error(self, message: str) -> NoReturn:
        """What argparse found wrong, with how it should be, in one line."""
        raise SpecError(f"{message}; {' '.join(self.format_usage().split())}")


def _show(
    ask: Callable[[], dict[str, Any]], flags: Sequence[str], as_text: Callable[[dict[str, Any]], str]
) -> dict[str, Any]:
    """Print what is asked, as text or with `--json`, and return it; nothing is asked where a flag is wrong."""
    unknown = [flag for flag in flags if flag != "--json"]
    if unknown:
        raise SpecError(f"no flag {unknown[0]!r}; there is --json")
    found = ask()
    print(json.dumps(found, indent=2) if "--json" in flags else as_text(found))
    return found


if __name__ == "__main__":
    main()
