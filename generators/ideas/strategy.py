"""What is measured next: designs varied by the explanation of a surrogate, chosen by its predictions."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields

import torch
from torch import Tensor

from data.noise import StepNoise
from generators.ideas import guided, operators, selection, surrogate
from generators.ideas.alphabet import UNUSED, Alphabet
from generators.ideas.explainers import Explainer, first_order
from generators.ideas.explanation import Explanation, Mask, Motif, absent, explain, found, mirrored, motifs
from generators.ideas.meter import Meter
from generators.ideas.protocol import CANDIDATES, MEMBERS
from generators.ideas.surrogate import Surrogate

TRUSTED = 0.2
"""With less trust in the surrogate its explanation is noise, and no position is taken for critical."""
FEWEST, MOST = 10, 40
"""Elites; a fifth of what was measured in between."""
SHARES: Mapping[str, float] = {"protect": 0.2, "graft": 0.3, "recombine": 0.2, "leak": 0.1, "wish": 0.2}
"""Of the operators at first. A leak changes any position, so that no mistake about critical ones lasts.

A wish follows the surrogate at critical positions too: where protecting them hinders, it earns what protection loses.
"""
PROTECT, GRAFT = 0, 1
EXPLAINER: Explainer = first_order
"""Ranks positions as trying every letter does, since the kernel is nearly linear within a letter's reach."""
GENERATIONS = 2
"""Of the variation of a round; the best by the surrogate are the parents of the next."""
FLOOR = 0.05
"""The least share of an operator later."""


class Credit:
    """Shares of operators by probability matching (Thierens 2005, GECCO): in proportion to their rate of success."""

    def __init__(self, shares: Mapping[str, float]) -> None:
        self.trials = torch.ones(len(shares))
        self.successes = torch.tensor(list(shares.values()))

    def shares(self) -> Tensor:
        """(K,), each at least `FLOOR`."""
        rate = self.successes / self.trials
        return FLOOR + (1 - FLOOR * len(rate)) * rate / rate.sum()

    def add(self, operators: Tensor, better: Tensor) -> None:
        """Operators (N,) of measured designs, and whether each design was better than its parent."""
        self.trials += torch.bincount(operators, minlength=len(self.trials))
        self.successes += torch.bincount(operators[better], minlength=len(self.trials))


@dataclass(frozen=True)
class Candidates:
    """Varied designs (N, L, F), the operator that made each (N,) and the value of the elite it comes from (N,)."""

    letters: Tensor
    operator: Tensor
    before: Tensor

    def take(self, rows: Tensor | list[int]) -> Candidates:
        """Some of them."""
        return Candidates(self.letters[rows], self.operator[rows], self.before[rows])

    def join(self, other: Candidates) -> Candidates:
        """These and others."""
        pairs = ((getattr(self, field.name), getattr(other, field.name)) for field in fields(self))
        return Candidates(*(torch.cat(pair) for pair in pairs))


class Explained:
    """Keeps the critical motifs of good designs, writes them into other ones, and mutates what is not critical."""

    def __init__(
        self,
        alphabet: Alphabet,
        members: int = MEMBERS,
        explainer: Explainer = EXPLAINER,
        mask: Mask = found,
        both_strands: bool = False,
    ) -> None:
        self.alphabet, self.members, self.explainer, self.mask = alphabet, members, explainer, mask
        self.both_strands = both_strands
        self.credit = Credit(SHARES)
        self.trust: list[float] = []
        """In the surrogate of each round."""
        self._asked: Candidates | None = None

    def propose(self, meter: Meter, n: int, rng: StepNoise) -> Tensor:
        """At most `n` distinct designs that were not measured."""
        if self._asked is not None:
            self.credit.add(self._asked.operator, meter.measure(self._asked.letters) > self._asked.before)
        model = surrogate.fit(self.alphabet, meter.designs, meter.values, self.members, rng.fork(0))
        self.trust.append(model.trust)
        elites = selection.elites(meter, min(MOST, max(FEWEST, len(meter.values) // 5)))
        varied = self._varied(model, meter, elites, rng.fork(2))
        self._asked = varied.take(selection.batch(*model.joint(varied.letters), n))
        return self._asked.letters

    def _varied(self, model: Surrogate, meter: Meter, elites: Tensor, rng: StepNoise) -> Candidates:
        """Distinct designs that were not measured: some generations, the first from the elites, by the surrogate."""
        values = meter.values[elites]
        parents = Candidates(meter.designs[elites], torch.zeros(len(elites), dtype=torch.long), values)
        fitness, made = _fitness(values), parents.take([])
        for _ in range(GENERATIONS):
            made = made.join(self._children(model, parents, fitness, rng))
            made = made.take(meter.fresh_rows(made.letters))
            made = made.take(selection.sound(meter, made.letters))
            if not len(made.letters):
                break
            bound = selection.bound(*model.predict(made.letters))
            best = bound.argsort(descending=True, stable=True)[:MOST]
            parents, fitness = made.take(best), _fitness(bound[best])
        return made

    def _children(self, model: Surrogate, parents: Candidates, fitness: Tensor, rng: StepNoise) -> Candidates:
        """Designs each made by one operator from one parent."""
        mask = self.mask if model.trust >= TRUSTED else absent
        why = mask(explain(self.explainer, model.mean, self.alphabet, parents.letters), rng.fork(0))
        chosen = operators.choose(fitness, CANDIDATES // GENERATIONS, rng)
        operator = operators.choose(self.credit.shares(), len(chosen), rng)
        letters = self._apply(why, model.trust, operator, chosen, rng)
        return Candidates(letters, operator, parents.before[chosen])

    def _apply(self, why: Explanation, trust: float, operator: Tensor, parents: Tensor, rng: StepNoise) -> Tensor:
        alphabet, bank, made = self.alphabet, self._bank(why), why.letters[parents]
        if not bank:
            operator = operator.masked_fill(operator == GRAFT, PROTECT)
        protect, graft, recombine, leak, wish = (operator == i for i in range(len(SHARES)))
        for which, spared in ((protect, why), (wish, absent(why, rng))):
            wishes = guided.protected(alphabet, spared, trust)[parents[which]]
            made[which] = operators.mutate(alphabet, made[which], wishes, rng)
        made[leak] = self._plain(made[leak], rng)
        made[graft] = guided.graft(alphabet, why, bank, parents[graft], rng)
        donors = (rng.uniform(int(recombine.sum())) * len(why.letters)).long()
        made[recombine] = guided.recombine(why, parents[recombine], donors, rng)
        return made

    def _bank(self, why: Explanation) -> list[Motif]:
        """Motifs of the explained designs, and, where strands are alike, those of their other strand."""
        bank = motifs(why)
        if not self.both_strands:
            return bank
        lengths = (why.letters[..., 0] != UNUSED).sum(-1).tolist()
        return bank + [mirrored(x, lengths[x.owner], self.alphabet.sizes[x.factor]) for x in bank]

    def _plain(self, letters: Tensor, rng: StepNoise) -> Tensor:
        return operators.mutate(self.alphabet, letters, self.alphabet.uniform(letters), rng)


def _fitness(values: Tensor) -> Tensor:
    """Chances of elites to be parents: exponential in their value, by the standard deviation among them."""
    return (values / values.std(correction=0).clamp(min=1e-9)).softmax(0)
