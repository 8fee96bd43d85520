"""Who this process is among the ranks of a job: what torchrun, srun or mpirun put into its environment."""

from __future__ import annotations

import platform
from collections.abc import Mapping
from dataclasses import dataclass

from suite.errors import PlanError

# (launcher, rank, world size, rank on this host, host). torchrun: torch.distributed.run's documentation; Slurm:
# srun(1), OUTPUT ENVIRONMENT VARIABLES; Open MPI: mpirun(1), environment variables exported to processes.
_LAUNCHERS = (
    ("torchrun", "RANK", "WORLD_SIZE", "LOCAL_RANK", "GROUP_RANK"),
    ("mpirun", "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_RANK", None),
    ("srun", "SLURM_PROCID", "SLURM_NTASKS", "SLURM_LOCALID", "SLURM_NODEID"),
)


@dataclass(frozen=True)
class Member:
    """One rank. local: which of its host's ranks. node: names its host within the job. host, port: where all meet.
    served: the launcher serves a store there, else rank 0 has to."""

    rank: int
    world_size: int
    local: int
    node: str
    host: str
    port: int
    served: bool
    launcher: str


def member(environment: Mapping[str, str]) -> Member:
    """This process's rank. Raises PlanError with one sentence where the environment does not say it."""
    found = next((one for one in _LAUNCHERS if one[1] in environment and one[2] in environment), None)
    if found is None:
        raise PlanError(
            "start this with torchrun, srun or mpirun: neither RANK, SLURM_PROCID nor OMPI_COMM_WORLD_RANK is set"
        )
    launcher, rank, size, local, node = found
    if "MASTER_ADDR" not in environment:
        raise PlanError("set MASTER_ADDR to the host of rank 0 (and MASTER_PORT to a free port there) on every rank")
    return Member(
        rank=_number(environment, rank),
        world_size=_number(environment, size),
        local=_number(environment, local) if local in environment else 0,
        node=environment[node] if node and node in environment else platform.node(),
        host=environment["MASTER_ADDR"],
        port=_number(environment, "MASTER_PORT") if "MASTER_PORT" in environment else 29500,
        served=environment.get("TORCHELASTIC_USE_AGENT_STORE") == "True",
        launcher=launcher,
    )


def _number(environment: Mapping[str, str], name: str) -> int:
    text = environment[name]
    if not text.isdigit():
        raise PlanError(f"{name} is {text!r} and should be a whole number")
    return int(text)
