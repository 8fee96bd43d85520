"""The physics of a scenario: links under load, and what its faults let through."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from suite.records.case import COLLECTIVES, Plan
from suite.records.flows import flows
from suite.records.machine import Gpu, LinkState, Machine
from suite.records.path import path_to_root
from suite.records.scenario import Fault, FaultKind, Scenario

# Bytes of a line's bit rate: 8b/10b, 128b/130b, flits (PCI Express Base Specification); times lanes and GT/s.
_ENCODING = {2.5: 0.8, 5.0: 0.8, 8.0: 128 / 130, 16.0: 128 / 130, 32.0: 128 / 130, 64.0: 236 / 256, 128.0: 236 / 256}
_PACKETS = 0.914  # 256 bytes of payload in a packet of 280


def under_load(scenario: Scenario) -> Machine:
    """The machine with every link as it is under load."""
    states = loads(scenario)
    machine = scenario.machine
    pci = tuple(replace(f, link=states[f.address]) if f.address in states else f for f in machine.pci)
    gpus = tuple(replace(g, link=states[g.address]) if g.address in states else g for g in machine.gpus)
    return replace(machine, pci=pci, gpus=gpus)


def loads(scenario: Scenario) -> dict[str, LinkState]:
    """Each hop's link under load, by its lower end's address: all that both ends can do, unless a fault, which may name
    either end, says less."""
    hops = [hop for gpu in scenario.machine.gpus for hop in path_to_root(scenario.machine, gpu.address or "").hops]
    found = {hop.lower: hop.possible if hop.possible.known else hop.now for hop in hops}
    addresses = {gpu.index: gpu.address for gpu in scenario.machine.gpus}
    for fault in scenario.faults:
        address = fault.address or addresses.get(fault.gpu if fault.gpu is not None else -1)
        if fault.kind == "link_state" and fault.link is not None and address is not None:
            lower = {hop.lower for hop in hops if address in (hop.lower, hop.upper)}
            found.update(dict.fromkeys(lower or {address}, fault.link))
    return found


def matching(scenario: Scenario, plan: Plan, kind: FaultKind) -> Iterator[Fault]:
    """Faults of a kind that concern a plan; what a fault does not name matches everything."""
    for fault in scenario.faults:
        if fault.kind != kind or fault.group not in (None, plan.case.partition("/")[0]):
            continue
        named = {index for index in (fault.gpu, fault.peer) if index is not None}
        if (
            named <= set(plan.gpus)
            and _on_its_way(fault, plan)
            and fault.node in (None, plan.memory_node, plan.target_node)
        ):
            yield fault


def _on_its_way(fault: Fault, plan: Plan) -> bool:
    """A fault between two GPUs concerns what goes directly from one to the other; not NCCL through shared memory."""
    if fault.gpu is None or fault.peer is None:
        return True
    if plan.operation in COLLECTIVES:
        return plan.transport not in ("shm", "net")
    if not plan.operation.startswith("peer_"):
        return True
    return plan.p2p is not False and any({fault.gpu, fault.peer} == set(flow) for flow in flows(plan))


def first(scenario: Scenario, plan: Plan, kind: FaultKind) -> Fault | None:
    """The first fault of a kind that concerns a plan."""
    return next(matching(scenario, plan, kind), None)


def latency(scenario: Scenario, plan: Plan) -> float:
    """Seconds that the plan's operations take longer."""
    return sum(fault.seconds or 0.0 for fault in matching(scenario, plan, "latency"))


def bound_seconds(scenario: Scenario, plan: Plan, way: str, gpu: int | None) -> float:
    """The least time of one operation's flow that the faults' capacities allow. gpu: of a flow of several GPUs."""
    one = replace(plan, gpus=(gpu,)) if gpu is not None else plan
    rates = list(_rates(scenario, one, way))
    return max((carried(plan) / rate for rate in rates), default=0.0)


def carried(plan: Plan) -> float:
    """Bytes that one direction of a GPU's link carries for one operation."""
    if plan.operation == "allreduce":
        return plan.bytes * 2 * (plan.world_size - 1) / plan.world_size
    return float(plan.bytes)


