"""The simple models of an icon that any generator has to beat; they make states."""

from __future__ import annotations

import numpy as np
import torch

from data.space import State
from domains.svg.units import COMMANDS

_ENDS = len(COMMANDS)
_USES_NUMBERS = len(COMMANDS) - 1  # all but Z


def uniform(train: State, n: int, rng: np.random.Generator) -> State:
    """As many units as some icon of `train`, each any command anywhere on the canvas."""
    length = train["mask"].shape[1]
    sizes = rng.choice(train["mask"].sum(1).numpy(), size=n)
    commands = rng.integers(len(COMMANDS), size=(n, length))
    return _state(commands, rng.uniform(-1, 1, size=(n, length, 6)), sizes)


def independent(train: State, n: int, rng: np.random.Generator) -> State:
    """A first-order Markov chain of commands; the numbers of each unit are those of some unit with its command."""
    known = train["command"].argmax(-1).masked_fill(~train["mask"], _ENDS).numpy()
    length = known.shape[1]
    commands = _chain(known, n, rng)
    arguments = np.zeros((n, length, 6))
    for command in range(_USES_NUMBERS):
        pool, places = train["arguments"].numpy()[known == command], commands == command
        if len(pool):
            arguments[places] = pool[rng.integers(len(pool), size=places.sum())]
    return _state(commands, arguments, (commands != _ENDS).sum(1))


def _chain(known: np.ndarray, n: int, rng: np.random.Generator) -> np.ndarray:
    """Codes (n, length) of commands, `_ENDS` from where the chain ended."""
    length = known.shape[1]
    closed = np.pad(known, ((0, 0), (0, 1)), constant_values=_ENDS)
    counts = np.zeros((_ENDS + 1, _ENDS + 1))
    np.add.at(counts, (closed[:, :-1], closed[:, 1:]), 1)
    counts[_ENDS] = np.eye(_ENDS + 1)[_ENDS]
    counts += 1e-9  # a command that never occurs has a row as well
    chances = (counts / counts.sum(1, keepdims=True)).cumsum(1)
    made = np.empty((n, length), dtype=np.int64)
    made[:, 0] = known[rng.integers(len(known), size=n), 0]
    for site in range(1, length):
        drawn = rng.random((n, 1))
        made[:, site] = np.minimum((drawn > chances[made[:, site - 1]]).sum(1), _ENDS)
    return made


def _state(commands: np.ndarray, arguments: np.ndarray, sizes: np.ndarray) -> State:
    mask = np.arange(commands.shape[1]) < sizes[:, None]
    one_hot = np.eye(len(COMMANDS) + 1, len(COMMANDS))[np.where(mask, commands, _ENDS)]
    return {
        "command": torch.from_numpy(one_hot).float(),
        "arguments": torch.from_numpy(arguments * mask[..., None]).float(),
        "mask": torch.from_numpy(mask),
    }
