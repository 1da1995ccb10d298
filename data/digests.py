"""sha256 of files, and the manifests that say which digest is right."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path


class DigestError(ValueError):
    """A file is not the one its manifest names."""


def sha256(path: Path) -> str:
    """The hexadecimal sha256 of a file."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def read_manifest(path: Path) -> dict[str, str]:
    """File name -> sha256, from a JSON object; an absent manifest names nothing."""
    if not path.exists():
        return {}
    manifest: dict[str, str] = json.loads(path.read_text())
    return manifest


def verify(path: Path, expected: str | None, manifest: Path) -> None:
    """Raise `DigestError` unless the file's digest is the expected one."""
    found = sha256(path)
    if found != expected:
        raise DigestError(
            f"{path.name} has sha256 {found[:16]}…; {manifest.name} says {(expected or 'nothing of it')[:16]}…; "
            "restore the file, or record it anew if you changed it on purpose"
        )
