"""Workers as actors of a Ray cluster, each in a slot of so many processors and GPUs.

On a real cluster the folder of the home must be on a disk that all machines share, and the program installed on each.
"""

from __future__ import annotations

import os
import threading
from dataclasses import dataclass
from types import ModuleType

from app.executors.base import Executor, check_shared, checked, environment, needed, work
from data.errors import InputError

LOCAL = "local"


class Slot:
    """What an actor of a local cluster does."""

    def work(self) -> int:
        """Be a worker until nothing waits; returns the exit code."""
        return work()


class Lasting:
    """What an actor does that outlives whoever asked for it: it works from its beginning, and then ends itself."""

    def __init__(self) -> None:
        threading.Thread(target=self._work, daemon=True).start()

    def _work(self) -> None:
        work()
        ray = needed("ray", "ray")
        ray.kill(ray.get_runtime_context().current_actor)


@dataclass(frozen=True)
class Ray:
    """Actors of one worker each."""

    workers: int
    address: str
    cpus: float
    gpus: float

    def start(self) -> list[str]:
        """Start the actors. Those of a real cluster outlive this; a cluster of this machine lasts until they end."""
        os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
        ray, variables = needed("ray", "ray"), {"env_vars": dict(environment())}
        try:
            ray.init(address=self.address, namespace="foreshape", log_to_driver=False, runtime_env=variables)
        except (ConnectionError, ValueError, RuntimeError) as error:
            raise InputError(
                f"the run is queued, but no Ray cluster is at address={self.address!r:.200} ({error}); "
                "start one by `ray start --head`, or leave address out"
            ) from error
        try:
            return self._worked(ray) if self.address == LOCAL else self._begun(ray)
        finally:
            ray.shutdown()

    def _worked(self, ray: ModuleType) -> list[str]:
        slot = ray.remote(Slot).options(num_cpus=self.cpus, num_gpus=self.gpus)
        actors = [slot.remote() for _ in range(self.workers)]
        codes = ray.get([actor.work.remote() for actor in actors])
        if any(codes):
            raise RuntimeError(f"workers ended with {codes}; `foreshape runs` tells of their runs")
        return [f"actor {actor._actor_id.hex()[:16]}, which is done" for actor in actors]

    def _begun(self, ray: ModuleType) -> list[str]:
        slot = ray.remote(Lasting).options(num_cpus=self.cpus, num_gpus=self.gpus, lifetime="detached")
        return [f"actor {slot.remote()._actor_id.hex()[:16]}" for _ in range(self.workers)]


def build(workers: int = 1, address: str = LOCAL, cpus: float = 1.0, gpus: float = 0.0) -> Executor:
    """So many actors with so many processors and GPUs each, on the cluster at `address`, or on this machine alone."""
    needed("ray", "ray")
    if cpus < 0 or gpus < 0 or cpus + gpus == 0:
        raise InputError(f"cpus is {cpus} and gpus is {gpus}; give numbers from 0, not both 0")
    if address != LOCAL:
        check_shared()
    return Ray(checked(workers), address, cpus, gpus)
