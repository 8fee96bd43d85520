"""What a collective could deliver (busbw): by the algorithm, protocol and transport taken, link by link."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import combinations

from suite.limits import ceilings, healthy, nvlink, rings, shared_memory
from suite.limits.ceilings import Question, Sources
from suite.limits.host import NO_PCIE
from suite.limits.path import Demand
from suite.limits.pcie import Traffic
from suite.limits.rings import Taken
from suite.records.case import Operation, Plan, Samples
from suite.records.machine import Machine
from suite.records.run import Limits, Result

_LARGEST_CUTS = 10  # ranks up to which every cut is looked at; above, cuts of one rank
_SHARED = "Several ranks share a GPU: this exercises the code and no link, so no limit is given."
_NETWORK = "The edges cross the network, and no adapter of this machine tells its rate: no limit."


@dataclass(frozen=True)
class NvCeiling:
    """busbw over NVLink, bytes per second, and how it follows."""

    rate: float
    binding: str
    why: str


def bus_factor(operation: Operation, n: int) -> float:
    """busbw / algbw of a collective over n ranks. Source: nccl-tests, doc/PERFORMANCE.md. n < 1: ValueError."""
    if n < 1:
        raise ValueError(f"world size {n} is not possible: at least 1")
    if operation == "allreduce":
        return 2 * (n - 1) / n
    return (n - 1) / n if operation in ("all_gather", "reduce_scatter", "all_to_all") else 1.0


def limits(
    machine: Machine,
    plan: Plan,
    samples: Samples | None,
    sources: Sources,
    so_far: Sequence[Result],
    algorithm: str | None = None,
) -> Limits:
    """The ceiling of busbw over NCCL. algorithm: what to take where the samples name none (None: the cut bound)."""
    if plan.world_size < 2:
        return ceilings.unknown("One rank moves nothing between GPUs: no limit.")
    how = rings.taken(machine, plan, samples, algorithm)
    networked = any(edge.kind == "net" for edge in how.edges)
    if len(set(plan.gpus)) < plan.world_size and not networked:
        return ceilings.unknown(_SHARED)
    if any(edge.kind != "nvlink" for edge in how.edges) and any(gpu.c2c for gpu in machine.gpus):
        return ceilings.unknown(NO_PCIE, hard=False)
    found = _with_memory(machine, plan, how, _ceiling(machine, plan, how, sources))
    if networked:
        found = _lower(found, _network(machine, plan, how))
    reached = _reached(how, found.now)
    return replace(found, floor_s=floor(plan, how, so_far), why=f"{how.words}. {found.why}", expected=reached)


def _reached(how: Taken, ceiling: float | None) -> tuple[float, float] | None:
    """What healthy machines reach, bytes per second: where the switch reduces, and with rings over NVLink or shared
    memory; of others nothing is known."""
    over = {edge.kind for edge in how.edges}
    name = _family(how.algorithm)
    if name == "ring" and len(over) == 1:
        name = f"{over.pop()} ring"
    if ceiling is None or name not in ("nvls", "nvlink ring", "shm ring"):
        return None
    return healthy.expected("allreduce", name, None).of(ceiling)


def _with_memory(machine: Machine, plan: Plan, how: Taken, found: Limits) -> Limits:
    """The links' ceiling, or the one of host memory below a ring where that is lower."""
    below = shared_memory.ring(machine, plan, how) if plan.operation != "all_to_all" else None
    if below is None or found.now is None or _family(how.algorithm) != "ring":
        return found
    return _lower(found, below)


def ring(n: int, per_edge: float) -> float:
    """busbw of a ring whose fullest link gives every edge `per_edge` over all channels: the same, for any n."""
    return per_edge if n > 1 else 0.0


def tree(n: int, link: float) -> float:
    """busbw of double binary trees: an interior GPU's link carries two children: (n−1)/n · C. Below 4: the cut."""
    return (n - 1) / n * link if n >= 4 else cut(n, link)


def nvls(n: int, link: float) -> float:
    """busbw where NVSwitch reduces: 2(n−1)/(n+1) · C. 8 GPUs with 450 GB/s: 700 GB/s."""
    return 2 * (n - 1) / (n + 1) * link


