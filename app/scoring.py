"""Rewards put together: one number for optimisers, one row of raw scores for people."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from app import plugins
from app.spec import Weighted
from data.errors import InputError
from data.space import State
from data.store import Row
from domains.base import Domain
from rewards.base import Differentiable, Reward


@dataclass(frozen=True)
class Scorer:
    """The rewards of a run with their weights."""

    domain: Domain[Any]
    rewards: Mapping[str, Reward]
    weights: Mapping[str, float]

    def score(self, state: State) -> Tensor:
        """The weighted sum (B,) on a finished state, by the rewards' gradients where all of them have one."""
        total = torch.zeros(len(state["mask"]), device=state["mask"].device)
        relaxed = {name: reward for name, reward in self.rewards.items() if isinstance(reward, Differentiable)}
        if len(relaxed) == len(self.rewards):
            for name, reward in relaxed.items():
                total = total + self.weights[name] * reward.relaxed(state)
            return total
        return self.totals(self.domain.decode(state)).to(total)

    def totals(self, designs: Sequence[Any]) -> Tensor:
        """The weighted sum (B,) of the exact rewards of designs."""
        values = (self.weights[name] * reward(designs).value.cpu() for name, reward in self.rewards.items())
        return sum(values, torch.zeros(len(designs)))

    def better(self, kept: Sequence[Any], others: Sequence[Any]) -> list[Any]:
        """Design by design, the one of two that scores higher; the first where they are equal."""
        higher = self.totals(others) > self.totals(kept)
        return [other if wins else design for design, other, wins in zip(kept, others, higher.tolist(), strict=True)]

    def check_climbable(self, climber: str, needs_gradient: bool, instead: str) -> None:
        """Raise `InputError` where what climbs the score has nothing to climb, or no way to; `instead` ends it."""
        if not any(self.weights.values()):
            raise InputError(f"{climber} has no rewards to climb; add one, such as rewards.NAME.weight=1{instead}")
        flat = [key for key, reward in self.rewards.items() if not isinstance(reward, Differentiable)]
        if needs_gradient and flat:
            raise InputError(
                f"{climber} needs gradients, and {', '.join(flat)} has none; use guidance=best_of_n or guidance=free"
            )

    def rows(self, designs: Sequence[Any]) -> list[Row]:
        """One row a design: total, then each reward and what it measured, then the number of rules broken."""
        rows: list[Row] = [{"total": 0.0} for _ in designs]
        for name, reward in self.rewards.items():
            result = reward(designs)
            columns = {name: result.value} | {f"{name}.{part}": value for part, value in result.parts.items()}
            for i, row in enumerate(rows):
                row |= {column: float(f"{float(value[i]):.6g}") for column, value in columns.items()}
                row["total"] = float(row["total"]) + self.weights[name] * float(result.value[i])
                row[f"{name}.valid"] = int(result.valid[i])
        for row, design in zip(rows, designs, strict=True):
            row["total"] = float(f"{row['total']:.6g}")
            row["violations"] = len(self.domain.violations(design))
        return rows


def scorer(domain: Domain[Any], name: str, rewards: Mapping[str, Weighted]) -> Scorer:
    """Build the rewards of a run; raises `InputError` for one that is not for this domain."""
    for key in rewards:
        legal = getattr(plugins.returned("reward", key), "domains", (name,))
        if name not in legal:
            raise InputError(f"reward {key} scores {', '.join(legal)}, not {name}; choose another reward")
    built = {key: plugins.build("reward", key, entry.parameters, domain) for key, entry in rewards.items()}
    return Scorer(domain, built, {key: entry.weight for key, entry in rewards.items()})
