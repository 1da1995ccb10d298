"""Workers as jobs of a Slurm cluster, by submitit; a worker that runs out of time is queued there again.

The folder of the home must be on a disk that all machines share, and the program installed in the same place. submitit
hands a job over in a pickle; it is in a folder of the home that nobody else may enter, and holds nothing of a design.
"""

from __future__ import annotations

import shutil
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from app.executors.base import Executor, check_shared, checked, environment, needed, set_environment, work
from data.errors import InputError
from data.store import home

if TYPE_CHECKING:
    from submitit.core.utils import DelayedSubmission

CLUSTERS = ("slurm", "local")


class Worker:
    """What a job does."""

    def __init__(self, variables: Mapping[str, str]) -> None:
        self.variables = dict(variables)

    def __call__(self) -> None:
        """Be a worker until nothing waits; ends the process where it fails, so that the job does."""
        set_environment(self.variables)
        if code := work():
            sys.exit(code)

    def checkpoint(self) -> DelayedSubmission:
        """What goes on after the time is up: the same, as all that a worker knows is in the store."""
        from submitit.helpers import DelayedSubmission

        return DelayedSubmission(self)


@dataclass(frozen=True)
class Slurm:
    """Jobs of one worker each."""

    workers: int
    cluster: str
    parameters: Mapping[str, Any]

    def start(self) -> list[str]:
        """Submit them; submitit's files and what the workers say are in `slurm` in the home."""
        submitit, folder = needed("submitit", "slurm"), home() / "slurm"
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)  # for nobody else, as the store's address is in there
        try:
            executor = submitit.AutoExecutor(folder=folder, cluster=self.cluster)
            executor.update_parameters(**self.parameters)
            with executor.batch():
                jobs = [executor.submit(Worker(environment())) for _ in range(self.workers)]
        except (submitit.core.utils.FailedJobError, OSError) as error:
            raise InputError(f"the run is queued, but no job for it ({error}); give what this cluster takes") from error
        return [f"{self.cluster} job {job.job_id}" for job in jobs]


def build(
    workers: int = 1,
    minutes: int = 60,
    cpus: int = 2,
    gpus: int = 0,
    gigabytes: float = 8.0,
    partition: str | None = None,
    options: Mapping[str, Any] = {},
    cluster: str = "slurm",
) -> Executor:
    """So many jobs with so much time, processors and memory each; `options` are any other of sbatch, by name.

    With cluster `local` they are processes of this machine, which shows whether the rest is well.
    """
    needed("submitit", "slurm")
    if cluster not in CLUSTERS:
        raise InputError(f"cluster is {cluster!r:.100}; it must be one of {', '.join(CLUSTERS)}")
    for name, value in (("minutes", minutes), ("cpus", cpus), ("gigabytes", gigabytes)):
        if value <= 0:
            raise InputError(f"{name} is {value}; it must be above 0")
    if gpus < 0:
        raise InputError(f"gpus is {gpus}; it must be 0 or more")
    if cluster == "slurm":
        _check_cluster()
    parameters = {
        "name": "foreshape",
        "timeout_min": minutes,
        "cpus_per_task": cpus,
        "gpus_per_node": gpus,
        "mem_gb": gigabytes,
        "slurm_partition": partition,
        "slurm_additional_parameters": dict(options) or None,
    }
    return Slurm(checked(workers), cluster, parameters)


def _check_cluster() -> None:
    check_shared()
    if shutil.which("srun") is None:
        raise InputError("no srun here; submit from a machine of the cluster, or give cluster=local")
