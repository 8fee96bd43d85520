"""What a table is made of, before anybody knows whether it becomes text, Markdown or HTML."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Literal

from suite.records.run import STATUSES, Status

Kind = Literal["text", "number", "bar", "verdict"]


@dataclass(frozen=True)
class Cell:
    """status: its verdict, shown as a mark beside the text. fraction: of the ceiling, drawn as a bar where the column
    is one. sort: what a sortable table orders it by."""

    text: str
    status: Status | None = None
    fraction: float | None = None
    sort: float | None = None


@dataclass(frozen=True)
class Column:
    """drop: 0 stays always; where the page is too narrow, the column with the highest number goes first.
    note: what the table says below where this column is shown. merge: what becomes of it where many healthy rows become
    one: they must agree in a 'key', a 'list' names all values, a 'range' the least and the greatest, 'least' that one.
    """

    name: str
    kind: Kind = "text"
    drop: int = 0
    note: str | None = None
    merge: Literal["key", "list", "range", "least"] = "key"


@dataclass(frozen=True)
class Table:
    """rows: as many cells as columns. notes: sentences below it. heat: its measured cells compare with each other, so
    that HTML may shade them."""

    title: str
    columns: tuple[Column, ...]
    rows: tuple[tuple[Cell, ...], ...]
    notes: tuple[str, ...] = ()
    heat: bool = False


def all_notes(table: Table) -> tuple[str, ...]:
    """The notes of the table and of its columns, each once."""
    return tuple(dict.fromkeys([*table.notes, *(c.note for c in table.columns if c.note)]))


def without_empty(table: Table) -> Table:
    """Leaves out the columns in which no row has anything to say, be it '' or '–'; verdicts and the first one stay."""
    keep = [
        place
        for place, column in enumerate(table.columns)
        if place == 0 or column.kind == "verdict" or any(_says(row[place], column) for row in table.rows)
    ]
    columns = tuple(table.columns[place] for place in keep)
    rows = tuple(tuple(row[place] for place in keep) for row in table.rows)
    return replace(table, columns=columns, rows=rows)


def _says(cell: Cell, column: Column) -> bool:
    if column.kind == "bar":
        return cell.fraction is not None
    return cell.status is not None or cell.text not in ("", "–")


def row_status(row: Iterable[Cell]) -> Status | None:
    """The worst verdict in a row; None where it has none."""
    return worst(cell.status for cell in row)


def worst(statuses: Iterable[Status | None]) -> Status | None:
    """The status that matters most (FAIL first); None of none."""
    found = {status for status in statuses if status is not None}
    return next((status for status in STATUSES if status in found), None)
