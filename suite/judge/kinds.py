"""Kinds of host memory beside each other, and staging's chunk sizes: comparisons, not verdicts on the path."""

from __future__ import annotations

from typing import Any

from suite.judge import levels, links
from suite.judge.view import View, say
from suite.records.case import ONE_COPY_ENGINE
from suite.records.run import Result, Verdict
from suite.units import format_bandwidth, format_bytes, format_percent

# Placed on a node, then registered with CUDA: what all other cases use, and what the ceilings are held against.
PINNED = (None, "pinned", "registered")
_COPIES = ("host_to_device", "device_to_host", "both_ways")
_WORDS = {
    "host_alloc": "memory from cudaHostAlloc",
    "huge": "registered huge pages",
    "write_combined": "write-combined memory",
}


def bound_by_link(view: View) -> Verdict | None:
    """A bad link bounds every kind of memory alike. Pageable memory only where it is as fast as the link allows."""
    memory = view.result.memory
    if memory in PINNED or (memory == "pageable" and levels.level(view) != "ok"):
        return None
    return links.bound_by_link(view)


def other_memory(view: View) -> Verdict | None:
    """A copy from or to another kind of host memory, beside the same copy with pinned memory."""
    if view.result.memory in PINNED or view.result.operation not in _COPIES or view.result.bandwidth is None:
        return None
    pinned = _pinned(view)
    if view.result.memory == "pageable":
        return _pageable(view, pinned)
    if pinned is None or not pinned.bandwidth:
        return say("memory_kind", **_words(view), beside="pinned memory was not measured beside it")
    ratio = view.result.bandwidth / pinned.bandwidth
    said = _words(view) | {"pinned": format_bandwidth(pinned.bandwidth), "percent": format_percent(ratio)}
    if ratio > view.thresholds.memory_kind:
        return say("registered_slow", *levels.spread_note(view), **said)
    if ratio < 1 / view.thresholds.memory_kind and not _reaches(view, pinned.bandwidth):
        return say("memory_kind_slow", *levels.spread_note(view), **said)
    beside = f"{said['percent']} of the {said['pinned']} with pinned memory"
    notes = (*_warning(view), *levels.spread_note(view))
    return say("memory_kind", *notes, **said, beside=beside)


def _reaches(view: View, pinned: float) -> bool:
    """The samples differ widely, and the best one is as fast as pinned memory: the host was disturbed."""
    return view.spread > view.thresholds.spread and (view.best or 0.0) * view.thresholds.memory_kind >= pinned


def _pageable(view: View, pinned: Result | None) -> Verdict:
    """Slower by nature: the driver copies through a buffer of its own."""
    worth = "pinned memory was not measured beside it"
    if pinned is not None and pinned.bandwidth and view.result.bandwidth:
        factor = pinned.bandwidth / view.result.bandwidth
        worth = f"{format_bandwidth(pinned.bandwidth)} with pinned memory: pinning is worth a factor of {factor:.1f}"
    return say("pageable", who=view.who, measured=view.measured, worth=worth)


def _pinned(view: View) -> Result | None:
    """The same copy with pinned memory on the same node; on any, where the node is not known."""
    differing = ("memory",) if view.result.memory_node is not None else ("memory", "memory_node")
    found = [r for r in view.alike(*differing) if r.memory in PINNED and r.bandwidth]
    return max(found, key=lambda r: r.bandwidth or 0.0, default=None)


def _words(view: View) -> dict[str, Any]:
    kind = str(view.result.memory)
    return {"who": view.who, "measured": view.measured, "kind": _WORDS.get(kind, kind)}


def _warning(view: View) -> tuple[str, ...]:
    if view.result.memory != "write_combined":
        return ()
    return ("processors read write-combined memory slowly: it is for buffers that they only write",)


def serial(view: View) -> Verdict | None:
    """Both ways by one copy engine carries about what one way does, half of what the link could."""
    result, limits = view.result, view.result.limits
    if ONE_COPY_ENGINE not in result.notes or result.bandwidth is None or limits is None or not limits.now:
        return None
    if levels.level(view) not in ("low", "bad") or result.bandwidth < levels.floor(view, limits.now) / 2:
        return None
    return say("one_copy_engine", *levels.spread_note(view), binding=limits.binding, **levels.words(view))


def staging_chunk(view: View) -> Verdict | None:
    """Chunk sizes are a sweep: a slow one says nothing of the path where a smaller one was in order, or where handing
    over so small a chunk costs a share of its time."""
    result, limits = view.result, view.result.limits
    if result.operation != "staging" or result.chunk_bytes is None or limits is None or not limits.now:
        return None
    if result.bandwidth is None or levels.level(view) not in ("low", "bad"):
        return None
    better = _better_chunk(view)
    if better is not None:
        why = f"chunks of {format_bytes(better.chunk_bytes or 0)} reach {format_bandwidth(better.bandwidth)}"
    elif result.chunk_bytes / limits.now < view.thresholds.chunk_seconds:
        why = "handing over a chunk so small costs a share of its time; larger ones tell how the path is"
    else:
        return None
    said = levels.words(view) | {"chunk": format_bytes(result.chunk_bytes), "why": why}
    return say("staging_chunk", *levels.spread_note(view), binding=limits.binding, **said)


def _better_chunk(view: View) -> Result | None:
    """An earlier chunk size of this route and node that was found in order."""
    found = [r for r in view.alike("chunk_bytes") if r.verdict is not None and r.verdict.cause == "healthy"]
    return max(found, key=lambda r: r.bandwidth or 0.0, default=None)
