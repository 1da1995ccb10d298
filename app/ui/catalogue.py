"""What there is to choose from, as `foreshape list --json` tells it: asked once, in a process of its own."""

from __future__ import annotations

import json
import subprocess
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

from app import PROGRAM
from data.errors import InputError

LONGEST = 300
"""Seconds that the answer may take."""


@dataclass(frozen=True)
class Catalogue:
    """Plug-ins with their parameters, and the cells of generators x domains."""

    plugins: dict[str, dict[str, dict[str, Any]]]
    """Kind -> name -> entry."""
    cells: list[dict[str, Any]]

    def domains(self) -> list[str]:
        """The domains in which something is ready, then the others."""
        names = {cell["domain"]: None for cell in sorted(self.cells, key=lambda cell: cell["state"] != "ready")}
        return list(names)

    def generators(self, domain: str, ready: bool = True) -> dict[str, dict[str, Any]]:
        """The cells of a domain that are ready, or those that are not, by generator; trained ones first."""
        found = [cell for cell in self.cells if cell["domain"] == domain and (cell["state"] == "ready") == ready]
        return {cell["generator"]: cell for cell in sorted(found, key=lambda cell: not cell.get("trained"))}

    def about(self, kind: str, name: str) -> str:
        """What a plug-in says of itself, in one line."""
        entry = self.plugins[kind][name]
        return str(entry.get("error") or entry["about"])

    def choices(self, kind: str, name: str) -> dict[str, list[str]]:
        """The values of those parameters of a plug-in that are one of a few."""
        found: dict[str, list[str]] = self.plugins[kind][name].get("choices", {})
        return found

    def known(self, kind: str, name: str) -> dict[str, list[str]]:
        """Values to offer for those parameters of a plug-in that may have others too."""
        found: dict[str, list[str]] = self.plugins[kind][name].get("known", {})
        return found

    def parameters(self, kind: str, name: str) -> dict[str, tuple[str, Any]]:
        """The parameters of a plug-in: name -> type in words, without `None`, and default."""
        entry = self.plugins[kind][name]
        return {
            key: (entry["types"][key].removesuffix(" | None"), default)
            for key, default in entry.get("parameters", {}).items()
        }


_begun: list[Future[Catalogue]] = []


def begin() -> None:
    """Ask already, for the first who reads."""
    _begun.append(ThreadPoolExecutor(1).submit(_asked))


def read() -> Catalogue:
    """What `begin` asked for, or ask now; raises `InputError` with the last line of what went wrong."""
    return _begun.pop().result() if _begun else _asked()


def _asked() -> Catalogue:
    try:
        told = subprocess.run(
            [*PROGRAM, "list", "--json"], capture_output=True, text=True, timeout=LONGEST, check=True
        ).stdout
    except (OSError, subprocess.SubprocessError) as error:
        last = ((getattr(error, "stderr", None) or str(error)).strip().splitlines() or [""])[-1]
        raise InputError(f"what there is cannot be listed ({last:.300}); try `foreshape doctor`") from error
    return parse(told)


def parse(text: str) -> Catalogue:
    """The catalogue in the JSON of `foreshape list --json`."""
    found = json.loads(text)
    plugins = {kind: {entry["name"]: entry for entry in entries} for kind, entries in found["plugins"].items()}
    return Catalogue(plugins, found["cells"])
