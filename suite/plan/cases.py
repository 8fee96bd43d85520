"""Complete plans: everything an engine needs for one case, worked out from the machine and the settings."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from suite.plan import axes, peers
from suite.records.case import COLLECTIVES, LATENCIES, Operation, Plan
from suite.records.machine import Gpu, Machine, NumaNode
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
# What is set beyond a transport's variables, one at a time, to tell tuning from hardware; the same documentation.
TUNINGS: dict[str, tuple[tuple[str, str], ...]] = {
    "min_channels_8": (("NCCL_MIN_NCHANNELS", "8"),),
    "p2p_level_sys": (("NCCL_P2P_LEVEL", "SYS"),),
    "buffers_8MiB": (("NCCL_BUFFSIZE", str(8 * MIB)),),
    "graph_unregistered": (("NCCL_GRAPH_REGISTER", "0"),),
    "host_buffers_follow_rank": (("NCCL_CUMEM_HOST_ENABLE", "0"),),
}
# Needed for several ranks on one GPU (NCCL 2.30 release notes).
SHARED_GPU = (("NCCL_MULTI_RANK_GPU_ENABLE", "1"), ("NCCL_NVLS_ENABLE", "0"))
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


def near_memory(machine: Machine, gpu: int) -> int | None:
    """The node nearest to a GPU whose memory may be used: its own, where it has some. None where none is known."""
    found = machine.gpu(gpu)
    home = machine.node(found.numa_node) if found else None
    if home is None or found is None:
        return found.numa_node if found else None
    allowed = machine.environment.allowed_nodes
    host = [n for n in machine.nodes if n.gpu is None]
    usable = [n for n in host if n.memory_bytes != 0 and (not allowed or n.index in allowed)]
    if home in usable or not usable:
        return home.index
    return min(usable, key=lambda n: _distance(home, machine, n)).index


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
    if operation.startswith("all_gpus"):
        placed = _near_each(machine, given)
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
    """Copies in one sample: 16 as nvbandwidth makes, more of small ones so that a sample lasts 100 µs, at most 256, and
    fewer of very large ones, four of which take 80 ms at 55 GB/s."""
    if size > 256 * MIB:
        return max(4, 4 * GIB // size)
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
    if given["backend"] != "nccl":
        fields: dict[str, Any] = {"engine": "gloo", "iterations": gloo_iterations(given["bytes"]), "warmup": 2}
        return {**fields, "rank_cpus": _cpus_by_node(machine, given)}
    found = axes.gpus(machine, settings)
    chosen = () if settings.several_hosts else _spread(found, given["world_size"])
    shared = bool(chosen) and len(set(chosen)) < given["world_size"]
    turns = shared and given.get("ranks_as") != "threads"
    set_by_name = TRANSPORTS[given.get("transport") or "default"] + TUNINGS.get(given.get("tuning") or "", ())
    return {
        "engine": "nccl",
        "iterations": nccl_iterations(given["bytes"], turns),
        "warmup": 5 if turns else nccl_warmup(given["bytes"]),
        "gpus": chosen,
        "variables": set_by_name + (SHARED_GPU if shared else ()),
        "rank_cpus": rank_cpus(machine, chosen, given.get("ranks_placed")),
    }


def _spread(found: Sequence[Gpu], ranks: int) -> tuple[int, ...]:
    """One GPU a rank; where there are more ranks than GPUs, neighbouring ranks share one."""
    each = -(-ranks // len(found)) if found else 1
    return tuple(found[rank // each].index for rank in range(ranks)) if found else ()


def nccl_iterations(size: int, turns: bool = False) -> int:
    """Calls in one sample: 20 as nccl-tests makes, more of small messages, so that the way into and out of a row of
    calls is a small part of it. turns: processes that share a GPU, milliseconds each."""
    if turns:
        return 5
    return 100 if size <= MIB else 20


def nccl_warmup(size: int) -> int:
    """Calls before the first sample: a processor that waited for its plan needs some milliseconds to its full clock."""
    return 200 if size <= MIB else 5


def rank_cpus(machine: Machine, gpus: Sequence[int], placed: str | None) -> tuple[tuple[int, ...], ...]:
    """A rank's CPUs: of its GPU's node ('near') or of the node farthest from it ('far'); () where nothing is pinned."""
    if placed not in ("near", "far"):
        return ()
    homes = [gpu.numa_node if (gpu := machine.gpu(index)) else None for index in gpus]
    return tuple(near_cpus(machine, home)[1] if placed == "near" else far_cpus(machine, home) for home in homes)


def far_cpus(machine: Machine, node: int | None) -> tuple[int, ...]:
    """CPUs of the node that is farthest from a node; () where there is no other."""
    home = machine.node(node)
    others = [n for n in machine.nodes if n.cpus and n.index != node]
    if home is None or not others:
        return ()
    return max(others, key=lambda n: _distance(home, machine, n)).cpus


def _cpus_by_node(machine: Machine, given: dict[str, Any]) -> tuple[tuple[int, ...], ...]:
    """CPUs of gloo's ranks, which have no GPU: 'near' all on the first node with CPUs, 'far' one node after another."""
    nodes = [n.cpus for n in machine.nodes if n.cpus]
    placed = given.get("ranks_placed")
    if placed not in ("near", "far") or not nodes:
        return ()
    return tuple(nodes[rank % len(nodes) if placed == "far" else 0] for rank in range(given["world_size"]))


def gloo_iterations(size: int) -> int:
    """Calls in one sample: many of small messages, whose time is all noise, few of large ones."""
    if size <= 64 * KIB:
        return 20
    return 10 if size <= MIB else 4 if size <= 16 * MIB else 2


def _near(machine: Machine, given: dict[str, Any]) -> dict[str, Any]:
    """Where the copying thread runs, and the buffer's node: the GPU's own where the case names none."""
    node = given.get("memory_node")
    if node is None and given.get("gpus"):
        node = near_memory(machine, given["gpus"][0])
    cpu_node, cpus = near_cpus(machine, node) if node is not None else (None, ())
    return {"memory_node": node, "cpu_node": cpu_node, "cpus": cpus}


def _near_each(machine: Machine, given: dict[str, Any]) -> dict[str, Any]:
    """Every GPU copies with a buffer on its own node. The one thread that queues runs near them where they share a
    node, and anywhere where they do not."""
    if given.get("memory_node") is not None:
        return _near(machine, given)
    nodes = tuple(near_memory(machine, index) for index in given["gpus"])
    if len(set(nodes)) == 1:
        return {**_near(machine, given), "gpu_nodes": nodes}
    return {"memory_node": None, "cpu_node": None, "cpus": (), "gpu_nodes": nodes}


def _addresses(machine: Machine, gpus: tuple[int, ...]) -> tuple[str, ...]:
    found = (machine.gpu(index) for index in gpus)
    return tuple(gpu.address for gpu in found if gpu is not None and gpu.address is not None)


def _distance(home: NumaNode | None, machine: Machine, other: NumaNode) -> int:
    place = next(i for i, n in enumerate(machine.nodes) if n.index == other.index)
    return home.distances[place] if home and place < len(home.distances) else abs(other.index)


def _power_of_two(size: int) -> int:
    return 1 << (size - 1).bit_length()
