"""The judge: the first rule that has something to say gives the verdict. Pure; statuses come from the catalogue."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from suite.judge import collectives, copies, failures, kinds, latencies, levels, links, memory, parts, peers, together
from suite.judge.thresholds import DEFAULT, Thresholds
from suite.judge.view import View
from suite.records.case import COLLECTIVES, LATENCIES, Operation
from suite.records.expect import NOTHING, Expectations
from suite.records.machine import Machine
from suite.records.run import Result, Verdict

Rule = Callable[[View], Verdict | None]

LINK: tuple[Rule, ...] = (
    links.errors,
    links.not_under_load,
    links.not_as_expected,
    links.reduced_link,
    links.beyond_its_ends,
    links.retrained,
    levels.above_ceiling,
    kinds.serial,
    links.bandwidth_of_own_copies,
    links.as_expected,
    links.limited_by_platform,
)
MEMORY: tuple[Rule, ...] = (memory.slower_than_sibling, memory.far_slower_than_near, memory.healthy)
LATENCY: tuple[Rule, ...] = (copies.latency_out_of_family, latencies.unusually_high, latencies.plain)
COPY: tuple[Rule, ...] = (
    levels.above_ceiling,
    copies.small,
    kinds.bound_by_link,
    kinds.other_memory,
    copies.far_node,
    links.bound_by_link,
    kinds.serial,
    copies.not_at_once,
    copies.below_equal_gpu,
    levels.unknown_limit,
    levels.depends_on_mps,
    levels.doubtful,
    parts.as_its_copies,
    copies.one_direction,
    copies.host_memory,
    copies.both_ways,
    copies.outlier,
    kinds.staging_chunk,
    together.as_the_slowest,
    together.root_complex,
    levels.slow,
    together.shared_uplink,
)
PEER: tuple[Rule, ...] = (
    peers.no_access,
    levels.above_ceiling,
    copies.small,
    links.bound_by_link,
    peers.nvlink_slow,
    peers.redirected,
    peers.slower_than_staging,
    peers.same_gpu,
    levels.unknown_limit,
    parts.as_its_copies,
    peers.staged_by_driver,
    levels.depends_on_mps,
    levels.doubtful,
    levels.slow,
)
COLLECTIVE: tuple[Rule, ...] = (
    collectives.gloo,
    collectives.same_gpu,
    levels.above_ceiling,
    collectives.transport,
    collectives.slow_message,
    collectives.small,
    collectives.tuned,
    collectives.network_within_one_host,
    links.bound_by_link,
    levels.unknown_limit,
    levels.depends_on_mps,
    levels.doubtful,
    collectives.below_limit,
)
PEER_OPERATIONS: tuple[Operation, ...] = (
    "device_local_copy", "ipc_copy", "peer_write", "peer_read", "peer_both_ways", "peer_pattern",
)  # fmt: skip


def judge(
    result: Result,
    machine: Machine,
    so_far: Sequence[Result],
    thresholds: Thresholds = DEFAULT,
    expected: Expectations = NOTHING,
) -> Verdict:
    """The verdict of one case, from what was measured, the machine, the results before it, and the manifest."""
    view = View(result, machine, so_far, thresholds, expected)
    found = (rule(view) for rule in (*failures.RULES, levels.below_floor, *rules_for(result.operation)))
    verdict = next((one for one in found if one is not None), None) or levels.healthy(view)
    # What the measurement says of itself belongs to the evidence.
    notes = tuple(note for note in result.notes if note not in verdict.evidence)
    return replace(verdict, evidence=verdict.evidence + notes) if notes else verdict


def unavailable(result: Result, machine: Machine, so_far: Sequence[Result], why: str) -> Verdict:
    """The verdict of a case that the engine refused. why: its reason."""
    return peers.unavailable(View(result, machine, so_far), why)


def rules_for(operation: Operation) -> tuple[Rule, ...]:
    """The rules of an operation, in the order in which they are asked."""
    if operation == "link_under_load":
        return LINK
    if operation == "host_memory_copy":
        return MEMORY
    if operation in LATENCIES:
        return LATENCY
    if operation in COLLECTIVES:
        return COLLECTIVE
    return PEER if operation in PEER_OPERATIONS else COPY
