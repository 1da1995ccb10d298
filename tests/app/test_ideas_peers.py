"""Baselines beside the same methods of FLEXS 0.2.8 and holo-bench, with one surrogate, budget and start; optional.

`pip install --no-deps flexs pytorch-holo` in another environment, put it on PYTHONPATH, and run this file with `-s`.
What FLEXS imports and its searches do not use (tensorflow and others) may be absent.
"""

from __future__ import annotations

import importlib
import importlib.abc
import importlib.machinery
import importlib.util
import random
import sys
from collections.abc import Callable, Iterator, Sequence
from types import ModuleType
from typing import Any, ClassVar

import numpy as np
import pytest
import torch
from torch import Tensor

from app.benchmarks.ideas.landscapes import Landscape, landscape
from app.benchmarks.ideas.work import ROUNDS
from data.noise import StepNoise, stable_seed
from generators.ideas import surrogate
from generators.ideas.alphabet import Alphabet
from generators.ideas.baselines import BASELINES
from generators.ideas.evolution import evolve
from generators.ideas.meter import Meter
from generators.ideas.protocol import CANDIDATES, MEMBERS, Strategy

UNUSED_BY_US = ("tensorflow", "tf_agents", "tape", "editdistance", "sklearn", "requests", "tqdm")
BUDGET, SEEDS = 256, 5
LETTERS = "ACDEFGHIKLMNPQRSTVWY"
NEEDS_RNA = pytest.mark.skipif(importlib.util.find_spec("RNA") is None, reason="ViennaRNA is not installed")


class Stub(ModuleType):
    """A module of which every lower-case name is a module and every other one a class."""

    __path__: ClassVar[list[str]] = []

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return Stub(name) if name[0].islower() else type(name, (), {})


