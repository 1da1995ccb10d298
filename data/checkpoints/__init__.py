"""Trained generators: one folder each, `<domain>-<generator>`, with digests in `manifest.json`.

A folder holds `config.json` (the space and the network), safetensors weights, `scheduler_config.json` and `card.md`.
`protein-mpnn` is no generator of a cell: it draws letters for backbones, and its space is that of no domain.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from data import digests
from data.errors import InputError
from data.space import Space

FOLDER = Path(__file__).resolve().parent
MANIFEST = FOLDER / "manifest.json"
WEIGHTS = "diffusion_pytorch_model.safetensors"
SUFFIXES = {".json", ".safetensors", ".md", ".yaml", ".jsonl"}
"""What a checkpoint may hold. Pickles (`.bin`, `.pt`, `.pkl`, …) run code when they are read."""


class CheckpointError(InputError):
    """No such checkpoint, a damaged or unsafe one, or one that does not fit."""


def names() -> list[str]:
    """The shipped checkpoints: those that are here, and those that the manifest names."""
    here = {path.parent.name for path in FOLDER.glob("*/config.json")}
    return sorted(here | {key.split("/")[0] for key in digests.read_manifest(MANIFEST)})


def find(name: str, space: Space, any_length: bool = False) -> Path:
    """The folder of a shipped checkpoint by name, or of any by path, after `verify` and a comparison of spaces.

    The lengths need not be the same with `any_length`, nor where the checkpoint has learned several and goes as far.
    """
    folder = FOLDER / name if name in names() else Path(name)
    try:
        known = (folder / "config.json").is_file()
    except (OSError, ValueError) as error:
        raise CheckpointError(f"checkpoint {name!r:.200} cannot be looked at ({error}); give a folder") from error
    if not known:
        raise CheckpointError(
            f"no checkpoint {name!r}; there are {', '.join(names()) or 'none'}, or give a folder with config.json; "
            "`foreshape train` makes one"
        )
    verify(folder)
    there = config(folder)
    found = Space.from_dict(there.get("space") or {})
    fits = any_length or found == space or (bool(there.get("lengths")) and space.length <= found.length)
    if found.factors != space.factors or not fits:
        raise CheckpointError(f"{folder.name} is for {found}; this domain wants {space}; change the parameters of one")
    return folder


def verify(folder: Path) -> None:
    """Raise `CheckpointError` for a folder with a pickle, without weights, or (if shipped) with another sha256."""
    files = [path for path in sorted(folder.rglob("*")) if not path.is_dir()]
    unsafe = [path.name for path in files if path.suffix not in SUFFIXES]
    if unsafe:
        legal = ", ".join(sorted(SUFFIXES))
        raise CheckpointError(f"{folder} holds {unsafe[0]}; a checkpoint holds {legal} only, never a pickle; remove it")
    if folder.absolute().parent.resolve() == FOLDER:
        _verify_shipped(folder.name)
    if not (folder / WEIGHTS).is_file():
        raise CheckpointError(f"{folder} has no {WEIGHTS}; train it, or restore the folder")


def weights_digest(folder: Path) -> str:
    """The sha256 of a checkpoint's weights, by which runs remember it."""
    return digests.sha256(folder / WEIGHTS)


def record() -> None:
    """Write `manifest.json` anew from the folders that are here."""
    kept = (path for path in sorted(FOLDER.glob("*/*")) if path.suffix in {".safetensors", ".json"})
    manifest = {path.relative_to(FOLDER).as_posix(): digests.sha256(path) for path in kept}
    MANIFEST.write_text(json.dumps(manifest, indent=2) + "\n")


def config(folder: Path) -> dict[str, Any]:
    """The contents of a checkpoint's `config.json`."""
    try:
        found = json.loads((folder / "config.json").read_text())
    except (OSError, ValueError, RecursionError) as error:
        raise CheckpointError(f"{folder}/config.json is not JSON ({error}); restore the folder") from error
    if not isinstance(found, dict):
        raise CheckpointError(f"{folder}/config.json is not a JSON object; restore the folder")
    return found


def _verify_shipped(name: str) -> None:
    """All files that the manifest names are there and are the right ones, and no others are there."""
    manifest = {key: value for key, value in digests.read_manifest(MANIFEST).items() if key.split("/")[0] == name}
    here = {f"{name}/{path.name}" for path in (FOLDER / name).glob("*") if path.suffix in {".safetensors", ".json"}}
    for key in sorted(here | manifest.keys()):
        try:
            digests.verify(FOLDER / key, manifest.get(key), MANIFEST)
        except digests.DigestError as error:
            raise CheckpointError(str(error)) from error
