"""What a root cause costs the operations that people run: said once, beside the cause."""

from __future__ import annotations

from collections.abc import Sequence

from suite.records.case import Operation
from suite.records.run import Result
from suite.units import format_bandwidth

# What inference and training wait for: collectives, and copies through host memory where there is no P2P.
_TOLD: tuple[Operation, ...] = ("allreduce", "staging")


def lost(group: Sequence[Result]) -> str:
    """'; with it allreduce reaches 2.62 GB/s where 22.9 GB/s should be possible'; '' where neither is in it."""
    said = [words for operation in _TOLD if (words := _loss([r for r in group if r.operation == operation]))]
    return f"; with it {' and '.join(said)}" if said else ""


def _loss(results: Sequence[Result]) -> str | None:
    """Of the largest case whose path could carry more."""
    found = [r for r in results if r.bandwidth is not None and r.limits and r.limits.platform]
    if not found:
        return None
    one = max(found, key=lambda r: (r.bytes, r.bandwidth or 0.0))
    should = format_bandwidth(one.limits.platform if one.limits else None)
    return f"{one.operation} reaches {format_bandwidth(one.bandwidth)} where {should} should be possible"
