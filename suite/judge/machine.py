"""What the machine itself shows, before anything is measured."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from suite.judge.peers import redirecting_ports
from suite.judge.thresholds import DEFAULT, Thresholds
from suite.judge.view import gpu_words, say
from suite.records.expect import NOTHING, Expectations, slot
from suite.records.machine import Gpu, Machine
from suite.records.run import Finding, Verdict
from suite.units import GIB, KIB, MIB, format_bytes

# PCIe cards with connectors for NVLink bridges (NVIDIA's data sheets of these cards).
BRIDGED = ("RTX A6000", "NVIDIA A40", "RTX 3090", "RTX A5500", "RTX A5000", "RTX A4500", "NVIDIA A30", "A100-PCIE")


def of_machine(
    machine: Machine,
    thresholds: Thresholds = DEFAULT,
    expected: Expectations = NOTHING,
    gone: Sequence[str] = (),
) -> Iterator[Finding]:
    """Findings that need no case, the worst ones first. gone: GPUs that the baseline has and the machine lacks."""
    yield from (as_finding(who.partition(" ")[0], say("gpu_gone", who=who)) for who in gone)
    yield from _manifest(machine, expected)
    yield from _each_gpu(machine, lambda gpu: _links_down(machine, gpu))
    yield from _each_gpu(machine, lambda gpu: _bar1(gpu, thresholds))
    yield from _redirect(machine)
    yield from _environment(machine, thresholds)
    yield from _bridge(machine)
    yield from _each_gpu(machine, lambda gpu: _resident(gpu, thresholds))


def as_finding(subject: str, verdict: Verdict, cases: tuple[str, ...] = ()) -> Finding:
    """A verdict's first sentence as a finding."""
    return Finding(verdict.status, verdict.cause, subject, verdict.evidence[0], verdict.advice, cases)


def _manifest(machine: Machine, expected: Expectations) -> Iterator[Finding]:
    for key, wanted in expected.gpus.items():
        gpu = next((g for g in machine.gpus if key in (g.address, slot(machine, g))), None)
        found = "no GPU is there" if gpu is None else f"it is on NUMA node {gpu.numa_node}"
        if gpu is None or wanted.numa_node not in (None, gpu.numa_node):
            node = "one" if wanted.numa_node is None else f"one on node {wanted.numa_node}"
            who = f"GPU{gpu.index}" if gpu else key
            yield as_finding(who, say("numa_not_as_expected", who=key, found=found, expected=node))


def _each_gpu(machine: Machine, rule: Callable[[Gpu], Verdict | None]) -> Iterator[Finding]:
    for gpu in machine.gpus:
        verdict = rule(gpu)
        if verdict is not None:
            yield as_finding(f"GPU{gpu.index}", verdict)


def _links_down(machine: Machine, gpu: Gpu) -> Verdict | None:
    """Fewer NVLinks than an equal GPU has: models differ in how many are wired, so only siblings tell."""
    equal = [other for other in machine.gpus if other.name == gpu.name]
    most = max(equal, key=_active)
    if not _active(gpu) or _active(gpu) >= _active(most):
        return None
    said: dict[str, Any] = {
        "active": _active(gpu),
        "links": len(gpu.nvlinks),
        "other": _active(most),
        "sibling": f"GPU{most.index}",
    }
    return say("nvlink_partly_down", who=f"GPU{gpu.index}", **said)


def _active(gpu: Gpu) -> int:
    return sum(1 for link in gpu.nvlinks if link.active)


def _bridge(machine: Machine) -> Iterator[Finding]:
    """Several NVLink-capable cards without one active link: said once, since a bridge joins two."""
    capable = [g for g in machine.gpus if _capable(g) and not _active(g)]
    if len(capable) > 1 and not any(_active(g) for g in machine.gpus):
        who = gpu_words([g.index for g in capable])
        yield as_finding(who, say("nvlink_no_bridge", who=who))


def _capable(gpu: Gpu) -> bool:
    return any(link.active is False for link in gpu.nvlinks) or any(name in gpu.name for name in BRIDGED)


def _bar1(gpu: Gpu, thresholds: Thresholds) -> Verdict | None:
    if gpu.bar1_bytes is None or not gpu.memory_bytes or gpu.bar1_bytes >= thresholds.bar1_fraction * gpu.memory_bytes:
        return None
    said = {"bar1": _size(gpu.bar1_bytes), "memory": _size(gpu.memory_bytes)}
    return say("small_bar1", who=f"GPU{gpu.index}", **said)


def _resident(gpu: Gpu, thresholds: Thresholds) -> Verdict | None:
    """A server that waits holds memory and disturbs nothing: it is idle, not busy."""
    if not gpu.processes or (gpu.utilization or 0.0) > thresholds.busy:
        return None
    memory = _size(gpu.processes_bytes) if gpu.processes_bytes else "unknown memory"
    return say("resident_process", who=f"GPU{gpu.index}", memory=memory)


def _redirect(machine: Machine) -> Iterator[Finding]:
    """Redirecting ports count only where peer traffic could stay below them: with two GPUs or more."""
    ports = redirecting_ports(machine, tuple(g.index for g in machine.gpus)) if len(machine.gpus) > 1 else []
    if ports:
        yield as_finding("the machine", say("acs_redirect", ports=", ".join(ports)))


def _environment(machine: Machine, thresholds: Thresholds) -> Iterator[Finding]:
    shm, memlock = machine.environment.shm_bytes, machine.environment.memlock_bytes
    if shm is not None and shm <= thresholds.shm_bytes:
        yield as_finding("the machine", say("small_shm", shm=_size(shm)))
    if memlock is not None and 0 <= memlock <= thresholds.memlock_bytes:
        yield as_finding("the machine", say("small_memlock", memlock=_size(memlock)))


def _size(size: int) -> str:
    """Bytes rounded for a sentence: '3.5 GiB', '256 MiB'."""
    for unit, scale in (("GiB", GIB), ("MiB", MIB), ("KiB", KIB)):
        if size >= scale:
            return f"{size / scale:.3g} {unit}"
    return format_bytes(size)
