"""The PCIe tree as lines, one a link: a port and what hangs below it belong to one link, so they share a line."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from suite.records.machine import Hop, LinkState, Machine, PciFunction
from suite.records.path import path_to_root
from suite.report.remarks import devices

State = Literal["full", "slow", "narrow", "unknown"]
_COLOURS: dict[State, str] = {"full": "32", "slow": "33", "narrow": "31", "unknown": "2"}


@dataclass(frozen=True)
class Line:
    """One line. state: None where the line is no link (a root bus, a device inside the root complex)."""

    text: str
    state: State | None = None
    now: LinkState = LinkState()
    possible: LinkState = LinkState()


@dataclass(frozen=True)
class _Link:
    """A hop and what is below it. key: its place in the tree, nearest the root first."""

    hop: Hop
    label: str
    below: dict[str, _Link]


def lines(machine: Machine) -> list[Line]:
    """The links from every root bus down to GPUs, accelerators and network adapters."""
    roots: dict[str, dict[str, _Link]] = {}
    for device in devices(machine):
        hops = path_to_root(machine, device.address).hops
        level = roots.setdefault(_root_bus(machine, device), {})
        for hop in reversed(hops):
            key = hop.lower.rpartition(".")[0] if hop.lower == device.address else hop.lower
            level = level.setdefault(key, _Link(hop, _label(machine, hop), {})).below
    return [line for root, below in roots.items() for line in (Line(_root(machine, root)), *_branches(below, ""))]


def _root_bus(machine: Machine, device: PciFunction) -> str:
    """The root bus that a device or a bridge above it names."""
    named = (function.root_bus for function in machine.ancestors(device.address))
    return next(filter(None, named), "PCI")


def coloured(text: str, state: State) -> str:
    """The text in the colour of a link's state: green full, yellow slow, red narrow, dim unknown."""
    return f"\033[{_COLOURS[state]}m{text}\033[0m"


def link_state(now: LinkState, possible: LinkState) -> State:
    """Width outweighs speed: an idle link runs slow to save power, but never narrow."""
    if now.width is not None and possible.width is not None and now.width < possible.width:
        return "narrow"
    if now.speed_gts is not None and possible.speed_gts is not None and now.speed_gts < possible.speed_gts:
        return "slow"
    return "full" if now.known else "unknown"


def _branches(links: dict[str, _Link], indent: str) -> Iterator[Line]:
    for index, link in enumerate(links.values()):
        last = index == len(links) - 1
        hop = link.hop
        yield Line(
            f"{indent}{'└─' if last else '├─'} {link.label}", link_state(hop.now, hop.possible), hop.now, hop.possible
        )
        yield from _branches(link.below, indent + ("   " if last else "│  "))


def _label(machine: Machine, hop: Hop) -> str:
    """'65:00.0 GPU 0 NVIDIA H200 (port 64:01.0, slot 4)'."""
    function = machine.function(hop.lower)
    slot = f", slot {function.slot}" if function and function.slot else ""
    port = f" (port {_short(hop.upper)}{slot})" if hop.upper else ""
    return f"{_short(hop.lower)} {_what(machine, function)}{port}"


def _what(machine: Machine, function: PciFunction | None) -> str:
    if function is None:
        return "?"
    gpu = next((g for g in machine.gpus if g.address == function.address), None)
    if gpu:
        return f"GPU {gpu.index} {gpu.name}"
    rate = f" {function.network_rate * 8 / 1e9:g} Gbit/s" if function.network_rate else ""
    return "switch" if function.is_bridge else (function.name or "device") + rate


def _short(address: str) -> str:
    """Without the domain where it is 0000."""
    return address.removeprefix("0000:")


def _root(machine: Machine, name: str) -> str:
    """A root bus with the NUMA node that its functions name."""
    nodes = sorted({f.numa_node for f in machine.pci if f.root_bus == name and f.numa_node is not None})
    return f"{name}, NUMA node {', '.join(map(str, nodes))}" if nodes else name
