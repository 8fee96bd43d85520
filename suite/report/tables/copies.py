"""Copies between memories: each path at its largest size, and over all sizes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from suite import units
from suite.records.case import LATENCIES
from suite.records.run import Result
from suite.report.tables import words
from suite.report.tables.model import Cell, Column, Table

Key = tuple[object, ...]
Columns = tuple[Column, ...]
Rows = tuple[tuple[Cell, ...], ...]


@dataclass(frozen=True)
class _Axis:
    """One thing that tells paths apart. always: shown even where all paths agree."""

    column: Column
    value: Callable[[Result], object]
    text: Callable[[Result], str]
    always: bool = False


_AXES = (
    _Axis(Column("copy"), lambda r: r.operation, lambda r: words.operation(r.operation), always=True),
    _Axis(Column("GPU", "number", merge="list"), lambda r: r.gpus, words.gpus),
    _Axis(Column("node", "number", merge="list"), lambda r: r.memory_node, words.memory_node),
    _Axis(Column("to node", "number", merge="list"), lambda r: r.target_node, lambda r: words.number(r.target_node)),
    _Axis(Column("CPUs of", "number", merge="list"), lambda r: r.cpu_node, lambda r: words.number(r.cpu_node)),
    _Axis(Column("how"), lambda r: (r.engine, r.memory), words.how),
    _Axis(Column("P2P"), lambda r: r.p2p, lambda r: {True: "on", False: "off", None: ""}[r.p2p]),
    _Axis(Column("way"), lambda r: r.transport, lambda r: r.transport or words.UNKNOWN),
    _Axis(
        Column("chunk", "number"),
        lambda r: r.chunk_bytes,
        lambda r: units.format_bytes(r.chunk_bytes) if r.chunk_bytes else "whole",
    ),
)
# Without these a row says nothing; the others show only where they tell rows apart.
_PLACES = (1, 2)
_COULD = "could be: the ceiling if every link ran at what both its ends can do"
_HALF_PEAK = (
    "half peak: the size from which on a path reaches half of its highest bandwidth; – where the largest copies are "
    "far slower than smaller ones"
)
_FALLS = 0.75  # of the peak: below it the largest copy is said to be far slower
_CACHED = "within one device: copies that fit the GPU's second-level cache may exceed what its memory carries"
_ON_DEVICE = "time: from launch until the host knows; on the device: between two events around one copy"
_GENERATIONS = (
    "Gen columns: percent of what a link of that generation and the same width could deliver; 'above': the copy is "
    "faster than that"
)
_ABOVE = "above"


def tables(title: str, results: Sequence[Result]) -> list[Table]:
    """Up to three tables of one group's results: every path at its largest size, its sizes, and the latencies."""
    timed = [r for r in results if r.operation in LATENCIES]
    copies = [r for r in results if r.operation not in LATENCIES]
    made = []
    if copies:
        made.append(_largest(title, copies))
        if any(len(row) > 1 for row in _paths(copies).values()):
            made.append(_over_sizes(title, copies))
    if timed:
        made.append(_latencies(title, timed))
    return made


def _paths(results: Sequence[Result]) -> dict[Key, list[Result]]:
    """Results of one path (all axes but the size), ascending by size."""
    paths: dict[Key, list[Result]] = {}
    for result in sorted(results, key=lambda r: r.bytes):
        paths.setdefault(tuple(axis.value(result) for axis in _AXES), []).append(result)
    order = {result.case: place for place, result in enumerate(results)}
    return dict(sorted(paths.items(), key=lambda item: min(order[r.case] for r in item[1])))


def _shown(results: Sequence[Result]) -> list[_Axis]:
    """The axes that have something to say about these results."""
    return [
        axis
        for place, axis in enumerate(_AXES)
        if axis.always
        or (len({axis.value(r) for r in results}) > 1 and not _is_near(axis, results))
        or (place in _PLACES and any(axis.value(r) not in (None, ()) for r in results))
    ]


def _is_near(axis: _Axis, results: Sequence[Result]) -> bool:
    """Whether this is the CPUs' node, and always that of the memory: then it says nothing new."""
    return axis.column.name == "CPUs of" and all(r.cpu_node == r.memory_node for r in results)


def _largest(title: str, results: Sequence[Result]) -> Table:
    axes = _shown(results)
    generations = max((len(r.limits.generations) for r in results if r.limits), default=0)
    columns: Columns = (
        *(axis.column for axis in axes),
        Column("size", "number", drop=2),
        Column("GB/s", "number", merge="range"),
        Column("each way", "number", drop=8, merge="range"),
        Column("ceiling", "number"),
        Column("%", "number", merge="range"),
        Column("could be", "number", note=_COULD),
        Column("", "bar", drop=4),
        Column("verdict", "verdict"),
        Column("healthy", "number", drop=9),
        *(
            Column(f"Gen{g}", "number", drop=16 - g, note=_GENERATIONS, merge="least")
            for g in range(1, generations + 1)
        ),
    )
    rows: Rows = tuple(_largest_row(axes, row, generations) for row in _paths(results).values())
    title, columns, rows = _size_in_title(title, columns, rows)
    notes = ("both ways and all GPUs: sums over directions and GPUs",) if _has_sums(results) else ()
    return Table(title, columns, rows, notes)


def _size_in_title(title: str, columns: Columns, rows: Rows) -> tuple[str, Columns, Rows]:
    """Where all rows are of one size it stands in the title, and leaves its column to others."""
    place = next(place for place, column in enumerate(columns) if column.name == "size")
    sizes = {row[place].text for row in rows}
    if len(sizes) > 1:
        return title, columns, rows
    shorter = tuple((*row[:place], *row[place + 1 :]) for row in rows)
    return f"{title}, {sizes.pop()}", (*columns[:place], *columns[place + 1 :]), shorter


