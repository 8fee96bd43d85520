"""Which copies between GPUs run at once in one operation: what limits and engines must agree on."""

from __future__ import annotations

from suite.records.case import Plan

Edge = tuple[int, int]
# Names of peer_pattern's ways, held in Plan.transport.
PATTERNS = ("disjoint_pairs", "one_to_all", "all_to_one", "ring", "all_to_all")


def flows(plan: Plan) -> list[Edge]:
    """(source, target) of every copy that runs at once, by the plan's GPU numbers.

    Write: the first GPU sends to the second. Read: the first fetches from the second. A pattern is named by
    plan.transport: ring, one_to_all, all_to_one, all_to_all; else the GPUs are disjoint pairs.
    """
    gpus, first = plan.gpus, plan.gpus[0]
    if plan.operation != "peer_pattern":
        one = (gpus[1], gpus[0]) if plan.operation == "peer_read" else (gpus[0], gpus[1])
        return [one, one[::-1]] if plan.operation == "peer_both_ways" else [one]
    if plan.transport == "ring":
        return list(zip(gpus, (*gpus[1:], first), strict=True))
    if plan.transport in ("one_to_all", "all_to_one"):
        out = [(first, other) for other in gpus[1:]]
        return out if plan.transport == "one_to_all" else [edge[::-1] for edge in out]
    if plan.transport == "all_to_all":
        return [(a, b) for a in gpus for b in gpus if a != b]
    return list(zip(gpus[::2], gpus[1::2], strict=False))
