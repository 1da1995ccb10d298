"""Drawing a tile of sequences, unit by unit, from random numbers that were drawn beforehand."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from diffusers import DDIMScheduler
from torch import Tensor
from torch.nn import functional

from generators.hybrid.conditions import Asked
from generators.hybrid.heads import TIMES
from generators.hybrid.model import HybridSequence
from generators.hybrid.units import UNIT, Units

LEAST = -1e9
"""Stands for the logit of what cannot be, where sums over logits must stay finite."""


def head_scheduler() -> DDIMScheduler:
    """The schedule of the residuals' diffusion.

    DDIM (Song et al., arXiv 2010.02502) on a cosine schedule, predicting the velocity (Salimans and Ho, arXiv
    2202.00512); what it predicts is clipped to the bin, without which few steps leave it.
    """
    return DDIMScheduler(
        num_train_timesteps=TIMES,
        beta_schedule="squaredcos_cap_v2",
        prediction_type="v_prediction",
        clip_sample=True,
        clip_sample_range=UNIT / 2,
        timestep_spacing="trailing",
    )


@dataclass(frozen=True)
class Draws:
    """A tile's random numbers: uniform (B, L, categorical factors + slots, twice with places), normal (B, L, slots)."""

    uniform: Tensor
    normal: Tensor


class Sampler:
    """Draws sequences with a model; its scheduler has its timesteps set.

    Units that `held` (a batch of one) has in use are those of every sequence at their places. The units before do not
    know of them, those behind follow them: what is held first is completed, what lies between is filled in blindly.

    Where guidance needs what the network says under other conditions too, the network is shown each sequence twice:
    first all under those that are `asked`, then all under the base.
    """

    def __init__(
        self, model: HybridSequence, scheduler: DDIMScheduler, held: Units | None = None, asked: Asked | None = None
    ) -> None:
        self.model, self.scheduler, self.vocabulary, self.held = model, scheduler, model.vocabulary, held
        self.needed = 0 if held is None else 1 + int(held.mask[0].nonzero().max())
        self.given = model.given(None)[None] if asked is None else model.given(asked.rows)  # (branches, channels)
        self.weight = 1.0 if asked is None else asked.weight
        self.wanted = [
            torch.ones(n, dtype=torch.bool) if asked is None else asked.allowed(model.space.conditions, name, n)
            for name, n in self.vocabulary.categoricals.items()
        ]
        """By categorical factor: the categories (n,) that may be drawn."""

    def tile(self, draws: Draws) -> Units:
        """One sequence for each row; it ends by itself, or at the space's length."""
        size, length = draws.uniform.shape[:2]
        model, device = self.model, draws.uniform.device
        given = self.given.repeat_interleave(size, 0)
        cache, end = model.transformer.cache(len(given)), len(model.transitions) - 1
        units = _empty(size, length, len(self.vocabulary.categoricals), self.vocabulary.slots, device)
        previous = torch.full((size,), end, device=device)
        x, alive = model.begin.expand(size, -1), torch.ones(size, dtype=torch.bool, device=device)
        for i in range(length):
            hidden = model.transformer.step(self._all(x) + given, cache)
            if self.held is not None and self.held.mask[0, i]:
                unit = _repeated(self.held, i, size)
                first = unit[0][:, 0]
            else:
                first = self._first(hidden, i, previous, draws.uniform[:, i, 0])
                alive = alive & (first != end)
                if not alive.any():
                    break
                unit = self._unit(hidden, first.clamp_max(end - 1), i, units, draws)
            previous = torch.where(alive, first, previous)
            for whole, part in zip(
                (units.categories, units.values, units.used, units.mask), (*unit, alive), strict=True
            ):
                whole[:, i] = part
            x = model.embed(*unit)
        units.used.logical_and_(units.mask[..., None])
        return units

    def _all(self, x: Tensor) -> Tensor:
        """(B, ...) -> (branches B, ...): what is known of sequences, for each time that the network is shown them."""
        return x.repeat(len(self.given), *[1] * (x.dim() - 1))

    def _guided(self, told: Tensor) -> Tensor:
        """(branches B, ...) -> (B, ...): what the network says, moved away from what it says under the base."""
        if len(self.given) == 1:
            return told
        asked, base = told.chunk(2)
        return base + self.weight * (asked - base)

    def _first(self, hidden: Tensor, i: int, previous: Tensor, uniform: Tensor) -> Tensor:
        """(B,) the first category of unit i or the end, where it is drawn; see `_allowed`.

        Guidance changes which category it is, and not whether it is the end, so that lengths are what they are.
        """
        logits = self.model.first_logits(hidden, torch.tensor(i, device=hidden.device))
        allowed = self._allowed(previous, i)
        if len(self.given) > 1:
            asked, others = logits[: len(previous), :-1], self._guided(logits[:, :-1])
            before, after = (some.masked_fill(~allowed[:, :-1], LEAST).logsumexp(-1) for some in (asked, others))
            logits = torch.cat([others + (before - after)[:, None], logits[: len(previous), -1:]], dim=-1)
        logits = logits.masked_fill(~allowed, -torch.inf)
        return choose(logits, uniform, self.model.config.category_temperature, self.model.config.top_p)

    def _allowed(self, previous: Tensor, i: int) -> Tensor:
        """(B, n + 1) bool: what training has seen after `previous`, of what is asked for.

        No end before the last unit that is held; anything where training has seen nothing that may follow.
        """
        allowed: Tensor = self.model.transitions[previous] != 0
        asked = functional.pad(self.wanted[0].to(allowed.device), (0, 1), value=i >= self.needed)
        allowed &= asked
        allowed |= asked & ~allowed.any(-1, keepdim=True)
        return allowed

    def _unit(self, hidden: Tensor, first: Tensor, i: int, units: Units, draws: Draws) -> tuple[Tensor, Tensor, Tensor]:
        """Categories, values and what is used of unit i, given the first category and the units before."""
        fields, config, kinds = self.model.fields, self.model.config, len(self.vocabulary.categoricals)
        z, chosen = fields.with_category(hidden, 0, self._all(first)), [first]
        for j in range(1, kinds):
            logits = self._guided(fields.category_logits(z, j)).masked_fill(~self.wanted[j].to(z.device), -torch.inf)
            chosen.append(choose(logits, draws.uniform[:, i, j], config.category_temperature, config.top_p))
            z = fields.with_category(z, j, self._all(chosen[-1]))
        categories = torch.stack(chosen, dim=-1)
        used = self.vocabulary.used(categories)
        shown = self._all(used)
        anchors, present = self.vocabulary.split(units.values[:, i - 1])[0], units.used[:, i - 1] & (i > 0)
        places = torch.zeros_like(anchors)
        for k in range(self.vocabulary.slots):
            logits = self._guided(fields.bin_logits(z, k, self._all(anchors), self._all(present)))
            bins = choose(logits, draws.uniform[:, i, kinds + k], config.bin_temperature, config.top_p)
            z = fields.with_bin(z, k, self._all(bins), shown[:, k])
            if self.vocabulary.places > 1:
                uniform = draws.uniform[:, i, kinds + self.vocabulary.slots + k]
                logits = self._guided(fields.place_logits(z, k))
                places[:, k] = choose(logits, uniform, config.bin_temperature, config.top_p)
                z = fields.with_place(z, k, self._all(places[:, k]), shown[:, k])
            anchors = torch.cat([anchors, bins[:, None]], dim=-1)
            present = torch.cat([present, used[:, k : k + 1]], dim=-1)
        bins = anchors[:, self.vocabulary.slots :]
        if self.vocabulary.places:
            residuals = self.vocabulary.residual(places)
        else:
            residuals = self._residuals(z, shown, draws.normal[:, i])
        return categories, self.vocabulary.join(bins, residuals), used

    def _residuals(self, z: Tensor, used: Tensor, x: Tensor) -> Tensor:
        """(B, slots), from noise x."""
        if self.model.denoiser is None:
            return x
        for time in self.scheduler.timesteps:
            velocity = self._guided(self.model.denoiser(self._all(x), time.expand(len(z)), z, used))
            x = self.scheduler.step(velocity, time, x).prev_sample
        return x


