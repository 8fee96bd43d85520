"""What NCCL's log says of a collective: edges, algorithm, protocol; and what each edge puts on the links."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from suite.limits import nvlink, path
from suite.limits.path import Demand
from suite.limits.pcie import Traffic
from suite.records.case import Plan, Samples, Transport
from suite.records.machine import Gpu, Machine
from suite.records.path import topology

# Share of a protocol's bytes that are payload. LL sends 4 bytes of flag for 4 of data, LL128 8 for 120; NCCL's own
# tuning (src/graph/tuning.cc) takes 0.5 and 0.92 of the bandwidth.
PROTOCOLS: dict[str, float] = {"LL": 0.5, "LL128": 0.92, "SIMPLE": 1.0}
_EDGE = re.compile(r"r?(\d+)\s*(?:->|>)\s*r?(\d+)\s*(.*)")
_SWITCHED = ("PIX", "PXB")  # NCCL takes P2P up to several switches by itself (NCCL_P2P_LEVEL, default PXB)


@dataclass(frozen=True)
class Edge:
    """One directed ring edge between ranks, over all channels `count` times. kind: nvlink, p2p, shm or net."""

    source: int
    target: int
    kind: str
    count: int = 1


@dataclass(frozen=True)
class Taken:
    """What a collective ran over. channels: rings that `edges` count. read: from NCCL's log, else assumed."""

    algorithm: str | None
    protocol: str | None
    edges: tuple[Edge, ...]
    channels: int
    read: bool

    @property
    def factor(self) -> float:
        """Share of the link's payload that the protocol leaves for data; 1 where it is not known."""
        return PROTOCOLS.get((self.protocol or "").upper(), 1.0)

    @property
    def words(self) -> str:
        """'Ring, Simple, over P2P (from NCCL's log)'."""
        kinds = {"nvlink": "NVLink", "p2p": "P2P over PCIe", "shm": "shared host memory", "net": "the network"}
        over = " and ".join(dict.fromkeys(kinds[edge.kind] for edge in self.edges)) or "an unknown transport"
        named = ", ".join(one for one in (self.algorithm or "algorithm not read", self.protocol) if one)
        how = "from NCCL's log" if self.read else "edges not read: one ring in PCI order assumed"
        return f"{named} over {over} ({how})"


def taken(machine: Machine, plan: Plan, samples: Samples | None, algorithm: str | None = None) -> Taken:
    """What the samples say that NCCL took; where they do not say, a ring in PCI order over what NCCL would choose."""
    seen = (samples.transport if samples else None) or Transport()
    edges = _read(machine, plan, seen)
    if edges:
        channels = max(sum(e.count for e in edges if e.source == rank) for rank in {e.source for e in edges})
        return Taken(seen.algorithm or algorithm, seen.protocol, edges, channels, True)
    pairs = [(rank, (rank + 1) % plan.world_size) for rank in range(plan.world_size)]
    name = (seen.name or plan.transport or "").upper()
    if "SHM" not in name and not name.startswith("NET") and _nvlinked(machine, plan):
        ring = tuple(Edge(*pair, "nvlink") for pair in pairs)
    else:
        ring = tuple(Edge(*pair, _kind(machine, plan, name, *pair)) for pair in pairs)
    return Taken(seen.algorithm or algorithm, seen.protocol, ring, 1, False)


def edge_demand(machine: Machine, plan: Plan, edge: Edge) -> Demand | None:
    """What one edge puts on PCIe links, all its channels together; None where it crosses none that are known.

    P2P: the sender writes into the receiver. SHM: the sender writes to host memory, the receiver reads it from there.
    """
    source, target = address(machine, plan, edge.source), address(machine, plan, edge.target)
    if source is None or target is None or edge.kind in ("nvlink", "net"):
        return None
    if edge.kind == "shm":
        loads = [(source, Traffic(up_writes=edge.count)), (target, Traffic(down_reads=edge.count))]
        return path.host_demand(machine, loads)
    one = path.peer_demand(machine, source, target)
    return path.add([one] * edge.count)


def address(machine: Machine, plan: Plan, rank: int) -> str | None:
    """PCI address of a rank's GPU."""
    gpu = gpu_of(machine, plan, rank)
    return gpu.address if gpu else None


