"""The command line: a verb, then Hydra overrides. Results on stdout, progress on stderr.

What loads PyTorch is imported after the arguments are found to be good, so that a slip is answered at once.
"""

from __future__ import annotations

import json
import sys
import traceback
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from hydra import compose, initialize_config_module
from hydra.core.config_store import ConfigStore
from hydra.core.global_hydra import GlobalHydra
from hydra.core.override_parser.overrides_parser import OverridesParser
from hydra.errors import HydraException
from omegaconf import OmegaConf
from omegaconf.errors import OmegaConfBaseException

from app import plugins
from app.spec import EvaluateSpec, RunSpec, SpecError, TrainSpec, from_plain
from data.errors import InputError
from data.store import Run

USAGE = """foreshape VERB [key=value …]

  generate   make designs          domain=dna generator=rmf n=64 steps=4 seed=7 guidance=lookahead out=DIR
  check      the same arguments; says what would be done, writes nothing
  train      make a checkpoint     domain=dna generator=rmf out=DIR
  evaluate   measure a generator   domain=dna generator=rmf reference=FILE.npz steps=[1,4,100] n=512
  list       what there is         [--json]
  models     list | verify | record   the shipped checkpoints, and their digests
  doctor     is all well here?     [--json]
"""


def main() -> None:
    """The console command `foreshape`."""
    sys.exit(run(sys.argv[1:]))


