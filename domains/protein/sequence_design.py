"""Sequences for backbones, and how well letters and backbones go together, by ProteinMPNN.

Each backbone is encoded by itself and sequences are drawn in tiles of one size, because the rounding of a sum depends
on the shape of the tensor around it: so what a backbone gets does not depend on the others.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from data import checkpoints
from data.noise import DesignNoise, StepNoise, stable_seed
from domains.base import DesignError
from domains.protein import protein_mpnn, residues
from domains.protein.protein_mpnn import Encoded, ProteinMPNN
from domains.protein.residues import LETTERS, NUMBER, OTHER, Protein

CHECKPOINT = "protein-mpnn"
TEMPERATURE = 0.1
"""At which sequences are drawn unless told otherwise, the published default."""
COLDEST, HOTTEST = 1e-3, 10.0
_TILE = 8
"""Sequences drawn at a time."""


@dataclass(frozen=True, eq=False)
class Designed:
    """A backbone with letters that were drawn for it."""

    protein: Protein
    temperature: float
    nll: float
    """Mean over the residues that were drawn of -log p(letter), in nats, at temperature 1; 0 where none was."""
    probabilities: np.ndarray
    """(n, 20) probabilities at temperature 1 of each residue's letters in the order of `LETTERS`, when it was drawn."""


def designed(
    backbones: Sequence[Protein],
    n: int,
    rng: DesignNoise,
    temperature: float = TEMPERATURE,
    fixed: Collection[tuple[str, str]] = (),
) -> list[list[Designed]]:
    """`n` sequences for each backbone, by the noise of its row; the k-th is the same for any n.

    Residues in `fixed`, by chain and author's number, keep their letters and are known from the beginning. Raises
    `DesignError` for one that no backbone has or whose letter is unknown, and for a temperature out of bounds.
    """
    if not COLDEST <= temperature <= HOTTEST:
        raise DesignError(f"temperature={temperature}; it is from {COLDEST:g} to {HOTTEST:g}; choose e.g. 0.1")
    if len(rng.designs) != len(backbones):
        raise ValueError(f"noise of {len(rng.designs)} designs for {len(backbones)} backbones")
    given = _given(backbones, set(fixed))
    forks = [rng.fork(k) for k in range(n)]
    lengths = enumerate(map(len, backbones))
    noise = [[fork.take([row]).uniform(1, 2, n_sites)[0] for fork in forks] for row, n_sites in lengths]
    drawn = iter(_drawn(backbones, given, noise, temperature))
    return [
        [_result(backbone, letters, *next(drawn), temperature) for _ in forks]
        for backbone, letters in zip(backbones, given, strict=True)
    ]


def likelihood(designs: Sequence[Protein], orders: int = 1, seed: int = 0) -> np.ndarray:
    """Negative log likelihood (n,) per residue, in nats, of each design's letters given those decoded before.

    The mean over `orders` random orders of decoding, which depend on `seed` and the length alone, and over the residues
    whose letters are known; nan where none is.
    """
    return np.array([_likelihood(design, orders, seed) for design in designs])


def self_likelihood(designs: Sequence[Protein], seed: int = 0) -> np.ndarray:
    """Negative log likelihood (n,) per residue, in nats, of a sequence drawn for each backbone at `TEMPERATURE`.

    The letters of the designs do not count. Low where the model is sure what belongs on a backbone. The noise depends
    on `seed` and the length alone; nan for a design of no residues.
    """
    given = [np.full(len(design), OTHER) for design in designs]
    noise = [[_noise("self", seed, len(design))] for design in designs]
    pairs = _drawn(designs, given, noise, TEMPERATURE)
    return np.array([_mean_nll(*pair, free=pair[0] >= 0) if len(pair[0]) else math.nan for pair in pairs])


def best(sequences: Sequence[Designed]) -> Designed:
    """The likeliest."""
    return min(sequences, key=lambda sequence: sequence.nll)


@cache
def model() -> ProteinMPNN:
    """The shipped weights."""
    return protein_mpnn.load(checkpoints.FOLDER / CHECKPOINT)


def places(design: Protein) -> np.ndarray:
    """Places (n,) along the chain by the author's numbers: gaps count, and each residue is after the one before."""
    numbers = [int(match[1]) for number in design.numbers if (match := NUMBER.fullmatch(number))]
    steps = np.diff(np.array(numbers[:1] + numbers, dtype=np.int64))
    return np.maximum(steps, 1).cumsum()


def _given(backbones: Sequence[Protein], fixed: set[tuple[str, str]]) -> list[np.ndarray]:
    """Codes (n,) of the residues that are fixed, `OTHER` elsewhere."""
    found, missing = [], set(fixed)
    for backbone in backbones:
        keys = [(backbone.chain, number) for number in backbone.numbers]
        missing -= set(keys)
        codes = residues.codes(backbone.letters).astype(np.int64)
        held = np.array([key in fixed for key in keys], dtype=bool)
        unknown = np.flatnonzero(held & (codes == OTHER))
        if len(unknown):
            number = backbone.numbers[unknown[0]]
            raise DesignError(f"residue {backbone.chain}:{number} is fixed, and its letter is not known; leave it free")
        found.append(np.where(held, codes, OTHER))
    if missing:
        chain, number = min(missing)
        raise DesignError(f"no residue {chain}:{number}, which is fixed; name residues by chain and author's number")
    return found


