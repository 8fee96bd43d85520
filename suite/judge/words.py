"""Where two GPUs stand to each other, in words that claim no more than is known."""

from __future__ import annotations

from suite.records.machine import Machine

_NEAR = {
    "PIX": "below one PCIe switch",
    "PXB": "across several PCIe switches",
    "PHB": "across one host bridge",
    "NODE": "across host bridges of one NUMA node",
}


def where(machine: Machine, one: int, other: int) -> str:
    """'different NUMA nodes', and 'different sockets' only where the package ids differ."""
    pair = machine.pair(one, other)
    topology = (pair.topology or pair.topology_nvml) if pair else None
    if topology in _NEAR:
        return _NEAR[topology]
    packages = [_packages(machine, index) for index in (one, other)]
    if all(packages) and not packages[0] & packages[1]:
        return "different sockets"
    return "different NUMA nodes" if topology == "SYS" else "topology not known"


def _packages(machine: Machine, index: int) -> set[int]:
    gpu = machine.gpu(index)
    node = machine.node(gpu.numa_node) if gpu else None
    return set(node.packages) if node else set()
