"""Small machines to plan for."""

from __future__ import annotations

from suite.records.machine import Cpu, Gpu, Machine, NumaNode
from suite.units import GIB, MIB


def two_nodes(gpus: int = 2, **cpu: int) -> Machine:
    """Two NUMA nodes of four CPUs (two cores with two threads each); GPU n is on node n % 2."""
    nodes = tuple(
        NumaNode(
            index=i,
            cpus=tuple(range(4 * i, 4 * i + 4)),
            cores=((4 * i, 4 * i + 2), (4 * i + 1, 4 * i + 3)),
            memory_bytes=64 * GIB,
            free_bytes=32 * GIB,
            distances=(10, 21) if i == 0 else (21, 10),
        )
        for i in range(2)
    )
    cards = tuple(
        Gpu(index=i, name="card", address=f"0000:0{i + 1}:00.0", numa_node=i % 2, memory_bytes=40 * GIB)
        for i in range(gpus)
    )
    return Machine(nodes=nodes, cpu=Cpu(cache_bytes=cpu.get("cache", 32 * MIB)), gpus=cards, why_no_gpu="no driver")
