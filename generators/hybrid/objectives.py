"""The losses of a batch under teacher forcing, by name."""

from __future__ import annotations

from dataclasses import dataclass, replace

import torch
from diffusers import DDIMScheduler
from torch import Tensor
from torch.nn import functional

from data.noise import Noise
from generators.hybrid.conditions import forgotten
from generators.hybrid.heads import TIMES
from generators.hybrid.model import HybridSequence
from generators.hybrid.units import Units

LATE = 5.0
"""Weight of the probability that the end is missed, which stands for all the lengths beyond it."""
MULTIPLE = 64
"""Of it is the number of rows."""
BLUR = 0.3
"""Standard deviation, in bins, of the noise on input numbers; halved by each octave of `finer`."""


@dataclass(frozen=True)
class Rows:
    """The units in use of a batch, one row each, filled up with rows that do not count."""

    places: Tensor
    """(M,) of a row in the flattened batch."""
    counts: Tensor
    """(M,) bool."""
    categories: Tensor
    """(M, categorical factors)."""
    bins: Tensor
    """(M, slots), as `residuals`, `used` and the two that follow."""
    residuals: Tensor
    used: Tensor
    before: Tensor
    """The bins of the unit before, as the network sees them, and whether they are used."""
    present: Tensor


def losses(
    model: HybridSequence,
    scheduler: DDIMScheduler,
    units: Units,
    blurred: float,
    rng: Noise,
    codes: Tensor | None = None,
) -> dict[str, Tensor]:
    """Nats per unit of the categories (with the end) and of the bins, squared error of the residuals' velocity, CRPS.

    A share `blurred` of the input numbers is noisy, so that prefixes look like sampled ones. Of the `codes` of what is
    known of the designs, the network is shown some.
    """
    shown = None if codes is None else forgotten(codes, rng.fork(2))
    seen = _blur(units, blurred, BLUR / 2**model.config.finer, rng.fork(0))
    hidden = model.hidden(seen, shown)  # (B, L + 1, channels)
    ending, length = _first(model, hidden, units)
    rows = _rows(model, units, seen)
    z = hidden[:, :-1].flatten(0, 1)[rows.places]  # (M, channels)
    z, categories = _categories(model, z, rows)
    z, bins = _bins(model, z, rows)
    residual = _residual(model, scheduler, z, rows, rng.fork(1))
    count = units.mask.sum().clamp_min(1)
    return {"categories": ending + categories / count, "bins": bins / count, "residual": residual, "length": length}


def crps(hazards: Tensor, lengths: Tensor) -> Tensor:
    """(B,) the continuous ranked probability score of the length that hazards (B, L + 1) imply, over the true length.

    The hazard at k is the probability of an end after k units, if there was none before. It adds (F(k) - [k >= N])^2
    over all lengths k, where F is the distribution of the length (Gneiting and Raftery 2007, JASA 102, eq. 21). Those
    beyond N are not known under teacher forcing: the one at N stands for them, with the weight `LATE`.
    """
    missed = torch.cumprod(1 - hazards, dim=1)  # (B, L + 1), 1 - F(k)
    k = torch.arange(hazards.shape[1], device=hazards.device)
    early = ((1 - missed).square() * (k < lengths[:, None])).sum(1)
    late = missed.gather(1, lengths[:, None])[:, 0].square()
    return (early + LATE * late) / lengths.clamp_min(1)


def _blur(units: Units, share: float, by: float, rng: Noise) -> Units:
    chosen = rng.fork(0).uniform(*units.values.shape).to(units.values.device) < share
    noise = rng.fork(1).normal(*units.values.shape).to(units.values.device)
    return replace(units, values=units.values + by * noise * chosen)


