"""Executors: ways to start workers, here or on other machines. Whatever starts a worker, it claims from the queue."""

from __future__ import annotations

from typing import Any

from app import plugins
from app.executors.base import Executor
from app.spec import choice


def chosen(wanted: Any) -> Executor | None:
    """The executor that was asked for, as plain data; None where workers are started by other means."""
    if wanted is None:
        return None
    asked = choice("executor", wanted)
    executor: Executor = plugins.build("executor", asked.name, asked.parameters)
    return executor