def choose(logits: Tensor, uniform: Tensor, temperature: float, top_p: float) -> Tensor:
    """(B, n) -> (B,) classes by the inverse distribution function at uniform (B,).

    Only the likeliest classes whose probabilities just reach `top_p` (Holtzman et al., arXiv 1904.09751).
    """
    p, classes = (logits.double() / temperature).softmax(-1).sort(dim=-1, descending=True, stable=True)
    p = p * (p.cumsum(-1) - p < top_p)
    total = p.cumsum(-1)
    place = (total <= uniform[:, None].double() * total[:, -1:]).sum(-1)
    last = (p > 0).sum(-1) - 1
    return classes.gather(-1, torch.minimum(place, last)[:, None])[:, 0]


def _repeated(units: Units, i: int, size: int) -> tuple[Tensor, Tensor, Tensor]:
    """Categories, values and what is used of unit i of a batch of one, `size` times."""
    parts = (units.categories, units.values, units.used)
    categories, values, used = (part[:, i].expand(size, -1) for part in parts)
    return categories, values, used


def _empty(size: int, length: int, kinds: int, slots: int, device: torch.device) -> Units:
    return Units(
        torch.zeros(size, length, kinds, dtype=torch.long, device=device),
        torch.zeros(size, length, slots, device=device),
        torch.zeros(size, length, slots, dtype=torch.bool, device=device),
        torch.zeros(size, length, dtype=torch.bool, device=device),
    )