def one_shot(n: int, link: float) -> float:
    """busbw where every rank sends its whole message to every other one: algbw = C/(n−1)."""
    return 2 / n * link


def cut(n: int, crossing: float) -> float:
    """Hard bound of an allreduce without in-network reduction: a cut carries S each way: 2(n−1)/n · C_cut."""
    return 2 * (n - 1) / n * crossing


def network(nic_rate: float, channels: int, crossings: int) -> float:
    """busbw of a ring whose edges cross a network card of a rate (bytes per second): C · channels / edges."""
    if channels < 1 or crossings < 1:
        raise ValueError("a ring over the network needs at least 1 channel and 1 edge that crosses it")
    return nic_rate * channels / crossings


def floor(plan: Plan, how: Taken, so_far: Sequence[Result]) -> float | None:
    """Least seconds: hops × the one-way flag time between these GPUs measured before; None where it was not.

    The flag went the way of the edges: through peer memory for P2P and NVLink, through mapped host memory for SHM.
    """
    kinds = {edge.kind for edge in how.edges}
    ways = {None, *({True} if kinds & {"p2p", "nvlink"} else ()), *({False} if "shm" in kinds else ())}
    flags = [
        r.latency_s
        for r in so_far
        if r.operation == "peer_flag_latency" and r.latency_s and r.p2p in ways and set(r.gpus) <= set(plan.gpus)
    ]
    if not flags or plan.operation != "allreduce":
        return None
    hops = 2 * (plan.world_size - 1) if _family(how.algorithm) == "ring" else 1
    return hops * min(flags)


def _ceiling(machine: Machine, plan: Plan, how: Taken, sources: Sources) -> Limits:
    """The lower of what NVLink and what PCIe links allow; the one that binds explains."""
    over_nvlink = _nvlink(machine, plan, how)
    over_pcie = _pcie(machine, plan, how, sources)
    if over_pcie is None and over_nvlink is None:
        return ceilings.unknown("No link of this path is known: no limit.")
    if over_nvlink is None or (over_pcie and over_pcie.now and over_pcie.now < over_nvlink.rate):
        return over_pcie or ceilings.unknown("No link of this path is known: no limit.")
    if over_pcie is not None and over_pcie.now is None:
        return over_pcie
    rate = over_nvlink.rate
    return Limits(now=rate, platform=rate, device=rate, basis="read", binding=over_nvlink.binding, why=over_nvlink.why)


def _network(machine: Machine, plan: Plan, how: Taken) -> Limits:
    """busbw of a ring by the rates of this host's adapters, all of them together; soft: which ones NCCL took, and
    whether a socket left the host at all, is not known. Ranks of one host that talk over the network get no `now`."""
    rates = {f.address: f.network_rate for f in machine.pci if f.network_rate}
    crossings = sum(edge.count for edge in how.edges if edge.kind == "net")
    if not rates:
        return ceilings.unknown(_NETWORK)
    several_hosts = not plan.gpus or plan.world_size > len(machine.gpus)
    here = _leaving(crossings, plan.world_size, len(machine.gpus), several_hosts)
    rate = network(sum(rates.values()), how.channels, here)
    names = f"{', '.join(rates)}: {sum(rates.values()) / 1e9:.1f} GB/s of network"
    why = (
        f"Network adapters {names}, each way; {how.channels} ring(s) leave this host {here} time(s): "
        f"{rate / 1e9:.1f} GB/s. Soft: which adapters NCCL took is not known. Source: the adapters' own rates."
    )
    if not several_hosts:
        why += " All ranks are on this host: what an adapter or the kernel reaches with itself is not modelled."
    return Limits(now=rate if several_hosts else None, platform=rate, basis="read", hard=False, binding=names, why=why)


def _leaving(crossings: int, ranks: int, gpus: int, several_hosts: bool) -> int:
    """How many of all edges over the network leave this host: half where the number of hosts is not known."""
    share = gpus / ranks if ranks > gpus else 0.5 if several_hosts else 1.0
    return max(1, round(crossings * share))


def _lower(one: Limits, other: Limits) -> Limits:
    """The ceiling that binds: the lower one; the second where neither is known."""
    if one.now is None or other.now is None:
        return one if one.now is not None else other
    return min(one, other, key=lambda limits: limits.now or 0.0)


