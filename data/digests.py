"""sha256 of files, and the manifests that say which digest is right."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

from data.errors import InputError


class DigestError(InputError):
    """A file is not the one its manifest names, or the manifest cannot be read."""


def sha256(path: Path) -> str:
    """The hexadecimal sha256 of a file."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def read_manifest(path: Path) -> dict[str, str]:
    """File name -> sha256, from a JSON object; an absent manifest names nothing."""
    if not path.exists():
        return {}
    try:
        manifest = json.loads(path.read_text())
    except (OSError, ValueError, RecursionError) as error:
        raise DigestError(f"{path} cannot be read as JSON ({error}); restore it") from error
    if not isinstance(manifest, dict):
        raise DigestError(f"{path} is not a table of names and digests; restore it")
    return manifest


def verify(path: Path, expected: str | None, manifest: Path) -> None:
    """Raise `DigestError` unless the file's digest is the expected one."""
    try:
        found = sha256(path)
    except OSError as error:
        raise DigestError(f"{path} cannot be read ({error.strerror}); restore it") from error
    if found != expected:
        says = f"sha256 {expected[:16]}…" if expected else "nothing of it"
        raise DigestError(f"{path} has sha256 {found[:16]}…, {manifest.name} says {says}; restore the file")
