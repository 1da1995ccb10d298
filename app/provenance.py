"""Where a design came from: what is written into runs and into every exported file."""

from __future__ import annotations

import importlib.metadata
import json
import platform
import subprocess
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any

import torch

from app import __version__, devices, plugins, png
from app.spec import RunSpec, from_plain
from data import checkpoints, digests
from data.errors import InputError
from data.space import State
from domains.base import DesignError

PACKAGES = ("torch", "numpy", "diffusers", "safetensors", "biopython", "hydra-core")
SEED_RULE = "noise of design i: Philox(sha256(('design', seed, i))[:8]), drawn on the CPU"


def of_design(spec: RunSpec, index: int, run: Mapping[str, Any]) -> dict[str, str]:
    """What is written into the files of one design of a run: enough to make it again."""
    checkpoint = run["checkpoint"]
    return {
        "program": f"foreshape/{__version__}",
        "design": str(index),
        "checkpoint": f"{checkpoint['name']}@{checkpoint['sha256'][:16]}" if checkpoint else "none",
        "spec": json.dumps(spec.identity(), separators=(",", ":")),
    }


def of_run(spec: RunSpec, checkpoint: Path | None, lock: State | None = None) -> dict[str, Any]:
    """The contents of `provenance.json`, before any time was spent."""
    lineage = {} if lock is None else {"lineage": of_lock(spec, lock)}
    return lineage | {
        "program": f"foreshape/{__version__}",
        "commit": commit(),
        "python": platform.python_version(),
        "packages": {name: importlib.metadata.version(name) for name in PACKAGES},
        "checkpoint": checkpoint and {"name": checkpoint.name, "sha256": checkpoints.weights_digest(checkpoint)},
        "device": str(devices.resolve(spec.device)),
        "threads": torch.get_num_threads(),
        "seed_rule": SEED_RULE,
        "seconds": 0.0,
    }


def of_lock(spec: RunSpec, lock: State) -> dict[str, Any]:
    """What designs come from that are held at some sites (from 0): the generator, and the file that they share."""
    file = (spec.lock or {}).get("file")
    digest = digests.sha256(Path(file)) if file else None
    sites = lock["mask"][0].nonzero()[:, 0].tolist()
    return {"operator": spec.generator.name, "file": file, "sha256": digest, "sites": sites}


def restored(path: Path) -> dict[str, Any]:
    """The spec inside an exported file, as plain data; raises `InputError` for a file that has none."""
    notes = png.notes(path) if path.suffix.lower() == png.SUFFIX else _notes(path)
    try:
        plain = json.loads(notes.get("spec", "null"))
    except (ValueError, TypeError, RecursionError):
        plain = None
    if not isinstance(plain, dict):
        raise InputError(f"{path} carries no spec of a run; give a file that foreshape wrote")
    return from_plain(RunSpec, plain | {"out": None}).identity()


def _notes(path: Path) -> Mapping[str, str]:
    """What a file of a design carries, read by the domain that can."""
    refusals = {}
    for name in plugins.names("domain"):
        domain = plugins.build("domain", name, {})
        try:
            return dict(domain.provenance(path))
        except DesignError as error:
            refusals[error] = path.suffix.lower() in domain.suffixes
    raise max(refusals, key=lambda error: refusals[error])  # the one of the domain whose kind of file it is


@lru_cache
def commit() -> str:
    """The commit of the code where it runs from a checkout, with `+` where files differ from it; else `unknown`."""
    root = Path(__file__).resolve().parents[1]
    if not (root / ".git").exists():  # else git would name the commit of a repository around it
        return "unknown"
    words = ["git", "-C", str(root), "describe", "--always", "--dirty=+", "--abbrev=12", "--exclude=*"]
    try:
        return subprocess.run(words, capture_output=True, text=True, timeout=10, check=True).stdout.strip()
    except (OSError, subprocess.SubprocessError):
        return "unknown"
