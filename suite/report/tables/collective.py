"""Collectives: one table for each operation, backend, world size, transport and so on; one row a message size."""

from __future__ import annotations

from collections.abc import Sequence

from suite import units
from suite.records.run import Result
from suite.report.tables import words
from suite.report.tables.model import Cell, Column, Table

_COLUMNS = (
    Column("size", "number"),
    Column("latency", "number"),
    Column("algbw", "number", drop=2),
    Column("busbw", "number"),
    Column("ceiling", "number"),
    Column("%", "number"),
    Column("", "bar", drop=3),
    Column("verdict", "verdict"),
)
MOST_ROWS = 14


def tables(results: Sequence[Result], most: int | None = None) -> list[Table]:
    """A table for each configuration, GB/s. most: rows at most; the rest is named in a note."""
    return [_table(found, most) for found in configurations(results)]


def configurations(results: Sequence[Result]) -> list[list[Result]]:
    """The results that differ in nothing but the size, ascending by it."""
    found: dict[tuple[object, ...], list[Result]] = {}
    for r in results:
        how = (r.transport, r.graph, r.dtype, r.in_place, r.tuning, r.ranks_placed, r.ranks_as)
        found.setdefault((r.operation, r.backend, r.world_size, *how), []).append(r)
    return [sorted(row, key=lambda r: r.bytes) for row in found.values()]


def name(result: Result) -> str:
    """'allreduce, nccl, 8 ranks, transport shm' in words."""
    return ", ".join(
        part for part in (words.operation(result.operation), result.backend, configuration(result)) if part
    )


def configuration(result: Result) -> str:
    """'8 ranks, transport shm, CUDA graph': all but operation, backend and size; only what is unusual of dtype."""
    parts = [
        f"{result.world_size} ranks" + (" as threads" if result.ranks_as == "threads" else ""),
        f"transport {result.transport}" if result.transport else None,
        "CUDA graph" if result.graph else None,
        result.dtype if result.dtype != "float32" else None,
        "out of place" if result.in_place is False else None,
        f"ranks {result.ranks_placed}" if result.ranks_placed else None,
        result.tuning,
    ]
    return ", ".join(part for part in parts if part)


def taken(results: Sequence[Result]) -> str | None:
    """What NCCL really did, where its log was read: 'taken: P2P, Ring/Tree, Simple, 24 channels'."""
    seen = [r.transport_taken for r in results if r.transport_taken]
    if not seen:
        return None
    parts = [
        "/".join(sorted({t.name for t in seen if t.name})),
        "/".join(sorted({t.algorithm for t in seen if t.algorithm})),
        "/".join(sorted({t.protocol for t in seen if t.protocol})),
    ]
    channels = {t.channels for t in seen if t.channels}
    if channels:
        parts.append(f"{'/'.join(map(str, sorted(channels)))} channels")
    told = ", ".join(part for part in parts if part)
    return f"taken: {told}" if told else None


def _table(results: Sequence[Result], most: int | None) -> Table:
    shown = _thinned(results, most)
    notes = [note for note in (taken(results),) if note]
    if len(shown) < len(results):
        notes.append(f"{len(shown)} of {len(results)} sizes shown; `lanecheck report --format csv` has all")
    heading = name(results[0])
    heading = heading[:1].upper() + heading[1:]
    return Table(f"{heading}, GB/s", _COLUMNS, tuple(_row(r) for r in shown), tuple(notes))


def _thinned(results: Sequence[Result], most: int | None) -> Sequence[Result]:
    """At most that many rows: the ends, what is not PASS, then evenly between."""
    if most is None or len(results) <= most:
        return results
    last = len(results) - 1
    keep = {0, last} | {i for i, r in enumerate(results) if words.status(r) in ("FAIL", "WARN", "INDETERMINATE")}
    for place in range(most):
        if len(keep) >= most:
            break
        keep.add(round(place * last / (most - 1)))
    return [r for i, r in enumerate(results) if i in keep]


def _row(result: Result) -> tuple[Cell, ...]:
    return (
        Cell(units.format_bytes(result.bytes), sort=result.bytes),
        Cell(units.format_seconds(result.latency_s), sort=result.latency_s),
        Cell(units.format_gigabytes(result.algbw), sort=result.algbw),
        Cell(words.measured(result).text, sort=result.bandwidth),
        words.ceiling(result),
        words.percent(result),
        words.bar(result),
        words.verdict([result]),
    )
