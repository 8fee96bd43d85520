"""Every result in one long table, for looking things up and sorting."""

from __future__ import annotations

from statistics import median

from suite import units
from suite.records.run import Result, Run
from suite.report.tables import words
from suite.report.tables.model import Cell, Column, Table

_COLUMNS = (
    Column("case"),
    Column("size", "number"),
    Column("median", "number"),
    Column("spread", "number"),
    Column("GB/s", "number"),
    Column("ceiling", "number"),
    Column("%", "number"),
    Column("data"),
    Column("placement"),
    Column("verdict", "verdict"),
    Column("why"),
)


def table(run: Run) -> Table:
    """One row a result. spread: (most − least) / median of the samples."""
    return Table("All results", _COLUMNS, tuple(_row(result) for result in run.results))


def _row(result: Result) -> tuple[Cell, ...]:
    middle = median(result.samples_s) if result.samples_s else None
    spread = (max(result.samples_s) - min(result.samples_s)) / middle if middle else None
    return (
        Cell(result.case),
        Cell(units.format_bytes(result.bytes) if result.bytes else "", sort=result.bytes),
        Cell(units.format_seconds(middle), sort=middle),
        Cell(units.format_percent(spread), sort=spread),
        Cell(words.measured(result).text, sort=result.bandwidth),
        words.ceiling(result),
        words.percent(result),
        Cell({True: "verified", False: "wrong", None: words.UNKNOWN}[result.verified]),
        Cell(_placement(result)),
        Cell(words.status(result) or "not judged", status=words.status(result)),
        Cell(words.sentence(result)),
    )


def _placement(result: Result) -> str:
    if result.placement is None or result.placement.node is None:
        return words.UNKNOWN
    proof = {True: "proved", False: "elsewhere", None: "not proved"}[result.placement.proved]
    return f"node {result.placement.node}, {proof}"
