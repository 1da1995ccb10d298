"""An evolution as a generator: the designs of a run are the best that it measured."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor

from data.noise import DesignNoise, Noise, StepNoise, stable_seed
from data.space import Space, State
from generators.base import GeneratorError, Guidance, Score
from generators.ideas import surrogate
from generators.ideas.alphabet import UNUSED, Alphabet
from generators.ideas.evolution import evolve
from generators.ideas.explanation import explain, in_motifs
from generators.ideas.meter import Meter
from generators.ideas.protocol import MEMBERS, Strategy
from generators.ideas.strategy import EXPLAINER

LARGEST = 2048
"""No budget is larger: the surrogate's cost is cubic in it."""


@dataclass
class _Evolution:
    """The last evolution, and what it was asked with; not whole where the score raised."""

    seed: int
    rounds: int
    score: Score
    pool: Tensor
    locked: Tensor
    meter: Meter
    whole: bool = False

    def is_of(self, other: _Evolution) -> bool:
        """Whether the other was asked with the same."""
        mine, others = (self.seed, self.rounds, self.score), (other.seed, other.rounds, other.score)
        return mine == others and self.pool.equal(other.pool) and self.locked.equal(other.locked)


class Evolution:
    """Optimises a score within a budget of measurements, whatever the strategy that decides what is measured.

    The whole evolution depends on the run's seed alone. Design i is the i-th best of all that were measured, so it is
    the same in any batch, and a run can grow.
    """

    steps = 1
    steerable = False
    optimises = True

    def __init__(
        self, space: Space, budget: int, start: int, strategy: Callable[[Alphabet], Strategy], file: str = ""
    ) -> None:
        if not 2 <= budget <= LARGEST:
            raise GeneratorError(f"budget is {budget}; it is from 2 to {LARGEST} measurements; choose e.g. 256")
        if not 1 <= start < budget:
            raise GeneratorError(f"start is {start}; it is from 1 to budget - 1 = {budget - 1} designs; choose fewer")
        self.space, self.alphabet = space, Alphabet(space)
        self.budget, self.start, self.strategy, self.file = budget, start, strategy, file
        self.most_designs, self.most_steps = budget, budget - start
        self._pool: Tensor | None = None
        self._last: _Evolution | None = None

    def to(self, device: torch.device) -> Evolution:
        """The same generator: what it computes is little, and stays on the CPU."""
        return self

    def fit(self, batches: Iterable[State], rng: Noise, on_step: Callable[[int, dict[str, float]], None]) -> None:
        """Keep designs to start from. Nothing is learned: what is measured of them is charged to the budget."""
        found: list[Tensor] = []
        for batch in batches:
            found.append(self.alphabet.letters(batch))
            on_step(len(found), {"designs": float(sum(map(len, found)))})
        if not sum(map(len, found)):
            raise GeneratorError("no designs to start from; give a corpus of one or more")
        self._pool, self._last = torch.cat(found), None

    def sample(
        self,
        n: int,
        steps: int,
        score: Score | None,
        guidance: Guidance | None,
        rng: DesignNoise,
        on_step: Callable[[int], None],
        lock: State | None = None,
    ) -> State:
        """The `n` designs whose ranks are `rng.designs`, after `steps` rounds that climb `score`.

        All that is measured has the letters of `lock` at its sites. Raises `GeneratorError` without a score, with
        guidance, or for a rank beyond what was measured.
        """
        if score is None:
            raise GeneratorError("ideas optimises a score and has none; add rewards")
        if guidance is not None:
            raise GeneratorError("ideas climbs the score itself; use guidance=free")
        if not 1 <= steps <= self.budget - self.start:
            left = self.budget - self.start
            raise GeneratorError(f"steps is {steps}: {left} measurements are left for rounds; ask for 1 to {left}")
        self._check_ranks(rng, self.budget, "raise budget")
        pool = self._held(lock)
        meter = self._evolved(steps, score, pool, rng.seed, lambda k: on_step(k * n))
        self._check_ranks(rng, len(meter.values), "lock fewer sites" if lock else "make longer designs")
        on_step(n * steps)
        return self.alphabet.state(meter.designs[meter.ranking()[list(rng.designs)]])

    def check_lock(self, lock: State) -> None:
        """Raise `GeneratorError` for what is not some letters of one design, or is beyond all designs to start from."""
        self._held(lock)

    @property
    def measured(self) -> tuple[State, Tensor]:
        """All designs of the last evolution and their values (N,), in the order of measurement.

        Where the score raised, those until then. The same call of `sample` asks the score about the others only.
        """
        meter = self._measured().meter
        return self.alphabet.state(meter.designs), meter.values

    @property
    def has_measured(self) -> bool:
        """Whether there is anything to explain."""
        return self._last is not None

    def explain(self, state: State) -> tuple[Tensor, Tensor]:
        """How critical each site of designs is (N, L), and whether it belongs to a motif (N, L).

        It is as critical as normal score is lost when its letters are changed, by a surrogate that is trained on all
        that the last evolution measured.
        """
        last = self._measured()
        rng = StepNoise(stable_seed("ideas", last.seed)).fork(1)
        model = surrogate.fit(self.alphabet, last.meter.designs, last.meter.values, MEMBERS, rng)
        why = explain(EXPLAINER, model.mean, self.alphabet, self.alphabet.letters(state))
        return why.criticality.sum(-1), in_motifs(why).any(-1)

    def save(self, folder: Path) -> None:
        """Raises `GeneratorError`: nothing outlives an evolution."""
        raise GeneratorError("ideas has no weights to save; it learns within each run; use `foreshape generate`")

    def _measured(self) -> _Evolution:
        if self._last is None:
            raise GeneratorError("nothing was measured yet; call sample first")
        return self._last

    def _held(self, lock: State | None) -> Tensor:
        """The designs (N, L, F) to start from, with the letters of a lock, which may not change from now on."""
        if self._pool is None:
            raise GeneratorError("no designs to start from; call fit with a corpus first")
        if lock is None:
            self.alphabet.locked[:] = False
            return self._pool
        letters, held = self.alphabet.letters(lock), lock["mask"].cpu()
        if len(held) != 1 or not held.any():
            raise GeneratorError(f"a lock has {len(held)} designs, {int(held.sum())} sites; give one, with some")
        for name in self.space.factors:
            if not (lock[name][lock["mask"]] == 1).sum(-1).eq(1).all():
                raise GeneratorError(f"{name} of a locked site is not one letter; give each site exactly one")
        longest = self._pool[(self._pool[..., 0] != UNUSED)[:, held[0]].all(-1)]
        if not len(longest):
            last, most = int(held.nonzero()[-1, 1]) + 1, int((self._pool[..., 0] != UNUSED).sum(-1).max())
            raise GeneratorError(f"site {last} is locked, and no design to start from has more than {most}; lower it")
        self.alphabet.locked[:] = held[0, :, None]
        return torch.where(held[..., None], letters, longest)

    def _evolved(self, rounds: int, score: Score, pool: Tensor, seed: int, on_round: Callable[[int], None]) -> Meter:
        meter = Meter(score, self.alphabet, self.budget)
        last, this = self._last, _Evolution(seed, rounds, score, pool, self.alphabet.locked.clone(), meter)
        if last and last.is_of(this):
            if last.whole:
                return last.meter
            this.meter = Meter(score, self.alphabet, self.budget, last.meter)
        self._last, rng = this, StepNoise(stable_seed("ideas", seed))
        evolve(this.meter, pool, self.start, rounds, self.strategy(self.alphabet), rng, on_round)
        this.whole = True
        return this.meter

    def _check_ranks(self, rng: DesignNoise, most: int, remedy: str) -> None:
        if max(rng.designs, default=0) >= most:
            raise GeneratorError(
                f"design {max(rng.designs)} was asked for and {most} are measured of a budget of {self.budget}; "
                f"ask for n={most} or fewer, or {remedy}"
            )
