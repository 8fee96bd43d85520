"""Limits of copies between GPUs and host memory: one way, both ways, all GPUs at once, and staging."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from statistics import median

from suite.limits import ceilings, memory, path, words
from suite.limits.ceilings import Model, Question, Sources
from suite.limits.links import LinkOf, device_width
from suite.limits.path import DOWN, UP, Bound, Packets
from suite.limits.pcie import Mover, Traffic, outstanding_bound
from suite.records.case import Plan, Samples
from suite.records.machine import Gpu, Machine
from suite.records.path import path_to_root
from suite.records.run import Limits

BOTH = UP + DOWN
_LOADS: dict[str, Traffic] = {
    "host_to_device": DOWN,
    "device_to_host": UP,
    "both_ways": BOTH,
    "link_under_load": BOTH,
    "all_gpus_host_to_device": DOWN,
    "all_gpus_device_to_host": UP,
    "all_gpus_both_ways": BOTH,
}
OPERATIONS = tuple(_LOADS)
_HEALTHY = {"link_under_load": "both_ways"}
# Tags without extended tags: PCI Express Base Specification. Round trip: Neugebauer et al., SIGCOMM 2018.
_TAGS, _ROUND_TRIP = 32, 600e-9
NO_PCIE = "The PCIe model is not applicable: this GPU is joined to its processor by NVLink-C2C, whose rate is not read."


def mover(plan: Plan) -> Mover:
    """Who moves the bytes: SM kernels (NCCL's too) or copy engines."""
    return "sm" if plan.engine in ("sm", "load-store", "nccl") else "copy-engine"


def copies(machine: Machine, plan: Plan, sources: Sources) -> Limits:
    """host_to_device, device_to_host, both_ways, link_under_load and all_gpus_*."""
    gpus = with_address(machine, plan.gpus)
    if not gpus:
        return ceilings.unknown("The GPU's PCI address is not known, so its path is not known.")
    if any(gpu.c2c for gpu in gpus):
        return ceilings.unknown(NO_PCIE, hard=False)
    load = _LOADS[plan.operation]
    demand = path.host_demand(machine, [(address, load) for gpu in gpus if (address := gpu.address)])
    single = len(gpus) == 1
    question = Question(
        case=plan.case,
        demand=replace(demand, corner=single and load == BOTH and not sources.in_step),
        engine=mover(plan),
        healthy=_HEALTHY.get(plan.operation, plan.operation) if single else None,
        usual=plan.memory != "pageable",
        note=_single_note(machine, plan, gpus[0]) if single else _shared(demand),
        width=device_width(gpus[0], path_to_root(machine, gpus[0].address or "").hops),
    )
    return ceilings.limits(question, sources)


def utilisation(machine: Machine, plan: Plan, samples: Samples, sources: Sources) -> float | None:
    """How full the more loaded direction of the fullest known hop was; above 1.01 cannot be. None where not known.

    Where the MPS was not read, the largest one counts: it loads the link least.
    """
    gpus = with_address(machine, plan.gpus)
    if len(gpus) != 1 or not samples.seconds or not plan.bytes:
        return None
    ways = samples.directions or {}
    down, up = (plan.bytes / median(ways.get(name) or samples.seconds) for name in ("host_to_device", "device_to_host"))
    demand = path.host_demand(machine, [(gpus[0].address or "", BOTH)])
    packets = path.sizes(demand, mover(plan))[-1]
    rates = Traffic(up_writes=up, down_reads=down)
    loads = [path.load(rates, sources.load(hop), packets) for hop in demand.hops.values()]
    return max((load for load in loads if load is not None), default=None)


def staging(machine: Machine, plan: Plan, sources: Sources) -> Limits:
    """GPU to host memory to GPU (the same one, or another), in chunks that overlap, or as a whole."""
    gpus = with_address(machine, plan.gpus)
    if not gpus:
        return ceilings.unknown("The GPU's PCI address is not known, so its path is not known.")
    if any(gpu.c2c for gpu in gpus):
        return ceilings.unknown(NO_PCIE, hard=False)
    source, target = gpus[0].address or "", gpus[-1].address or ""
    both = replace(path.host_demand(machine, [(source, UP), (target, DOWN)]), flows=1)
    chunks = math.ceil(plan.bytes / plan.chunk_bytes) if plan.chunk_bytes else 1
    question = Question(plan.case, both, mover(plan))
    return ceilings.limits(question, sources, staged(machine, source, target, chunks))


def staged(machine: Machine, source: str, target: str, chunks: int | None) -> Model:
    """Staging as a model: chunk 1 up, then chunk k down beside chunk k+1 up, then the last one down.

    chunks None: so many that the first and the last do not count. 1: one after the other, 1/(1/W + 1/R).
    """
    up, down = path.host_demand(machine, [(source, UP)]), path.host_demand(machine, [(target, DOWN)])
    both = replace(path.add([up, down]), flows=1)

    def model(link_of: LinkOf, packets: Packets) -> Bound | None:
        write, read, shared = (path.bound(demand, link_of, packets) for demand in (up, down, both))
        if write is None or read is None or shared is None:
            return None
        rate = shared.rate if chunks is None else _pipelined(write.rate, read.rate, shared.rate, chunks)
        least = shared if chunks != 1 else min(write, read, key=lambda one: one.rate)
        return replace(least, rate=rate, note=_staging_words(write.rate, read.rate, shared.rate, chunks, rate))

    return model


def far_node(machine: Machine, plan: Plan, gpu: Gpu) -> str | None:
    """A sentence where the host buffer lies on another NUMA node than the GPU."""
    home = gpu.numa_node
    if home is None or plan.memory_node is None or plan.memory_node == home:
        return None
    links = memory.processor_link_words(machine.cpu) if _other_socket(machine, home, plan.memory_node) else ""
    return (
        f"Memory is on node {plan.memory_node}, the GPU on node {home}: the copy also crosses the links between these "
        f"nodes{links}, which are no part of this ceiling."
    )


def few_tags(machine: Machine, plan: Plan, gpu: Gpu) -> str | None:
    """A sentence where a GPU that reads has its extended tags switched off (a hypothesis, no part of the ceiling)."""
    function = machine.function(gpu.address)
    config = function.config if function else None
    if plan.operation == "device_to_host" or config is None or config.extended_tags is not False:
        return None
    request = config.mrrs or 512
    bound = words.gigabytes(outstanding_bound(_TAGS, request, _ROUND_TRIP))
    return f"Extended tags are off: {_TAGS} reads of {request} bytes in flight bring {bound} at a round trip of 600 ns."


def with_address(machine: Machine, indices: Sequence[int]) -> list[Gpu]:
    """The GPUs of a plan, all of them or, where one has no known PCI address, none."""
    found = [machine.gpu(index) for index in indices]
    known = [gpu for gpu in found if gpu is not None and gpu.address]
    return known if len(known) == len(indices) else []


def _single_note(machine: Machine, plan: Plan, gpu: Gpu) -> str | None:
    return " ".join(note for note in (far_node(machine, plan, gpu), few_tags(machine, plan, gpu)) if note) or None


def _other_socket(machine: Machine, one: int, other: int) -> bool:
    """Two nodes without a package in common; with sub-NUMA clustering nodes of one socket share it."""
    first, second = machine.node(one), machine.node(other)
    if first is None or second is None or not first.packages or not second.packages:
        return False
    return set(first.packages).isdisjoint(second.packages)


def _pipelined(write: float, read: float, shared: float, chunks: int) -> float:
    """Bytes per second over `chunks` equal chunks; with write = read = shared it is shared · N / (N + 1)."""
    return chunks / (1 / write + 1 / read + (chunks - 1) / shared)


def _staging_words(write: float, read: float, shared: float, chunks: int | None, rate: float) -> str:
    up, down, both, result = map(words.gigabytes, (write, read, shared, rate))
    if chunks == 1:
        return f"Staging as a whole, one copy after the other: 1 / (1 / {up} + 1 / {down}) = {result}."
    if chunks is None:
        return f"Staging in overlapping chunks: {both} where both copies run at once ({up} up, {down} down, alone)."
    return (
        f"Staging in {chunks} overlapping chunks: the first goes up at {up}, the last down at {down}, "
        f"those between at {both}: {result}."
    )


def _shared(demand: path.Demand) -> str | None:
    """A sentence that names the links that several GPUs share."""
    shared = {lower: count for lower, count in path.loads(demand).items() if count > 1}
    if not shared:
        return "No link above these GPUs is shared."
    named = (f"{lower} carries {count}" for lower, count in shared.items())
    return f"Shared links: {', '.join(named)} flows each way."
