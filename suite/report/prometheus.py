"""A run as Prometheus text (exposition format 0.0.4), for node_exporter's textfile collector."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from datetime import datetime

from suite.records.machine import LinkState
from suite.records.run import STATUSES, Finding, Result, Run
from suite.report import style
from suite.report.tables import words

Labels = dict[str, str]
Sample = tuple[Labels, float]


def render(run: Run, findings: Sequence[Finding] = ()) -> str:
    """All gauges, one series a case (its last result). Every series of a simulated run carries simulated="true":
    it never mixes with measured ones. findings: those of the machine, which no case carries, are series too."""
    run = replace(run, results=tuple({result.case: result for result in run.results}.values()))
    lines: list[str] = []
    alone = [finding for finding in findings if not finding.cases]
    for name, help_text, samples in (*_families(run), *_of_machine(alone)):
        made = [_line(name, labels | _mark(run), value) for labels, value in samples]
        if made:
            lines += [f"# HELP {name} {help_text}", f"# TYPE {name} gauge", *made]
    return "\n".join(lines) + "\n"


def _families(run: Run) -> Iterator[tuple[str, str, Iterable[Sample]]]:
    yield "lanecheck_run_info", "The run and what it ran on.", [(_about(run), 1)]
    yield "lanecheck_run_complete", "1 where every planned case ended.", [({}, run.complete)]
    yield "lanecheck_run_planned_cases", "Cases that were planned.", [({}, run.planned)]
    yield "lanecheck_run_start_timestamp_seconds", "When the run started, seconds since 1970.", _started(run)
    yield "lanecheck_run_cases", "Cases of the run by status.", _by_status(run)
    yield "lanecheck_case_status", "1, with the status of the case as label.", _statuses(run)
    for name, help_text, field in _VALUES:
        yield name, help_text, _values(run, field)
    yield "lanecheck_limit_bytes_per_second", "What the path could deliver.", _limits(run)
    yield "lanecheck_latency_floor_seconds", "The least time that the path allows.", _floors(run)
    yield "lanecheck_link_speed_transfers_per_second", "Link speed of one lane.", _links(run, "speed_gts", 1e9)
    yield "lanecheck_link_lanes", "Link width.", _links(run, "width", 1)
    yield "lanecheck_link_errors", "Errors counted while the link was watched, at both ends of every hop.", _errors(run)


def _of_machine(alone: Sequence[Finding]) -> Iterator[tuple[str, str, Iterable[Sample]]]:
    labels = [{"status": f.status, "cause": f.cause, "subject": f.subject} for f in alone]
    samples = [(label, 1.0) for place, label in enumerate(labels) if label not in labels[:place]]
    yield "lanecheck_machine_finding", "1, with what is said of the machine as a whole as labels.", samples


_VALUES = (
    (
        "lanecheck_bandwidth_bytes_per_second",
        "Measured bandwidth (busbw for collectives; sums over directions).",
        "bandwidth",
    ),
    ("lanecheck_algorithm_bandwidth_bytes_per_second", "Message size divided by time, collectives.", "algbw"),
    ("lanecheck_latency_seconds", "Time of one operation.", "latency_s"),
    ("lanecheck_limit_used_ratio", "Measured bandwidth as a fraction of the ceiling.", "fraction_of_limit"),
)


def _values(run: Run, field: str) -> Iterator[Sample]:
    for result in run.results:
        value = getattr(result, field)
        if value is not None:
            yield _case(result), value


def _limits(run: Run) -> Iterator[Sample]:
    for result in run.results:
        for name in ("now", "platform", "device"):
            value = getattr(result.limits, name) if result.limits else None
            if value is not None:
                yield _case(result) | {"ceiling": name}, value


def _floors(run: Run) -> Iterator[Sample]:
    for result in run.results:
        if result.limits and result.limits.floor_s is not None:
            yield _case(result), result.limits.floor_s


def _statuses(run: Run) -> Iterator[Sample]:
    for result in run.results:
        if result.verdict is not None:
            yield _case(result) | {"status": result.verdict.status, "cause": result.verdict.cause}, 1


def _by_status(run: Run) -> Iterator[Sample]:
    found = [words.status(result) for result in run.results]
    for status in STATUSES:
        yield {"status": status}, found.count(status)


def _links(run: Run, field: str, scale: float) -> Iterator[Sample]:
    """A GPU's own link: as found, under load, and as it was after."""
    for result in _watched(run):
        states: dict[str, LinkState] = {}
        if result.link is not None:
            states = {"idle": result.link.idle, "load": result.link.load, "after": result.link.after}
        for when, state in states.items():
            value = getattr(state, field)
            if value is not None:
                yield _gpu(result) | {"when": when}, value * scale


def _errors(run: Run) -> Iterator[Sample]:
    for result in _watched(run):
        for kind in ("replays", "aer_correctable", "aer_uncorrectable"):
            value = getattr(result.link, kind)
            if value is not None:
                yield _gpu(result) | {"kind": kind}, value


def _watched(run: Run) -> Iterator[Result]:
    """One result a GPU; a later one of the same GPU would be the same series again."""
    seen: set[int] = set()
    for result in run.results:
        if result.operation == "link_under_load" and result.link and result.gpus and result.gpus[0] not in seen:
            seen.add(result.gpus[0])
            yield result


def _started(run: Run) -> Iterator[Sample]:
    try:
        yield {}, datetime.fromisoformat(run.started or "").timestamp()
    except ValueError:  # a hand-edited time: no sample, rather than a wrong one
        return


def _about(run: Run) -> Labels:
    software = run.machine.software
    return {
        "lanecheck": run.lanecheck or "",
        "effort": run.settings.effort,
        "driver": software.driver or "",
        "nccl": software.nccl or "",
        "kernel": software.kernel or "",
        "gpus": str(len(run.machine.gpus)),
    }


def _case(result: Result) -> Labels:
    return {"case": result.case, "group": result.group, "operation": str(result.operation)}


def _gpu(result: Result) -> Labels:
    return {"gpu": str(result.gpus[0])}


def _mark(run: Run) -> Labels:
    return {"simulated": "true"} if run.simulated else {}


def _line(name: str, labels: Labels, value: float) -> str:
    inside = ",".join(f'{key}="{_escaped(text)}"' for key, text in labels.items())
    return f"{name}{{{inside}}} {float(value)!r}" if inside else f"{name} {float(value)!r}"


def _escaped(text: str) -> str:
    return style.clean(text).replace("\\", "\\\\").replace('"', '\\"')
