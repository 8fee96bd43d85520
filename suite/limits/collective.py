"""What a collective could deliver: by algorithm, protocol and transport taken, link by link."""

from __future__ import annotations

from suite.records.case import Operation


def bus_factor(operation: Operation, n: int) -> float:
    """busbw / algbw of a collective over n ranks. Source: nccl-tests, doc/PERFORMANCE.md. n < 1: ValueError."""
    if n < 1:
        raise ValueError(f"world size {n} is not possible: at least 1")
    if operation == "allreduce":
        return 2 * (n - 1) / n
    return (n - 1) / n if operation in ("all_gather", "reduce_scatter", "all_to_all") else 1.0
