"""One case: what to measure (Plan), what was measured (Samples), and what the link did meanwhile (LinkWatch)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from suite.records.machine import AerCounters, LinkState

Operation = Literal[
    "link_under_load",
    "host_memory_copy",
    "host_to_device",
    "device_to_host",
    "both_ways",
    "host_to_device_latency",
    "device_to_host_latency",
    "host_device_load_latency",
    "staging",
    "all_gpus_host_to_device",
    "all_gpus_device_to_host",
    "all_gpus_both_ways",
    "device_local_copy",
    "ipc_copy",
    "peer_write",
    "peer_read",
    "peer_both_ways",
    "peer_latency",
    "peer_flag_latency",
    "peer_pattern",
    "allreduce",
    "all_gather",
    "reduce_scatter",
    "broadcast",
    "all_to_all",
    "send_recv",
]
COLLECTIVES: tuple[Operation, ...] = (
    "allreduce",
    "all_gather",
    "reduce_scatter",
    "broadcast",
    "all_to_all",
    "send_recv",
)
LATENCIES: tuple[Operation, ...] = (
    "host_to_device_latency",
    "device_to_host_latency",
    "host_device_load_latency",
    "peer_latency",
    "peer_flag_latency",
)
Engine = Literal["copy-engine", "sm", "load-store", "memcpy", "nccl", "gloo", "simulated"]
# pinned and registered: placed on a node, then page-locked (cudaHostRegister); host_alloc: cudaHostAlloc's own memory.
Memory = Literal["pinned", "host_alloc", "pageable", "registered", "huge", "write_combined"]
Backend = Literal["gloo", "nccl"]
RanksPlaced = Literal["near", "far", "unpinned"]
RanksAs = Literal["processes", "threads"]
# What the engine notes of a GPU that cannot copy both ways at once, and what the judge looks for.
NOT_AT_ONCE = "the opposing copies ended before the measured ones: part of the time was one way only"
ONE_COPY_ENGINE = "this GPU has one copy engine: the two directions take turns"
Clock = Literal["cuda-event", "host-monotonic", "simulated"]


@dataclass(frozen=True)
class Plan:
    """One case: all that an engine needs to run it, and nothing that it must look up.

    bytes: of one operation, one direction (for collectives: of one rank's message, nccl-tests' convention).
    gpus: NVML indices; addresses: their PCI addresses, same order. memory_node / target_node: NUMA nodes of the
    (source) host buffer and of the destination of a host memory copy. gpu_nodes: where several GPUs copy at once, the
    node of each one's host buffer, in the order of gpus. cpu_node, cpus: where the copying threads run.
    rank_cpus: one CPU set a rank. rounds: samples; iterations: operations in one sample. min_seconds: an operation is
    repeated at least this long in all (link watch). deadline_s: after this the case has failed.
    variables: environment of the workers (NCCL_*), part of the pool's key. ranks_placed: 'near', 'far' or 'unpinned',
    how rank_cpus lie to the GPUs. ranks_as: one process each, or threads of one process. tuning: the name of variables
    that are set beyond the transport's. No gpus in a collective over NCCL: ranks on several hosts, each on its own GPU.
    """

    case: str
    operation: Operation
    bytes: int
    gpus: tuple[int, ...] = ()
    addresses: tuple[str, ...] = ()
    memory_node: int | None = None
    target_node: int | None = None
    cpu_node: int | None = None
    cpus: tuple[int, ...] = ()
    threads: int = 1
    engine: Engine = "copy-engine"
    memory: Memory = "pinned"
    chunk_bytes: int | None = None
    backend: Backend | None = None
    world_size: int = 1
    rank_cpus: tuple[tuple[int, ...], ...] = ()
    dtype: str = "float32"
    in_place: bool = True
    graph: bool = False
    transport: str | None = None
    variables: tuple[tuple[str, str], ...] = ()
    rounds: int = 5
    iterations: int = 1
    warmup: int = 1
    min_seconds: float = 0.0
    deadline_s: float = 30.0
    watch: bool = False
    p2p: bool | None = None
    tuning: str | None = None
    ranks_placed: RanksPlaced | None = None
    ranks_as: RanksAs = "processes"
    gpu_nodes: tuple[int | None, ...] = ()

    @property
    def processes(self) -> int:
        """Worker processes that the plan needs."""
        return 1 if self.ranks_as == "threads" else self.world_size


@dataclass(frozen=True)
class Placement:
    """Where the host buffer lay, by what proof. node, target_node: asked for. proved: seen on that node, page by page,
    after pinning and again after timing; False: seen elsewhere; None: could not be looked at. detail: a sentence."""

    node: int | None = None
    target_node: int | None = None
    cpu_node: int | None = None
    proved: bool | None = None
    method: Literal["move_pages", "numa_maps", "simulated"] | None = None
    detail: str | None = None


@dataclass(frozen=True)
class LinkReading:
    """One reading of a GPU's link and of every hop above it, taken at `at` (time.monotonic(), seconds).

    hops: (lower end's address, state) from sysfs; nvml: NVML's live answer. aer: per function address; only in the
    first and the last reading of a watch. Fields that were not answered are None.
    """

    at: float
    hops: tuple[tuple[str, LinkState], ...] = ()
    nvml: LinkState | None = None
    performance_state: int | None = None
    temperature_c: float | None = None
    power_w: float | None = None
    throttle: tuple[str, ...] | None = None
    replays: int | None = None
    aer: tuple[tuple[str, AerCounters], ...] = ()
    link_bandwidth_changed: tuple[tuple[str, bool], ...] = ()
    autonomous_change: tuple[tuple[str, bool], ...] = ()
    xids: tuple[int, ...] | None = None


@dataclass(frozen=True)
class HopWatch:
    """One hop before, under and after load. lower: address of its lower end (the endpoint or switch port below).

    load: the mode of the readings in the transfer; load_min: the least. aer_*: what each end counted meanwhile.
    """

    lower: str
    upper: str | None = None
    idle: LinkState = LinkState()
    load: LinkState = LinkState()
    load_min: LinkState = LinkState()
    after: LinkState = LinkState()
    changes: int = 0
    link_bandwidth_changed: bool | None = None
    autonomous_change: bool | None = None
    aer_lower: AerCounters | None = None
    aer_upper: AerCounters | None = None


@dataclass(frozen=True)
class LinkWatch:
    """A GPU's link around one transfer of at least 0.5 s. idle: as found, before NVML woke anything.

    readings: how many fell into the transfer (0: nothing was seen under load). replays, aer_correctable: counts
    over the transfer, all hops and both ends; None where not reported.
    """

    idle: LinkState = LinkState()
    load: LinkState = LinkState()
    load_min: LinkState = LinkState()
    after: LinkState = LinkState()
    readings: int = 0
    seconds: float = 0.0
    changes: int = 0
    hops: tuple[HopWatch, ...] = ()
    replays: int | None = None
    aer_correctable: int | None = None
    aer_uncorrectable: int | None = None
    throttle: tuple[str, ...] | None = None
    performance_state: int | None = None
    temperature_c: float | None = None
    power_w: float | None = None
    xids: tuple[int, ...] | None = None
    source: Literal["nvml", "sysfs", "nvml+sysfs", "simulated"] | None = None


@dataclass(frozen=True)
class Transport:
    """What NCCL really took, read from its own log. edges: one text a ring edge, 'r0>r1 P2P/direct pointer'."""

    name: str | None = None
    algorithm: str | None = None
    protocol: str | None = None
    channels: int | None = None
    edges: tuple[str, ...] = ()
    version: str | None = None


@dataclass(frozen=True)
class Samples:
    """What an engine measured. seconds: one entry a round, seconds per operation, the slowest rank's.

    mean_seconds: mean over ranks (nccl-tests' convention). directions: seconds per round of each direction of a
    both-ways or several-GPU case, by name. iterations: operations in one sample, where a slow path made
    the worker do fewer than planned. verified: bytes compared and right; None where nothing moves.
    verified False: `wrong` says what was seen. watch: set where the plan asked for it. counted: what a byte is.
    threads: how many copied, where the plan left that open. on_device_s: of a latency case, what one operation takes on
    the device itself, from event to event.
    """

    seconds: tuple[float, ...]
    clock: Clock
    engine: Engine
    verified: bool | None = None
    wrong: str | None = None
    iterations: int | None = None
    mean_seconds: tuple[float, ...] = ()
    directions: dict[str, tuple[float, ...]] | None = None
    placement: Placement | None = None
    watch: LinkWatch | None = None
    transport: Transport | None = None
    counted: str | None = None
    notes: tuple[str, ...] = ()
    threads: int | None = None
    on_device_s: float | None = None
