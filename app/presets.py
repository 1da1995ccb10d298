"""Presets: specs that a person keeps by a name, each a file in the home that `generate preset=NAME` starts from."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml

from app.spec import SpecError
from data.store import home, put_all

NAME = re.compile(r"[A-Za-z0-9_][\w.-]{0,63}", re.ASCII)


def folder() -> Path:
    """Where they are."""
    return home() / "presets"


def keep(name: str, spec: Mapping[str, Any]) -> Path:
    """Keep a spec by a name that is new; returns its file. Raises `InputError`."""
    if not NAME.fullmatch(name):
        raise SpecError(f"{name!r:.100} is no name of a preset; give up to 64 letters, digits, - _ or .")
    text = yaml.safe_dump(dict(spec), sort_keys=False).encode()
    put_all(folder(), {f"{name}.yaml": lambda: text})
    return folder() / f"{name}.yaml"


def path(name: str) -> Path:
    """The file of a preset; raises `SpecError` where there is none of this name."""
    names = sorted(file.stem for file in folder().glob("*.yaml"))
    if name not in names:
        raise SpecError(
            f"no preset {name!r:.100}; there are {', '.join(names) or 'none, `runs preset RUN NAME` makes one'}"
        )
    return folder() / f"{name}.yaml"


def every() -> dict[str, str]:
    """All presets: name -> spec in YAML; raises `SpecError` for one that cannot be read."""
    found = {}
    for file in sorted(folder().glob("*.yaml")):
        try:
            found[file.stem] = file.read_text()
        except (OSError, ValueError) as error:
            raise SpecError(f"{file} cannot be read ({error!s:.200}); remove it") from error
    return found
