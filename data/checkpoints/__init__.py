"""Trained generators: one folder each, `<domain>-<generator>`, with digests in `manifest.json`.

A folder holds `config.json` (the space and the network), safetensors weights, `scheduler_config.json` and `card.md`.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from data import digests
from data.errors import InputError
from data.space import Space

FOLDER = Path(__file__).parent
MANIFEST = FOLDER / "manifest.json"
SUFFIXES = {".json", ".safetensors", ".md", ".yaml", ".jsonl"}
"""What a checkpoint may hold. Pickles (`.bin`, `.pt`, `.pkl`, …) run code when they are read."""


class CheckpointError(InputError):
    """No such checkpoint, a damaged or unsafe one, or one that does not fit."""


def names() -> list[str]:
    """The shipped checkpoints."""
    return sorted(path.parent.name for path in FOLDER.glob("*/config.json"))


def find(name: str, space: Space) -> Path:
    """The folder of a shipped checkpoint by name, or of any by path, after `verify` and a comparison of spaces."""
    folder = FOLDER / name if name in names() else Path(name)
    if not (folder / "config.json").is_file():
        raise CheckpointError(
            f"no checkpoint {name!r}; there are {', '.join(names()) or 'none'}, or give a folder with config.json; "
            "`foreshape train` makes one"
        )
    verify(folder)
    found = Space.from_dict(config(folder).get("space") or {})
    if found.to_dict() != space.to_dict():
        raise CheckpointError(f"{folder.name} is for {found}; this domain wants {space}; change the parameters of one")
    return folder


def verify(folder: Path) -> None:
    """Raise `CheckpointError` for a folder with a pickle, without weights, or (if shipped) with another sha256."""
    files = [path for path in sorted(folder.rglob("*")) if path.is_file()]
    unsafe = [path.name for path in files if path.suffix not in SUFFIXES]
    if unsafe:
        legal = ", ".join(sorted(SUFFIXES))
        raise CheckpointError(f"{folder} holds {unsafe[0]}; a checkpoint holds {legal} only, never a pickle; remove it")
    if not any(path.suffix == ".safetensors" for path in files):
        raise CheckpointError(f"{folder} has no .safetensors weights; train it, or restore the folder")
    if folder.resolve().parent == FOLDER:
        manifest = digests.read_manifest(MANIFEST)
        for path in files:
            if path.suffix in {".safetensors", ".json"}:
                key = path.relative_to(FOLDER).as_posix()
                _verify_file(path, manifest.get(key))


def weights_digest(folder: Path) -> str:
    """The sha256 of a checkpoint's weights, by which runs remember it."""
    return digests.sha256(next(folder.glob("*.safetensors")))


def record() -> None:
    """Write `manifest.json` anew from the folders that are here."""
    kept = (path for path in sorted(FOLDER.glob("*/*")) if path.suffix in {".safetensors", ".json"})
    manifest = {path.relative_to(FOLDER).as_posix(): digests.sha256(path) for path in kept}
    MANIFEST.write_text(json.dumps(manifest, indent=2) + "\n")


def _verify_file(path: Path, expected: str | None) -> None:
    try:
        digests.verify(path, expected, MANIFEST)
    except digests.DigestError as error:
        raise CheckpointError(str(error)) from error


def config(folder: Path) -> dict[str, Any]:
    """The contents of a checkpoint's `config.json`."""
    try:
        config = json.loads((folder / "config.json").read_text())
    except (OSError, UnicodeDecodeError, json.JSONDecodeError) as error:
        raise CheckpointError(f"{folder}/config.json is not JSON ({error}); restore the folder") from error
    if not isinstance(config, dict):
        raise CheckpointError(f"{folder}/config.json is not a JSON object; restore the folder")
    return config
