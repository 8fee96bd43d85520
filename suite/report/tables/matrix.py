"""Measurements between every two of something: NUMA nodes, GPUs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from suite import units
from suite.records.case import LATENCIES, Operation
from suite.records.run import Result
from suite.report.tables import words
from suite.report.tables.model import Cell, Column, Table

Kind = tuple[Operation, bool | None, str | None, str | None]
_P2P = {True: "P2P on", False: "P2P off", None: None}
# A read fetches: the row's GPU is the one that runs the copy, the column's the one that the bytes come from.
_CORNER: dict[str, str] = {"peer_read": "by\\from", "peer_both_ways": "gpu\\gpu"}


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
    """GPU × GPU, a table for each operation and way that most pairs were measured in: GB/s at the size that most pairs
    have, or the time of one small copy."""
    made = []
    for (operation, p2p, *ways), found in _by_kind(results).items():
        size = Counter(r.bytes for r in found).most_common(1)[0][0]
        unit = "µs" if operation in LATENCIES else "GB/s"
        parts = [words.operation(operation), _P2P[p2p], *map(_way, ways), units.format_bytes(size), unit]
        at_size = [r for r in found if r.bytes == size]
        heading = f"{title}: {', '.join(part for part in parts if part)}"
        made.append(_pairs(heading, at_size, _within(results) if unit == "GB/s" else {}))
    return made


def is_matrix(results: Sequence[Result]) -> bool:
    """Whether these are copies between more than two GPUs, so that a matrix shows more than a list."""
    return len({gpu for r in results if _is_pair(r) for gpu in r.gpus}) > 2


def beside(results: Sequence[Result]) -> list[Result]:
    """What the matrices leave to say: pairs that are not in order, pairs at several sizes, and what is in no matrix."""
    shown = {id(r) for found in _by_kind(results).values() for r in found}
    paths: dict[tuple[object, ...], list[Result]] = {}
    for result in results:
        paths.setdefault((*_kind(result), result.gpus), []).append(result)
    return [
        r
        for path in paths.values()
        for r in path
        if len(path) > 1 or id(r) not in shown or words.status(r) not in ("PASS", "UNAVAILABLE")
    ]


def _is_pair(result: Result) -> bool:
    """A peer copy of one GPU to another, by bandwidth or by time."""
    named = words.is_a(result, "peer_") or result.operation == "ipc_copy"
    return named and len(result.gpus) == 2 and result.operation != "peer_pattern"


def _kind(result: Result) -> Kind:
    engine = result.engine if result.operation in LATENCIES or result.engine == "sm" else None
    return result.operation, result.p2p, result.transport, engine


def _way(name: str | None) -> str | None:
    return {"sm": "SM", "copy-engine": None, "simulated": None}.get(name or "", name)


def _by_kind(results: Sequence[Result]) -> dict[Kind, list[Result]]:
    """Pairs by what was measured of them; without kinds that a few representatives were measured in only."""
    kinds: dict[Kind, list[Result]] = {}
    for result in filter(_is_pair, results):
        kinds.setdefault(_kind(result), []).append(result)
    most = max((_couples(found) for found in kinds.values()), default=0)
    return {kind: found for kind, found in kinds.items() if 2 * _couples(found) > most and _measured(found)}


def _couples(results: Sequence[Result]) -> int:
    return len({frozenset(r.gpus) for r in results})


def _measured(results: Sequence[Result]) -> bool:
    return any(r.samples_s or r.error is not None for r in results)


def _within(results: Sequence[Result]) -> dict[tuple[int, ...], Cell]:
    """The diagonal: copies within one GPU."""
    return {r.gpus * 2: words.measured(r) for r in results if r.operation == "device_local_copy"}


def _pairs(heading: str, results: Sequence[Result], diagonal: dict[tuple[int, ...], Cell]) -> Table:
    ends = sorted({gpu for r in results for gpu in r.gpus})
    cells = {**diagonal, **{r.gpus: _cell(r) for r in results}}
    rows = tuple(
        (Cell(str(one)), *(cells.get((one, other), Cell("" if one == other else ".")) for other in ends))
        for one in ends
    )
    corner = _CORNER.get(results[0].operation, "from\\to")
    columns = (Column(corner, "number"), *(Column(str(end), "number") for end in ends))
    notes = ("diagonal: copies within one GPU, over no link",) if diagonal else ()
    return Table(heading, columns, rows, notes, heat=True)


def _cell(result: Result) -> Cell:
    if words.status(result) == "UNAVAILABLE":
        return Cell("n/a", status="UNAVAILABLE")
    if result.latency_s is not None and result.operation in LATENCIES:
        return Cell(f"{result.latency_s * 1e6:.2f}", status=words.status(result), sort=result.latency_s)
    return words.measured(result)


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
