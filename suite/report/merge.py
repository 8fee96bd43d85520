"""Many healthy rows as one: on a machine with many equal paths the page belongs to those that are not in order."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from suite.report.tables.model import Cell, Column, Table, row_status

FEW = 12
_MOST_LISTED = 12
_LEAST = "equal paths that are all in order share a row: the least of them is shown"


def healthy_rows(table: Table) -> Table:
    """A table of more than FEW rows with those rows merged that are PASS and agree in all `key` columns."""
    if len(table.rows) <= FEW or all(column.merge == "key" for column in table.columns):
        return table
    groups: dict[object, list[tuple[Cell, ...]]] = {}
    for place, row in enumerate(table.rows):
        groups.setdefault(_key(table.columns, row) if row_status(row) == "PASS" else place, []).append(row)
    rows = tuple(_merged(table.columns, rows) for rows in groups.values())
    said = (_LEAST,) if len(rows) < len(table.rows) and any(c.merge == "least" for c in table.columns) else ()
    return replace(table, rows=rows, notes=(*table.notes, *said))


def _key(columns: Sequence[Column], row: Sequence[Cell]) -> tuple[str, ...]:
    """What rows must agree in. An empty cell does not agree with a filled one in any column."""
    return tuple(
        cell.text if column.merge == "key" else ("" if cell.text else "empty")
        for column, cell in zip(columns, row, strict=True)
    )


def _merged(columns: Sequence[Column], rows: Sequence[tuple[Cell, ...]]) -> tuple[Cell, ...]:
    if len(rows) == 1:
        return rows[0]
    return tuple(_cell(column, [row[place] for row in rows]) for place, column in enumerate(columns))


def _cell(column: Column, cells: Sequence[Cell]) -> Cell:
    if column.kind == "bar":
        return min(cells, key=lambda cell: cell.fraction if cell.fraction is not None else 2.0)
    if column.kind == "verdict":
        return replace(cells[0], text=f"{cells[0].text} ×{len(cells)}")
    if column.merge == "list":
        return Cell(_listed([cell.text for cell in cells]))
    if column.merge == "range":
        return _range(cells)
    if column.merge == "least":
        return min(cells, key=lambda cell: float("inf") if cell.sort is None else cell.sort)
    return cells[0]


def _range(cells: Sequence[Cell]) -> Cell:
    """'52.1–53.0'; a unit that both ends have is written once: '90–95 %'."""
    known = sorted((cell for cell in cells if cell.sort is not None), key=lambda cell: cell.sort or 0.0)
    if not known:
        return replace(cells[0], text="" if len({cell.text for cell in cells}) > 1 else cells[0].text)
    low, high = known[0].text, known[-1].text
    if low == high:
        return known[0]
    number, space, unit = low.partition(" ")
    short = number if space and high.endswith(f" {unit}") else low
    return replace(known[0], text=f"{short}–{high}")


def _listed(texts: Sequence[str]) -> str:
    """'0–7' for consecutive numbers, '0, 2' for a few others, '56 pairs' or '5 sets' for many."""
    distinct = list(dict.fromkeys(texts))
    if all(text.isdigit() for text in distinct):
        numbers = sorted(map(int, distinct))
        if len(numbers) > 2 and numbers[-1] - numbers[0] == len(numbers) - 1:
            return f"{numbers[0]}–{numbers[-1]}"
    listed = ", ".join(distinct)
    if len(listed) <= _MOST_LISTED:
        return listed
    return f"{len(distinct)} {'pairs' if '→' in distinct[0] or '↔' in distinct[0] else 'sets'}"
