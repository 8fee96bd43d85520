"""Runs made by hand: what the reports must be able to show. Numbers are plausible, not measured."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from suite.records.case import HopWatch, LinkWatch, Operation, Placement, Transport
from suite.records.machine import AerCounters, LinkState, Machine
from suite.records.run import Failure, Finding, Limits, Result, Run, Settings, Status, Verdict
from tests.report.sample_machine import GEN1, GEN4, address, machine

SIZES = tuple(4096 << n for n in range(17))  # 4 KiB to 256 MiB
# Device→host ceilings of Gen1 … Gen5 x16 with an MPS of 256 bytes, and of what the samples' paths carry.
GENERATIONS = (3.66e9, 7.31e9, 14.4e9, 28.8e9, 57.6e9)
CEILING = 28.8e9
HOSTILE = "<script>alert('x')</script> | `tick` \x1b[31m\u202e & \"quoted\" " + "long" * 40


def sound(gpus: int = 2) -> Run:
    """A complete run in which everything is in order."""
    found = machine(gpus)
    results = (
        *(link(gpu) for gpu in range(gpus)),
        *host_memory(),
        *(r for gpu in range(gpus) for r in host_copies(gpu)),
        *allreduce(gpus),
    )
    return _run(found, results)


def troubled() -> Run:
    """Four GPUs: one trains to Gen1, one pair delivers wrong bytes, an allreduce hangs, one group is unavailable."""
    found = machine(4)
    slow = link(2, load=GEN1, status="FAIL", cause="downtrained_speed", reached=6.4e9, ceiling=7.0e9)
    results = (
        link(0),
        link(1),
        slow,
        link(3),
        *host_memory(far=0.3),
        *(r for gpu in (0, 1, 3) for r in host_copies(gpu)),
        *host_copies(2, rate=3.2e9, status="FAIL", cause="downtrained_speed"),
        *peers(4),
        *allreduce(4, hang=True),
        unavailable("host_staging/gpu0", "staging", "no staging kernel for this driver"),
    )
    return _run(found, results)


def without_gpu() -> Run:
    """A machine that has none: host memory and gloo only, the other groups unavailable."""
    reason = "no NVIDIA driver is loaded"
    results = (
        unavailable("link/none", "link_under_load", reason),
        *host_memory(nodes=1),
        unavailable("host_copy/none", "host_to_device", reason),
        unavailable("host_copy/none2", "device_to_host", reason),
        *gloo(2),
    )
    return _run(machine(0, 1), results)


def incomplete() -> Run:
    """A simulated run that was broken off."""
    run = troubled()
    return replace(run, results=run.results[:9], complete=False, simulated=True, planned=120)


def hostile() -> Run:
    """Names that try to break every format."""
    found = machine(2, name=HOSTILE)
    bad = replace(
        host_copies(0)[0],
        case=f"host_copy/{HOSTILE}",
        error=Failure("crash", HOSTILE, (HOSTILE,)),
        bandwidth=None,
        verdict=Verdict("FAIL", HOSTILE, (HOSTILE,), HOSTILE),
    )
    return _run(replace(found, host_name=HOSTILE), (bad, unavailable("peer_copy/x", "peer_write", HOSTILE)))


def large(gpus: int = 16) -> Run:
    """16 GPUs, 240 pairs, about 2,000 results."""
    found = machine(gpus, nodes=2)
    results = (
        *(link(gpu) for gpu in range(gpus)),
        *host_memory(),
        *(r for gpu in range(gpus) for node in range(2) for r in host_copies(gpu, node=node)),
        *peers(gpus),
        *allreduce(gpus),
    )
    return _run(found, results)


FINDINGS = (
    Finding(
        "FAIL",
        "downtrained_speed",
        "GPU2",
        "GPU2 runs at Gen1 x16 under load, although both ends of 13:00.0–12:00.0 support Gen4 x16.",
        "Reseat the card and the riser, and set the slot's link speed in the BIOS to its maximum or Auto.",
        ("link/gpu2", "host_copy/host_to_device/gpu2/node1/256MiB", "host_copy/both_ways/gpu2/node1/256MiB", "x", "y"),
    ),
    Finding(
        "WARN",
        "memory_far_slow",
        "node 1",
        "memory copies from node 0 to node 1 reach 30 GB/s, within one node 100 GB/s.",
    ),
)
HEADLINE = "This machine is not right: GPU2 runs at Gen1 x16 under load."


def link(
    gpu: int,
    load: LinkState = GEN4,
    status: Status = "PASS",
    cause: str = "healthy",
    reached: float = 50e9,
    ceiling: float = 57.3e9,
) -> Result:
    """A GPU's link, watched over a transfer both ways."""
    end = address(gpu)
    watch = LinkWatch(
        idle=GEN1,
        load=load,
        load_min=load,
        after=GEN1,
        readings=20,
        seconds=0.61,
        hops=(HopWatch(end, idle=GEN1, load=load, load_min=load, aer_lower=AerCounters(0, 0, 0)),),
        replays=0,
        aer_correctable=0,
        aer_uncorrectable=0,
    )
    return Result(
        case=f"link/gpu{gpu}",
        operation="link_under_load",
        bytes=256 << 20,
        gpus=(gpu,),
        samples_s=(0.01, 0.0101),
        bandwidth=reached,
        directions={"host_to_device": reached / 2, "device_to_host": reached / 2},
        limits=Limits(now=ceiling, platform=57.3e9, device=57.3e9, basis="read", binding=f"{end} {load}"),
        fraction_of_limit=reached / ceiling,
        link=watch,
        verdict=Verdict(status, cause, (f"GPU{gpu} runs at {load} under load.",)),
    )


