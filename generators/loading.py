"""Networks read from the folders of checkpoints, where nothing is filled up, dropped or run without a word."""

from __future__ import annotations

import inspect
import json
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file
from torch import nn

from generators.base import GeneratorError

T = TypeVar("T", bound=nn.Module)


@contextmanager
def refusing(folder: Path, what: str) -> Iterator[None]:
    """Turns what reading a damaged folder may raise into a `GeneratorError` that says the folder holds no `what`."""
    try:
        yield
    except (OSError, KeyError, TypeError, ValueError, RuntimeError, RecursionError, SafetensorError) as error:
        reason = " ".join(str(error).split())
        raise GeneratorError(f"{folder} holds no {what} ({reason:.300}); restore it or train it anew") from error


def network(folder: Path, kind: type[T]) -> T:
    """The network of a diffusers class in a folder; raises `ValueError` and the like where it is damaged."""
    config = settings(folder / "config.json", kind)
    weights = load_file(folder / "diffusion_pytorch_model.safetensors")
    for name, value in weights.items():
        if value.dtype != torch.float32:
            raise ValueError(f"weight {name:.100} is {value.dtype}; it must be torch.float32")
        if not value.isfinite().all():
            raise ValueError(f"weight {name:.100} has values that are not finite")
    made: T = kind(**config)
    made.load_state_dict(weights)
    return made


def take_weights(
    ours: nn.Module, folder: Path, what: str, free: Collection[str] = (), new: Collection[str] = ()
) -> None:
    """Give a diffusers network the weights in a folder; raises `GeneratorError` unless they are of the same network.

    Every key of `config.json` must be the same, except those that are `free`. Where the folder has nothing of one of
    the parts that may be `new`, that part is left as it is.
    """
    with refusing(folder, what):
        theirs: Any = network(folder, type(ours))
    mine: Any = ours
    for key, value in theirs.config.items():
        if not key.startswith("_") and key not in free and mine.config[key] != value:
            raise GeneratorError(
                f"{folder} has {key}={value!r:.100}, not {mine.config[key]!r:.100}; give generator.{key} as it has it"
            )
    found: dict[str, Any] = theirs.state_dict()
    lacking = {part for part in new if not any(name.split(".")[0] == part for name in found)}
    kept = {name: value for name, value in ours.state_dict().items() if name.split(".")[0] in lacking}
    try:
        ours.load_state_dict(kept | found)
    except RuntimeError as error:
        reason = " ".join(str(error).split())
        raise GeneratorError(f"the weights of {folder} do not fit ({reason:.300}); give another checkpoint") from error


def settings(path: Path, kind: type) -> dict[str, Any]:
    """The arguments of a diffusers class in its file; raises `ValueError` for another class or unknown keys."""
    found = json.loads(path.read_text())
    if found.get("_class_name") != kind.__name__:
        raise ValueError(f"{path.name} is of class {found.get('_class_name')!r:.100}, not {kind.__name__}")
    given = {key: value for key, value in found.items() if not key.startswith("_")}
    legal = inspect.signature(kind).parameters
    for key in given:
        if key not in legal:
            raise ValueError(f"{path.name} has {key!r:.100}; there are {', '.join(legal)}")
    return given
