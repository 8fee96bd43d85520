"""Complete plans: everything an engine needs for one case, worked out from the machine and the settings."""

from __future__ import annotations

from typing import Any

from suite.plan import axes, peers
from suite.records.case import COLLECTIVES, LATENCIES, Operation, Plan
from suite.records.machine import Machine, NumaNode
from suite.records.run import Result, Settings, Verdict
from suite.units import GIB, KIB, MIB

ROUNDS = {"quick": 5, "full": 10}
# NCCL's own environment variables (NVIDIA Collective Communications Library documentation, "Environment Variables").
TRANSPORTS: dict[str, tuple[tuple[str, str], ...]] = {
    "default": (),
    "p2p": (("NCCL_P2P_LEVEL", "SYS"),),
    "shm": (("NCCL_P2P_DISABLE", "1"),),
    "net": (("NCCL_P2P_DISABLE", "1"), ("NCCL_SHM_DISABLE", "1")),
}
PEERS: tuple[Operation, ...] = (
    "device_local_copy", "ipc_copy", "peer_write", "peer_read", "peer_both_ways", "peer_latency", "peer_flag_latency",
    "peer_pattern",
)  # fmt: skip
WATCH_BYTES = 256 * MIB
STAGED_BYTES = 256 * MIB
WATCH_SECONDS = 0.6  # the link's state is read over at least 0.5 s of transfer


def complete(machine: Machine, settings: Settings, case: str, operation: Operation, **given: Any) -> Plan:
    """A plan with all its fields filled in. given: fields of Plan that the case sets itself; they win."""
    fields: dict[str, Any] = {
        "rounds": ROUNDS[settings.effort],
        "deadline_s": settings.deadline_s,
        **_by_operation(machine, settings, operation, given),
        **given,
    }
    if fields.get("gpus") and "addresses" not in fields:
        fields["addresses"] = _addresses(machine, fields["gpus"])
    return Plan(case=case, operation=operation, **fields)


def represented(case: str, operation: Operation, gpus: tuple[int, ...], other: str) -> Result:
    """The result of a case that is not measured since another one stands for it. other: that one's name."""
    verdict = Verdict("NOT_SAMPLED", "not_sampled", (f"represented by {other}.",))
    return Result(case, operation, 0, gpus=gpus, represented_by=other, verdict=verdict)


def unavailable(case: str, operation: Operation | None, reason: str) -> Result:
    """The result of a group that cannot be measured here. operation: None where it is an axis of the benchmark, which
    has no values here either; a result must have one, and only copies between GPUs have such an axis."""
    return Result(case, operation or "peer_write", 0, verdict=Verdict("UNAVAILABLE", "unavailable", (reason,)))


def host_memory_bytes(machine: Machine, nodes: tuple[int, ...]) -> int:
    """Bytes of a host memory copy: past all last-level caches together, within an eighth of the nodes' free memory."""
    wanted = _power_of_two(max(64 * MIB, 2 * (machine.cpu.cache_bytes or 0)))
    free = [n.free_bytes for n in machine.nodes if n.index in nodes and n.free_bytes]
    room = min(free) // 8 if free else GIB
    while wanted > room and wanted > MIB:
        wanted //= 2
    return min(wanted, GIB)


def near_cpus(machine: Machine, node: int | None) -> tuple[int | None, tuple[int, ...]]:
    """The node whose CPUs are nearest to a node's memory (itself where it has some), and those CPUs.

    No CPUs, () , where the machine says nothing: then nothing is pinned.
    """
    home = machine.node(node)
    if home is not None and home.cpus:
        return home.index, home.cpus
    others = [n for n in machine.nodes if n.cpus]
    if not others:
        return None, ()
    nearest = min(others, key=lambda n: _distance(home, machine, n))
    return nearest.index, nearest.cpus


def _by_operation(machine: Machine, settings: Settings, operation: Operation, given: dict[str, Any]) -> dict[str, Any]:
    if operation == "host_memory_copy":
        return _host_memory(machine, given)
    if operation in COLLECTIVES:
        return _collective(machine, settings, given)
    placed = _near(machine, given)
    if operation in PEERS:
        return {**placed, **_peers(machine, settings, operation, given)}
    if operation == "link_under_load":
        return {**placed, "bytes": WATCH_BYTES, "min_seconds": WATCH_SECONDS, "watch": True, "iterations": 8}
    if operation in LATENCIES:
        return {**placed, "iterations": 100, "bytes": 8}
    if operation == "staging":
        return {**placed, "iterations": 4, "bytes": STAGED_BYTES}
    return {**placed, "iterations": copy_iterations(given["bytes"])}


