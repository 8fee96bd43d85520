"""Latency cases beside what is unusual for any GPU: equal GPUs that are all slow do not excuse each other."""

from __future__ import annotations

from collections.abc import Iterator

from suite.judge import levels
from suite.judge.collectives import nvlinked
from suite.judge.view import View, say
from suite.records.machine import Gpu
from suite.records.path import path_to_root
from suite.records.run import Verdict
from suite.units import format_seconds

_MANY_LINKS = 3  # a GPU below one switch has two links up to its root complex


def unusually_high(view: View) -> Verdict | None:
    """Even the fastest sample is far above what healthy machines take; the fastest, since noise only adds time."""
    most, result = _most(view), view.result
    if most is None or not result.samples_s or min(result.samples_s) <= most:
        return None
    why = result.limits.why if result.limits else None
    extra = (*levels.spread_note(view), why or "", *_hints(view))
    said = {"measured": format_seconds(view.seconds), "what": _what(view), "most": format_seconds(most)}
    return say("latency_high", *extra, who=view.who, **said)


def plain(view: View) -> Verdict:
    """A latency case with nothing against it."""
    floor = view.result.limits.floor_s if view.result.limits else None
    above = f"; the least possible is {format_seconds(floor)}" if floor else ""
    sentence = f"{format_seconds(view.seconds)} an operation{above}."
    return say("healthy", *levels.spread_note(view), sentence=sentence)


def _most(view: View) -> float | None:
    """Seconds that no healthy machine comes near; None for loads from a peer over PCIe, too little known."""
    t, operation = view.thresholds, view.result.operation
    if operation == "peer_flag_latency":
        return t.latency_flag_s
    if operation == "host_device_load_latency":
        return t.latency_load_s
    if operation == "peer_latency" and view.result.engine == "load-store":
        return t.latency_load_s if nvlinked(view.machine, view.result.gpus) else None
    return t.latency_copy_s


def _what(view: View) -> str:
    if view.result.operation == "peer_flag_latency":
        return "one way of a flag"
    return "a load" if "load" in f"{view.result.operation} {view.result.engine}" else "a small copy"


def _hints(view: View) -> Iterator[str]:
    """What of the machine is known to add latency."""
    environment = view.machine.environment
    if environment.virtual_machine:
        yield f"this is a virtual machine ({environment.virtual_machine})"
    if "DMA" in (environment.iommu or ""):
        yield f"the IOMMU translates addresses ({environment.iommu})"
    if environment.governor not in (None, "performance"):
        yield f"the CPU governor is {environment.governor}"
    for gpu in (g for index in view.result.gpus if (g := view.machine.gpu(index))):
        yield from _of_gpu(view, gpu)


def _of_gpu(view: View, gpu: Gpu) -> Iterator[str]:
    function, node = view.machine.function(gpu.address), view.result.memory_node
    aspm = function.config.aspm if function and function.config else None
    if aspm not in (None, "off"):
        yield f"ASPM of GPU{gpu.index}'s link: {aspm}"
    links = len(path_to_root(view.machine, gpu.address).hops) if gpu.address else 0
    if links >= _MANY_LINKS:
        yield f"GPU{gpu.index} is {links} links below its root complex"
    if None not in (node, gpu.numa_node) and node != gpu.numa_node:
        yield f"the memory is on node {node}, GPU{gpu.index} on node {gpu.numa_node}"
