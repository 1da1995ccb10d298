"""Why a model likes a design: what each letter adds, which positions are critical, which motifs they form."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import torch
from torch import Tensor
from torch.nn import functional

from data.noise import Noise
from generators.ideas.alphabet import UNUSED, Alphabet
from generators.ideas.explainers import Explainer, Model

SHORTEST = 3
"""Critical positions of a motif."""
GAP = 2
"""Positions between two of them that are not critical, at most."""

Mask = Callable[["Explanation", Noise], "Explanation"]
"""What is made of the critical positions that were found."""


@dataclass(frozen=True)
class Explanation:
    """Of designs `letters` (N, L, F)."""

    letters: Tensor
    effects: Tensor
    """(N, L, W): what a letter would add at a site in place of the one that is there; 0 for that one."""
    criticality: Tensor
    """(N, L, F): what is lost on average when the letter of a position is changed."""
    critical: Tensor
    """(N, L, F) bool: positions whose loss stands out."""


@dataclass(frozen=True)
class Motif:
    """Letters (K,) of neighbouring critical positions of one factor of one design, and what they are worth together."""

    letters: Tensor
    """`UNUSED` at positions in between that are not critical."""
    start: int
    factor: int
    worth: float
    owner: int


def explain(explainer: Explainer, model: Model, alphabet: Alphabet, letters: Tensor) -> Explanation:
    """Effects of all substitutions and the critical positions of designs (N, L, F)."""
    effects = explainer(model, alphabet, letters)
    gained = torch.stack([part.sum(-1) for part in alphabet.split(effects)], -1)
    criticality = -gained / (torch.tensor(alphabet.sizes) - 1).clamp(min=1)
    return Explanation(letters, effects, criticality, critical(criticality, letters != UNUSED))


def critical(criticality: Tensor, used: Tensor) -> Tensor:
    """Bool (N, L, F): positive and, smoothed over neighbours, a standard deviation above the mean of the design."""
    flat = functional.pad(criticality.transpose(1, 2), (1, 1), mode="replicate")
    smooth = (flat[..., :-2] + 2 * flat[..., 1:-1] + flat[..., 2:]).transpose(1, 2) / 4
    count = used.sum((1, 2), keepdim=True).clamp(min=1)
    mean = (smooth * used).sum((1, 2), keepdim=True) / count
    spread = (((smooth - mean) * used).square().sum((1, 2), keepdim=True) / count).sqrt()
    return (smooth > 0) & (smooth > mean + spread) & used


def found(explanation: Explanation, rng: Noise) -> Explanation:
    """The mask as it was found."""
    return explanation


def permuted(explanation: Explanation, rng: Noise) -> Explanation:
    """A control: the critical positions of each design moved to others at random."""
    used = explanation.letters != UNUSED
    order = rng.uniform(*used.shape[:2]).argsort(1)[..., None].expand_as(used)
    criticality, critical = (x.gather(1, order) * used for x in (explanation.criticality, explanation.critical))
    return replace(explanation, criticality=criticality, critical=critical)


def absent(explanation: Explanation, rng: Noise) -> Explanation:
    """A control: no position is critical, so that there is nothing to protect and no motif."""
    none = torch.zeros_like
    return replace(explanation, criticality=none(explanation.criticality), critical=none(explanation.critical))


def motifs(explanation: Explanation) -> list[Motif]:
    """Runs, with gaps of up to `GAP`, of at least `SHORTEST` critical positions; all runs where none has so many.

    A motif that several designs share is in the list several times, which is how often it is drawn.
    """
    runs = []
    for owner, factor in explanation.critical.any(1).nonzero().tolist():
        sites = explanation.critical[owner, :, factor].nonzero().flatten()
        for run in sites.tensor_split((sites.diff() > GAP + 1).nonzero().flatten() + 1):
            worth = float(explanation.criticality[owner, run, factor].sum())
            if worth > 0:
                letters = torch.full((int(run[-1] - run[0]) + 1,), UNUSED)
                letters[run - run[0]] = explanation.letters[owner, run, factor]
                runs.append(Motif(letters, int(run[0]), factor, worth, owner))
    return [motif for motif in runs if int((motif.letters != UNUSED).sum()) >= SHORTEST] or runs


def in_motifs(explanation: Explanation) -> Tensor:
    """(N, L, F) bool: the critical positions of each design's own motifs."""
    held = torch.zeros_like(explanation.critical)
    for motif in motifs(explanation):
        held[motif.owner, motif.start : motif.start + len(motif.letters), motif.factor] |= motif.letters != UNUSED
    return held


def mirrored(motif: Motif, length: int, size: int) -> Motif:
    """The motif on the other strand of designs of `length` sites, where letter i pairs with `size` - 1 - i."""
    letters = (size - 1 - motif.letters).where(motif.letters != UNUSED, UNUSED).flip(0)
    return replace(motif, letters=letters, start=length - motif.start - len(letters))
