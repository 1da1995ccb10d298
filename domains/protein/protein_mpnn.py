"""ProteinMPNN: letters for a backbone, by message passing between neighbouring residues.

The vanilla model of Dauparas et al. 2022, Science 378, 49: an encoder of N, CA, C, O and an assumed CB, and a decoder
that gives one letter after the other, in any order. For single chains and for inference only, so without dropout.
Residues outside the mask send no messages; in the published code they send constant ones to chains of fewer residues
than neighbours.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import torch
from safetensors.torch import load_file
from torch import Tensor, nn
from torch.nn import functional

from data import checkpoints
from domains.protein.residues import LETTERS, OTHER

_FURTHEST = 32
"""Places along the chain further apart than this count as this far apart."""
_SCALE = 30.0
"""By which a sum of messages is divided."""
_CB = (-0.58273431, 0.56802827, -0.54067466)
"""CB - CA along (CA - N) x (C - CA), CA - N and C - CA, in a residue of ideal geometry."""
_PAIRS = (
    "CA-CA N-N C-C O-O CB-CB CA-N CA-C CA-O CA-CB N-C N-O N-CB CB-C CB-O O-C "
    "N-CA C-CA O-CA CB-CA C-N O-N CB-N C-CB O-CB C-O"
)
"""Atoms of a residue and of its neighbour whose distances an edge has, in the order of the weights."""
_ATOMS = ("N", "CA", "C", "O", "CB")
_FIRST, _SECOND = ([_ATOMS.index(pair.split("-")[i]) for pair in _PAIRS.split()] for i in (0, 1))
_TINY = 1e-6


@dataclass(frozen=True)
class Encoded:
    """What the encoder makes of B backbones of L residues, each with K neighbours."""

    nodes: Tensor
    """(B, L, width), of residues."""
    edges: Tensor
    """(B, L, K, width), of residues and their neighbours."""
    neighbours: Tensor
    """(B, L, K) int64: the nearest by CA, the first being the residue itself."""
    near: Tensor
    """(B, L, K) bool: whether both residue and neighbour are there."""


class ProteinMPNN(nn.Module):
    """Encoder and decoder; letters are codes of `residues`, 20 where unknown."""

    def __init__(
        self, width: int = 128, depth: int = 3, neighbours: int = 48, bases: int = 16, noise: float = 0
    ) -> None:
        """`noise` is what the coordinates had in training, in angstrom; nothing here depends on it."""
        super().__init__()
        self.neighbours, self.bases, self.noise = neighbours, bases, noise
        self.offset = nn.Linear(2 * _FURTHEST + 2, bases)
        self.distances = nn.Linear(bases * (1 + len(_FIRST)), width, bias=False)
        self.distances_norm = nn.LayerNorm(width)
        self.edge = nn.Linear(width, width)
        self.letter = nn.Embedding(OTHER + 1, width)
        self.encoder = nn.ModuleList(Encoder(width) for _ in range(depth))
        self.decoder = nn.ModuleList(Messages(width, 4) for _ in range(depth))
        self.output = nn.Linear(width, OTHER + 1)

    def encode(self, backbone: Tensor, mask: Tensor, index: Tensor) -> Encoded:
        """Of backbones (B, L, 4, 3) in angstrom, residues that are there (B, L) and their places along the chain."""
        neighbours, near = _nearest(backbone[:, :, 1], mask, self.neighbours)
        apart = (index[:, :, None] - _gathered(index, neighbours) + _FURTHEST).clamp(0, 2 * _FURTHEST)
        offset = self.offset(functional.one_hot(apart, 2 * _FURTHEST + 2).to(backbone.dtype))
        distances = _distances(backbone, neighbours)
        edges = self.distances(torch.cat([offset, _bumps(distances, self.bases).flatten(-2)], -1))
        edges = self.edge(self.distances_norm(edges))
        nodes = edges.new_zeros(*mask.shape, edges.shape[-1])
        for layer in self.encoder:
            nodes, edges = layer(nodes, edges, neighbours, near)
        return Encoded(nodes, edges, neighbours, near)

    def forward(self, encoded: Encoded, codes: Tensor, rank: Tensor) -> Tensor:
        """Log probabilities (B, L, 21) of each residue's letter, given those `codes` (B, L) with a lower `rank`."""
        neighbours = encoded.neighbours
        earlier = (_gathered(rank, neighbours) < rank[:, :, None])[..., None]
        letters = _gathered(self.letter(codes), neighbours) * earlier
        nodes, unread = encoded.nodes, _gathered(encoded.nodes, neighbours)
        for layer in self.decoder:
            others = torch.where(earlier, _gathered(nodes, neighbours), unread)
            nodes = layer(nodes, [encoded.edges, letters, others], encoded.near)
        return self._log_probabilities(nodes)

    def sample(
        self, encoded: Encoded, order: Tensor, uniform: Tensor, temperature: float, given: Tensor
    ) -> tuple[Tensor, Tensor]:
        """Codes (B, L), and log probabilities (B, L, 21) at temperature 1 of each letter when it was drawn.

        Residues are drawn in the `order` (B, L), a permutation, by numbers `uniform` (B, L) on [0, 1); where `given`
        (B, L) is not 20 it is the letter, whatever its probability.
        """
        codes, rows = given.clone(), torch.arange(len(order))
        drawn = torch.zeros_like(order, dtype=torch.bool)
        states = [encoded.nodes] + [torch.zeros_like(encoded.nodes) for _ in self.decoder]
        log_probabilities = encoded.nodes.new_zeros(*order.shape, OTHER + 1)
        for sites in order.T:
            neighbours = encoded.neighbours[rows, sites]
            by_row = (rows[:, None], neighbours)
            earlier = drawn[by_row][..., None]
            letters = self.letter(codes[by_row]) * earlier
            for layer, state, following in zip(self.decoder, states, states[1:], strict=False):
                others = torch.where(earlier, state[by_row], encoded.nodes[by_row])
                parts = [encoded.edges[rows, sites], letters, others]
                following[rows, sites] = layer(state[rows, sites], parts, encoded.near[rows, sites])
            found = self._log_probabilities(states[-1][rows, sites])
            picked = _picked(found, uniform[rows, sites], temperature)
            codes[rows, sites] = torch.where(given[rows, sites] == OTHER, picked, given[rows, sites])
            log_probabilities[rows, sites] = found
            drawn[rows, sites] = True
        return codes, log_probabilities

    def _log_probabilities(self, nodes: Tensor) -> Tensor:
        found: Tensor = self.output(nodes).log_softmax(-1)
        return found


