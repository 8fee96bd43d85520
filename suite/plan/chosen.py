"""What of this machine is measured, and at which sizes, by the settings."""

from __future__ import annotations

from suite.records.machine import Gpu, Machine, NumaNode
from suite.records.run import Settings
from suite.units import GIB, KIB, MIB

Value = int | str | tuple[int, ...] | None
Values = list[tuple[Value, str]]

# Messages of tensor-parallel decoding: tokens × hidden size × 2 bytes, 1 to 8 tokens of a hidden size of 5120.
DECODE_MESSAGES = (10 * KIB, 20 * KIB, 40 * KIB, 80 * KIB)


def gpus(machine: Machine, settings: Settings) -> tuple[Gpu, ...]:
    """The GPUs to measure, in NVML order."""
    return tuple(g for g in machine.gpus if settings.gpus is None or g.index in settings.gpus)


def nodes(machine: Machine, settings: Settings) -> tuple[NumaNode, ...]:
    """The NUMA nodes to measure: those asked for that this process may allocate from. A GPU's own memory that shows as
    a node (NVLink-C2C) is no host memory."""
    allowed = machine.environment.allowed_nodes
    return tuple(
        n
        for n in machine.nodes
        if n.gpu is None
        and (settings.nodes is None or n.index in settings.nodes)
        and (not allowed or n.index in allowed)
    )


def copy_sizes(settings: Settings) -> tuple[int, ...]:
    """Bytes of the copy cases, ascending."""
    return settings.sizes or doubling(4 * KIB, GIB if settings.effort == "full" else 256 * MIB)


def messages(settings: Settings) -> tuple[int, ...]:
    """Bytes of the collective cases, ascending."""
    if settings.sizes:
        return settings.sizes
    return tuple(sorted({*doubling(8, GIB if settings.effort == "full" else 64 * MIB), *DECODE_MESSAGES}))


def doubling(first: int, last: int) -> tuple[int, ...]:
    """first, 2 · first, … up to last."""
    sizes = []
    while first <= last:
        sizes.append(first)
        first *= 2
    return tuple(sizes)