def _peers(machine: Machine, settings: Settings, operation: Operation, given: dict[str, Any]) -> dict[str, Any]:
    """Copies between GPUs and within one; a case that names no size takes the one of all pairs."""
    if operation in LATENCIES:
        return {"bytes": 8, "iterations": 100}
    size = given.get("bytes", axes.pair_size(settings))
    fields: dict[str, Any] = {"bytes": size, "iterations": peer_iterations(size)}
    if operation == "ipc_copy":
        fields["world_size"] = 2  # rank 0 copies what rank 1 exports
    if operation == "peer_pattern":
        fields["gpus"] = tuple(gpu.index for gpu in axes.gpus(machine, settings))
        fields["p2p"] = peers.possible(machine, fields["gpus"])
    return fields


def peer_iterations(size: int) -> int:
    """Copies in one sample between GPUs: few of large ones, since there are as many pairs as GPUs squared."""
    return 4 if size >= 16 * MIB else copy_iterations(size)


def copy_iterations(size: int) -> int:
    """Copies in one sample: 16 as nvbandwidth makes, more of small ones so that a sample lasts 100 µs, at most 256."""
    return max(16, min(256, 64 * MIB // size))


def _host_memory(machine: Machine, given: dict[str, Any]) -> dict[str, Any]:
    source = given["memory_node"]
    target = given.get("target_node", source)
    node = given.get("cpu_node")
    cpu_node, cpus = near_cpus(machine, node if node is not None else source)
    return {
        "bytes": host_memory_bytes(machine, (source, target)),
        "cpu_node": cpu_node,
        "cpus": one_per_core(machine.node(cpu_node), cpus),
        "threads": 0,  # the worker finds the number that saturates
        "engine": "memcpy",
        "memory": "pageable",
    }


def one_per_core(node: NumaNode | None, cpus: tuple[int, ...]) -> tuple[int, ...]:
    """The first CPU of every physical core; all CPUs where the cores are not known."""
    if node is None or not node.cores:
        return cpus
    return tuple(core[0] for core in node.cores if core)


def _collective(machine: Machine, settings: Settings, given: dict[str, Any]) -> dict[str, Any]:
    backend = given["backend"]
    fields: dict[str, Any] = {
        "engine": backend,
        "iterations": 20 if backend == "nccl" else gloo_iterations(given["bytes"]),
        "warmup": 5 if backend == "nccl" else 2,
    }
    if backend == "nccl":
        chosen = axes.gpus(machine, settings)[: given["world_size"]]
        fields["gpus"] = tuple(g.index for g in chosen)
        fields["variables"] = TRANSPORTS[given.get("transport") or "default"]
    return fields


def gloo_iterations(size: int) -> int:
    """Calls in one sample: many of small messages, whose time is all noise, few of large ones."""
    if size <= 64 * KIB:
        return 20
    return 10 if size <= MIB else 4 if size <= 16 * MIB else 2


def _near(machine: Machine, given: dict[str, Any]) -> dict[str, Any]:
    """Where the copying thread runs, and the buffer's node: the GPU's own where the case names none."""
    node = given.get("memory_node")
    if node is None and given.get("gpus"):
        gpu = machine.gpu(given["gpus"][0])
        node = gpu.numa_node if gpu else None
    cpu_node, cpus = near_cpus(machine, node) if node is not None else (None, ())
    return {"memory_node": node, "cpu_node": cpu_node, "cpus": cpus}


def _addresses(machine: Machine, gpus: tuple[int, ...]) -> tuple[str, ...]:
    found = (machine.gpu(index) for index in gpus)
    return tuple(gpu.address for gpu in found if gpu is not None and gpu.address is not None)


def _distance(home: NumaNode | None, machine: Machine, other: NumaNode) -> int:
    place = next(i for i, n in enumerate(machine.nodes) if n.index == other.index)
    return home.distances[place] if home and place < len(home.distances) else abs(other.index)


def _power_of_two(size: int) -> int:
    return 1 << (size - 1).bit_length()
