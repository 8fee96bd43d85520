"""Records in the words of the report: operations, places, values, verdicts."""

from __future__ import annotations

from collections.abc import Sequence

from suite import units
from suite.records.case import Operation
from suite.records.run import Result, Status
from suite.report.tables.model import Cell, worst

UNKNOWN = "–"
MARKS: dict[Status, str] = {
    "PASS": "✓",
    "WARN": "!",
    "FAIL": "✗",
    "INDETERMINATE": "?",
    "UNAVAILABLE": "–",
    "NOT_SAMPLED": "·",
}
_OPERATIONS: dict[Operation, str] = {
    "link_under_load": "both ways, watched",
    "host_memory_copy": "memory copy",
    "host_to_device": "host→device",
    "device_to_host": "device→host",
    "both_ways": "both ways",
    "host_to_device_latency": "host→device, one small copy",
    "device_to_host_latency": "device→host, one small copy",
    "host_device_load_latency": "device reads host memory",
    "staging": "device→host→device",
    "all_gpus_host_to_device": "all GPUs host→device",
    "all_gpus_device_to_host": "all GPUs device→host",
    "all_gpus_both_ways": "all GPUs both ways",
    "device_local_copy": "within one device",
    "ipc_copy": "between processes",
    "peer_write": "write to a peer",
    "peer_read": "read from a peer",
    "peer_both_ways": "peers, both ways",
    "peer_pattern": "all at once",
    "peer_latency": "one small peer copy",
    "peer_flag_latency": "a flag to a peer",
}


def operation(name: Operation) -> str:
    """An operation in words; '–' where a file from elsewhere names none."""
    return _OPERATIONS.get(name) or str(name or UNKNOWN).replace("_", " ")


def is_a(result: Result, start: str) -> bool:
    """Whether an operation's name begins so; False where a file from elsewhere names none."""
    return str(result.operation).startswith(start)


def gpus(result: Result) -> str:
    """The GPUs of a case: '0', '0→1' for copies between two, '0 1 2 3' for groups; '' on the host."""
    if result.backend is not None or is_a(result, "all_gpus") or result.operation == "peer_pattern":
        return _ranges(result.gpus)
    arrow = "↔" if str(result.operation).endswith("both_ways") else "→"
    return arrow.join(str(gpu) for gpu in result.gpus)


def how(result: Result) -> str:
    """Who copies and from what memory, where that is not the copy engine and pinned memory."""
    engine = result.engine if result.engine not in (None, "copy-engine", "simulated") else None
    memory = result.memory if result.memory not in (None, "pinned") else None
    return ", ".join(part for part in ("SM" if engine == "sm" else engine, memory) if part)


def number(value: int | None) -> str:
    """A whole number; '–' where it is not known."""
    return UNKNOWN if value is None else str(value)


def memory_node(result: Result) -> str:
    """The node of the host buffer; 'own' where every GPU of a group had one on its own node, proved."""
    several = result.memory_node is None and is_a(result, "all_gpus")
    if several and result.placement is not None and result.placement.proved:
        return "own"
    return number(result.memory_node)


def measured(result: Result) -> Cell:
    """The bandwidth in GB/s, or in one word why there is none; with its verdict."""
    return Cell(_value(result), status=status(result), sort=result.bandwidth)


def latency(result: Result) -> Cell:
    """The time of one operation, or why there is none; with its verdict."""
    text = units.format_seconds(result.latency_s) if result.latency_s is not None else _value(result)
    return Cell(text, status=status(result), sort=result.latency_s)


def ceiling(result: Result) -> Cell:
    """The hard ceiling in GB/s; '~' before it where it rests on an assumed payload size or is a soft one."""
    limits = result.limits
    if limits is None or limits.now is None:
        return Cell(UNKNOWN)
    about = "~" if limits.basis == "assumed" or not limits.hard else ""
    return Cell(about + units.format_gigabytes(limits.now), sort=limits.now)


def could_be(result: Result) -> Cell:
    """The platform's ceiling in GB/s where links ran below it by more than 1 %; else empty."""
    limits = result.limits
    if limits is None or not limits.now or not limits.platform or limits.platform <= limits.now * 1.01:
        return Cell("")
    return Cell(units.format_gigabytes(limits.platform), sort=limits.platform)


def percent(result: Result) -> Cell:
    """Percent of the ceiling."""
    fraction = result.fraction_of_limit
    return Cell(units.format_percent(fraction), fraction=fraction, sort=fraction)


def bar(result: Result) -> Cell:
    """The fraction to be drawn: of the ceiling, or of what the path could be where its links ran below that. A slow
    link that is full must not look like a fast one."""
    limits = result.limits
    fraction = result.fraction_of_limit
    if fraction is not None and limits and limits.now and limits.platform:
        fraction *= min(1.0, limits.now / limits.platform)
    return Cell("", fraction=fraction, sort=fraction)


def status(result: Result) -> Status | None:
    """The status of a result; None where it was not judged."""
    return result.verdict.status if result.verdict else None


def verdict(results: Sequence[Result]) -> Cell:
    """The worst status of a row's cases, and how many of them have it where they differ."""
    found = [s for s in map(status, results) if s is not None]
    top = worst(found)
    if top is None:
        return Cell("not judged")
    same = found.count(top)
    return Cell(top if same == len(found) else f"{top} {same} of {len(found)}", status=top)


def sentence(result: Result) -> str:
    """What the verdict says: its first piece of evidence, or its cause."""
    if result.verdict is None:
        return "not judged"
    return result.verdict.evidence[0] if result.verdict.evidence else result.verdict.cause.replace("_", " ")


def counts(results: Sequence[Result]) -> str:
    """'120 cases: 2 FAIL, 1 WARN, 117 PASS'."""
    found = [status(result) for result in results]
    parts = [f"{found.count(s)} {s}" for s in MARKS if s in found]
    if None in found:
        parts.append(f"{found.count(None)} not judged")
    cases = "1 case" if len(found) == 1 else f"{len(found)} cases"
    return f"{cases}: {', '.join(parts)}" if parts else "no case was measured"


def _value(result: Result) -> str:
    if result.error is not None:
        return result.error.kind
    if result.verified is False:
        return "wrong data"
    return units.format_gigabytes(result.bandwidth)


def _ranges(numbers: Sequence[int]) -> str:
    """'0–7' for consecutive numbers, '0 2 4' for others."""
    if len(numbers) > 2 and list(numbers) == list(range(numbers[0], numbers[-1] + 1)):
        return f"{numbers[0]}–{numbers[-1]}"
    return " ".join(map(str, numbers))
