"""From a command line to the plain data of a spec: presets by Hydra, or a spec file, with overrides on top."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import yaml
from hydra import compose, initialize_config_module
from hydra.core.config_store import ConfigStore
from hydra.core.global_hydra import GlobalHydra
from hydra.core.override_parser.overrides_parser import OverridesParser
from hydra.core.override_parser.types import Override
from hydra.errors import HydraException
from omegaconf import OmegaConf
from omegaconf.errors import OmegaConfBaseException

from app import plugins
from app.spec import SpecError

PRESETS = Path(__file__).parent / "conf"
PATHS = ("out", "checkpoint", "reference", "spec")
"""Keys whose values do not pass through Hydra, so that any character may be in them."""
MOST_BYTES = 1 << 20
"""No spec file is larger."""


def composed(verb: str, overrides: Sequence[str]) -> dict[str, Any]:
    """The configuration of a verb with overrides applied, as plain data; raises `SpecError`."""
    groups = {"domain", "generator"} | ({"guidance"} if verb == "generate" else set())
    preset = OmegaConf.load(PRESETS / f"{verb}.yaml")
    legal = {str(key) for key in preset} - {"defaults"} | groups
    paths: dict[str, Any] = {}
    parsed: list[Override] = []
    for text in overrides:
        key, equals, value = text.partition("=")
        if key in PATHS and key in legal and equals:
            paths[key] = None if value == "null" else value
        else:
            parsed.append(_parsed(text, legal))
    start = paths.pop("spec", None)
    plain = _changed(_read(Path(start)), parsed) if start else _composed(verb, parsed)
    plain.pop("spec", None)
    return plain | paths


def _parsed(text: str, legal: set[str]) -> Override:
    """One override, found legal. A key inside a plug-in's table may be new (`++`): the plug-in says which it has."""
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
    prepared = text if key.startswith("~") else ("++" if inner else "") + f"{name}={value}"
    try:
        override = OverridesParser.create().parse_override(prepared)
    except HydraException as error:
        raise SpecError(f"{text!r} cannot be read as key=value; put quotes around special characters") from error
    if override.is_sweep_override():
        raise SpecError(f"{text!r} is several values; give one")
    return override


def _composed(verb: str, overrides: Sequence[Override]) -> dict[str, Any]:
    _presets_for_all_plugins()
    try:
        with initialize_config_module("app.conf", version_base="1.3"):
            config = compose(verb, [str(override.input_line) for override in overrides])
            plain: Any = OmegaConf.to_container(config, resolve=True)
    except (HydraException, OmegaConfBaseException) as error:
        raise SpecError(str(error).strip().splitlines()[0]) from error
    finally:
        GlobalHydra.instance().clear()
    return dict(plain)


def _changed(plain: dict[str, Any], overrides: Sequence[Override]) -> dict[str, Any]:
    """The same overrides on the data of a spec file; a plug-in chosen anew starts without parameters."""
    for override in overrides:
        *tables, last = override.key_or_group.split(".")
        inner = plain
        for table in tables:
            inner = inner.setdefault(table, {})
            if not isinstance(inner, dict):
                raise SpecError(f"{override.key_or_group} is inside {table}={inner!r}, which is no table; leave it out")
        if override.is_delete():
            inner.pop(last, None)
        else:
            inner[last] = override.value()
    return plain


def _read(path: Path) -> dict[str, Any]:
    """The contents of a spec file; raises `SpecError` for anything that is not a table in YAML."""
    try:
        if path.stat().st_size > MOST_BYTES:
            raise SpecError(f"{path} is larger than {MOST_BYTES} bytes; give a spec.yaml")
        plain = yaml.safe_load(path.read_text())
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        raise SpecError(f"{path} cannot be read as a spec ({error}); give a run's spec.yaml") from error
    if not isinstance(plain, dict) or not all(isinstance(key, str) for key in plain):
        raise SpecError(f"{path} is not a table of keys and values; give a run's spec.yaml")
    return plain


def _presets_for_all_plugins() -> None:
    """Plug-ins without a preset file can be chosen like those that have one."""
    for group in ("domain", "generator", "guidance"):
        for name in plugins.names(group):
            if not (PRESETS / group / f"{name}.yaml").exists():
                ConfigStore.instance().store(group=group, name=name, node={"name": name})
