"""The network: a causal transformer over hybrid units, and the heads that draw the next one.

p(u_1 .. u_N) = prod_i p(c_i | u_<i) p(v_i | c_i, u_<i), with an end of the sequence among the categories c (after Shin
et al., arXiv 2601.05680). The numbers v are factorised again: coarse bins one after the other, then the residuals
inside the bins by a small diffusion model.
"""

from __future__ import annotations

import math
from typing import Any

import torch
from diffusers import ConfigMixin, ModelMixin
from diffusers.configuration_utils import register_to_config
from torch import Tensor, nn

from data.space import Space
from generators.base import GeneratorError
from generators.hybrid.conditions import ConditionEmbedding
from generators.hybrid.heads import Denoiser, EndAdjuster, Fields, Waves
from generators.hybrid.units import Units, Vocabulary
from generators.networks.causal_transformer import CausalTransformer

LIMITS: dict[str, tuple[float, float]] = {
    "channels": (8, 1024),
    "depth": (1, 32),
    "heads": (1, 32),
    "bins": (1, 2048),
    "span": (1e-6, 1e6),
    "places": (0, 2048),
    "finer": (0, 16),
    "category_temperature": (1e-3, 10),
    "bin_temperature": (1e-3, 10),
    "top_p": (1e-3, 1),
}
"""The least and the most that a parameter may be."""
DENOISER_CHANNELS, DENOISER_DEPTH = 128, 3


class HybridSequence(ModelMixin, ConfigMixin):  # type: ignore[misc]
    """Network and vocabulary of a space; `config.json` holds what decides them.

    `span`: the centres of the bins go from -span to span, in units of each Real factor's scale; what lies outside is
    moved to the edge. One bin is as wide as all of it. `places`: how a number goes on inside its bin, 0 by diffusion, n
    as one of n places evenly apart (1 is its centre, a plain discretisation; more are a second digit). `finer`: by how
    many octaves the network sees its input numbers more finely than 4 bins. `adjuster`: whether the end's logit has a
    network of its own. Temperatures and `top_p` change how categories and bins are drawn, not how they are learned.
    """

    @register_to_config  # type: ignore[untyped-decorator]
    def __init__(
        self,
        space: dict[str, Any],
        channels: int = 192,
        depth: int = 5,
        heads: int = 6,
        bins: int = 65,
        span: float = 1.0,
        category_temperature: float = 1.0,
        bin_temperature: float = 1.0,
        top_p: float = 1.0,
        places: int = 0,
        finer: int = 0,
        adjuster: bool = True,
    ) -> None:
        super().__init__()
        for name, (least, most) in LIMITS.items():
            if not least <= self.config[name] <= most:
                raise GeneratorError(f"{name} is {self.config[name]}; it must be from {least:g} to {most:g}")
        if channels % (2 * heads):
            raise GeneratorError(f"channels is {channels}; it must be a multiple of {2 * heads}, twice the heads")
        self.space = Space.from_dict(space)
        self.vocabulary = Vocabulary(self.space, bins, span, places)
        sizes, slots = list(self.vocabulary.categoricals.values()), self.vocabulary.slots
        asked = self.space.conditions
        self.condition_input = ConditionEmbedding(asked, channels) if asked else None
        self.begin = nn.Parameter(torch.randn(channels) / math.sqrt(channels))
        self.category_inputs = nn.ModuleList(nn.Embedding(n, channels) for n in sizes)
        self.waves = Waves(bins, finer)
        self.value_input = nn.Linear(slots * self.waves.width, channels) if slots else None
        self.transformer = CausalTransformer(self.space.length + 1, channels, depth, heads)
        self.fields = Fields(channels, sizes, slots, bins, places)
        self.end = EndAdjuster(channels, self.space.length) if adjuster else None
        diffuses = slots > 0 and places == 0
        self.denoiser = Denoiser(slots, channels, DENOISER_CHANNELS, DENOISER_DEPTH) if diffuses else None
        # [previous category][next]: 1 where training has seen it; the last row is the begin, the last column the end.
        self.register_buffer("transitions", torch.zeros(sizes[0] + 1, sizes[0] + 1))

    def embed(self, categories: Tensor, values: Tensor, used: Tensor) -> Tensor:
        """Units as (..., channels): their categories, and waves of the numbers that are used."""
        tables = enumerate(self.category_inputs)
        embedded: Tensor = torch.stack([table(categories[..., i]) for i, table in tables]).sum(0)
        if self.value_input is not None:
            embedded = embedded + self.value_input((self.waves(values) * used[..., None]).flatten(-2))
        return embedded

    def given(self, codes: Tensor | None) -> Tensor:
        """Codes of conditions (..., conditions) -> (..., channels), which is added to every input; 0 without any."""
        if codes is None or self.condition_input is None:
            return torch.zeros_like(self.begin)
        given: Tensor = self.condition_input(codes)
        return given

    def hidden(self, units: Units, codes: Tensor | None = None) -> Tensor:
        """(B, L + 1, channels): at place i, all that is known of the units before unit i, under codes (B, 1, n)."""
        begin = self.begin.expand(len(units.mask), 1, -1)
        embedded = self.embed(units.categories, units.values, units.used)
        hidden: Tensor = self.transformer(torch.cat([begin, embedded], dim=1) + self.given(codes))
        return hidden

    def first_logits(self, hidden: Tensor, count: Tensor) -> Tensor:
        """(..., channels) and the number of units so far -> (..., n + 1): the first category, or the end."""
        logits = self.fields.category_logits(hidden, 0)
        if self.end is None:
            return logits
        adjustment = self.end(hidden, count).float()
        return torch.cat([logits[..., :-1], logits[..., -1:] + adjustment[..., None]], dim=-1)

    @torch.no_grad()
    def observe(self, units: Units) -> None:
        """Allow the transitions between first categories that these units make, from the begin to the end."""
        first, lengths = units.categories[..., 0], units.lengths
        border = len(self.transitions) - 1
        path = torch.cat([first, first[:, :1]], dim=1).masked_fill(
            torch.arange(first.shape[1] + 1, device=first.device) >= lengths[:, None], border
        )
        before = torch.cat([path.new_full((len(path), 1), border), path[:, :-1]], dim=1)
        inside = torch.arange(path.shape[1], device=path.device) <= lengths[:, None]
        self.transitions[before[inside], path[inside]] = 1