def _pcie(machine: Machine, plan: Plan, how: Taken, sources: Sources) -> Limits | None:
    """The ceiling by PCIe links; None where no edge crosses one."""
    demand, scale, words = _pcie_demand(machine, plan, how)
    if demand is None:
        return None
    note = words if how.factor == 1 else f"{words} Protocol {how.protocol}: × {how.factor:g}."
    found = ceilings.limits(Question(plan.case, demand, "sm", note=note), sources)
    return _scaled(found, scale * how.factor)


def _pcie_demand(machine: Machine, plan: Plan, how: Taken) -> tuple[Demand | None, float, str]:
    """(traffic, factor from its rate to busbw, in words) by algorithm."""
    n, family = plan.world_size, _family(how.algorithm)
    if plan.operation == "all_to_all":
        edges = [rings.Edge(a, b, _kind_between(how, a, b)) for a in range(n) for b in range(n) if a != b]
        demand = rings.total([rings.edge_demand(machine, plan, edge) for edge in edges])
        return _flows(demand, n - 1), 1.0, f"All to all: {n - 1} flows leave each of {n} GPUs."
    demand = rings.total([rings.edge_demand(machine, plan, edge) for edge in how.edges])
    if plan.operation != "allreduce" or family == "ring":
        many = f"{how.channels} rings" if how.channels > 1 else "one ring"
        return _flows(demand, how.channels), 1.0, f"Ring: busbw is what each edge carries, over {many}."
    crossed = _crossings(demand)
    if family == "tree" and n >= 4:
        return crossed, (n - 1) / n, f"Tree: (n−1)/n of an interior GPU's link, n = {n}."
    if family == "one_shot":
        return crossed, 2 / n, f"One-shot: 2/n of a GPU's link, n = {n}."
    return crossed, cut(n, 1.0), f"Cut bound: 2(n−1)/n of the narrowest link between two groups, n = {n}."


def _nvlink(machine: Machine, plan: Plan, how: Taken) -> NvCeiling | None:
    """busbw by NVLink; None where the edges do not use it or its rate is not known."""
    over = [edge for edge in how.edges if edge.kind == "nvlink"]
    least = _least_out(machine, plan)
    if not over or least is None:
        return None
    family, allreduce = _family(how.algorithm), plan.operation == "allreduce"
    if allreduce and least.switched and family != "ring":
        return _through_switch(plan.world_size, family, least, how)
    if how.read or least.switched:
        return _by_ring(machine, plan, how, over) if family == "ring" or not allreduce else _by_cut(machine, plan, how)
    if allreduce:  # one assumed ring would understate a mesh
        return _by_cut(machine, plan, how)
    return _explained(least.capacity * how.factor, least, "Every GPU sends what busbw counts over its links", how)


def _least_out(machine: Machine, plan: Plan) -> nvlink.NvBound | None:
    """The GPU with the least NVLink of those in the plan; None where one has none that is known."""
    found = [gpu and nvlink.out_of(gpu) for gpu in (rings.gpu_of(machine, plan, r) for r in range(plan.world_size))]
    known = [one for one in found if one]
    return min(known, key=lambda one: one.capacity) if known and len(known) == len(found) else None


def _through_switch(n: int, family: str | None, one: nvlink.NvBound, how: Taken) -> NvCeiling:
    """Algorithms through NVSwitch: C is all links of one GPU. An unknown algorithm may reduce in the switch."""
    rules = {
        "tree": (tree, "Tree: (n−1)/n · C"),
        "one_shot": (one_shot, "One-shot: 2/n · C"),
        "nvls": (nvls, "NVLS, the switch reduces: 2(n−1)/(n+1) · C"),
    }
    rule, words = rules.get(family or "", (nvls, "Algorithm not read; at best the switch reduces: 2(n−1)/(n+1) · C"))
    return _explained(rule(n, one.capacity) * how.factor, one, f"{words}, n = {n}", how)