class Messages(nn.Module):
    """What a residue learns from its neighbours; `parts` is how many things a message is made of."""

    def __init__(self, width: int, parts: int) -> None:
        super().__init__()
        self.message = Message(width, parts)
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.wide, self.narrow = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, nodes: Tensor, others: list[Tensor], near: Tensor) -> Tensor:
        """New nodes (..., width) from messages of nodes and other parts (..., K, width), those that are `near`."""
        hidden = self.message.hidden([nodes[..., None, :], *others]) * near[..., None]
        # The last linear map of a message comes after the sum, which is the same and cheaper.
        last, count = self.message.last, near.sum(-1, keepdim=True)
        summed = functional.linear(hidden.sum(-2), last.weight) + count * last.bias
        nodes = self.norm1(nodes + summed / _SCALE)
        following: Tensor = self.norm2(nodes + self.narrow(functional.gelu(self.wide(nodes))))
        return following


class Message(nn.Module):
    """Two hidden layers and an output of several parts, each of the same width, side by side."""

    def __init__(self, width: int, parts: int) -> None:
        super().__init__()
        self.first, self.second = nn.Linear(parts * width, width), nn.Linear(width, width)
        self.last = nn.Linear(width, width)

    def hidden(self, parts: list[Tensor]) -> Tensor:
        """The second hidden layer (..., width) of parts (..., width), of which some may have axes of size 1."""
        weights = self.first.weight.chunk(len(parts), -1)
        terms = [functional.linear(part, weight) for part, weight in zip(parts, weights, strict=True)]
        return functional.gelu(self.second(functional.gelu(sum(terms[1:], terms[0]) + self.first.bias)))

    def forward(self, parts: list[Tensor]) -> Tensor:
        """The output (..., width)."""
        found: Tensor = self.last(self.hidden(parts))
        return found


