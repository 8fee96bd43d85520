"""Host–GPU copies and staging: NUMA placement, directions, siblings, latency."""

from __future__ import annotations

from dataclasses import replace
from statistics import median
from typing import Any

from suite.judge import levels, links
from suite.judge.view import View, passed, say
from suite.records.case import LATENCIES, NOT_AT_ONCE, ONE_COPY_ENGINE
from suite.records.machine import Gpu
from suite.records.run import Result, Verdict
from suite.units import format_bandwidth, format_bytes, format_percent, format_seconds

# A host memory copy reads and writes DRAM: at least two bytes of traffic a byte, where a GPU copy needs one.
_DRAM_BYTES = 2.0
_ALLOCATING = 3.0  # where stores read the line first
# For a GPU that NVLink-C2C joins to a processor: no slot, no PCIe settings.
_COHERENT = (
    "Pin the process and its memory to node {near_node}, that of the GPU's own processor (`numactl "
    "--cpunodebind={near_node} --membind={near_node}`); then look at the link between the processors: at its state in "
    "the logs of firmware and management controller, and for newer firmware."
)
_OTHER = {"host_to_device": "device_to_host", "device_to_host": "host_to_device"}


def small(view: View) -> Verdict | None:
    """Below half-peak sizes only the time counts; an operation slower than on an equal path is said."""
    if not is_small(view, view.thresholds.small_copy_bytes):
        return None
    return latency_out_of_family(view) or small_message(view)


def is_small(view: View, bytes_enough: int) -> bool:
    """The start of an operation costs a share of its time: by its size, or by the shortest equal operation before."""
    result, limits = view.result, view.result.limits
    if result.bytes < bytes_enough:
        return True
    shorter = [median(r.samples_s) for r in view.alike("bytes") if r.bytes < view.thresholds.small_copy_bytes]
    seconds = view.seconds
    if not shorter or limits is None or limits.now is None or result.bandwidth is None or seconds is None:
        return False
    at_ceiling = seconds * result.bandwidth / limits.now
    return min(shorter) > view.thresholds.overhead_share * at_ceiling


def small_message(view: View) -> Verdict:
    """The time of an operation is all that such a size tells."""
    seconds = format_seconds(view.seconds)
    return say("small_message", latency=seconds, size=format_bytes(view.result.bytes))


def latency_out_of_family(view: View) -> Verdict | None:
    """The start of an operation, beside the whole of it on an equal GPU as near to its memory."""
    start, gpu = _start(view), view.gpu
    if start is None or gpu is None:
        return None
    equal = {g.index for g in view.equal_gpus(gpu)}
    family = [r for r in view.alike("gpus", "memory_node") if r.gpus and r.gpus[0] in equal]
    family = [r for r in family if _near(view, r) == _near(view, view.result) and _same_link(view, gpu.index, r)]
    best = min(family, key=lambda r: median(r.samples_s), default=None)
    if best is None or start <= view.thresholds.latency_family * median(best.samples_s):
        return None
    said = {"size": format_bytes(view.result.bytes), "other": format_seconds(median(best.samples_s))}
    measured = format_seconds(view.seconds)
    return say("latency_out_of_family", who=view.who, measured=measured, sibling=f"GPU{best.gpus[0]}", **said)


def _same_link(view: View, gpu: int, other: Result) -> bool:
    """Both links ran alike under load, as far as is known: time that a slower link takes is no latency."""
    watches = [view.watch(gpu), view.watch(other.gpus[0])]
    loads = {watch.load for watch in watches if watch is not None and watch.readings}
    return view.result.operation in LATENCIES or len(loads) < 2


def _start(view: View) -> float | None:
    """What an operation takes beyond moving its bytes at the least healthy rate: a slow link is no latency."""
    result, seconds = view.result, view.seconds
    if seconds is None or result.operation in LATENCIES:
        return seconds
    if result.limits is None or result.limits.now is None or result.bandwidth is None:
        return None
    # The bytes that count: of both ways and of all GPUs, the sum, as the ceiling is.
    return seconds - seconds * result.bandwidth / (view.thresholds.healthy_fraction * result.limits.now)


def far_node(view: View) -> Verdict | None:
    """The same copy with memory on another node: the GPU's own where it is known, else the best one so far."""
    result, gpu, t = view.result, view.gpu, view.thresholds
    if gpu is None or result.bandwidth is None or result.memory_node is None:
        return None
    reference = _near_reference(view, gpu)
    if reference is None or reference.bandwidth is None:
        return None
    fraction = result.bandwidth / reference.bandwidth
    if fraction < t.far_warn:
        doubt = levels.doubts(view, t.far_warn * (reference.bandwidth or 0.0))
        if doubt is not None:
            return doubt
        return _far(view, reference, "numa_far_slow" if fraction < t.far_fail else "numa_far_weak", fraction)
    if gpu.numa_node is not None and levels.level(view) in ("low", "bad") and _in_order(view, reference):
        return _far(view, reference, "numa_far", fraction)
    # Of the link only one direction beside the other was measured: too little to suspect the near node by.
    measured = reference.gpus == result.gpus and reference.operation == result.operation
    suspect = gpu.numa_node is not None and fraction > 1 / t.far_warn and measured
    return _far(view, reference, "numa_node_suspect", fraction) if suspect else None


