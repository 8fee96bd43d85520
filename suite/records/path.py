"""Facts that follow from the PCI tree alone: the hops above a device, and how near two devices are."""

from __future__ import annotations

from typing import TypeVar

from suite.records.machine import Basis, Hop, LinkState, Machine, Path, PciFunction, Topology

Number = TypeVar("Number", int, float)

_FACING_DOWN = ("root_port", "downstream_port")


def path_to_root(machine: Machine, address: str) -> Path:
    """Every link from a device up to its root complex, nearest first.

    Inside a switch (upstream to downstream port) there is no link: only port-to-partner links are hops.
    An unknown address gives a path without hops, `complete` False.
    """
    chain = list(machine.ancestors(address))
    bridges = [function for function in chain[1:] if function.is_bridge]
    hops = tuple(_hops(chain))
    payloads = [f.config.mps if f.config else None for f in chain]
    known = [p for p in payloads if p is not None]
    endpoint = chain[0].config if chain else None
    return Path(
        device=address,
        hops=hops,
        mps=min(known) if known and len(known) == len(payloads) else None,
        mrrs=endpoint.mrrs if endpoint else None,
        flit_mode=endpoint.flit_mode if endpoint else None,
        basis=_basis(machine, known, payloads),
        complete=bool(bridges),
    )


def narrowest(link: LinkState, other: LinkState) -> LinkState:
    """The lower speed and the lower width of two ends; a field is None where either end does not say."""
    return LinkState(_least(link.speed_gts, other.speed_gts), _least(link.width, other.width))


def slowest_hop(path: Path) -> Hop | None:
    """The hop that could carry least even at its best (lanes × GT/s), the nearest of equals; hops of which neither end
    says what it can do count as they run now. None where nothing is known of any."""
    rated = [(rate, hop) for hop in path.hops if (rate := _rate(hop.possible) or _rate(hop.now)) is not None]
    return min(rated, key=lambda pair: pair[0])[1] if rated else None


def topology(machine: Machine, one: str, other: str) -> Topology | None:
    """How near two devices are in the PCI tree, in nvidia-smi's words; None where the tree does not say.

    PIX: below one switch; PXB: across several bridges below one root port; PHB: one host bridge; NODE: one NUMA node;
    SYS: across NUMA nodes.
    """
    first, second = list(machine.ancestors(one)), list(machine.ancestors(other))
    if not first or not second:
        return None
    if one == other:
        return "SELF"
    shared = {f.address for f in second}
    common = next((f for f in first if f.address in shared), None)
    if common is not None:
        return "PIX" if _switches_below(first, common) + _switches_below(second, common) <= 2 else "PXB"
    if first[-1].root_bus is not None and first[-1].root_bus == second[-1].root_bus:
        return "PHB"
    if first[0].numa_node is None or second[0].numa_node is None:
        return None
    return "NODE" if first[0].numa_node == second[0].numa_node else "SYS"


def _hops(chain: list[PciFunction]) -> list[Hop]:
    """Pairs (device, port above it). sysfs gives a root or downstream port the link below it, and every other function
    the link above it, so that a port that faces down is never the lower end of a hop."""
    hops = []
    index = _first_lower(chain)
    while index < len(chain):
        lower = chain[index]
        upper = chain[index + 1] if index + 1 < len(chain) else None
        if lower.port_type in _FACING_DOWN:
            index += 1
            continue
        hops.append(_hop(lower, upper))
        # Above the port is either the root bus or the switch's upstream port, which is the next lower end.
        index += 2
    return hops


def _first_lower(chain: list[PciFunction]) -> int:
    """Where the links begin: a conventional PCI function behind a bridge from PCI Express has none of its own.

    Port types lie beyond what an ordinary user may read. Without them: links pair up from the root port downwards, so
    that an odd number of functions below one means such a bridge, if the device shows no link."""
    if len(chain) < 2 or chain[0].is_bridge or _says_link(chain[0]):
        return 0
    if chain[1].port_type == "pcie_to_pci":
        return 1
    untyped = all(f.port_type is None for f in chain)
    return 1 if untyped and len(chain) % 2 == 1 and len(chain) > 2 and _says_link(chain[1]) else 0


def _says_link(function: PciFunction) -> bool:
    """sysfs gives link files to PCI Express functions only."""
    states = (function.link, function.link_max)
    return any(s.speed_gts is not None or s.width is not None for s in states)


def _hop(lower: PciFunction, upper: PciFunction | None) -> Hop:
    upper_max = upper.link_max if upper else LinkState()
    return Hop(
        lower=lower.address,
        upper=upper.address if upper else None,
        now=_first_known(lower.link, upper.link if upper else LinkState()),
        possible=narrowest(lower.link_max, upper_max) if upper else lower.link_max,
        lower_max=lower.link_max,
        upper_max=upper_max,
    )


def _first_known(link: LinkState, other: LinkState) -> LinkState:
    speed = link.speed_gts if link.speed_gts is not None else other.speed_gts
    return LinkState(speed, link.width if link.width is not None else other.width)


def _rate(link: LinkState) -> float | None:
    """GT/s over all lanes, less the fifth that 8b/10b costs Gen1 and Gen2; later codes cost next to nothing."""
    if link.speed_gts is None or link.width is None:
        return None
    return link.speed_gts * link.width * (0.8 if link.speed_gts < 8 else 1.0)


def _least(one: Number | None, other: Number | None) -> Number | None:
    return None if one is None or other is None else min(one, other)


def _basis(machine: Machine, known: list[int], payloads: list[int | None]) -> Basis:
    if not known or len(known) != len(payloads):
        return "assumed"
    return "virtualized" if machine.environment.virtual_machine else "read"


def _switches_below(chain: list[PciFunction], common: PciFunction) -> int:
    """Bridges between a device and the common one."""
    return next(i for i, f in enumerate(chain) if f.address == common.address) - 1
