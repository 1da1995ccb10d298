"""The stepper of a flow map: any number of steps, each a geodesic with the average velocity."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import torch
from diffusers import ConfigMixin, SchedulerMixin
from diffusers.configuration_utils import register_to_config
from diffusers.utils import BaseOutput
from torch import Tensor

from data.space import Space
from generators.rmf.geometry import Geometry, Points, scaled

MOST_POWER, MOST_COOLING = 4.0, 100.0


@dataclass
class FlowMapSchedulerOutput(BaseOutput):  # type: ignore[misc]
    """`prev_sample` (diffusers' name for the next one): the points after the step."""

    prev_sample: Points


class FlowMapScheduler(SchedulerMixin, ConfigMixin):  # type: ignore[misc]
    """Steps from time 0 (noise) to the time when the design is decided, the last of them on to time 1 (data).

    Step k of n ends at 1 - (1 - k / n)^power of that time: equal steps for a power of 1, finer ones at the end above.

    Between them the sample moves along the geodesic with the average velocity, on a product of manifolds. A step that
    starts at `renewal` or later goes all the way to X_{s,1}(x) instead and comes back to its end along the path from
    fresh noise (gamma = 1 in Kim et al., arXiv 2310.02279). For an exact flow map that is the same distribution; for a
    learned one it keeps a sample as noisy as the network believes it to be, so that errors of earlier steps are mended
    and not carried on. With a renewal of 1 nothing is random but the start. With a `cooling` above 0
    it goes back only exp(-cooling (t - s)) of the way, so that a sample has less noise than its time says and is drawn
    towards what is likely: sounder designs, less different from each other (FrameDiff scales its noise to the same
    end, Yim et al., arXiv 2302.02277). By the length of the step, so that many steps do not cool more than few.
    """

    order = 1

    @register_to_config  # type: ignore[untyped-decorator]
    def __init__(self, space: dict[str, Any], renewal: float = 1.0, power: float = 1.0, cooling: float = 0.0) -> None:
        if not 0 <= renewal <= 1:
            raise ValueError(f"renewal is {renewal}; it must be from 0 to 1")
        if not 0 <= cooling <= MOST_COOLING:
            raise ValueError(f"cooling is {cooling}; it must be from 0 to {MOST_COOLING:g}")
        if not 1 <= power <= MOST_POWER:
            raise ValueError(f"power is {power}; it must be from 1 to {MOST_POWER:g}")
        self.geometry = Geometry.of(Space.from_dict(space))
        self.set_timesteps(1)

    def set_timesteps(self, num_inference_steps: int) -> None:
        """Prepare `timesteps` (steps,), the times at which the steps start, and `ends` (steps,), where they end."""
        if num_inference_steps < 1:
            raise ValueError(f"{num_inference_steps} steps; at least 1 is needed")
        left = torch.linspace(1, 0, num_inference_steps + 1, dtype=torch.float64)
        grid = self.geometry.decided * (1 - left.pow(self.config.power))
        grid[-1] = 1.0
        self.timesteps, self.ends = grid[:-1], grid[1:]

    def renews(self, timestep: float, r_timestep: float) -> bool:
        """Whether a step between these times wants u_{timestep,1} and fresh noise."""
        return bool(self.config.renewal <= timestep and r_timestep < 1)

    def step(
        self, model_output: Points, timestep: float, sample: Points, r_timestep: float, noise: Points | None = None
    ) -> FlowMapSchedulerOutput:
        """From `sample` at `timestep` to `r_timestep`, with `model_output` = u_{timestep,r_timestep}(sample).

        With `noise`, points of the prior, and u_{timestep,1}(sample): to time 1, and back towards the noise.
        """
        first: Tensor = next(iter(sample.values()))
        end = r_timestep if noise is None else 1.0
        moved = self.geometry.manifold.exp(sample, scaled(model_output, first.new_full((len(first),), end - timestep)))
        if noise is not None:
            kept = math.exp(-self.config.cooling * (r_timestep - timestep)) * (1 - r_timestep)
            moved = self.geometry.along(noise, moved, first.new_full((len(first),), 1 - kept))
        return FlowMapSchedulerOutput(prev_sample=moved)