def _in_order(view: View, near: Result) -> bool:
    """The near copy passed, and would with this case's ceiling too."""
    limits = view.result.limits
    return passed(near) and limits is not None and (near.bandwidth or 0.0) >= levels.floor(view, limits.now or 0.0)


def _near_reference(view: View, gpu: Gpu) -> Result | None:
    """The copy to hold a far one against: from the GPU's own node, else its link's from there, else an equal GPU's from
    its own node; that one only while this GPU's link is in order, for a GPU that is slow everywhere says nothing of
    distance. Where the GPU's node is not known: the fastest one from any other node so far.
    """
    if gpu.numa_node == view.result.memory_node:
        return None
    own = [r for r in view.alike("memory_node") if r.bandwidth and r.memory_node not in (None, view.result.memory_node)]
    own = [r for r in own if not _elsewhere(r)]
    if gpu.numa_node is not None:
        own = [r for r in own if r.memory_node == gpu.numa_node] or _near_by_link(view, gpu)
    return max(own, key=lambda r: r.bandwidth or 0.0, default=None)


def _elsewhere(result: Result) -> bool:
    """Its buffer was seen on another node than it says."""
    return result.placement is not None and result.placement.proved is False


def _near_by_link(view: View, gpu: Gpu) -> list[Result]:
    """What this GPU's link carried that way from its own node under load; where it was not watched, or carries nothing
    of the kind, an equal GPU's copy."""
    link = next((r for r in view.so_far if r.operation == "link_under_load" and r.gpus == (gpu.index,)), None)
    carried = (link.directions or {}).get(view.result.operation) if link else None
    if link is not None and carried is not None:
        return [replace(link, bandwidth=carried, memory_node=gpu.numa_node)]
    slow = link is not None and link.verdict is not None and link.verdict.status != "PASS"
    return [] if slow else _near_of_equals(view, gpu)


def _near_of_equals(view: View, gpu: Gpu) -> list[Result]:
    """The same copy of equal GPUs from their own nodes, judged to be in order.

    A GPU whose link is reduced has no equals to be held against.
    """
    if links.is_reduced(view, gpu):
        return []
    equal = {g.index for g in view.equal_gpus(gpu)}
    found = view.alike("gpus", "memory_node")
    near = [r for r in found if r.bandwidth and r.gpus[0] in equal and _near(view, r) and passed(r)]
    return [r for r in near if _same_ceiling(view.result, r, view.thresholds.link_bound)]


def _same_ceiling(one: Result, other: Result, least: float) -> bool:
    """A GPU whose path carries more says nothing of distance. Without a ceiling of one of them the model must do."""
    rates = [r.limits.now for r in (one, other) if r.limits is not None and r.limits.now]
    return len(rates) < 2 or min(rates) >= least * max(rates)


def _far(view: View, near: Result, cause: str, fraction: float) -> Verdict:
    binding = view.result.limits.binding if view.result.limits else None
    said: dict[str, Any] = {
        "who": f"{view.who} {view.result.operation}",
        "measured": view.measured,
        "node": view.result.memory_node,
        "near": format_bandwidth(near.bandwidth),
        "near_node": near.memory_node,
        "fraction": format_percent(fraction),
    }
    notes = (*levels.spread_note(view), _memory_note(view), *levels.placement_note(view))
    verdict = say(cause, *notes, binding=binding, **said)
    coherent = view.gpu is not None and view.gpu.c2c and verdict.status != "PASS"
    return replace(verdict, advice=_COHERENT.format_map(said)) if coherent else verdict


def _memory_note(view: View) -> str:
    memory = _host_memory(view)
    return f"memory on node {view.result.memory_node} itself copies at {format_bandwidth(memory)}" if memory else ""


def one_direction(view: View) -> Verdict | None:
    """Far below the limit in one direction while the other one is in order."""
    result = view.result
    other = _OTHER.get(result.operation)
    if other is None or levels.level(view) != "bad" or result.bandwidth is None or result.limits is None:
        return None
    back = _opposite(view, other)
    if back is None or result.bandwidth >= view.thresholds.weak_direction * back:
        return None
    said = levels.words(view) | {
        "direction": result.operation,
        "other": format_bandwidth(back),
        "hint": levels.hint(view),
    }
    return say("one_direction_weak", *levels.spread_note(view), binding=result.limits.binding, **said)


def _opposite(view: View, other: str) -> float | None:
    """The other direction's bandwidth: from its own case, else from the copies both ways that loaded the link."""
    for r in view.alike("operation"):
        if r.operation == other and passed(r):
            return r.bandwidth
    link = (r for r in view.so_far if r.operation == "link_under_load" and r.gpus == view.result.gpus)
    directions = next((r.directions for r in link if r.directions), None)
    return directions.get(other) if directions else None


