"""What an operation puts on every link of its path, in counts of equal flows, and which link gives out first."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from suite.limits import pcie
from suite.limits.links import LinkOf
from suite.limits.pcie import Mover, Traffic
from suite.records.machine import Basis, Hop, LinkState, Machine, Path
from suite.records.path import path_to_root

UP = Traffic(up_writes=1)  # a device writes to host memory
DOWN = Traffic(down_reads=1)  # a device reads from host memory
_ASSUMED_MRRS = 512  # Linux leaves devices at their default, 512 by the PCI Express Base Specification (Device Control)


@dataclass(frozen=True)
class Packets:
    """Packet sizes in bytes on a path, and who moves them. cut: see pcie.utilisation."""

    mps: int
    mrrs: int
    engine: Mover = "copy-engine"
    flit: bool | None = None
    cut: int | None = None


@dataclass(frozen=True)
class Demand:
    """Traffic on each hop, by the address of its lower end. flows: how many equal flows the bandwidth counts.

    mps, mrrs: bytes, None where not read. corner: two copy engines that need not move both directions in step.
    """

    hops: Mapping[str, Hop]
    traffic: Mapping[str, Traffic]
    flows: int
    mps: int | None = None
    mrrs: int | None = None
    flit: bool | None = None
    basis: Basis = "assumed"
    corner: bool = False


@dataclass(frozen=True)
class Bound:
    """The link that gives out first. rate: bytes per second of all flows; unknown: hops whose link is not known.
    note: how the rate follows where it is more than this one hop's."""

    rate: float
    hop: Hop
    link: LinkState
    traffic: Traffic
    unknown: tuple[str, ...] = ()
    note: str | None = None


def host_demand(machine: Machine, loads: Iterable[tuple[str, Traffic]]) -> Demand:
    """Copies between devices (addresses) and host memory at the same time. A link above several carries all of them."""
    paths: list[Path] = []
    hops: dict[str, Hop] = {}
    traffic: dict[str, Traffic] = {}
    flows = 0
    for address, load in loads:
        path = path_to_root(machine, address)
        paths.append(path)
        flows += int(load.up_writes + load.down_reads)
        for hop in path.hops:
            hops[hop.lower] = hop
            traffic[hop.lower] = traffic.get(hop.lower, Traffic()) + load
    return _demand(hops, traffic, flows, paths)


def peer_demand(machine: Machine, source: str, target: str, *, read: bool = False) -> Demand:
    """One peer copy over PCIe from a device to another. read: the target asks for it; else the source writes.

    Links that both share above their common port are crossed only where a port redirects peer traffic upstream (ACS).
    """
    above, below = path_to_root(machine, source), path_to_root(machine, target)
    up = Traffic(up_reads=1) if read else Traffic(up_writes=1)
    down = Traffic(down_reads=1) if read else Traffic(down_writes=1)
    shared = {hop.lower for hop in above.hops} & {hop.lower for hop in below.hops}
    crossed = redirected(machine, source, target)
    hops: dict[str, Hop] = {}
    traffic: dict[str, Traffic] = {}
    for path, load in ((above, up), (below, down)):
        for hop in path.hops:
            if hop.lower not in shared or crossed:
                hops[hop.lower] = hop
                traffic[hop.lower] = traffic.get(hop.lower, Traffic()) + load
    return _demand(hops, traffic, 1, [above, below])


def add(demands: Iterable[Demand]) -> Demand:
    """Several demands at the same time: a link carries the traffic of all of them. Needs at least one."""
    parts = list(demands)
    total = parts[0]
    for part in parts[1:]:
        traffic = dict(total.traffic)
        for lower, load in part.traffic.items():
            traffic[lower] = traffic.get(lower, Traffic()) + load
        total = replace(
            total,
            hops={**total.hops, **part.hops},
            traffic=traffic,
            flows=total.flows + part.flows,
            mps=_least(total.mps, part.mps),
            mrrs=_least(total.mrrs, part.mrrs),
            flit=total.flit if total.flit == part.flit else None,
            basis=weakest(total.basis, part.basis),
        )
    return total


def loads(demand: Demand) -> dict[str, int]:
    """How many flows the fuller direction of each hop carries, by the address of its lower end."""
    return {
        lower: int(max(t.up_writes + t.up_reads, t.down_writes + t.down_reads)) for lower, t in demand.traffic.items()
    }