def host_memory(nodes: int = 2, far: float = 0.6) -> tuple[Result, ...]:
    """Copies between every two nodes by the CPUs of the first one."""
    made = []
    for source in range(nodes):
        for target in range(nodes):
            rate = 1e11 * (far if target != source else 1)
            made.append(
                Result(
                    case=f"host_memory/copy/node{source}/to_node{target}/cpus{source}",
                    operation="host_memory_copy",
                    bytes=1 << 30,
                    memory_node=source,
                    target_node=target,
                    cpu_node=source,
                    engine="memcpy",
                    threads=16,
                    samples_s=(0.01,) * 5,
                    bandwidth=rate,
                    counted="bytes copied; DRAM traffic is twice that",
                    limits=Limits(now=2.3e11, hard=False),
                    fraction_of_limit=rate / 2.3e11,
                    placement=Placement(node=source, target_node=target, proved=True, method="move_pages"),
                    verdict=Verdict("WARN" if rate < 4e10 else "PASS", "memory_far_slow" if rate < 4e10 else "healthy"),
                )
            )
    return tuple(made)


def host_copies(
    gpu: int, rate: float = 26e9, status: Status = "PASS", cause: str = "healthy", node: int | None = None
) -> tuple[Result, ...]:
    """Three directions over all sizes, and the two latencies."""
    operations: Sequence[tuple[Operation, float]] = (
        ("host_to_device", 1),
        ("device_to_host", 1.05),
        ("both_ways", 1.8),
    )
    place = gpu // 2 % 2 if node is None else node
    copies = [
        host_copy(gpu, place, operation, size, rate * factor, status if size > 1 << 22 else "PASS", cause)
        for operation, factor in operations
        for size in SIZES
    ]
    return (*copies, latency(gpu, place, "host_to_device_latency"), latency(gpu, place, "device_to_host_latency"))


def host_copy(gpu: int, node: int, operation: Operation, size: int, rate: float, status: Status, cause: str) -> Result:
    """One copy; the rate rises with the size as a fixed cost of 8 µs makes it."""
    seconds = 8e-6 + size / rate
    ways = 2 if operation == "both_ways" else 1
    ceiling = CEILING * ways
    return Result(
        case=f"host_copy/{operation}/gpu{gpu}/node{node}/{size}B",
        operation=operation,
        bytes=size,
        gpus=(gpu,),
        memory_node=node,
        engine="copy-engine",
        memory="pinned",
        clock="cuda-event",
        samples_s=tuple(seconds * factor for factor in (1.0, 1.01, 0.99)),
        bandwidth=size / seconds,
        directions={"host_to_device": size / seconds / 2, "device_to_host": size / seconds / 2} if ways == 2 else None,
        limits=Limits(
            now=ceiling,
            platform=ceiling,
            device=ceiling,
            expected=(0.8 * ceiling, 0.97 * ceiling),
            basis="read",
            binding=f"{address(gpu)} Gen4 x16, MPS 256",
            generations=tuple(ways * g for g in GENERATIONS),
        ),
        fraction_of_limit=size / seconds / ceiling,
        verified=True,
        placement=Placement(node=node, proved=True, method="move_pages"),
        verdict=Verdict(status, cause, (f"GPU{gpu} {operation}: {size / seconds / 1e9:.1f} GB/s.",)),
    )


def latency(gpu: int, node: int, operation: Operation) -> Result:
    """One small copy."""
    return Result(
        case=f"host_copy/{operation}/gpu{gpu}/node{node}",
        operation=operation,
        bytes=8,
        gpus=(gpu,),
        memory_node=node,
        samples_s=(1.2e-6, 1.3e-6),
        latency_s=1.25e-6,
        limits=Limits(floor_s=6e-7),
        verdict=Verdict("PASS", "healthy"),
    )


