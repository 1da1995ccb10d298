"""Seven rivals of IDEAS behind the same protocol; those with a model have the same surrogate and as many candidates."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from generators.ideas.alphabet import Alphabet
from generators.ideas.baselines.adalead import AdaLead
from generators.ideas.baselines.bayesian import BayesianOptimisation
from generators.ideas.baselines.cbas import CbAS
from generators.ideas.baselines.cma_es import CMAES
from generators.ideas.baselines.genetic import GeneticAlgorithm
from generators.ideas.baselines.pex import PEX
from generators.ideas.baselines.random_designs import RandomDesigns
from generators.ideas.protocol import Strategy

__all__ = ["BASELINES"]

BASELINES: Mapping[str, Callable[[Alphabet], Strategy]] = {
    "random": RandomDesigns,
    "genetic": GeneticAlgorithm,
    "adalead": AdaLead,
    "pex": PEX,
    "cma_es": CMAES,
    "bayesian": BayesianOptimisation,
    "cbas": CbAS,
}