def bound(demand: Demand, link_of: LinkOf, packets: Packets) -> Bound | None:
    """The hop with the least room, at the links that `link_of` gives; None where no hop's link is known."""
    least: Bound | None = None
    unknown = []
    for lower, hop in demand.hops.items():
        link = link_of(hop)
        if link.gen is None or link.width not in pcie.WIDTHS:
            unknown.append(lower)
            continue
        rate = hop_rate(demand, demand.traffic[lower], link, packets)
        if least is None or rate < least.rate:
            least = Bound(rate, hop, link, demand.traffic[lower])
    return replace(least, unknown=tuple(unknown)) if least else None


def hop_rate(demand: Demand, traffic: Traffic, link: LinkState, packets: Packets) -> float:
    """Bytes per second of all flows of a demand if this hop, at this (known) link, were the only one."""
    gen, width = link.gen or 0, link.width or 0
    flit = packets.flit if gen < pcie.FIRST_FLIT_GENERATION else None
    if demand.corner and packets.engine == "copy-engine":
        return pcie.both_ways(gen, width, packets.mps, packets.mrrs, flit=flit).total
    one = pcie.share(traffic, gen, width, packets.mps, packets.mrrs, flit=flit, engine=packets.engine, cut=packets.cut)
    return one * demand.flows


def load(traffic: Traffic, link: LinkState, packets: Packets) -> float | None:
    """How full the more loaded direction of a hop is under a traffic in bytes per second; None for an unknown link."""
    if link.gen is None or link.width not in pcie.WIDTHS:
        return None
    flit = packets.flit if link.gen < pcie.FIRST_FLIT_GENERATION else None
    return pcie.utilisation(
        traffic,
        link.gen,
        link.width or 0,
        packets.mps,
        packets.mrrs,
        flit=flit,
        engine=packets.engine,
        cut=packets.cut,
    ).worst


def sizes(demand: Demand, engine: Mover, cut: int | None = None) -> tuple[Packets, ...]:
    """The packet sizes to compute with: the one that was read, or those that are assumed (least, shown, most)."""
    mrrs = demand.mrrs if demand.mrrs in pcie.PAYLOADS else None
    if demand.mps in pcie.PAYLOADS:
        return (Packets(demand.mps or 0, mrrs or _ASSUMED_MRRS, engine, demand.flit, cut),)
    assumed = zip(pcie.ASSUMED_MPS, (_ASSUMED_MRRS, _ASSUMED_MRRS, 4096), strict=True)
    return tuple(Packets(mps, mrrs or most, engine, demand.flit, cut) for mps, most in assumed)


def redirected(machine: Machine, one: str, other: str) -> bool:
    """A port between two devices and their common port sends peer traffic upstream (ACS redirect)."""
    first, second = list(machine.ancestors(one)), list(machine.ancestors(other))
    common = {f.address for f in first} & {f.address for f in second}
    ports = [f for f in (*first, *second) if f.address not in common]
    return bool(common) and any(port.config is not None and port.config.acs_redirect for port in ports)


def weakest(one: Basis, other: Basis) -> Basis:
    """The less certain of two bases."""
    order: tuple[Basis, ...] = ("assumed", "virtualized", "read")
    return order[min(order.index(one), order.index(other))]


def _demand(hops: Mapping[str, Hop], traffic: Mapping[str, Traffic], flows: int, paths: list[Path]) -> Demand:
    basis: Basis = "read" if paths else "assumed"
    for path in paths:
        basis = weakest(basis, path.basis)
    flits = {path.flit_mode for path in paths}
    return Demand(
        hops=hops,
        traffic=traffic,
        flows=flows,
        mps=_all_known([path.mps for path in paths]),
        mrrs=_all_known([path.mrrs for path in paths]),
        flit=flits.pop() if len(flits) == 1 else None,
        basis=basis,
    )


def _all_known(values: list[int | None]) -> int | None:
    known = [value for value in values if value is not None]
    return min(known) if known and len(known) == len(values) else None


def _least(one: int | None, other: int | None) -> int | None:
    return None if one is None or other is None else min(one, other)
