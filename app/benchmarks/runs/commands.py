"""Commands of the program in processes of their own, with one thread each."""

from __future__ import annotations

import os
import subprocess

from app import PROGRAM


def begin(*words: str) -> subprocess.Popen[bytes]:
    """Start a command."""
    environment = os.environ | {"OMP_NUM_THREADS": "1"}
    return subprocess.Popen([*PROGRAM, *words], env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def foreshape(*words: str) -> float:
    """Do a command; returns the megabytes of memory that it took at its most. Raises `RuntimeError` if it fails."""
    process = begin(*words)
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise RuntimeError(f"foreshape {' '.join(words)} ended with {process.returncode}")
    return usage.ru_maxrss / 1024
