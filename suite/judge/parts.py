"""Copies between GPUs and staging, held against what they are made of: the plain copies between each GPU and a node."""

from __future__ import annotations

from collections.abc import Iterator

from suite.judge import levels
from suite.judge.kinds import PINNED
from suite.judge.view import View, fastest, say
from suite.records.run import Result, Verdict
from suite.units import format_bandwidth

_DOWN, _UP = "host_to_device", "device_to_host"
_TWO_WAYS = ("peer_both_ways",)
_MADE_OF_COPIES = ("staging", "peer_write", "peer_read", "peer_both_ways")


def as_its_copies(view: View) -> Verdict | None:
    """Slow, and as fast as the slowest plain copy on the way, which has a verdict of its own: no second fault."""
    result = view.result
    if result.operation not in _MADE_OF_COPIES or result.bandwidth is None or levels.level(view) not in ("low", "bad"):
        return None
    weak = _weakest(view)
    rate = result.bandwidth / (2 if result.operation in _TWO_WAYS else 1)
    if weak is None or not weak.bandwidth or weak.verdict is None or weak.verdict.cause == "healthy":
        return None
    if not view.thresholds.as_its_parts <= rate / weak.bandwidth <= 1 / view.thresholds.as_its_parts:
        return None
    part = f"{weak.operation} of GPU{weak.gpus[0]} with memory on node {weak.memory_node}"
    cause = "as_its_copies" if weak.verdict.status in ("FAIL", "WARN") else "as_its_far_copies"
    binding = result.limits.binding if result.limits else None
    said = {"who": view.who, "measured": view.measured, "part": part, "rate": format_bandwidth(weak.bandwidth)}
    return say(cause, *levels.spread_note(view), binding=binding, **said)


def _weakest(view: View) -> Result | None:
    """The slowest of the plain copies on the way, each at the size at which it was fastest."""
    best = fastest(_parts(view), lambda r: (r.gpus, r.operation, r.memory_node))
    return min(best.values(), key=lambda r: r.bandwidth or 0.0, default=None)


def _parts(view: View) -> Iterator[Result]:
    """Judged plain copies with pinned memory of the GPU that sends (up) and the one that receives (down)."""
    nodes = _nodes(view)
    ways = {(view.result.gpus[0], _UP), (view.result.gpus[-1], _DOWN)}
    if view.result.operation in _TWO_WAYS:
        ways |= {(view.result.gpus[-1], _UP), (view.result.gpus[0], _DOWN)}
    for one in view.so_far:
        if len(one.gpus) != 1 or (one.gpus[0], one.operation) not in ways or one.memory_node not in nodes:
            continue
        if one.engine == "copy-engine" and one.memory in PINNED and one.verified is not False:
            yield one


def _nodes(view: View) -> set[int]:
    """Where the bytes rest or pass: the staging buffer's node; of peer copies the nodes of both GPUs."""
    if view.result.memory_node is not None:
        return {view.result.memory_node}
    homes = (gpu.numa_node for index in view.result.gpus if (gpu := view.machine.gpu(index)) is not None)
    return {node for node in homes if node is not None}