def gpu_of(machine: Machine, plan: Plan, rank: int) -> Gpu | None:
    """A rank's GPU; None where the plan does not say or the machine has none."""
    return machine.gpu(plan.gpus[rank]) if rank < len(plan.gpus) else None


def _read(machine: Machine, plan: Plan, seen: Transport) -> tuple[Edge, ...]:
    """The log's edges, equal ones counted. Empty unless they name every rank: half a ring proves nothing."""
    found: Counter[tuple[int, int, str]] = Counter()
    for text in seen.edges:
        match = _EDGE.match(text)
        if match and max(int(match[1]), int(match[2])) < plan.world_size:
            source, target = int(match[1]), int(match[2])
            found[source, target, _named(machine, plan, match[3], source, target)] += 1
    sources, targets = {s for s, _, _ in found}, {t for _, t, _ in found}
    complete = len(sources) == len(targets) == plan.world_size
    return tuple(Edge(*edge, count) for edge, count in found.items()) if complete else ()


def _named(machine: Machine, plan: Plan, text: str, source: int, target: int) -> str:
    """The kind of an edge by NCCL's word for it ('via P2P/direct pointer', 'via SHM/direct/direct', 'NET/IB/0')."""
    words = text.upper()
    if "SHM" in words:
        return "shm"
    if "NET" in words:
        return "net"
    return "nvlink" if _bonded(machine, plan, source, target) else "p2p"


def _nvlinked(machine: Machine, plan: Plan) -> bool:
    """NVLinks join all ranks: then NCCL finds rings in them, though perhaps not in PCI order."""
    reached, waiting = {0}, [0]
    while waiting:
        rank = waiting.pop()
        near = {r for r in range(plan.world_size) if r not in reached and _bonded(machine, plan, rank, r)}
        reached |= near
        waiting += near
    return len(reached) == plan.world_size


def _kind(machine: Machine, plan: Plan, name: str, source: int, target: int) -> str:
    """The kind of an edge that no log names: by the transport named or asked for, else what NCCL would choose.

    'SHM' (or 'P2P+SHM') for more than two ranks sums up a ring that may use P2P below a switch, unless it was off.
    """
    if name.startswith("NET"):
        return "net"
    if "SHM" in name and (plan.world_size == 2 or (plan.transport or "").upper() == "SHM"):
        return "shm"
    if _bonded(machine, plan, source, target):
        return "nvlink"
    if "SHM" in name:
        return "p2p" if _allowed(machine, plan, source, target, _SWITCHED) else "shm"
    return "p2p" if name.startswith("P2P") or _by_default(machine, plan, source, target) else "shm"


def _bonded(machine: Machine, plan: Plan, source: int, target: int) -> bool:
    one, other = gpu_of(machine, plan, source), gpu_of(machine, plan, target)
    return bool(one and other and nvlink.between(machine, one.index, other.index))


def _by_default(machine: Machine, plan: Plan, source: int, target: int) -> bool:
    """NCCL takes P2P below switches, and on AMD with at most two GPUs everywhere, where the driver allows it."""
    everywhere = machine.cpu.vendor == "AuthenticAMD" and len(machine.gpus) <= 2
    return _allowed(machine, plan, source, target, None if everywhere else _SWITCHED)


def _allowed(machine: Machine, plan: Plan, source: int, target: int, classes: tuple[str, ...] | None) -> bool:
    """The driver does not refuse P2P between two ranks, and they are as near as one of the classes (None: any)."""
    one, other = gpu_of(machine, plan, source), gpu_of(machine, plan, target)
    if one is None or other is None:
        return False
    pair = machine.pair(one.index, other.index)
    if pair is not None and {pair.p2p_read, pair.p2p_write} - {"OK", None}:
        return False
    known = (pair.topology if pair else None) or topology(machine, one.address or "", other.address or "")
    return classes is None or known in classes


def total(demands: Sequence[Demand | None]) -> Demand | None:
    """All edges together; None where none crosses a PCIe link."""
    known = [demand for demand in demands if demand is not None]
    return path.add(known) if known else None
