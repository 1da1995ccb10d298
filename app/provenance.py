"""Where a design came from: what is written into runs and into every exported file."""

from __future__ import annotations

import importlib.metadata
import json
import platform
import subprocess
from functools import lru_cache
from pathlib import Path
from typing import Any

import torch

from app import __version__, devices, plugins
from app.spec import RunSpec, from_plain
from data import checkpoints
from data.errors import InputError

PACKAGES = ("torch", "numpy", "diffusers", "safetensors", "biopython", "hydra-core")
SEED_RULE = "noise of design i: Philox(sha256(('design', seed, i))[:8]), drawn on the CPU"


def of_design(spec: RunSpec, index: int, checkpoint: Path) -> dict[str, str]:
    """What is written into the files of one design: enough to make it again."""
    return {
        "program": f"foreshape {__version__}",
        "design": str(index),
        "checkpoint": f"{checkpoint.name}@{_digest(checkpoint)[:16]}",
        "spec": json.dumps(spec.identity(), separators=(",", ":")),
    }


def of_run(spec: RunSpec, checkpoint: Path, seconds: float) -> dict[str, Any]:
    """The contents of `provenance.json`."""
    return {
        "program": f"foreshape {__version__}",
        "commit": commit(),
        "python": platform.python_version(),
        "packages": {name: importlib.metadata.version(name) for name in PACKAGES},
        "checkpoint": {"name": checkpoint.name, "sha256": _digest(checkpoint)},
        "device": str(devices.resolve(spec.device)),
        "threads": torch.get_num_threads(),
        "seed_rule": SEED_RULE,
        "seconds": round(seconds, 3),
    }


def restored(path: Path) -> dict[str, Any]:
    """The spec inside an exported file, as plain data; raises `InputError` for a file that has none."""
    for name in plugins.names("domain"):
        domain = plugins.build("domain", name, {})
        if path.suffix.lower() in domain.suffixes:
            notes = domain.provenance(path)
            try:
                spec = from_plain(RunSpec, json.loads(notes["spec"]) | {"out": None})
            except (KeyError, TypeError, ValueError) as error:
                raise InputError(f"{path} carries no spec of a run; give a file that foreshape wrote") from error
            return spec.identity()
    raise InputError(f"{path} ends in {path.suffix!r}, which no domain writes; give a file that foreshape wrote")


@lru_cache
def commit() -> str:
    """The commit of the code where it runs from a checkout, with `+` where files differ from it; else `unknown`."""
    root = Path(__file__).parents[1]
    try:
        found = subprocess.run(
            ["git", "-C", str(root), "describe", "--always", "--dirty=+", "--abbrev=12", "--exclude=*"],
            capture_output=True,
            text=True,
            timeout=10,
            check=True,
        )
    except (OSError, subprocess.SubprocessError):
        return "unknown"
    return found.stdout.strip()


@lru_cache
def _digest(checkpoint: Path) -> str:
    return checkpoints.weights_digest(checkpoint)
