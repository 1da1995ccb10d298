"""From a command line to the plain data of a spec: presets by Hydra, or a spec file, with overrides on top."""

from __future__ import annotations

import copy
import hashlib
import itertools
import math
import re
from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

import yaml
from hydra import compose, initialize_config_module
from hydra.core.config_store import ConfigStore
from hydra.core.global_hydra import GlobalHydra
from hydra.core.override_parser.overrides_parser import OverridesParser
from hydra.core.override_parser.types import Override, ValueType
from hydra.errors import HydraException
from omegaconf import OmegaConf
from omegaconf.errors import OmegaConfBaseException

from app import plugins, presets
from app.spec import SpecError

PRESETS = Path(__file__).parent / "conf"
PATHS = ("out", "checkpoint", "reference", "spec")
"""Keys whose values do not pass through Hydra, so that any character may be in them."""
MOST_BYTES = 1 << 20
"""No spec file is larger."""
MOST_RUNS, LONGEST_NAME = 1000, 100
"""Runs of one command, and characters of their names, at most."""


def composed(verb: str, overrides: Sequence[str]) -> dict[str, Any]:
    """The configuration of a verb with overrides applied in their order, as plain data; raises `SpecError`.

    Hydra chooses the presets and reads the overrides; what they change is changed here, so that it is the same on
    presets and on a spec file.
    """
    groups = {"domain", "generator"} | ({"guidance"} if verb == "generate" else set())
    legal = {str(key) for key in OmegaConf.load(PRESETS / f"{verb}.yaml")} - {"defaults"} | groups
    paths: dict[str, Any] = {}
    choices: dict[str, str] = {}
    changes: list[Override] = []
    for text in overrides:
        key, _, value = text.partition("=")
        if key in PATHS and key in legal:
            paths[key] = _path(text)
        elif key == "preset" and key in legal:
            paths["spec"] = str(presets.path(value))
        elif key in groups:
            choices[key] = _known(key, value)
        else:
            changes.append(_parsed(text, legal))
    start = paths.pop("spec", None)
    if start is None:
        plain = copy.deepcopy(_presets(verb, tuple(choices.items())))
        plain = {key: value for key, value in plain.items() if key in legal}
    else:
        plain = _read(Path(start)) | {key: {"name": value} for key, value in choices.items()}
    for change in changes:
        _apply(change, plain)
    for key in ("spec", "preset"):
        plain.pop(key, None)
    return plain | paths


def executor(overrides: Sequence[str]) -> tuple[dict[str, Any] | None, list[str]]:
    """What overrides such as `executor=slurm executor.workers=4` ask for, as plain data, and the other overrides."""
    plain: dict[str, Any] = {}
    ours = [text for text in overrides if re.split(r"[.=]", text.lstrip("+~"))[0] == "executor"]
    for text in ours:
        if text.startswith("executor="):
            plain = {"executor": {"name": _known("executor", text.partition("=")[2])} | plain.get("executor", {})}
        else:
            _apply(_parsed(text, {"executor"}), plain)
    return plain.get("executor"), [text for text in overrides if text not in ours]


def combinations(verb: str, overrides: Sequence[str]) -> list[tuple[str, dict[str, Any]]]:
    """Every combination of values, as in `seed=1,2` and `steps=range(1,5)`: its name and its configuration.

    Each is what `composed` gives for one value of each; a name has the values that vary, such as `seed=1,steps=2`.
    Raises `SpecError`.
    """
    options = [_options(text) for text in overrides]
    varied = [parts[0].partition("=")[0] for parts in options if len(parts) > 1]
    for key in varied:
        if sum(text.partition("=")[0] == key for text in overrides) > 1:
            raise SpecError(f"{key} is given twice, once with several values; give it once")
    if (count := math.prod(map(len, options))) > MOST_RUNS:
        raise SpecError(f"these are {count} runs or more; give values for at most {MOST_RUNS}")
    found = []
    for parts in itertools.product(*options):
        name = ",".join(part for part, among in zip(parts, options, strict=True) if len(among) > 1)
        found.append((_for_a_file(name), composed(verb, parts)))
    return found


def _options(text: str) -> list[str]:
    """The overrides of one value each that one override stands for."""
    key, equals, _ = text.partition("=")
    if not equals or key in PATHS:
        return [text]
    override = _override(text)
    if not override.is_sweep_override():
        return [text]
    if override.value_type not in (ValueType.CHOICE_SWEEP, ValueType.SIMPLE_CHOICE_SWEEP, ValueType.RANGE_SWEEP):
        raise SpecError(f"{text!r} is no list of values; give {key}=1,2,3 or {key}=range(1,4)")
    return [f"{key}={value}" for value in itertools.islice(override.sweep_string_iterator(), MOST_RUNS + 1)]