class Encoder(nn.Module):
    """A layer that renews nodes from edges, then edges from nodes."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.nodes, self.edges, self.norm = Messages(width, 3), Message(width, 3), nn.LayerNorm(width)

    def forward(self, nodes: Tensor, edges: Tensor, neighbours: Tensor, near: Tensor) -> tuple[Tensor, Tensor]:
        """New nodes (B, L, width) and edges (B, L, K, width)."""
        nodes = self.nodes(nodes, [edges, _gathered(nodes, neighbours)], near)
        return nodes, self.norm(edges + self.edges([nodes[:, :, None], edges, _gathered(nodes, neighbours)]))


def load(folder: Path) -> ProteinMPNN:
    """The model of a checkpoint; raises `CheckpointError` for a damaged one."""
    checkpoints.verify(folder)
    network = ProteinMPNN(**checkpoints.config(folder)["network"])
    network.load_state_dict(load_file(folder / checkpoints.WEIGHTS))
    return network.eval().requires_grad_(False)


def _nearest(places: Tensor, mask: Tensor, k: int) -> tuple[Tensor, Tensor]:
    """The k nearest of places (B, L, 3), at most, and which of them are there."""
    both = mask[:, :, None] & mask[:, None, :]
    apart = ((places[:, :, None] - places[:, None, :]).square().sum(-1) + _TINY).sqrt()
    apart = apart.masked_fill(~both, torch.inf)
    neighbours = apart.topk(min(k, places.shape[1]), largest=False).indices
    return neighbours, both.gather(-1, neighbours)


def _gathered(values: Tensor, neighbours: Tensor) -> Tensor:
    """(B, L, K, ...) values of the neighbours, from those of residues (B, L, ...)."""
    rows = torch.arange(len(values), device=values.device)[:, None, None]
    return values[rows, neighbours]


def _distances(backbone: Tensor, neighbours: Tensor) -> Tensor:
    """(B, L, K, 25) distances of the atoms of residues and of their neighbours, CB being put in."""
    n, ca, c = backbone[:, :, :3].unbind(2)
    first, second = ca - n, c - ca
    axes = torch.stack([torch.linalg.cross(first, second), first, second], -1)
    cb = ca + axes @ backbone.new_tensor(_CB)
    atoms = torch.cat([backbone, cb[:, :, None]], 2)
    between = atoms[:, :, None, _FIRST] - _gathered(atoms, neighbours)[..., _SECOND, :]
    return (between.square().sum(-1) + _TINY).sqrt()


def _bumps(distances: Tensor, count: int) -> Tensor:
    """(..., count) Gaussian bumps, evenly from 2 to 22 angstrom, at distances (...)."""
    centres = torch.linspace(2, 22, count, device=distances.device)
    return (-((distances[..., None] - centres) / (20 / count)).square()).exp()


def _picked(log_probabilities: Tensor, uniform: Tensor, temperature: float) -> Tensor:
    """Codes (B,) below 20, drawn from log probabilities (B, 21) by numbers on [0, 1)."""
    shares = (log_probabilities[:, : len(LETTERS)].double() / temperature).softmax(-1).cumsum(-1)
    return (shares <= uniform[:, None]).sum(-1).clamp(max=len(LETTERS) - 1)