def peers(gpus: int) -> tuple[Result, ...]:
    """Every ordered pair at one size; 0→1 delivers wrong bytes, 1→0 is slow."""
    return tuple(_peer(a, b) for a in range(gpus) for b in range(gpus) if a != b)


def allreduce(gpus: int, hang: bool = False) -> tuple[Result, ...]:
    """NCCL over its own choice and over shared memory, and gloo; the largest message hangs where asked."""
    sizes = tuple(8 << n for n in range(24))
    nccl = [_allreduce(gpus, way, size) for way in ("default", "shm") for size in sizes]
    if hang:
        said = ("rank 0: waiting in allreduce", "rank 1: waiting in allreduce")
        nccl[-1] = replace(
            nccl[-1],
            bandwidth=None,
            algbw=None,
            latency_s=None,
            samples_s=(),
            fraction_of_limit=None,
            error=Failure("hang", "no answer within 30 s", said),
            verdict=Verdict(
                "FAIL", "hang", ("no answer within 30 s; rank 0 is waiting in allreduce",), "Boot with iommu=pt."
            ),
        )
    return (*nccl, *gloo(2))


def gloo(ranks: int) -> tuple[Result, ...]:
    """A few sizes on the CPUs; without a limit."""
    return tuple(
        replace(
            _allreduce(ranks, None, size),
            case=f"allreduce/gloo/{ranks}ranks/{size}B",
            backend="gloo",
            gpus=(),
            engine="gloo",
            limits=None,
            fraction_of_limit=None,
            transport_taken=None,
            verdict=Verdict("PASS", "correct"),
        )
        for size in (8, 10240, 1 << 20)
    )


def unavailable(case: str, operation: Operation, reason: str) -> Result:
    """A case that cannot be measured, with the reason."""
    return Result(case, operation, 0, verdict=Verdict("UNAVAILABLE", "unavailable", (reason,)))


def _run(found: Machine, results: Sequence[Result]) -> Run:
    return Run(
        machine=found,
        settings=Settings(),
        results=tuple(results),
        planned=len(results),
        complete=True,
        started="2026-01-02T03:04:05+00:00",
        lanecheck="0.1.0",
    )


def _peer(source: int, target: int) -> Result:
    rate = 25e9 if source // 2 == target // 2 else 18e9
    made = Result(
        case=f"peer_copy/write/gpu{source}_gpu{target}",
        operation="peer_write",
        bytes=64 << 20,
        gpus=(source, target),
        engine="copy-engine",
        samples_s=((64 << 20) / rate,) * 3,
        bandwidth=rate,
        limits=Limits(now=26.5e9, basis="read"),
        fraction_of_limit=rate / 26.5e9,
        verified=True,
        verdict=Verdict("PASS", "healthy"),
    )
    if (source, target) == (0, 1):
        wrong = Verdict(
            "FAIL", "wrong_data", ("GPU0→GPU1: wrong data: 4096 of 67108864 bytes differ.",), "Boot with iommu=pt."
        )
        return replace(
            made, verified=False, wrong="4096 bytes differ", bandwidth=None, fraction_of_limit=None, verdict=wrong
        )
    if (source, target) == (1, 0):
        slow = Verdict("FAIL", "slow_path", ("GPU1→GPU0: 3.0 GB/s is 11 % of 26.5 GB/s.",))
        return replace(made, bandwidth=3e9, fraction_of_limit=3 / 26.5, verdict=slow)
    return made


def _allreduce(ranks: int, way: str | None, size: int) -> Result:
    limit = 24e9 if way != "shm" else 11e9
    seconds = 1.4e-5 + size / (limit * 0.9)
    algbw = size / seconds
    busbw = algbw * 2 * (ranks - 1) / ranks
    return Result(
        case=f"allreduce/nccl/{ranks}ranks/{way}/{size}B",
        operation="allreduce",
        bytes=size,
        gpus=tuple(range(ranks)),
        engine="nccl",
        backend="nccl",
        world_size=ranks,
        transport=way,
        samples_s=(seconds,) * 5,
        algbw=algbw,
        bandwidth=busbw,
        latency_s=seconds,
        limits=Limits(now=limit * 2, basis="read"),
        fraction_of_limit=busbw / limit / 2,
        transport_taken=Transport("P2P/direct pointer" if way != "shm" else "SHM", "Ring", "Simple", 8),
        verified=True,
        verdict=Verdict("PASS", "healthy"),
    )
