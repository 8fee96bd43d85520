"""One group of cases: its tables, and in a line each what could not be measured."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

from suite.records.case import COLLECTIVES
from suite.records.run import Result, Run
from suite.report.tables import collective, copies, machine, matrix, words
from suite.report.tables.model import Table, without_empty

_TITLES = {
    "link": "Links",
    "host_memory": "Host memory",
    "host_copy": "Host copies",
    "host_staging": "Staging through host memory",
    "peer_copy": "Peer copies",
    "allreduce": "Allreduce",
}

# How the judge's notes on the samples of a case begin.
_SPREAD = "the samples spread"
_NO_CEILING = "PASS means that the bytes and their placement are right; no ceiling judges the rate"
_PER_NODE = ("host_memory", "host_copy", "host_staging")


def names(run: Run) -> list[str]:
    """The groups of a run, in the order in which they were measured."""
    return list(dict.fromkeys(result.group for result in run.results))


def title(name: str) -> str:
    """A group's name in words."""
    return _TITLES.get(name, name.replace("_", " ").capitalize())


def members(run: Run, name: str) -> list[Result]:
    """The results of a group."""
    return [result for result in run.results if result.group == name]


def tables(run: Run, name: str, *, brief: bool) -> list[Table]:
    """The tables of a group, without columns that are empty throughout. brief: message sizes are thinned, and what a
    matrix shows is not listed again."""
    made = [without_empty(table) for table in _tables(run, name, brief=brief)]
    said = _said(members(run, name))
    return [replace(made[0], notes=(*made[0].notes, *said)), *made[1:]] if made else []


def _said(results: Sequence[Result]) -> list[str]:
    """What a PASS means where there is no ceiling, and which samples spread."""
    passed = [r for r in results if words.status(r) == "PASS"]
    named = [*(["host memory"] * any(r.operation == "host_memory_copy" for r in passed))]
    named += ["gloo"] * any(r.backend == "gloo" for r in passed)
    found = [f"{named[0]}: {_NO_CEILING}"] if named else []
    return found + _spread(results)


def _spread(results: Sequence[Result]) -> list[str]:
    """The cases whose verdict notes that the samples differ, the widest one named."""
    noted = [(_percent(text), r.case) for r in results if r.verdict for text in r.verdict.evidence if _SPREAD in text]
    if not noted:
        return []
    most, case = max(noted)
    return [
        f"{_SPREAD} widely in {_cases(len(noted))} (interquartile range over median), most in {case}: {most} %; "
        "their rates are less certain"
    ]


def _percent(text: str) -> int:
    number = re.search(r"(\d+)\s*%", text)
    return int(number[1]) if number else 0


def _tables(run: Run, name: str, *, brief: bool) -> list[Table]:
    results = [r for r in members(run, name) if words.status(r) not in ("UNAVAILABLE", "NOT_SAMPLED")]
    if not results:
        return []
    if name == "link":
        found = machine.links(run)
        return [found] if found else []
    heading = title(name)
    if all(r.operation == "host_memory_copy" for r in results):
        return matrix.host_memory(heading, results)
    gathered = [r for r in results if r.operation in COLLECTIVES]
    others = [r for r in results if r.operation not in COLLECTIVES]
    made: list[Table] = []
    if matrix.is_matrix(others):
        refused = [r for r in members(run, name) if words.status(r) == "UNAVAILABLE"]
        made = matrix.peers(heading, [*others, *refused])
        others = matrix.beside(others) if brief else others
    made += copies.tables(heading, others)
    return made + collective.tables(gathered, collective.MOST_ROWS if brief else None)


def absent(run: Run, name: str) -> list[str]:
    """One line for each reason why cases of the group were not measured, one for those that others stand for, and one
    for each NUMA node that is left out."""
    results = members(run, name)
    reasons: dict[str, int] = {}
    for result in results:
        if words.status(result) == "UNAVAILABLE":
            reason = _reason(run, result)
            reasons[reason] = reasons.get(reason, 0) + 1
    lines = [f"{title(name)}: not measured: {reason}{_times(count)}" for reason, count in reasons.items()]
    stood_for = sum(words.status(r) == "NOT_SAMPLED" for r in results)
    if stood_for:
        lines.append(f"{title(name)}: {_cases(stood_for)} not sampled, others stand for them")
    return lines + [f"{title(name)}: {reason}" for reason in _nodes_left_out(run, name)]


def _nodes_left_out(run: Run, name: str) -> list[str]:
    """Why a NUMA node is not among the group's cases."""
    if name not in _PER_NODE or all(words.status(r) == "UNAVAILABLE" for r in members(run, name)):
        return []
    allowed, asked = run.machine.environment.allowed_nodes, run.settings.nodes
    found = []
    for node in run.machine.nodes:
        if asked is not None and node.index not in asked:
            continue
        if allowed and node.index not in allowed:
            found.append(f"node {node.index} is left out: this process may not use its memory (cpuset)")
        elif node.memory_bytes == 0:
            found.append(f"node {node.index} is left out: it has no memory")
        elif not node.cpus and name == "host_memory":
            found.append(f"node {node.index} has no CPUs: those of the nearest node copy its memory")
    return found


def _reason(run: Run, result: Result) -> str:
    """Why a case was not measured. Why there is no GPU the machine's table says, once and at length."""
    said = words.sentence(result)
    return "there is no GPU" if said == run.machine.why_no_gpu and not run.machine.gpus else said


def troubles(results: Sequence[Result]) -> list[Result]:
    """The results that want attention, FAIL before WARN."""
    order = {"FAIL": 0, "WARN": 1}
    found = [r for r in results if words.status(r) in order]
    return sorted(found, key=lambda r: order[words.status(r) or "WARN"])


def _times(count: int) -> str:
    return f" ({_cases(count)})" if count > 1 else ""


def _cases(count: int) -> str:
    return "1 case" if count == 1 else f"{count} cases"
