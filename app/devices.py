"""Where tensors are computed."""

from __future__ import annotations

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