def _largest_row(axes: Sequence[_Axis], row: Sequence[Result], generations: int) -> tuple[Cell, ...]:
    top = next((r for r in reversed(row) if r.bandwidth is not None), row[-1])
    return (
        *(Cell(axis.text(top)) for axis in axes),
        Cell(units.format_bytes(top.bytes), sort=top.bytes),
        Cell(words.measured(top).text, sort=top.bandwidth),
        _each_way(top),
        words.ceiling(top),
        words.percent(top),
        words.could_be(top),
        words.bar(top),
        words.verdict(row),
        _healthy(top),
        *_generations(top, generations),
    )


def _has_sums(results: Sequence[Result]) -> bool:
    return any(
        str(r.operation).endswith("both_ways") or words.is_a(r, "all_gpus") or r.operation == "peer_pattern"
        for r in results
    )


def _each_way(result: Result) -> Cell:
    if not result.directions or len(result.directions) > 2:
        return Cell("")
    return Cell(" + ".join(units.format_gigabytes(rate) for rate in result.directions.values()))


def _healthy(result: Result) -> Cell:
    """The range that healthy machines reach, GB/s."""
    # Runs judged by an older lanecheck hold a range for pageable memory too, which is that of pinned memory.
    expected = result.limits.expected if result.limits and result.memory != "pageable" else None
    return Cell("–".join(units.format_gigabytes(rate) for rate in expected)) if expected else Cell("")


def _generations(result: Result, count: int) -> list[Cell]:
    """Percent of each generation's ceiling at the same width."""
    known = result.limits.generations if result.limits else ()
    shares = [result.bandwidth / rate if result.bandwidth and rate else None for rate in known]
    padded = [*shares, *[None] * (count - len(shares))]
    return [Cell(_ABOVE if share and share > 1 else units.format_percent(share), sort=share) for share in padded]


def _over_sizes(title: str, results: Sequence[Result]) -> Table:
    paths = {key: row for key, row in _paths(results).items() if len(row) > 1}
    shown = [r for row in paths.values() for r in row]
    sizes = sorted({r.bytes for r in shown})
    drops = _drop_order(sizes, {r.bytes for r in shown if words.status(r) in ("FAIL", "WARN")})
    axes = _shown(shown)
    columns = (
        *(axis.column for axis in axes),
        Column("half peak", "number", drop=1, note=_HALF_PEAK, merge="range"),
        *(Column(units.format_bytes(size), "number", drop=drops[size], merge="least") for size in sizes),
    )
    rows = []
    for row in paths.values():
        by_size = {r.bytes: words.measured(r) for r in row}
        values = (by_size.get(size, Cell("")) for size in sizes)
        rows.append((*(Cell(axis.text(row[0])) for axis in axes), _half_peak(row), *values))
    return Table(f"{title}, GB/s over sizes", columns, tuple(rows), (_CACHED,) if any(map(_cached, shown)) else ())


def _cached(result: Result) -> bool:
    """Faster than memory is: only a cache can do that."""
    now = result.limits.now if result.limits else None
    return result.operation in ("device_local_copy", "ipc_copy") and now is not None and (result.bandwidth or 0.0) > now


def _half_peak(row: Sequence[Result]) -> Cell:
    """The least size from which on all sizes of a path reach half of its peak; '' where its smallest one does, '–' on a
    curve that falls."""
    known = [r for r in row if r.bandwidth]
    peak = max((r.bandwidth or 0.0 for r in known), default=0.0)
    if known and (known[-1].bandwidth or 0.0) < _FALLS * peak:
        return Cell("–")
    below = [place for place, r in enumerate(known) if (r.bandwidth or 0.0) < peak / 2]
    if not below or below[-1] + 1 == len(known):  # none, or the largest size itself lies below
        return Cell("")
    size = known[below[-1] + 1].bytes
    return Cell(units.format_bytes(size), sort=size)


def _drop_order(sizes: Sequence[int], troubled: set[int]) -> dict[int, int]:
    """Which size columns stay longest on a narrow page: the ends, those with trouble, then ever finer steps between."""
    ends = {sizes[0], sizes[-1]}
    order = sorted(sizes, key=lambda s: (s not in ends, s not in troubled, _fineness(sizes.index(s)), s))
    return {size: 0 if size in ends else place for place, size in enumerate(order)}


def _fineness(place: int) -> int:
    """0 for every 16th place, 1 for every 8th, …: the coarsest even steps are kept longest."""
    return next(level for level in range(5) if place % (16 >> level) == 0)


def _latencies(title: str, results: Sequence[Result]) -> Table:
    axes = _shown(results)
    columns = (
        *(axis.column for axis in axes),
        Column("size", "number", drop=1),
        Column("time", "number", merge="range"),
        Column("on the device", "number", drop=3, note=_ON_DEVICE, merge="range"),
        Column("least", "number", drop=2),
        Column("verdict", "verdict"),
    )
    rows = tuple(
        (
            *(Cell(axis.text(r)) for axis in axes),
            Cell(units.format_bytes(r.bytes) if r.bytes else "", sort=r.bytes),
            Cell(words.latency(r).text, sort=r.latency_s),
            Cell(units.format_seconds(r.on_device_s) if r.on_device_s else "", sort=r.on_device_s),
            Cell(units.format_seconds(r.limits.floor_s if r.limits else None)),
            words.verdict([r]),
        )
        for r in results
    )
    return Table(f"{title}, latency", columns, rows)