def _first(model: HybridSequence, hidden: Tensor, units: Units) -> tuple[Tensor, Tensor]:
    """Nats per unit of the first category and the end, and the score of the length."""
    places = torch.arange(hidden.shape[1], device=hidden.device)
    logits = model.first_logits(hidden, places)  # (B, L + 1, n + 1)
    end = logits.shape[-1] - 1
    targets = functional.pad(units.categories[..., 0], (0, 1)).masked_fill(places == units.lengths[:, None], end)
    inside = places <= units.lengths[:, None]
    nats = functional.cross_entropy(logits[inside], targets[inside], reduction="sum")
    hazards = logits.softmax(-1)[..., -1]
    return nats / units.mask.sum().clamp_min(1), crps(hazards, units.lengths).mean()


def _rows(model: HybridSequence, units: Units, seen: Units) -> Rows:
    # Few different numbers of rows: a CPU's matrix kernels are made anew for each new shape.
    places = units.mask.flatten().nonzero()[:, 0]
    filled = functional.pad(places, (0, -len(places) % MULTIPLE))
    counts = torch.arange(len(filled), device=filled.device) < len(places)
    bins, residuals = (part.flatten(0, 1)[filled] for part in model.vocabulary.split(units.values))
    before = functional.pad(model.vocabulary.split(seen.values)[0], (0, 0, 1, 0))[:, :-1]
    present = functional.pad(units.used, (0, 0, 1, 0))[:, :-1]
    return Rows(
        filled,
        counts,
        units.categories.flatten(0, 1)[filled],
        bins,
        residuals,
        units.used.flatten(0, 1)[filled] & counts[:, None],
        before.flatten(0, 1)[filled],
        present.flatten(0, 1)[filled],
    )


def _categories(model: HybridSequence, z: Tensor, rows: Rows) -> tuple[Tensor, Tensor]:
    """z that knows the categories, and the nats of all but the first, which `_first` counts."""
    nats = z.new_zeros((), dtype=torch.float32)
    for i in range(rows.categories.shape[1]):
        if i > 0:
            nats = nats + _nats(model.fields.category_logits(z, i), rows.categories[:, i], rows.counts)
        z = model.fields.with_category(z, i, rows.categories[:, i])
    return z, nats


def _bins(model: HybridSequence, z: Tensor, rows: Rows) -> tuple[Tensor, Tensor]:
    """z that knows the bins with their places, and the nats of those that are used."""
    nats = z.new_zeros((), dtype=torch.float32)
    for k in range(model.vocabulary.slots):
        anchors = torch.cat([rows.before, rows.bins[:, :k]], dim=-1)
        present = torch.cat([rows.present, rows.used[:, :k]], dim=-1)
        nats = nats + _nats(model.fields.bin_logits(z, k, anchors, present), rows.bins[:, k], rows.used[:, k])
        z = model.fields.with_bin(z, k, rows.bins[:, k], rows.used[:, k])
        if model.vocabulary.places > 1:
            place = model.vocabulary.place(rows.residuals[:, k])
            nats = nats + _nats(model.fields.place_logits(z, k), place, rows.used[:, k])
            z = model.fields.with_place(z, k, place, rows.used[:, k])
    return z, nats


def _nats(logits: Tensor, targets: Tensor, counts: Tensor) -> Tensor:
    total: Tensor = (functional.cross_entropy(logits, targets, reduction="none") * counts).sum()
    return total


def _residual(model: HybridSequence, scheduler: DDIMScheduler, z: Tensor, rows: Rows, rng: Noise) -> Tensor:
    """Mean squared error of the velocity v = sqrt(a) noise - sqrt(1 - a) residual, at one time for each unit."""
    if model.denoiser is None:
        return z.new_zeros((), dtype=torch.float32)
    clean = rows.residuals
    times = (rng.fork(0).uniform(len(clean)) * TIMES).long().to(clean.device)
    noise = rng.fork(1).normal(*clean.shape).to(clean.device)
    noisy, target = scheduler.add_noise(clean, noise, times), scheduler.get_velocity(clean, noise, times)
    error = (model.denoiser(noisy, times, z, rows.used) - target).square() * rows.used
    mean: Tensor = error.sum() / rows.used.sum().clamp_min(1)
    return mean
