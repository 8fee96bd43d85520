"""What NCCL says of itself in its debug file: version, rings, transport of each edge, algorithm of each call.

Formats of NCCL 2.8 to 2.32 are read. The file is written by NCCL_DEBUG=INFO with the subsystems in VARIABLES.
"""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass, field, replace

from suite.measure.nccl.buffers import HOST_ALLOCATION
from suite.records.case import Operation, Plan, Transport

# TUNING brings the line on each call's algorithm, ALLOC host buffers, the others versions, rings and transports.
VARIABLES = (("NCCL_DEBUG", "INFO"), ("NCCL_DEBUG_SUBSYS", "INIT,ENV,P2P,SHM,NET,TUNING,ALLOC"))
FUNCTIONS: dict[Operation, str] = {
    "allreduce": "AllReduce",
    "all_gather": "AllGather",
    "reduce_scatter": "ReduceScatter",
    "broadcast": "Broadcast",
}
# NCCL src/include/nccl_common.h (2.27), NCCL_ALGO_* and NCCL_PROTO_*: older versions log the number.
ALGORITHMS = ("Tree", "Ring", "CollNetDirect", "CollNetChain", "NVLS", "NVLSTree", "PAT")
PROTOCOLS = ("LL", "LL128", "Simple")

_VERSION = re.compile(r"NCCL version (\d+\.\d+\.\d+)")
# 'Channel 00/64 : 0 1 2 3': rank 0's list of a ring's ranks in order.
_RING = re.compile(r"Channel (\d+)/\d+ :((?: +\d+)+)\s*$")
# 'Channel 00/0 : 0[0] -> 1[1] via P2P/CUMEM/read', 'Ring 00 : 15 -> 0 [send] via NET/Socket/0'
_EDGE = re.compile(
    r"(?:Channel|Ring) \d+(?:/\d+)? : (\d+)(?:\[\w+\])? -> (\d+)(?:\[\w+\])?(?: \[\w+\])? via (\S.*?)\s*$"
)
# 'AllReduce: 4096 Bytes -> Algo RING proto LL channel{Lo..Hi}={0..3}', '4096 Bytes -> Algo 1 proto 0 time 12.3'
_CHOICE = re.compile(r"(?:(\w+): )?(\d+) Bytes -> Algo (\w+) proto (\w+)(?: channel\{Lo\.\.Hi\}=\{(\d+)\.\.(\d+)\})?")
# 'AllReduce [Symmetric]: 4096 Bytes -> Kernel AllReduce_AGxLL_R nchannels 8 …'
_KERNEL = re.compile(r"(\w+) \[Symmetric\]: (\d+) Bytes -> Kernel (\w+)(?: nchannels (\d+))?")


@dataclass(frozen=True)
class Choice:
    """What NCCL took for one call. channels: how many this call used; None where the version does not say."""

    algorithm: str | None
    protocol: str | None
    channels: int | None


@dataclass
class Log:
    """Facts of all ranks' logs. edges: (from, to, transport). choices: by function ('' where the version
    does not name it) and bytes. rings: ranks in order, by channel. host_buffers: bytes by NUMA node."""

    version: str | None = None
    rings: dict[int, tuple[int, ...]] = field(default_factory=dict)
    edges: set[tuple[int, int, str]] = field(default_factory=set)
    choices: dict[tuple[str, int], Choice] = field(default_factory=dict)
    host_buffers: Counter[int] = field(default_factory=Counter)

    def transport(self, operation: Operation, nbytes: int) -> Transport | None:
        """What a call of this size took; None where the log says nothing of it. A size that was not called counts as
        the next smaller one that was."""
        choice = self._choice(FUNCTIONS.get(operation, ""), nbytes)
        edges = self._ring_edges()
        if choice is None and not edges and self.version is None:
            return None
        return Transport(
            name=_name(edges),
            algorithm=choice.algorithm if choice else None,
            protocol=choice.protocol if choice else None,
            channels=(choice.channels if choice else None) or len(self.rings) or None,
            edges=tuple(f"r{one}>r{other} {via}" for one, other, via in sorted(edges)),
            version=self.version,
        )

    def _choice(self, function: str, nbytes: int) -> Choice | None:
        sizes = [size for name, size in self.choices if name in (function, "") and size <= nbytes]
        if not sizes:
            return None
        return self.choices.get((function, max(sizes))) or self.choices.get(("", max(sizes)))

    def _ring_edges(self) -> list[tuple[int, int, str]]:
        """Edges that a ring uses; all where no ring was logged, or none of its edges (tree connections are others)."""
        pairs = {pair for ring in self.rings.values() for pair in zip(ring, ring[1:] + ring[:1], strict=True)}
        return [edge for edge in self.edges if edge[:2] in pairs] or list(self.edges)


def logging(plan: Plan, folder: str) -> Plan:
    """The untimed plan whose workers write NCCL's log into a folder, one file a process."""
    debug = (*VARIABLES, ("NCCL_DEBUG_FILE", f"{folder}/%p"))
    return replace(plan, rounds=0, graph=False, variables=(*plan.variables, *debug))


def parse(*texts: str) -> Log:
    """All ranks' log texts as one Log. Lines that are not known are passed over."""
    log = Log()
    for text in texts:
        for line in text.splitlines():
            _read(line, log)
    return log


def _read(line: str, log: Log) -> None:
    if match := _EDGE.search(line):
        log.edges.add((int(match[1]), int(match[2]), match[3]))
    elif match := _RING.search(line):
        log.rings[int(match[1])] = tuple(int(rank) for rank in match[2].split())
    elif match := _CHOICE.search(line):
        channels = int(match[6]) - int(match[5]) + 1 if match[5] else None
        choice = Choice(_one_of(ALGORITHMS, match[3]), _one_of(PROTOCOLS, match[4]), channels)
        log.choices[match[1] or "", int(match[2])] = choice
    elif match := _KERNEL.search(line):
        channels = int(match[4]) if match[4] else None
        log.choices[match[1], int(match[2])] = Choice(match[3], _kernel_protocol(match[3]), channels)
    elif match := HOST_ALLOCATION.search(line):
        log.host_buffers[int(match[2])] += int(match[1])
    elif match := _VERSION.search(line):
        log.version = match[1]


def _one_of(names: tuple[str, ...], said: str) -> str | None:
    """NCCL's name in one spelling, from a number or a word in any case; None where it is not known."""
    if said.isdecimal():
        return names[int(said)] if int(said) < len(names) else None
    folded = said.replace("_", "").lower()
    return next((name for name in names if name.lower() == folded), said)


def _kernel_protocol(kernel: str) -> str | None:
    return "LL" if "LL" in kernel else None


def _name(edges: list[tuple[int, int, str]]) -> str | None:
    """'P2P', 'SHM', 'NET', or several of them joined, most frequent first."""
    kinds = Counter(via.partition("/")[0] for _, _, via in edges)
    return "+".join(kind for kind, _ in sorted(kinds.items(), key=lambda k: (-k[1], k[0]))) or None
