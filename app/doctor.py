"""Whether all is well here: this machine, the shipped files, and a design in one step by every cell that is ready."""

from __future__ import annotations

import importlib.metadata
import os
import platform
import re
import shutil
import tempfile
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import torch

from app import cells, devices, inventory
from app.spec import Choice
from data import checkpoints, corpora
from data.errors import InputError
from data.noise import DesignNoise
from data.store import home
from data.store.database import Database, address, shown

DRIVER = Path("/proc/driver/nvidia/version")
"""Where the kernel tells of an NVIDIA driver."""
Check = Callable[[], str]
"""Says what it found; raises `ValueError`, `OSError` or `RuntimeError` for what is wrong, with the remedy."""


def examination() -> dict[str, Any]:
    """Every check by name, with whether it is passed and what it found."""
    return {"checks": [_checked(name, check) for name, check in _checks()]}


def _checks() -> Iterator[tuple[str, Check]]:
    yield "python", lambda: f"{platform.python_version()} on {platform.system()} {platform.machine()}"
    yield "torch", lambda: f"{torch.__version__}, {_build()}, {torch.get_num_threads()} threads of {os.cpu_count()}"
    yield "gpu", _gpu
    yield "device", lambda: f"runs of device=auto are made on {devices.resolve('auto')}"
    yield "memory", lambda: f"{devices.free(torch.device('cpu')) / 1e9:.1f} GB free"
    for name, packages in extras().items():
        yield f"extra {name}", partial(_extra, name, packages)
    yield "home", lambda: _writable(home(), "set FORESHAPE_HOME to a folder where you may write")
    yield "folder for passing files", lambda: _writable(Path(tempfile.gettempdir()), "set TMPDIR to one")
    yield "store", _store
    yield "corpora", lambda: ", ".join(f"{name} {len(corpora.load(name))} arrays" for name in corpora.names())
    for name in checkpoints.names():
        yield f"checkpoint {name}", partial(_checkpoint, name)
    for cell in inventory.contents()["cells"]:
        if cell["state"] == cells.READY:
            yield f"{cell['generator']} on {cell['domain']}", partial(_one_step, cell["domain"], cell["generator"])


def _checked(name: str, check: Check) -> dict[str, Any]:
    try:
        return {"name": name, "ok": True, "detail": check()}
    except (ValueError, OSError, RuntimeError) as error:
        return {"name": name, "ok": False, "detail": " ".join(str(error).split())}


def _build() -> str:
    return f"built for CUDA {torch.version.cuda}" if torch.version.cuda else "built for the CPU alone"


def _gpu() -> str:
    """The GPUs that PyTorch sees; raises `RuntimeError` where it could see one and does not."""
    driver = _driver()
    if torch.cuda.is_available():
        cards = [torch.cuda.get_device_properties(k) for k in range(torch.cuda.device_count())]
        return ", ".join(f"{card.name} {card.total_memory / 1e9:.0f} GB" for card in cards) + f", driver {driver}"
    if driver and torch.version.cuda:
        raise RuntimeError(f"PyTorch sees no GPU by driver {driver}; CUDA {torch.version.cuda} may need a newer one")
    return f"none used: a driver {driver} is here, but PyTorch is {_build()}" if driver else "none, no driver"


def _driver() -> str:
    """The version of the NVIDIA driver; empty where there is none."""
    try:
        found = re.search(r"\b(\d+\.\d+[.\d]*)", DRIVER.read_text())
    except OSError:
        return ""
    return found[1] if found else "unknown"


def extras() -> Mapping[str, list[str]]:
    """The packages of each extra that a user may install, as this program's own metadata has them."""
    found: defaultdict[str, list[str]] = defaultdict(list)
    try:
        required = importlib.metadata.requires("foreshape") or []
    except importlib.metadata.PackageNotFoundError:  # it runs from a folder that was never installed
        return found
    for line in required:
        package, extra = re.match(r"[\w.-]+", line), re.search(r"extra == [\"']([\w-]+)[\"']", line)
        if package and extra and extra[1] != "dev":
            found[extra[1]].append(package[0])
    return found


def _extra(name: str, packages: list[str]) -> str:
    words, missing = [], False
    for package in packages:
        try:
            words.append(f"{package} {importlib.metadata.version(package)}")
        except importlib.metadata.PackageNotFoundError:
            words.append(f"{package} is not installed")
            missing = True
    return ", ".join(words) + (f"; `pip install 'foreshape[{name}]'` adds it" if missing else "")


def _writable(folder: Path, remedy: str) -> str:
    """Try it, in the first folder on the way there that exists; raises `InputError`."""
    place = folder.absolute()
    while not place.exists():
        place = place.parent
    try:
        with tempfile.TemporaryFile(dir=place) as file:
            file.write(b"0")
    except OSError as error:
        raise InputError(f"{folder} cannot be written ({error.strerror}); {remedy}") from error
    return f"{folder.absolute()} can be written, {shutil.disk_usage(place).free / 1e9:.0f} GB free"


def _store() -> str:
    """Open it, unless it is a file that is not there yet."""
    if address().startswith("sqlite") and not (home() / "foreshape.db").exists():
        return f"{shown(address())} is made with the first run"
    Database()
    return f"{shown(address())} can be used"


def _checkpoint(name: str) -> str:
    folder = checkpoints.FOLDER / name
    checkpoints.verify(folder)
    return f"sha256 {checkpoints.weights_digest(folder)[:16]}, as recorded"


def _one_step(domain_name: str, generator_name: str) -> str:
    choice = Choice(generator_name, {})
    domain = cells.domain(Choice(domain_name, {}), generator_name)
    folder = cells.checkpoint(domain_name, choice, "auto", domain)
    generator = cells.ready(choice, domain, folder, 0, devices.resolve("auto"))
    score = (lambda state: state["mask"].sum(-1).float()) if generator.optimises else None
    state = generator.sample(1, 1, score, None, DesignNoise(0, [0]), lambda step: None)
    domain.space.check(state)
    return f"one design in one step, {len(domain.violations(domain.decode(state)[0]))} violations"