def _rates(scenario: Scenario, plan: Plan, way: str) -> Iterator[float]:
    machine = scenario.machine
    over_pcie = not (plan.operation in COLLECTIVES and nvlinked(machine, plan.gpus))
    hops = [h for g in _gpus(machine, plan) for h in path_to_root(machine, g.address or "").hops]
    ends = {end for hop in hops for end in (hop.lower, hop.upper) if end is not None}
    for fault in scenario.faults:
        if fault.rate is None:
            continue
        hop = fault.kind == "hop_capacity" and fault.address in ends and over_pcie
        if hop or _placed(machine, plan, fault) or _read(plan, fault, way) or _paired(machine, plan, fault):
            yield fault.rate


def _placed(machine: Machine, plan: Plan, fault: Fault) -> bool:
    """The plan's memory is on the fault's node and is reached from elsewhere."""
    if fault.node is None or plan.memory_node != fault.node or _over_nvlink(machine, plan):
        return False
    if fault.kind == "node_to_gpu_capacity":
        return fault.gpu in plan.gpus
    if fault.kind != "node_capacity":
        return False
    homes = [g.numa_node for g in _gpus(machine, plan)] or [plan.target_node, plan.cpu_node]
    return any(home != fault.node for home in homes)


def _over_nvlink(machine: Machine, plan: Plan) -> bool:
    """A peer copy that passes no host memory and no link between processors."""
    return plan.operation.startswith("peer_") and plan.p2p is not False and nvlinked(machine, plan.gpus)


def _read(plan: Plan, fault: Fault, way: str) -> bool:
    reads = way.endswith("host_to_device") or plan.operation == "staging"
    return fault.kind == "outstanding_reads" and reads and fault.gpu in (None, *plan.gpus)


def _paired(machine: Machine, plan: Plan, fault: Fault) -> bool:
    """The plan's bytes take the way between the fault's two GPUs; a collective's do where NCCL has P2P there."""
    named = {fault.gpu, fault.peer}
    if fault.kind != "pair_capacity" or not named <= set(plan.gpus):
        return False
    if plan.operation in COLLECTIVES:
        near = {frozenset(plan.gpus[rank] for rank in pair) for pair in near_pairs(machine, plan.gpus)}
        return plan.transport == "p2p" or (plan.transport in (None, "default") and named in near)
    return plan.operation.startswith("peer_") and plan.p2p is not False


def _gpus(machine: Machine, plan: Plan) -> list[Gpu]:
    return [gpu for index in plan.gpus if (gpu := machine.gpu(index)) is not None]


def slowest_link(machine: Machine, gpus: tuple[int, ...]) -> float | None:
    """Bytes per second of payload of the slowest link above these GPUs; None where none is known."""
    rates = [
        hop.now.speed_gts * _ENCODING[hop.now.speed_gts] / 8 * hop.now.width * 1e9 * _PACKETS
        for index in gpus
        for hop in path_to_root(machine, _address(machine, index)).hops
        if hop.now.speed_gts in _ENCODING and hop.now.speed_gts and hop.now.width
    ]
    return min(rates, default=None)


def nvlinked(machine: Machine, gpus: tuple[int, ...]) -> bool:
    """Every two of these GPUs have active NVLinks between them."""
    pairs = [machine.pair(a, b) for a in gpus for b in gpus if a < b]
    return bool(pairs) and all(pair is not None and bool(pair.nvlinks) for pair in pairs)


def near_pairs(machine: Machine, gpus: tuple[int, ...]) -> set[frozenset[int]]:
    """Pairs of ranks (places in `gpus`) whose GPUs have P2P and NVLink or only PCIe switches between them."""
    return {
        frozenset((a, b))
        for a, one in enumerate(gpus)
        for b, other in enumerate(gpus[:a])
        if (pair := machine.pair(one, other)) is not None
        and pair.p2p_write == "OK"
        and (pair.nvlinks or pair.topology in ("PIX", "PXB"))
    }


def denied_pairs(machine: Machine, gpus: tuple[int, ...]) -> set[frozenset[int]]:
    """Pairs of ranks whose GPUs the driver denies P2P."""
    return {
        frozenset((a, b))
        for a, one in enumerate(gpus)
        for b, other in enumerate(gpus[:a])
        if (pair := machine.pair(one, other)) is not None and pair.p2p_write not in (None, "OK")
    }


def _address(machine: Machine, index: int) -> str:
    gpu = machine.gpu(index)
    return (gpu.address if gpu else None) or ""
