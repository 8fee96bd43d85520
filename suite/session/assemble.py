"""A Result out of a Plan and what was measured: medians, rates, fractions. Wrong bytes carry no bandwidth."""

from __future__ import annotations

from dataclasses import replace
from statistics import median
from typing import Any

from suite.limits.collective import bus_factor
from suite.records.case import COLLECTIVES, LATENCIES, Plan, Samples
from suite.records.flows import flows
from suite.records.run import Failure, Limits, Result


def result(plan: Plan, samples: Samples | None, failure: Failure | None = None) -> Result:
    """The result of a plan, still without limits and verdict. samples is None where it failed."""
    planned = Result(
        case=plan.case,
        operation=plan.operation,
        bytes=plan.bytes,
        gpus=plan.gpus,
        memory_node=plan.memory_node,
        target_node=plan.target_node,
        cpu_node=plan.cpu_node,
        engine=plan.engine,
        memory=plan.memory,
        chunk_bytes=plan.chunk_bytes,
        backend=plan.backend,
        world_size=plan.world_size,
        transport=plan.transport,
        graph=plan.graph,
        iterations=plan.iterations,
        threads=plan.threads,
        p2p=plan.p2p,
        tuning=plan.tuning,
        ranks_placed=plan.ranks_placed,
        ranks_as=plan.ranks_as,
        **_of_a_collective(plan),
        error=failure,
    )
    return planned if samples is None else _with_rates(_with_samples(planned, samples), plan, samples)


def _of_a_collective(plan: Plan) -> dict[str, Any]:
    """What only collectives have."""
    return {"dtype": plan.dtype, "in_place": plan.in_place} if plan.operation in COLLECTIVES else {}


def with_limits(measured: Result, limits: Limits) -> Result:
    """The result with its limits and the fraction of the hard ceiling that was reached."""
    reached = measured.bandwidth / limits.now if measured.bandwidth and limits.now else None
    return replace(measured, limits=limits, fraction_of_limit=reached)


def _with_samples(planned: Result, samples: Samples) -> Result:
    return replace(
        planned,
        iterations=samples.iterations or planned.iterations,
        threads=samples.threads or planned.threads,
        on_device_s=samples.on_device_s,
        clock=samples.clock,
        samples_s=samples.seconds,
        mean_samples_s=samples.mean_seconds,
        transport_taken=samples.transport,
        placement=samples.placement,
        verified=samples.verified,
        wrong=samples.wrong,
        counted=samples.counted,
        link=samples.watch,
        notes=samples.notes,
    )


def _with_rates(measured: Result, plan: Plan, samples: Samples) -> Result:
    """Latency always; bandwidth only where bytes moved and were right."""
    seconds = median(samples.seconds) if samples.seconds else None
    if seconds is None or samples.verified is False:
        return measured
    if plan.operation in LATENCIES:
        return replace(measured, latency_s=seconds)
    rate = bytes_moved(plan) / seconds
    if plan.operation in COLLECTIVES:
        bus = rate * bus_factor(plan.operation, plan.world_size)
        return replace(measured, latency_s=seconds, algbw=rate, bandwidth=bus)
    return replace(measured, bandwidth=rate, directions=_directions(plan, samples))


def bytes_moved(plan: Plan) -> int:
    """Bytes that one operation moves in all: both directions, all GPUs, all flows of a pattern."""
    if plan.operation == "peer_pattern":
        return plan.bytes * len(flows(plan))
    ways = 2 if plan.operation.endswith("both_ways") or plan.operation == "link_under_load" else 1
    gpus = len(plan.gpus) if plan.operation.startswith("all_gpus") else 1
    return plan.bytes * ways * gpus


def _directions(plan: Plan, samples: Samples) -> dict[str, float] | None:
    if not samples.directions:
        return None
    return {name: plan.bytes / median(seconds) for name, seconds in samples.directions.items() if seconds}