class Stubs(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Finds a stub for what is not there."""

    def find_spec(self, name: str, path: object, target: object = None) -> importlib.machinery.ModuleSpec | None:
        return importlib.machinery.ModuleSpec(name, self) if name.partition(".")[0] in UNUSED_BY_US else None

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> ModuleType:
        return Stub(spec.name)

    def exec_module(self, module: ModuleType) -> None:
        """Nothing to do."""


@pytest.fixture(scope="module")
def flexs() -> Iterator[Any]:
    """The package, with its model as a wrapper of our surrogate."""
    if importlib.util.find_spec("flexs") is None:
        pytest.skip("flexs is not installed")
    sys.meta_path.append(stubs := Stubs())
    yield importlib.import_module("flexs")
    sys.meta_path.remove(stubs)


def explorer(flexs: Any, name: str, model: Any, start: str, letters: str, n: int) -> Any:
    """One of FLEXS with its own settings; it proposes one design fewer than it is asked for."""
    explorers = flexs.baselines.explorers
    asked: dict[str, Any] = {
        "rounds": ROUNDS - 1,
        "sequences_batch_size": n + 1,
        "model_queries_per_batch": CANDIDATES,
        "starting_sequence": start,
        "alphabet": letters,
    }
    if name == "genetic":
        chosen = {"parent_selection_strategy": "top-proportion", "parent_selection_proportion": 0.2}
        return explorers.GeneticAlgorithm(model, population_size=20, children_proportion=0.2, **chosen, **asked)
    return (explorers.Adalead if name == "adalead" else explorers.CMAES)(model, **asked)


class Flexs:
    """A strategy that asks FLEXS."""

    def __init__(self, flexs: Any, name: str, alphabet: Alphabet) -> None:
        self.flexs, self.name, self.alphabet = flexs, name, alphabet
        self.letters = LETTERS[: alphabet.sizes[0]]

    def propose(self, meter: Meter, n: int, rng: StepNoise) -> Tensor:
        pandas = pytest.importorskip("pandas")
        seeded(rng)
        fitted, codes = surrogate.fit(self.alphabet, meter.designs, meter.values, MEMBERS, rng.fork(0)), self.codes

        class Model(self.flexs.Model):  # type: ignore[misc, name-defined]
            def train(self, sequences: object, labels: object) -> None:
                """It is."""

            def _fitness_function(self, sequences: Sequence[str]) -> np.ndarray:
                return fitted.predict(codes(sequences))[0].numpy()

        texts = ["".join(self.letters[code] for code in row) for row in meter.designs[..., 0].tolist()]
        measured = pandas.DataFrame({"sequence": texts, "true_score": meter.values.numpy()})
        best = texts[int(meter.ranking()[0])]
        found, _ = explorer(self.flexs, self.name, Model("ours"), best, self.letters, n).propose_sequences(measured)
        return self.codes(found)

    def codes(self, sequences: Sequence[str]) -> Tensor:
        """Letters (N, L, 1)."""
        return torch.tensor([[self.letters.index(letter) for letter in text] for text in sequences])[..., None]


class Holo:
    """The genetic algorithm of holo-bench: half survive, all are mutated; its particles are the batch."""

    def __init__(self, optimiser: Any, alphabet: Alphabet) -> None:
        self.make, self.alphabet, self.search = optimiser, alphabet, None

    def propose(self, meter: Meter, n: int, rng: StepNoise) -> Tensor:
        seeded(rng)
        if self.search is None:
            self.design = torch.nn.Parameter(meter.designs[:1, :, 0].float())
            share = 1.1 / self.alphabet.positions
            vocabulary = list(range(self.alphabet.sizes[0]))
            self.search = self.make([self.design], vocabulary, share, share, num_particles=n)
            self.search.state[self.design]["particles"] = meter.designs[meter.ranking()[:n], :, 0].float()
        self.search.step(lambda particles: -meter.measure(particles[0].long()[..., None]))
        made: Tensor = self.search.state[self.design]["particles"]
        return made.long()[..., None]


def seeded(rng: StepNoise) -> None:
    """The global sources that peers draw from."""
    random.seed(rng.seed)
    np.random.seed(rng.seed % 2**32)
    torch.manual_seed(rng.seed % 2**63)


def bests(oracle: Landscape, build: Callable[[Alphabet], Strategy]) -> np.ndarray:
    """The best value found with each seed."""
    found = []
    for seed in range(SEEDS):
        rng, alphabet = StepNoise(stable_seed("peers", oracle.name, seed)), Alphabet(oracle.space)
        meter, start = Meter(oracle.score, alphabet, BUDGET), BUDGET // ROUNDS
        evolve(meter, oracle.start(start, rng.fork(0)), start, ROUNDS - 1, build(alphabet), rng.fork(1), lambda k: None)
        found.append(float(meter.values.max()))
    return np.array(found)


def behind(name: str, oracle: Landscape, theirs: Callable[[Alphabet], Strategy]) -> float:
    """How far ours is behind on average, in standard errors of the difference of the means."""
    mine, others = bests(oracle, BASELINES[name]), bests(oracle, theirs)
    error = ((mine.var(ddof=1) + others.var(ddof=1)) / SEEDS) ** 0.5
    print(f"{oracle.name} {name}: {mine.mean():.4f}, theirs {others.mean():.4f}, error of the difference {error:.4f}")
    return float((others.mean() - mine.mean()) / max(error, 1e-12))


@pytest.mark.parametrize("where", ["tfbind8_six6", "tfbind8_pax4", pytest.param("rna_14", marks=NEEDS_RNA), "aav_90"])
@pytest.mark.parametrize("name", ["adalead", "genetic", "cma_es"])
def test_ours_is_as_good_as_that_of_flexs(flexs: Any, name: str, where: str) -> None:
    assert behind(name, landscape(where), lambda alphabet: Flexs(flexs, name, alphabet)) <= 2


@pytest.mark.parametrize("where", ["ehrlich_32", "tfbind8_six6"])
def test_the_genetic_algorithm_is_as_good_as_that_of_holo(where: str) -> None:
    optimiser = pytest.importorskip("holo.optim").DiscreteEvolution
    assert behind("genetic", landscape(where), lambda alphabet: Holo(optimiser, alphabet)) <= 2