def _by_ring(machine: Machine, plan: Plan, how: Taken, over: Sequence[rings.Edge]) -> NvCeiling | None:
    """min over NVLinks of C · channels / edges that cross it: a bond, or a GPU's way into the switch."""
    found = []
    for edge in over:
        one, other = rings.gpu_of(machine, plan, edge.source), rings.gpu_of(machine, plan, edge.target)
        bond = nvlink.between(machine, one.index, other.index) if one and other else None
        if bond is None:
            continue
        crossing = sum(e.count for e in over if e.source == edge.source and (bond.switched or e.target == edge.target))
        words = f"Ring: C · {how.channels} rings / {crossing} edges that leave gpu{edge.source} there"
        found.append(_explained(bond.capacity * how.channels / crossing * how.factor, bond, words, how))
    return min(found, key=lambda one: one.rate, default=None)


def _by_cut(machine: Machine, plan: Plan, how: Taken) -> NvCeiling | None:
    """Direct bonds without known rings: the narrowest cut, as one ring understates a mesh."""
    n = plan.world_size
    sizes = range(1, n // 2 + 1) if n <= _LARGEST_CUTS else (1,)
    bonds = {(a, b): _bond(machine, plan, a, b) for a in range(n) for b in range(n) if a != b}
    least: tuple[float, tuple[int, ...]] | None = None
    for group in (group for size in sizes for group in combinations(range(n), size)):
        across = sum(bonds[a, b] for a in group for b in range(n) if b not in group)
        if across and (least is None or across < least[0]):
            least = (across, group)
    if least is None:
        return None
    names = ", ".join(f"gpu{plan.gpus[rank]}" for rank in least[1])
    rate = cut(n, least[0]) * how.factor
    crossing = f"{least[0] / 1e9:.1f} GB/s"
    why = f"Cut bound: 2(n−1)/n of {crossing} between {names} and the others, n = {n}: {rate / 1e9:.1f} GB/s."
    return NvCeiling(rate, f"NVLinks of {names}, {crossing}", why)


def _bond(machine: Machine, plan: Plan, one: int, other: int) -> float:
    bond = nvlink.between(machine, plan.gpus[one], plan.gpus[other])
    return bond.capacity if bond else 0.0


def _explained(rate: float, bond: nvlink.NvBound, words: str, how: Taken) -> NvCeiling:
    factor = "" if how.factor == 1 else f", {how.protocol} × {how.factor:g}"
    total = f"C = {bond.words} = {bond.capacity / 1e9:.1f} GB/s{factor}"
    return NvCeiling(rate, bond.words, f"{words}, {total}: {rate / 1e9:.1f} GB/s. Source: {bond.source}.")


def _crossings(demand: Demand | None) -> Demand | None:
    """One message across every link, each way it is used at all."""
    if demand is None:
        return None
    once = {lower: _once(traffic) for lower, traffic in demand.traffic.items()}
    return replace(demand, traffic=once, flows=1)


def _once(traffic: Traffic) -> Traffic:
    return Traffic(*(min(1, count) for count in vars(traffic).values()))


def _flows(demand: Demand | None, flows: int) -> Demand | None:
    return replace(demand, flows=flows) if demand else None


def _scaled(found: Limits, factor: float) -> Limits:
    """Every ceiling times a factor; the derivation says so."""
    if factor == 1:
        return found
    values = {name: getattr(found, name) for name in ("now", "platform", "device", "low", "high")}
    scaled = {name: value * factor for name, value in values.items() if value is not None}
    total = f" Times {factor:.4g}: {scaled['now'] / 1e9:.2f} GB/s." if "now" in scaled else ""
    return replace(found, **scaled, why=f"{found.why}{total}")


def _kind_between(how: Taken, source: int, target: int) -> str:
    """The transport of a pair: as a ring edge has it, else as any edge has it."""
    same = [edge.kind for edge in how.edges if (edge.source, edge.target) == (source, target)]
    return same[0] if same else how.edges[0].kind


def _family(algorithm: str | None) -> str | None:
    """ring, tree, nvls, one_shot or None, by NCCL's name (RING, TREE, NVLS, NVLSTree, CollNet…, AllReduce_AGxLL…)."""
    name = (algorithm or "").upper()
    for word, family in (
        ("NVLS", "nvls"),
        ("COLLNET", "nvls"),
        ("RING", "ring"),
        ("TREE", "tree"),
        ("AGXLL", "one_shot"),
    ):
        if word in name:
            return family
    return "one_shot" if name in ("ONE_SHOT", "ONE-SHOT") else None
