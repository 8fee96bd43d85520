"""The order of the cases: what a later verdict needs is measured first."""

from __future__ import annotations

GROUPS = ("link", "host_memory", "host_copy", "host_staging", "peer_copy", "allreduce")


def key(case: str) -> tuple[int, str]:
    """Sort key of a case by its group; groups that are not known come last. Stable within a group."""
    group = case.partition("/")[0]
    return (GROUPS.index(group), "") if group in GROUPS else (len(GROUPS), group)