def run(arguments: Sequence[str]) -> int:
    """Do what a command line asks; returns the exit code: 0 done, 1 broken, 2 input wrong, 130 interrupted."""
    verb, rest = (arguments[0], list(arguments[1:])) if arguments else ("help", [])
    if verb in ("help", "-h", "--help"):
        print(USAGE, end="")
        return 0
    try:
        if verb not in VERBS:
            raise SpecError(f"no verb {verb!r}; there are {', '.join(VERBS)}")
        return VERBS[verb](rest)
    except InputError as error:
        print(f"foreshape: {' '.join(str(error).split())}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("foreshape: interrupted; what is finished is kept, and the same command goes on", file=sys.stderr)
        return 130
    except Exception as error:
        traceback.print_exc()
        what = f"{type(error).__name__}: {error}"
        print(f"foreshape: broke with {what}; what is finished is kept, and the same command goes on", file=sys.stderr)
        return 1


def _generate(overrides: list[str]) -> int:
    spec = from_plain(RunSpec, composed("generate", overrides))
    from app import report, service

    folder = service.generate(spec, on_terminal)
    print(report.text(Run(folder).rows()))
    print(folder)
    return 0


def _check(overrides: list[str]) -> int:
    spec = from_plain(RunSpec, composed("generate", overrides))
    from app import service

    ready = service.prepare(spec)
    rewards = ", ".join(f"{name} x {entry.weight:g}" for name, entry in spec.rewards.items()) or "none"
    print(
        f"{spec.n} {spec.domain.name} designs ({ready.domain.space}) by {spec.generator.name} with "
        f"{ready.checkpoint.name} in {spec.steps} steps, guidance {spec.guidance.name}, rewards {rewards}; all is well"
    )
    return 0


def _train(overrides: list[str]) -> int:
    spec = from_plain(TrainSpec, composed("train", overrides))
    from app import training

    print(training.train(spec, on_terminal))
    return 0


def _evaluate(overrides: list[str]) -> int:
    spec = from_plain(EvaluateSpec, composed("evaluate", overrides))
    from app import evaluation

    result = evaluation.evaluate(spec, on_terminal)
    print(evaluation.table(result), file=sys.stderr)
    print(json.dumps(result, indent=2))
    return 0


def _list(flags: list[str]) -> int:
    from app import inventory

    return _show(inventory.contents(), flags, inventory.as_text)


def _doctor(flags: list[str]) -> int:
    from app import inventory

    found = inventory.examination()
    _show(found, flags, inventory.as_text)
    return 0 if all(entry["ok"] for entry in found["checks"]) else 1


def _models(words: list[str]) -> int:
    from app import inventory
    from data import checkpoints

    action, *flags = words or ["list"]
    if action not in ("list", "verify", "record"):
        raise SpecError(f"no action {action!r} of models; there are list, verify, record")
    if action == "record":
        checkpoints.record()
    return _show(inventory.models(verify=action == "verify"), flags, inventory.as_text)


PATHS = ("out", "checkpoint", "reference")
"""Keys whose values do not pass through Hydra, so that any character may be in them."""

VERBS: dict[str, Callable[[list[str]], int]] = {
    "generate": _generate,
    "check": _check,
    "train": _train,
    "evaluate": _evaluate,
    "list": _list,
    "models": _models,
    "doctor": _doctor,
}


def composed(verb: str, overrides: Sequence[str]) -> dict[str, Any]:
    """The configuration of a verb with overrides applied, as plain data; raises `SpecError`.

    A key inside a plug-in's table may be new to the preset (`++`): the plug-in itself says which it has.
    """
    keys = OmegaConf.load(Path(__file__).parent / "conf" / f"{verb}.yaml")
    legal = {str(key) for key in keys} - {"defaults"} | {"domain", "generator"}
    legal |= {"guidance"} if "rewards" in legal else set()
    pairs = [text.partition("=") for text in overrides]
    paths = {key: value for key, _, value in pairs if key in PATHS and key in legal and value != "null"}
    prepared = [_override(text, legal) for text in overrides if text.partition("=")[0] not in paths]
    _presets_for_all_plugins()
    try:
        with initialize_config_module("app.conf", version_base="1.3"):
            config = compose(verb, prepared)
            plain = OmegaConf.to_container(config, resolve=True)
    except (HydraException, OmegaConfBaseException) as error:
        raise SpecError(str(error).strip().splitlines()[0]) from error
    finally:
        GlobalHydra.instance().clear()
    return {str(key): value for key, value in dict(plain).items()} | paths  # type: ignore[arg-type]


def _override(text: str, legal: set[str]) -> str:
    key, equals, value = text.partition("=")
    name = key.lstrip("+~")
    head, *inner = name.split(".")
    if not equals and not key.startswith("~"):
        raise SpecError(f"{text!r} is not key=value; keys are {', '.join(sorted(legal))}")
    if head not in legal or "@" in name:
        raise SpecError(f"no key {name!r}; there are {', '.join(sorted(legal))}")
    if any(part.startswith("_") for part in inner) or "_target_" in value or "${" in value:
        raise SpecError(f"{text!r} is not allowed; give plain values")
    if head in plugins.ROOMS and not inner and value not in plugins.names(head):
        raise SpecError(f"no {head} {value!r}; there are {', '.join(plugins.names(head))}")
    if key.startswith("~"):
        return text
    prepared = ("++" if inner else "") + f"{name}={value}"
    try:
        is_sweep = OverridesParser.create().parse_override(prepared).is_sweep_override()
    except HydraException as error:
        raise SpecError(f"{text!r} cannot be read as key=value; put quotes around special characters") from error
    if is_sweep:
        raise SpecError(f"{text!r} is several values; give one")
    return prepared


def _presets_for_all_plugins() -> None:
    """Plug-ins without a preset file can be chosen like those that have one."""
    files = Path(__file__).parent / "conf"
    for group in ("domain", "generator", "guidance"):
        for name in plugins.names(group):
            if not (files / group / f"{name}.yaml").exists():
                ConfigStore.instance().store(group=group, name=name, node={"name": name})


def on_terminal(what: str, done: int, total: int) -> None:
    """Progress on stderr: one line that is written over on a terminal, a line each elsewhere when a part is done."""
    if sys.stderr.isatty():
        print(f"\r\033[K{what}: {done}/{total}", end="\n" if done >= total else "", file=sys.stderr, flush=True)
    elif done >= total:
        print(f"{what}: {done}/{total}", file=sys.stderr, flush=True)


def _show(found: dict[str, Any], flags: Sequence[str], as_text: Callable[[dict[str, Any]], str]) -> int:
    unknown = [flag for flag in flags if flag != "--json"]
    if unknown:
        raise SpecError(f"no flag {unknown[0]!r}; there is --json")
    print(json.dumps(found, indent=2) if "--json" in flags else as_text(found))
    return 0
