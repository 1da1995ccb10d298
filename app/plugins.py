"""The file system is the registry: a module `domains/NAME.py` with a `build` function is the domain NAME.

The same holds for generators, guidance and rewards. Installed packages add theirs through the entry-point groups
`foreshape.domains`, `foreshape.generators`, `foreshape.guidance`, `foreshape.rewards`, `foreshape.executors`.
"""

from __future__ import annotations

import importlib
import importlib.metadata
import importlib.util
import inspect
import pkgutil
import types
import typing
from collections.abc import Callable, Mapping, Sequence
from dataclasses import is_dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from data.errors import InputError
from data.known import Known

if TYPE_CHECKING:
    import torch

ROOMS = {
    "domain": "domains",
    "generator": "generators",
    "guidance": "generators.guidance",
    "reward": "rewards",
    "executor": "app.executors",
}
LARGEST = 1e15
"""No number in a spec is larger, so that every one is exact as a float."""
_WORDS = {
    int: "a whole number",
    float: "a finite number",
    str: "text",
    bool: "true or false",
    tuple: "a list",
    Sequence: "a list",
    Mapping: "a table",
}
_NOT_PLUGINS = {
    "base",
    "files",
    "statistics",
    "training",
    "loading",
    "tiles",
    "muon",
    "manifolds",
    "networks",
    "guidance",
}
"""Modules of the rooms that plug-ins share."""


class PluginError(InputError):
    """No plug-in of that name, one that cannot be imported, or a parameter that it does not have."""


def names(kind: str) -> list[str]:
    """All plug-ins of a kind, shipped and installed, without importing any."""
    return sorted(set(_shipped(kind)) | set(_entry_points(kind)))


def module(kind: str, name: str) -> types.ModuleType:
    """Import one plug-in; raises `PluginError` for an unknown name or one whose import fails."""
    if name not in names(kind):
        raise PluginError(f"no {kind} {name!r}; there are {', '.join(names(kind))}")
    try:
        shipped = name in _shipped(kind)
        found = importlib.import_module(f"{ROOMS[kind]}.{name}") if shipped else _entry_points(kind)[name].load()
    except (Exception, SystemExit) as error:  # a stranger's module may raise anything while it is imported
        raise PluginError(f"{kind} {name} cannot be imported: {type(error).__name__}: {error}") from error
    if not callable(getattr(found, "build", None)):
        raise PluginError(f"{kind} {name} has no function build; it must have one")
    try:
        typing.get_type_hints(found.build)
    except (NameError, TypeError) as error:
        raise PluginError(f"{kind} {name}: the annotations of build mean nothing when it runs: {error}") from error
    imported: types.ModuleType = found
    return imported


def build(kind: str, name: str, parameters: Mapping[str, Any], *subject: Any) -> Any:
    """Build a plug-in with parameters by name, after checking them against its `build` function.

    What it refuses itself is told with its name, because two plug-ins may have a parameter of the same name.
    """
    function, owner = module(kind, name).build, f"{kind} {name}"
    given = arguments(function, parameters, owner, skip=len(subject))
    try:
        return function(*subject, **given)
    except InputError as error:
        raise InputError(f"{owner}: {error}") from error


def load_generator(name: str, folder: Path, device: torch.device) -> Any:
    """The generator of this name with the weights in a folder, on a device."""
    return module("generator", name).load(folder, device)


def parameters(kind: str, name: str) -> dict[str, Any]:
    """The parameters of a plug-in with their defaults; those that have none are its subject, not a choice."""
    signature = inspect.signature(module(kind, name).build)
    return {p.name: p.default for p in signature.parameters.values() if p.default is not p.empty}


def returned(kind: str, name: str) -> Any:
    """The class that a plug-in's `build` says it returns, None where it does not say."""
    return typing.get_type_hints(module(kind, name).build).get("return")


def takes(kind: str, name: str, subject: Any) -> bool:
    """Whether a plug-in's `build` is for subjects like this one, by the annotation of its first parameter."""
    function = module(kind, name).build
    hint = typing.get_type_hints(function).get(next(iter(inspect.signature(function).parameters), ""))
    return not isinstance(hint, type) or isinstance(subject, hint)


