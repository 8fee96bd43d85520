"""A table as lines of text for the terminal."""

from __future__ import annotations

import tabulate

from suite.records.run import Status
from suite.report import style
from suite.report.fit import GAP, blocks, fit, widths
from suite.report.tables.model import Cell, Column, Table
from suite.report.tables.words import MARKS


def lines(table: Table, width: int, colour: bool) -> list[str]:
    """Title, table and notes, at most `width` wide."""
    fitted = fit(table, width, plain)
    heading = [style.strong(line, colour) for line in style.wrapped(table.title, width)]
    body = [line for block in blocks(fitted, width, plain) for line in _drawn(block, colour)]
    said = [line for note in fitted.notes for line in style.wrapped(note, width, first="  ", rest="  ")]
    return [*heading, *body, *said]


def plain(cell: Cell, column: Column) -> str:
    """A cell as text. Numbers that are not in order carry their mark; the others leave its place free."""
    text = style.clean(cell.text)
    if column.kind == "bar":
        return style.bar(cell.fraction)
    if cell.status is None:
        return text
    if column.kind == "verdict":
        return style.marked(cell.status, text)
    return f"{text} {_mark(cell.status)}"


def _drawn(table: Table, colour: bool) -> list[str]:
    if not table.rows:
        return []
    names = [column.name for column in table.columns]
    rows = [
        [_coloured(cell, column, colour) for cell, column in zip(row, table.columns, strict=True)] for row in table.rows
    ]
    # The names go in as a row: tabulate widens a column by two for its header.
    text = tabulate.tabulate(
        [names, *rows] if any(names) else rows,
        tablefmt="plain",
        colalign=["right" if column.kind == "number" else "left" for column in table.columns],
        disable_numparse=True,
        preserve_whitespace=True,
    )
    drawn = [line.rstrip() for line in str(text).splitlines()]
    rule = (" " * GAP).join("─" * size for size in widths(table, plain))
    return [drawn[0], rule, *drawn[1:]] if any(names) else drawn


def _mark(status: Status) -> str:
    return " " if status == "PASS" else MARKS[status]


def _coloured(cell: Cell, column: Column, colour: bool) -> str:
    text = plain(cell, column)
    if column.kind in ("bar", "verdict") or cell.status != "PASS":
        return style.paint(text, cell.status, colour)
    return text
