"""Measurements between every two of something: NUMA nodes, GPUs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from suite import units
from suite.records.case import LATENCIES, Operation
from suite.records.run import Result
from suite.report.tables import words
from suite.report.tables.model import Cell, Column, Table

Kind = tuple[Operation, str | None, str | None]


def host_memory(title: str, results: Sequence[Result]) -> list[Table]:
    """Node × node, GB/s: a row for each node whose CPUs copy and each node read, a column for each node written."""
    targets = sorted({_target(r) for r in results if _target(r) is not None}, key=_or_last)
    rows: dict[tuple[int | None, int | None], list[Result]] = {}
    for result in results:
        rows.setdefault((result.cpu_node, result.memory_node), []).append(result)
    columns = (
        Column("CPUs of", "number"),
        Column("from node", "number"),
        *(Column(f"to node {t}", "number") for t in targets),
        Column("ceiling", "number", drop=2),
        Column("threads", "number", drop=1),
        Column("verdict", "verdict"),
    )
    made = tuple(
        (
            Cell(words.number(cpus)),
            Cell(words.number(source)),
            *(_at(row, target) for target in targets),
            _span([words.ceiling(r) for r in row]),
            Cell(_threads(row)),
            words.verdict(row),
        )
        for (cpus, source), row in sorted(rows.items(), key=lambda item: tuple(map(_or_last, item[0])))
    )
    return [Table(f"{title}, GB/s", columns, made, _counted(results), heat=True)]


def peers(title: str, results: Sequence[Result]) -> list[Table]:
    """GPU × GPU, GB/s, a table for each operation and way, at the size that most pairs have."""
    made = []
    for (operation, *ways), found in _by_kind(results).items():
        size = Counter(r.bytes for r in found).most_common(1)[0][0]
        parts = [words.operation(operation), *filter(None, ways), units.format_bytes(size), "GB/s"]
        made.append(_pairs(f"{title}: {', '.join(parts)}", [r for r in found if r.bytes == size]))
    return made


def is_matrix(results: Sequence[Result]) -> bool:
    """Whether these are copies between more than two GPUs, so that a matrix shows more than a list."""
    return len({gpu for r in results if _is_pair(r) for gpu in r.gpus}) > 2


def beside(results: Sequence[Result]) -> list[Result]:
    """What the matrices leave to say: pairs that are not in order, pairs at several sizes, and what is no pair."""
    paths: dict[tuple[object, ...], list[Result]] = {}
    for result in results:
        paths.setdefault((result.operation, result.transport, result.gpus), []).append(result)
    return [
        r for path in paths.values() for r in path if len(path) > 1 or len(r.gpus) != 2 or words.status(r) != "PASS"
    ]


def _is_pair(result: Result) -> bool:
    """A peer copy of one GPU to another, by bandwidth."""
    named = result.operation.startswith("peer_") or result.operation == "ipc_copy"
    return named and len(result.gpus) == 2 and result.operation not in LATENCIES


def _kind(result: Result) -> Kind:
    return result.operation, result.transport, result.engine


def _by_kind(results: Sequence[Result]) -> dict[Kind, list[Result]]:
    kinds: dict[Kind, list[Result]] = {}
    for result in filter(_is_pair, results):
        kinds.setdefault(_kind(result), []).append(result)
    return kinds


def _pairs(heading: str, results: Sequence[Result]) -> Table:
    ends = sorted({gpu for r in results for gpu in r.gpus})
    cells = {r.gpus: words.measured(r) for r in results}
    rows = tuple(
        (Cell(str(source)), *(cells.get((source, target), Cell("" if source == target else ".")) for target in ends))
        for source in ends
    )
    columns = (Column("from\\to", "number"), *(Column(str(end), "number") for end in ends))
    return Table(heading, columns, rows, heat=True)


def _target(result: Result) -> int | None:
    return result.target_node if result.target_node is not None else result.memory_node


def _at(row: Sequence[Result], target: int | None) -> Cell:
    return next((words.measured(r) for r in row if _target(r) == target), Cell(""))


def _span(cells: Sequence[Cell]) -> Cell:
    """One ceiling, or the least and the greatest of several."""
    known = sorted((c for c in cells if c.sort is not None), key=lambda c: c.sort or 0.0)
    if not known:
        return Cell(words.UNKNOWN)
    low, high = known[0].text, known[-1].text
    return Cell(low if low == high else f"{low}–{high}", sort=known[0].sort)


def _threads(row: Sequence[Result]) -> str:
    found = sorted({r.threads for r in row if r.threads})
    return "–".join(map(str, dict.fromkeys([found[0], found[-1]]))) if found else words.UNKNOWN


def _counted(results: Sequence[Result]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(f"counted: {r.counted}" for r in results if r.counted))


def _or_last(number: int | None) -> int:
    return -1 if number is None else number
