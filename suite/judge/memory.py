"""Copies of host memory, judged against the machine's own equal nodes."""

from __future__ import annotations

from typing import Any

from suite.judge.levels import healthy as healthy_copy
from suite.judge.view import View, say
from suite.records.run import Result, Verdict
from suite.units import format_bandwidth


def slower_than_sibling(view: View) -> Verdict | None:
    """A node's own copy beside that of an equal node: as many CPUs and as much memory."""
    result = view.result
    if not _near(result) or result.bandwidth is None:
        return None
    others = [r for r in view.alike("memory_node", "target_node", "bytes") if _near(r) and _equal(view, r)]
    best = max(others, key=_rate, default=None)
    if best is None or result.bandwidth >= view.thresholds.memory_sibling_warn * _rate(best):
        return None
    said: dict[str, Any] = {
        "node": result.memory_node,
        "sibling": best.memory_node,
        "other": format_bandwidth(best.bandwidth),
    }
    return say("memory_node_slow", measured=view.measured, **said)


def far_slower_than_near(view: View) -> Verdict | None:
    """A copy between nodes beside the best copy within one."""
    result = view.result
    if _near(result) or result.bandwidth is None:
        return None
    near = max((r for r in view.alike("memory_node", "target_node", "bytes") if _near(r)), key=_rate, default=None)
    if near is None or result.bandwidth >= view.thresholds.memory_far_warn * _rate(near):
        return None
    said: dict[str, Any] = {
        "node": result.memory_node,
        "target": result.target_node,
        "near": format_bandwidth(near.bandwidth),
    }
    return say("memory_far_slow", measured=view.measured, **said)


def healthy(view: View) -> Verdict:
    """Nothing stands out. DRAM's ceiling is soft: it explains and judges nothing."""
    return healthy_copy(view)


def _near(result: Result) -> bool:
    """Source, destination and the copying CPUs are on one node."""
    return result.memory_node == result.target_node and result.cpu_node in (None, result.memory_node)


def _equal(view: View, other: Result) -> bool:
    one, two = view.machine.node(view.result.memory_node), view.machine.node(other.memory_node)
    if one is None or two is None or len(one.cpus) != len(two.cpus):
        return False
    return not (one.memory_bytes and two.memory_bytes) or min(one.memory_bytes, two.memory_bytes) * 2 > max(
        one.memory_bytes, two.memory_bytes
    )


def _rate(result: Result) -> float:
    return result.bandwidth or 0.0