def not_at_once(view: View) -> Verdict | None:
    """Copies both ways whose opposing stream ended early are partly copies one way: their rate says too much. With one
    copy engine nothing runs at once, which is said elsewhere."""
    notes = view.result.notes
    if NOT_AT_ONCE not in notes or ONE_COPY_ENGINE in notes or levels.level(view) in ("low", "bad"):
        return None
    return say("not_at_once", who=view.who, measured=view.measured)


def both_ways(view: View) -> Verdict | None:
    """Both directions at once that carry hardly more than one alone."""
    result = view.result
    if result.operation != "both_ways" or result.bandwidth is None or levels.level(view) not in ("low", "bad"):
        return None
    single = max((r.bandwidth or 0.0 for r in view.alike("operation") if r.operation in _OTHER), default=0.0)
    if not single or result.bandwidth >= view.thresholds.both_ways_gain * single:
        return None
    return say("both_ways_collapse", who=view.who, measured=view.measured, single=format_bandwidth(single))


def host_memory(view: View) -> Verdict | None:
    """A slow copy that takes most of the traffic that its node's memory bears, measured alone. One that takes more than
    that is no proof of it: the processors that copied alone were the limit, not the memory."""
    memory = _host_memory(view)
    if memory is None or view.result.bandwidth is None or levels.level(view) not in ("low", "bad"):
        return None
    least = _DRAM_BYTES * memory * view.thresholds.memory_sibling_warn
    if not least <= view.result.bandwidth <= _ALLOCATING * memory or _bore_more(view):
        return None
    said = levels.words(view) | {"node": view.result.memory_node, "memory": format_bandwidth(memory)}
    return say("host_limited", **said)


def _bore_more(view: View) -> bool:
    """The same node's memory, or another's that copies no faster alone, carried clearly more for a GPU or on its link:
    memory is not the limit."""
    node, rate, t = view.result.memory_node, view.result.bandwidth or 0.0, view.thresholds
    found = (r for r in view.so_far if r.gpus and r.memory_node is not None and r.verified is not False)
    nodes = {r.memory_node for r in found if rate < t.memory_bore * (r.bandwidth or 0.0)}
    own = _memory_of(view, node) or 0.0
    return any(n == node or 0.0 < t.memory_bore * (_memory_of(view, n) or 0.0) <= own for n in nodes)


def _host_memory(view: View) -> float | None:
    """The own memory copy bandwidth of the case's node, measured earlier."""
    return _memory_of(view, view.result.memory_node)


def _memory_of(view: View, node: int | None) -> float | None:
    found = [r for r in view.so_far if r.operation == "host_memory_copy" and r.memory_node == r.target_node == node]
    return max((r.bandwidth or 0.0 for r in found), default=None) if node is not None else None


def outlier(view: View) -> Verdict | None:
    """Below its limit while an equal GPU as near to its memory passed the same case."""
    gpu = view.gpu
    if gpu is None or levels.level(view) != "bad" or view.result.bandwidth is None:
        return None
    equal = {g.index for g in view.equal_gpus(gpu)}
    for r in view.alike("gpus", "memory_node"):
        alike = passed(r) and r.bandwidth and r.gpus[0] in equal and _near(view, r) == _near(view, view.result)
        if alike and view.result.bandwidth < view.thresholds.sibling_fraction * (r.bandwidth or 0.0):
            said = levels.words(view) | {"sibling": f"GPU{r.gpus[0]}", "other": format_bandwidth(r.bandwidth)}
            return say("outlier", *levels.spread_note(view), **said)
    return None


def below_equal_gpu(view: View) -> Verdict | None:
    """Without a ceiling: far below an equal GPU as near to its memory."""
    gpu, rate = view.gpu, view.result.bandwidth
    if gpu is None or rate is None or levels.level(view) != "unknown":
        return None
    equal = {g.index for g in view.equal_gpus(gpu)}
    family = [r for r in view.alike("gpus", "memory_node") if r.bandwidth and r.gpus[0] in equal]
    family = [r for r in family if _near(view, r) == _near(view, view.result)]
    best = max(family, key=lambda r: r.bandwidth or 0.0, default=None)
    if best is None or not best.bandwidth or rate >= view.thresholds.sibling_fraction * best.bandwidth:
        return None
    said = {"sibling": f"GPU{best.gpus[0]}", "other": format_bandwidth(best.bandwidth), "group": view.result.group}
    percent = format_percent(rate / best.bandwidth)
    return say(
        "below_equal_gpu", *levels.spread_note(view), who=view.who, measured=view.measured, percent=percent, **said
    )


def _near(view: View, result: Result) -> bool | None:
    """Whether the memory is on the GPU's own node; None where that is not known."""
    gpu = view.machine.gpu(result.gpus[0])
    if gpu is None or gpu.numa_node is None or result.memory_node is None:
        return None
    return gpu.numa_node == result.memory_node
