"""The machine as a tree to be drawn: NUMA nodes, root ports, switches, GPUs, and the links between them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

from suite.records.case import LinkWatch
from suite.records.machine import Gpu, Hop, LinkState, Machine, NumaNode
from suite.records.path import path_to_root
from suite.records.run import Result, Run, Status
from suite.report.tables import machine as links
from suite.report.tables import words

Kind = Literal["node", "port", "switch", "gpu"]
Health = Literal["full", "short", "below", "idle", "unknown"]


@dataclass(frozen=True)
class Edge:
    """The link from a place up to the one above it. narrowest: of some GPU's path, where its hops differ.

    culprit: a verdict names this link as what makes a GPU slower than an equal one.
    """

    now: LinkState
    possible: LinkState
    watched: bool
    narrowest: bool
    status: Status | None = None
    culprit: bool = False

    @property
    def health(self) -> Health:
        """full: all that both ends can do; short: that, and a verdict says it is too little. An idle link says
        nothing, however slow it is."""
        if not self.now.known or not self.possible.known:
            return "unknown"
        if self.now == self.possible:
            return "short" if self.culprit else "full"
        slower = (links.rate(self.now) or 0) < (links.rate(self.possible) or 0)
        if not slower:
            return "full"
        return "below" if self.watched else "idle"


@dataclass
class Place:
    """One box. edge: the link above it, None inside the processor. gpu: NVML's index, of a GPU's box."""

    key: tuple[str, object]
    kind: Kind
    label: str
    detail: str = ""
    edge: Edge | None = None
    status: Status | None = None
    package: int | None = None
    gpu: int | None = None
    children: list[Place] = field(default_factory=list)

    def child(self, place: Place) -> Place:
        """The child with this key, made from `place` where it is new."""
        known = next((c for c in self.children if c.key == place.key), None)
        if known is None:
            self.children.append(place)
        return known or place


def build(run: Run) -> list[Place]:
    """The NUMA nodes with everything below them; GPUs whose node is unknown hang below a place of that name."""
    machine = run.machine
    ordered = sorted(
        (n for n in machine.nodes if n.gpu is None), key=lambda n: (*(n.packages[:1] or (1 << 30,)), n.index)
    )
    nodes: dict[int | None, Place] = {n.index: _node(n) for n in ordered}
    homeless = Place(("node", None), "node", "NUMA node unknown")
    watched = {r.gpus[0]: r for r in run.results if r.operation == "link_under_load" and r.gpus}
    for gpu in machine.gpus:
        home = nodes.get(_home(machine, gpu), homeless)
        result = watched.get(gpu.index)
        _hang(home, machine, gpu, result)
    return [*nodes.values(), *([homeless] if homeless.children else [])]


def leaves(place: Place) -> int:
    """How many rows a place needs."""
    return sum(leaves(child) for child in place.children) or 1


def depth(place: Place) -> int:
    """Levels below a place."""
    return max((1 + depth(child) for child in place.children), default=0)


def everything(places: Sequence[Place]) -> Iterator[Place]:
    """All places, parents before their children."""
    for place in places:
        yield place
        yield from everything(place.children)


def _node(node: NumaNode) -> Place:
    package = node.packages[0] if node.packages else None
    memory = "" if node.memory_bytes is None else f", {node.memory_bytes / (1 << 30):.0f} GiB"
    return Place(
        ("node", node.index), "node", f"NUMA node {node.index}", f"{len(node.cpus)} CPUs{memory}", package=package
    )


def _home(machine: Machine, gpu: Gpu) -> int | None:
    if gpu.numa_node is not None:
        return gpu.numa_node
    known = (function.numa_node for function in machine.ancestors(gpu.address))
    return next((node for node in known if node is not None), None)


def _hang(home: Place, machine: Machine, gpu: Gpu, result: Result | None) -> None:
    """Puts a GPU and the ports above it below its node."""
    watch, status = (result.link, words.status(result)) if result else (None, None)
    hops = path_to_root(machine, gpu.address).hops if gpu.address else ()
    narrowest = _narrowest(machine, gpu, watch)
    above = home
    if hops and hops[-1].upper is not None:
        port = hops[-1].upper
        above = home.child(Place(("port", port), "port", "root port", links.short_address(port)))
    for hop in reversed(hops[1:]):
        edge = replace(_edge(hop, watch, hop.lower == narrowest, None), culprit=_named(result, hop))
        switch = Place(("switch", hop.lower), "switch", "switch", links.short_address(hop.lower), edge=edge)
        above = above.child(switch)
    own = _edge(hops[0], watch, hops[0].lower == narrowest, status) if hops else _unseen(gpu, watch, status)
    above.child(Place(("gpu", gpu.index), "gpu", f"GPU{gpu.index}", gpu.name, own, status, gpu=gpu.index))


def _named(result: Result | None, hop: Hop) -> bool:
    """A verdict that is not in order binds the GPU to this hop."""
    if result is None or result.verdict is None or result.verdict.status not in ("WARN", "FAIL"):
        return False
    return result.verdict.binding == f"{hop.upper} – {hop.lower}"


def _edge(hop: Hop, watch: LinkWatch | None, narrowest: bool, status: Status | None) -> Edge:
    seen = watch is not None and watch.readings > 0
    own = watch.load if watch and seen and watch.load.known and status is not None else None
    return Edge(own or links.state_now(hop, watch), hop.possible, seen, narrowest, status)


def _unseen(gpu: Gpu, watch: LinkWatch | None, status: Status | None) -> Edge:
    """A GPU whose PCI path is not known: what NVML says of its link."""
    seen = watch is not None and watch.readings > 0
    return Edge(watch.load if watch and seen else gpu.link, gpu.link_max, seen, False, status)


def _narrowest(machine: Machine, gpu: Gpu, watch: LinkWatch | None) -> str | None:
    """The lower end of the narrowest hop; None where all hops carry the same, so that none stands out."""
    found = links.narrowest(machine, gpu, watch)
    hops = path_to_root(machine, gpu.address).hops if gpu.address else ()
    rates = {links.rate(links.state_now(hop, watch)) for hop in hops}
    return found[0].lower if found and len(rates) > 1 else None
