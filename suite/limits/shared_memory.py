"""The memory of the host below a collective over shared memory: soft, since caches may keep NCCL's small buffers."""

from __future__ import annotations

from collections import Counter

from suite.limits import rings
from suite.limits.memory import module_rates
from suite.limits.rings import Taken
from suite.records.case import Plan
from suite.records.machine import Machine
from suite.records.run import Limits

# Every byte of an edge is written to host memory by the sender and read from it by the receiver.
TRAFFIC = 2


def ring(machine: Machine, plan: Plan, how: Taken) -> Limits | None:
    """busbw that the fullest NUMA node's memory carries; None where no edge uses shared memory, or where modules or
    nodes are not known.

    NCCL puts an edge's buffers on the receiver's side (NCCL_SHM_LOCALITY, default 2), and on its GPU's node.
    """
    edges = [edge for edge in how.edges if edge.kind == "shm"]
    rates = module_rates(machine)
    fitted = [node.index for node in machine.nodes if node.memory_bytes and node.gpu is None]
    homes = [gpu.numa_node if (gpu := rings.gpu_of(machine, plan, edge.target)) else None for edge in edges]
    if not edges or not rates or not fitted or not all(home in fitted for home in homes):
        return None
    load: Counter[int] = Counter()
    for home, edge in zip(homes, edges, strict=True):
        load[home or 0] += edge.count
    node, count = max(load.items(), key=lambda one: one[1])
    memory = sum(rates) / len(fitted)
    rate = memory * how.channels / (TRAFFIC * count) * how.factor
    factor = "" if how.factor == 1 else f", {how.protocol} × {how.factor:g}"
    spread = "one node" if len(load) == 1 else f"{len(load)} nodes"
    return Limits(
        now=rate,
        platform=rate,
        basis="read",
        hard=False,
        binding=f"memory of node {node}, {memory / 1e9:.0f} GB/s",
        why=(
            f"Shared memory on {spread}: {count} of the edges of {how.channels} ring(s) end on node {node}, each byte "
            f"is written and read there: {memory / 1e9:.1f} GB/s · {how.channels} / (2 · {count}){factor} = "
            f"{rate / 1e9:.1f} GB/s. Soft: caches can exceed it. Source: the board's tables (SMBIOS, type 17)."
        ),
    )