def _noise(what: str, seed: int, length: int) -> Tensor:
    """Numbers (2, length) on [0, 1): for the order of decoding, and for the letters."""
    return StepNoise(stable_seed(what, seed)).uniform(2, length)


@torch.inference_mode()
def _drawn(
    backbones: Sequence[Protein], given: Sequence[np.ndarray], noise: Sequence[Sequence[Tensor]], temperature: float
) -> list[tuple[np.ndarray, np.ndarray]]:
    """Codes (length,) and log probabilities (length, 21) for each noise of each backbone, one after the other."""
    rows = [(i, one) for i, some in enumerate(noise) for one in some]
    found: list[tuple[np.ndarray, np.ndarray]] = []
    encoded: dict[int, Encoded] = {}
    for first in range(0, len(rows), _TILE):
        tile = rows[first : first + _TILE]
        encoded = {i: encoded[i] if i in encoded else _encoded(backbones[i]) for i in dict.fromkeys(i for i, _ in tile)}
        found += _tile(encoded, given, [tile[k % len(tile)] for k in range(_TILE)], temperature)[: len(tile)]
    return found


def _tile(
    encoded: Mapping[int, Encoded],
    given: Sequence[np.ndarray],
    rows: Sequence[tuple[int, Tensor]],
    temperature: float,
) -> list[tuple[np.ndarray, np.ndarray]]:
    """The same for a tile of rows, each the number of a backbone and a noise (2, length)."""
    lengths = [len(given[i]) for i, _ in rows]
    longest = max(lengths)
    together = _stacked([encoded[i] for i, _ in rows], longest)
    codes = torch.stack([_padded(torch.from_numpy(given[i]), longest, OTHER) for i, _ in rows])
    # Fixed residues come first, sites that are not there last.
    keys = [_padded(one[0] + (codes[r, : one.shape[1]] == OTHER), longest, 2.0) for r, (_, one) in enumerate(rows)]
    uniform = torch.stack([_padded(one[1], longest, 0.0) for _, one in rows])
    order = torch.stack(keys).argsort(stable=True, dim=-1)
    drawn, log_probabilities = model().sample(together, order, uniform, temperature, codes)
    return [(drawn[r, :n].numpy(), log_probabilities[r, :n].double().numpy()) for r, n in enumerate(lengths)]


def _encoded(backbone: Protein) -> Encoded:
    """A batch of one."""
    atoms = torch.from_numpy(backbone.atoms().copy())
    atoms = atoms - atoms[:, 1].mean(0)
    index = torch.from_numpy(places(backbone))
    return model().encode(atoms[None], torch.ones(1, len(backbone), dtype=torch.bool), index[None])


def _stacked(some: Sequence[Encoded], longest: int) -> Encoded:
    """One batch of batches of one, padded to so many residues and to the model's number of neighbours."""
    k = model().neighbours

    def stacked(name: str, *sizes: int) -> Tensor:
        """One of the tensors of all."""
        values = [getattr(one, name)[0] for one in some]
        room: Tensor = values[0].new_zeros(len(values), longest, *sizes, *values[0].shape[1 + len(sizes) :])
        for row, value in zip(room, values, strict=True):
            row[tuple(map(slice, value.shape))] = value
        return room

    return Encoded(stacked("nodes"), stacked("edges", k), stacked("neighbours", k), stacked("near", k))


def _padded(values: Tensor, length: int, fill: float) -> Tensor:
    found: Tensor = functional.pad(values, (0, length - len(values)), value=fill)
    return found


@torch.inference_mode()
def _likelihood(design: Protein, orders: int, seed: int) -> float:
    codes = residues.codes(design.letters).astype(np.int64)
    if not (codes < OTHER).any():
        return math.nan
    encoded, found = _encoded(design), []
    for k in range(orders):
        rank = _noise(f"order {k}", seed, len(design))[0].argsort(stable=True).argsort()
        log_probabilities = model()(encoded, torch.from_numpy(codes)[None], rank[None])[0]
        found.append(_mean_nll(codes, log_probabilities.double().numpy(), codes < OTHER))
    return float(np.mean(found))


def _mean_nll(codes: np.ndarray, log_probabilities: np.ndarray, free: np.ndarray) -> float:
    """Mean -log p of the letters of the residues that are `free`; 0 where none is."""
    found = -log_probabilities[np.arange(len(codes)), codes][free]
    return float(found.mean()) if len(found) else 0.0


def _result(
    backbone: Protein, given: np.ndarray, codes: np.ndarray, log_probabilities: np.ndarray, temperature: float
) -> Designed:
    shares = np.exp(log_probabilities[:, : len(LETTERS)])
    return Designed(
        replace(backbone, letters=residues.text(codes)),
        temperature,
        _mean_nll(codes, log_probabilities, given == OTHER),
        shares / np.maximum(shares.sum(-1, keepdims=True), 1e-30),
    )