def _for_a_file(name: str) -> str:
    """A name that any disk takes, and no other name becomes."""
    plain = re.sub(r"[^\w.,=+-]", "_", name)[:LONGEST_NAME]
    return plain if plain == name else f"{plain}-{hashlib.sha256(name.encode()).hexdigest()[:8]}"


def _path(text: str) -> str | None:
    key, equals, value = text.partition("=")
    if not equals or not value or "\0" in value:
        raise SpecError(f"{text!r} names no file or folder; give {key}=PATH, or leave it out")
    return None if value == "null" else value


def _known(kind: str, name: str) -> str:
    if name not in plugins.names(kind):
        raise SpecError(f"no {kind} {name!r}; there are {', '.join(plugins.names(kind))}")
    return name


def _parsed(text: str, legal: set[str]) -> Override:
    """One override of a value, found legal."""
    key, equals, value = text.partition("=")
    name = key.lstrip("+~")
    head, *inner = name.split(".")
    if not equals and not key.startswith("~"):
        raise SpecError(f"{text!r} is not key=value; keys are {', '.join(sorted(legal))}")
    if head not in legal or "@" in name:
        raise SpecError(f"no key {name!r}; there are {', '.join(sorted(legal))}")
    if any(part.startswith("_") for part in inner) or "_target_" in value or "${" in value:
        raise SpecError(f"{text!r} is not allowed; give plain values")
    if inner and head in PATHS:
        raise SpecError(f"{text!r}: {head} has no parts; give {head}=PATH")
    override = _override(text)
    if override.is_sweep_override():
        raise SpecError(f"{text!r} is several values; give one, or -m to generate or submit")
    return override


def _override(text: str) -> Override:
    try:
        return OverridesParser.create().parse_override(text)
    except HydraException as error:
        raise SpecError(f"{text!r} cannot be read as key=value; put quotes around special characters") from error


@lru_cache
def _presets(verb: str, choices: tuple[tuple[str, str], ...]) -> dict[str, Any]:
    _presets_for_all_plugins()
    try:
        with initialize_config_module("app.conf", version_base="1.3"):
            config = compose(verb, [f"{key}={value}" for key, value in choices])
            plain: Any = OmegaConf.to_container(config, resolve=True)
    except (HydraException, OmegaConfBaseException, OSError) as error:
        raise SpecError(f"the presets cannot be read ({str(error).strip().splitlines()[0]})") from error
    finally:
        GlobalHydra.instance().clear()
    return dict(plain)


def _apply(change: Override, plain: dict[str, Any]) -> None:
    """Set or delete one value; tables on the way to it are made where they are missing."""
    *tables, last = change.key_or_group.split(".")
    inner = plain
    for table in tables:
        inner = inner.setdefault(table, {})
        if not isinstance(inner, dict):
            raise SpecError(f"{change.key_or_group} is inside {table}={inner!r:.100}, which is no table; leave it out")
    if not change.is_delete():
        inner[last] = change.value()
    elif inner.pop(last, None) is None:
        raise SpecError(f"no {change.key_or_group} to leave out; there are {', '.join(inner) or 'none'}")


class _PlainLoader(yaml.SafeLoader):
    """YAML without aliases, with which a small file can stand for a huge one."""

    def compose_node(self, parent: Any, index: Any) -> Any:
        """The node that comes next; raises `YAMLError` for an alias."""
        if self.check_event(yaml.AliasEvent):
            raise yaml.YAMLError("aliases are not read")
        return super().compose_node(parent, index)


def _read(path: Path) -> dict[str, Any]:
    """The contents of a spec file; raises `SpecError` for anything that is not a table in YAML."""
    try:
        if not path.is_file() or path.stat().st_size > MOST_BYTES:
            raise SpecError(f"{path} is not a file of at most {MOST_BYTES} bytes; give a run's spec.yaml")
        plain = yaml.load(path.read_text(), _PlainLoader)
    except SpecError:
        raise
    except (OSError, ValueError, RecursionError, yaml.YAMLError) as error:
        reason = " ".join(str(error).split())
        raise SpecError(f"{path} cannot be read as a spec ({reason:.200}); give a run's spec.yaml") from error
    if not isinstance(plain, dict) or not all(isinstance(key, str) for key in plain):
        raise SpecError(f"{path} is not a table of keys and values; give a run's spec.yaml")
    return plain


def _presets_for_all_plugins() -> None:
    """Plug-ins without a preset file can be chosen like those that have one."""
    for group in ("domain", "generator", "guidance"):
        for name in plugins.names(group):
            if not (PRESETS / group / f"{name}.yaml").exists():
                ConfigStore.instance().store(group=group, name=name, node={"name": name})
