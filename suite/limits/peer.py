"""Limits of copies between GPUs: over NVLink, over PCIe (P2P), or staged by the driver where P2P is off."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from suite.limits import ceilings, healthy, host, memory, nvlink, path, pcie
from suite.limits.ceilings import Question, Sources
from suite.records.case import Plan
from suite.records.flows import Edge, flows
from suite.records.machine import Gpu, Machine
from suite.records.path import topology
from suite.records.run import Limits

OPERATIONS = ("peer_write", "peer_read", "peer_both_ways", "peer_pattern", "device_local_copy", "ipc_copy")
_FAR = "The pair crosses the processors' own links{rate}: no part of this ceiling (soft), but healthy pairs lose by it."


def copies(machine: Machine, plan: Plan, sources: Sources) -> Limits:
    """All peer operations, and copies within one GPU (the same code, no link)."""
    gpus = [gpu for index in plan.gpus if (gpu := machine.gpu(index))]
    if len(set(plan.gpus)) == 1 and gpus:
        return memory.device_copy(gpus[0])
    if len(gpus) != len(plan.gpus) or len(gpus) < 2:
        return ceilings.unknown("A GPU of this case is not in the record of the machine: no limit.")
    edges = flows(plan)
    if plan.p2p is not False and all(nvlink.between(machine, *edge) for edge in edges):
        return _reached(plan, over_nvlink(machine, edges))
    if any(gpu.address is None for gpu in gpus):
        return ceilings.unknown("A GPU's PCI address is not known, so its path is not known.")
    if any(gpu.c2c for gpu in gpus):
        return ceilings.unknown(host.NO_PCIE, hard=False)
    return staged(machine, plan, edges, sources) if plan.p2p is False else over_pcie(machine, plan, edges, sources)


def _reached(plan: Plan, found: Limits) -> Limits:
    """With what copies by SMs reach over NVLink, which is less than the copy engines do."""
    if plan.engine != "sm" or found.now is None:
        return found
    row = healthy.expected("peer_nvlink", "sm", None)
    why = f"{found.why} Healthy machines reach {row.low:.2f} to {row.high:.2f} of it by SMs ({row.source})."
    return replace(found, expected=row.of(found.now), why=why)


def over_nvlink(machine: Machine, edges: Sequence[Edge]) -> Limits:
    """Equal flows over NVLink: the fullest bond, or the fullest GPU before a switch, gives out first."""
    least, words, source = min((_nvlink_share(machine, edges, edge) for edge in edges), key=lambda one: one[0])
    total = least * len(edges)
    flowing = f", times {len(edges)} flows" if len(edges) > 1 else ""
    return Limits(
        now=total,
        platform=total,
        device=total,
        basis="read",
        binding=words,
        why=f"{words}: {least / 1e9:.1f} GB/s a flow{flowing} = {total / 1e9:.1f} GB/s. Source: {source}.",
    )


def over_pcie(machine: Machine, plan: Plan, edges: Sequence[Edge], sources: Sources) -> Limits:
    """Peer copies over PCIe. Reads where the target's engine fetches, writes where the source's sends."""
    read = plan.operation == "peer_read"
    # Of a pattern some flows may have NVLink: they load no PCIe link, and wait for the slower ones.
    over = [edge for edge in edges if not nvlink.between(machine, *edge)] or edges
    demand = path.add(path.peer_demand(machine, *_addresses(machine, edge), read=read) for edge in over)
    demand = replace(demand, flows=len(edges))
    cut = _across_intel_bridge(machine, over)
    question = Question(
        case=plan.case,
        demand=demand,
        engine=host.mover(plan),
        healthy=_row(machine, edges),
        cut=pcie.INTEL_P2P_PAYLOAD if cut else None,
        hard=not cut,
        note=_note(machine, over),
    )
    return ceilings.limits(question, sources)


def staged(machine: Machine, plan: Plan, edges: Sequence[Edge], sources: Sources) -> Limits:
    """P2P off: the driver stages through host memory in chunks that overlap; one flow, or several at once."""
    note = "P2P is off: the driver stages the copy through host memory."
    if len(edges) == 1:
        source, target = _addresses(machine, edges[0])
        demand = path.host_demand(machine, [(source, path.UP), (target, path.DOWN)])
        question = Question(plan.case, replace(demand, flows=1), host.mover(plan), note=note)
        return ceilings.limits(question, sources, host.staged(machine, source, target, None))
    parts = [[(a, path.UP), (b, path.DOWN)] for a, b in (_addresses(machine, edge) for edge in edges)]
    demand = path.host_demand(machine, [load for part in parts for load in part])
    return ceilings.limits(Question(plan.case, replace(demand, flows=len(edges)), host.mover(plan), note=note), sources)


def far(machine: Machine, one: Gpu, other: Gpu) -> bool:
    """The tree, else NVML, says that two GPUs are on different NUMA nodes."""
    pair = machine.pair(one.index, other.index)
    known = pair and (pair.topology or pair.topology_nvml)
    return (known or topology(machine, one.address or "", other.address or "")) == "SYS"


def _nvlink_share(machine: Machine, edges: Sequence[Edge], edge: Edge) -> tuple[float, str, str]:
    """(bytes per second of one flow, in words, source) by the link that this edge uses."""
    bond = nvlink.between(machine, *edge)
    if bond is None:
        return 0.0, "no NVLink", "-"
    same = sum(1 for other in edges if other == edge)
    if bond.switched:
        out = sum(1 for other in edges if other[0] == edge[0])
        into = sum(1 for other in edges if other[1] == edge[1])
        same = max(out, into)
    return bond.capacity / same, f"gpu{edge[0]} to gpu{edge[1]}: {bond.words}", bond.source


def _across_intel_bridge(machine: Machine, edges: Sequence[Edge]) -> bool:
    """Every binding pair of an Intel machine that has no common port below the host bridge."""
    if machine.cpu.vendor != "GenuineIntel":
        return False
    return any(not _common_port(machine, *_addresses(machine, edge)) for edge in edges)


def _common_port(machine: Machine, one: str, other: str) -> bool:
    above = {function.address for function in machine.ancestors(one)}
    return any(function.address in above for function in machine.ancestors(other))


def _row(machine: Machine, edges: Sequence[Edge]) -> str | None:
    """The row of healthy fractions: one pair alone, near or far."""
    if len(edges) > 2:
        return None
    one, other = (machine.gpu(index) for index in edges[0])
    return "peer_far" if one and other and far(machine, one, other) else "peer_near"


def _note(machine: Machine, edges: Sequence[Edge]) -> str | None:
    notes = []
    pairs = [(machine.gpu(a), machine.gpu(b)) for a, b in edges]
    if any(one and other and far(machine, one, other) for one, other in pairs):
        notes.append(_FAR.format(rate=memory.processor_link_words(machine.cpu)))
    if any(path.redirected(machine, *_addresses(machine, edge)) for edge in edges):
        notes.append("ACS redirects peer traffic at a port below the common one: it goes up to the host and back.")
    return " ".join(notes) or None


def _addresses(machine: Machine, edge: Edge) -> tuple[str, str]:
    one, other = (machine.gpu(index) for index in edge)
    return (one.address if one else None) or "", (other.address if other else None) or ""
