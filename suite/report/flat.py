"""A run as CSV: one row a result, units in the column names, empty where something is not known."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable
from statistics import median

from suite.records.case import LinkWatch
from suite.records.machine import LinkState
from suite.records.run import Result, Run
from suite.report import style
from suite.report.tables import words

Value = str | int | float | bool | None
# What spreadsheets take for a formula when a cell begins with it.
_FORMULA = ("=", "+", "-", "@")


def render(run: Run) -> str:
    """The CSV text with a header line (RFC 4180, UTF-8, lines end in CRLF)."""
    out = io.StringIO()
    writer = csv.writer(out)
    writer.writerow([*_COLUMNS, *_RUN_COLUMNS])
    about = [_cell(value(run)) for value in _RUN_COLUMNS.values()]
    for result in run.results:
        writer.writerow([*(_cell(value(result)) for value in _COLUMNS.values()), *about])
    return out.getvalue()


def _cell(value: Value) -> str:
    if value is None:
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        text = style.clean(value)
        return f"'{text}" if text.startswith(_FORMULA) else text
    return repr(value)


def _limit(name: str) -> Callable[[Result], Value]:
    return lambda result: getattr(result.limits, name) if result.limits else None


def _expected(place: int) -> Callable[[Result], Value]:
    return lambda result: result.limits.expected[place] if result.limits and result.limits.expected else None


def _link(state: Callable[[LinkWatch], LinkState], field: str) -> Callable[[Result], Value]:
    return lambda result: getattr(state(result.link), field) if result.link else None


def _count(name: str) -> Callable[[Result], Value]:
    return lambda result: getattr(result.link, name) if result.link else None


def _direction(name: str) -> Callable[[Result], Value]:
    return lambda result: (result.directions or {}).get(name)


def _transport(name: str) -> Callable[[Result], Value]:
    return lambda result: getattr(result.transport_taken, name) if result.transport_taken else None


_COLUMNS: dict[str, Callable[[Result], Value]] = {
    "case": lambda r: r.case,
    "group": lambda r: r.group,
    "operation": lambda r: r.operation,
    "status": words.status,
    "cause": lambda r: r.verdict.cause if r.verdict else None,
    "message_bytes": lambda r: r.bytes or None,
    "gpus": lambda r: " ".join(map(str, r.gpus)),
    "memory_node": lambda r: r.memory_node,
    "target_node": lambda r: r.target_node,
    "cpu_node": lambda r: r.cpu_node,
    "threads": lambda r: r.threads,
    "engine": lambda r: r.engine,
    "memory": lambda r: r.memory,
    "chunk_bytes": lambda r: r.chunk_bytes,
    "backend": lambda r: r.backend,
    "world_size": lambda r: r.world_size,
    "transport": lambda r: r.transport,
    "transport_taken": _transport("name"),
    "algorithm_taken": _transport("algorithm"),
    "channels_taken": _transport("channels"),
    "protocol_taken": _transport("protocol"),
    "graph": lambda r: r.graph,
    "dtype": lambda r: r.dtype,
    "in_place": lambda r: r.in_place,
    "tuning": lambda r: r.tuning,
    "ranks_placed": lambda r: r.ranks_placed,
    "ranks_as": lambda r: r.ranks_as if r.backend else None,
    "mean_over_ranks_s": lambda r: median(r.mean_samples_s) if r.mean_samples_s else None,
    "rounds": lambda r: len(r.samples_s),
    "iterations": lambda r: r.iterations,
    "median_s": lambda r: median(r.samples_s) if r.samples_s else None,
    "least_s": lambda r: min(r.samples_s, default=None),
    "most_s": lambda r: max(r.samples_s, default=None),
    "latency_s": lambda r: r.latency_s,
    "on_device_s": lambda r: r.on_device_s,
    "bandwidth_bytes_per_s": lambda r: r.bandwidth,
    "algbw_bytes_per_s": lambda r: r.algbw,
    "host_to_device_bytes_per_s": _direction("host_to_device"),
    "device_to_host_bytes_per_s": _direction("device_to_host"),
    "limit_now_bytes_per_s": _limit("now"),
    "limit_platform_bytes_per_s": _limit("platform"),
    "limit_device_bytes_per_s": _limit("device"),
    "expected_from_bytes_per_s": _expected(0),
    "expected_to_bytes_per_s": _expected(1),
    "limit_floor_s": _limit("floor_s"),
    "limit_basis": _limit("basis"),
    "limit_binding": _limit("binding"),
    "fraction_of_limit": lambda r: r.fraction_of_limit,
    "verified": lambda r: r.verified,
    "placement_proved": lambda r: r.placement.proved if r.placement else None,
    "link_idle_speed_gts": _link(lambda w: w.idle, "speed_gts"),
    "link_idle_width": _link(lambda w: w.idle, "width"),
    "link_load_speed_gts": _link(lambda w: w.load, "speed_gts"),
    "link_load_width": _link(lambda w: w.load, "width"),
    "link_replays": _count("replays"),
    "aer_correctable": _count("aer_correctable"),
    "aer_uncorrectable": _count("aer_uncorrectable"),
    "error": lambda r: f"{r.error.kind}: {r.error.message}" if r.error else None,
    "evidence": lambda r: " ".join(r.verdict.evidence) if r.verdict else None,
    "advice": lambda r: r.verdict.advice if r.verdict else None,
    "represented_by": lambda r: r.represented_by,
}
_RUN_COLUMNS: dict[str, Callable[[Run], Value]] = {
    "run_started": lambda run: run.started,
    "run_complete": lambda run: run.complete,
    "run_simulated": lambda run: run.simulated,
    "lanecheck": lambda run: run.lanecheck,
}