def choices(kind: str, name: str) -> dict[str, list[Any]]:
    """The values that a parameter may have, for those of a plug-in's parameters that are one of a few."""
    hints = typing.get_type_hints(module(kind, name).build)
    return {
        key: list(typing.get_args(hint)) for key, hint in hints.items() if typing.get_origin(hint) is typing.Literal
    }


def known(kind: str, name: str) -> dict[str, list[str]]:
    """The words that a plug-in's declaration offers for its text parameters, which may have others too."""
    hints = typing.get_type_hints(module(kind, name).build, include_extras=True)
    said = ((key, mark) for key, hint in hints.items() for mark in getattr(hint, "__metadata__", ()))
    return {key: list(mark.names()) for key, mark in said if isinstance(mark, Known)}


def arguments(function: Callable[..., Any], given: Mapping[str, Any], owner: str, skip: int = 0) -> dict[str, Any]:
    """`given` as keyword arguments of a function or dataclass, each checked against its annotation.

    A parameter that is annotated with a dataclass takes a mapping of its fields.
    """
    hints = typing.get_type_hints(function.__init__ if is_dataclass(function) else function)
    legal = list(inspect.signature(function).parameters)[skip:]
    checked = {}
    for key, value in given.items():
        if key not in legal:
            raise PluginError(f"{owner} has no parameter {key!r}; it has {', '.join(legal) or 'none'}")
        hint = hints[key]
        if is_dataclass(hint) and isinstance(hint, type) and isinstance(value, Mapping):
            checked[key] = hint(**arguments(hint, value, f"{owner}.{key}"))
        else:
            checked[key] = fit(value, hint, f"{owner}.{key}")
    return checked


def fit(value: Any, hint: Any, owner: str) -> Any:
    """A plain value as the annotated type; raises `PluginError`.

    A whole number is a float, a list is a tuple, one number a tuple of one, a list of texts one text with commas.
    """
    origin, options = typing.get_origin(hint), typing.get_args(hint)
    if origin in (typing.Union, types.UnionType):
        if value is None and type(None) in options:
            return None
        return fit(value, next(option for option in options if option is not type(None)), owner)
    if origin is typing.Literal:
        if value in options:
            return value
        raise PluginError(f"{owner} is {value!r:.200}; it must be one of {', '.join(map(str, options))}")
    if origin in (tuple, Sequence) and isinstance(value, int | float) and not isinstance(value, bool):
        value = [value]
    if hint is str and isinstance(value, list) and value and all(isinstance(item, str) for item in value):
        return ",".join(value)
    if origin in (tuple, Sequence) and isinstance(value, list | tuple):
        return tuple(fit(item, options[0], f"{owner}[{i}]") for i, item in enumerate(value))
    if origin is Mapping and isinstance(value, Mapping):
        return value
    if hint is float and isinstance(value, int | float) and not isinstance(value, bool) and abs(value) <= LARGEST:
        return float(value)
    if hint is int and isinstance(value, int) and not isinstance(value, bool) and abs(value) <= LARGEST:
        return value
    if isinstance(hint, type) and hint not in (int, float) and isinstance(value, hint):
        return value
    raise PluginError(f"{owner} is {value!r:.200}; it must be {_WORDS.get(origin or hint, hint)}")


def _shipped(kind: str) -> list[str]:
    package = importlib.util.find_spec(ROOMS[kind])
    folders = list(package.submodule_search_locations or ()) if package else []
    found = (entry.name for entry in pkgutil.iter_modules(folders))
    return [name for name in found if not name.startswith("_") and name not in _NOT_PLUGINS]


@cache
def _entry_points(kind: str) -> dict[str, importlib.metadata.EntryPoint]:
    group = "foreshape." + ROOMS[kind].split(".")[-1]
    return {point.name: point for point in importlib.metadata.entry_points(group=group)}
