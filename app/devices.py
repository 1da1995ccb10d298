"""Where tensors are computed."""

from __future__ import annotations

import resource
from pathlib import Path

import torch

from data.errors import InputError


class DeviceError(InputError):
    """A device that this machine does not have."""


def resolve(name: str) -> torch.device:
    """`auto` is CUDA where there is one, else the CPU; raises `DeviceError` for CUDA that is not there."""
    if name == "cuda" and not torch.cuda.is_available():
        raise DeviceError("device is 'cuda', but PyTorch finds no CUDA here; use device=cpu or device=auto")
    return torch.device("cuda" if name != "cpu" and torch.cuda.is_available() else "cpu")


def is_out_of_memory(error: BaseException) -> bool:
    """Whether an error says that the memory of a device, or of the machine, is full."""
    return isinstance(error, torch.OutOfMemoryError | MemoryError) or "can't allocate memory" in str(error)


def used(device: torch.device) -> int:
    """The most memory that this process has had on a device until now, in bytes."""
    if device.type == "cuda":
        return torch.cuda.max_memory_reserved(device)
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def free(device: torch.device) -> int:
    """Memory of a device that this process could have, in bytes: what nobody has, and what it has itself."""
    if device.type == "cuda":
        return torch.cuda.mem_get_info(device)[0] + torch.cuda.memory_reserved(device)
    own = _kilobytes(Path("/proc/self/status"), "VmRSS")
    return _kilobytes(Path("/proc/meminfo"), "MemAvailable") + own


def _kilobytes(table: Path, name: str) -> int:
    """A value of a table of the kernel's, in bytes."""
    lines = (line.split() for line in table.read_text().splitlines())
    return next(int(words[1]) * 1024 for words in lines if words[0] == f"{name}:")
