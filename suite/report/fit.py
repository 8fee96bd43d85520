"""Makes a table fit a page: columns give way by rank, healthy rows to those that are not, long names are cut."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

from suite.report import style
from suite.report.merge import healthy_rows
from suite.report.tables.model import Cell, Column, Table, all_notes, row_status

GAP = 2
MOST_ROWS = 30
_LEAST_TEXT = 12
Shown = Callable[[Cell, Column], str]


def fit(table: Table, width: int, shown: Shown) -> Table:
    """A table of at most MOST_ROWS rows that is `width` wide where that can be; its notes say what was left out.

    shown: the text of a cell in its column. A table whose columns may not go can stay wider: see `blocks`.
    """
    short, hidden = _fewer_rows(healthy_rows(table))
    narrow, dropped = _fewer_columns(short, width, shown)
    cut = _shortened(narrow, width, shown)
    return replace(cut, notes=(*hidden, *_dropped(dropped), *all_notes(narrow)))


def blocks(table: Table, width: int, shown: Shown) -> Iterator[Table]:
    """The table in parts that fit side by side no more: each has the first column and as many others as fit."""
    start = 1
    sizes = widths(table, shown)
    while start == 1 or start < len(sizes):
        end = start + 1
        while end < len(sizes) and _total([sizes[0], *sizes[start : end + 1]]) <= width:
            end += 1
        yield _columns(table, [0, *range(start, min(end, len(sizes)))])
        start = end


def widths(table: Table, shown: Shown) -> list[int]:
    """Characters that each column needs."""
    return [
        max([len(column.name), *(len(shown(row[place], column)) for row in table.rows)])
        for place, column in enumerate(table.columns)
    ]


def _fewer_rows(table: Table) -> tuple[Table, tuple[str, ...]]:
    """At most MOST_ROWS rows: those that are not in order first, all in their places."""
    if len(table.rows) <= MOST_ROWS:
        return table, ()
    in_order = [row_status(row) in (None, "PASS", "NOT_SAMPLED", "UNAVAILABLE") for row in table.rows]
    ranked = sorted(range(len(table.rows)), key=lambda place: (in_order[place], place))
    keep, hidden = set(ranked[:MOST_ROWS]), ranked[MOST_ROWS:]
    bad = sum(not in_order[place] for place in hidden)
    what = f"{bad} of them not in order" if bad else "all in order"
    rows = tuple(row for place, row in enumerate(table.rows) if place in keep)
    return replace(table, rows=rows), (f"… {len(hidden)} more rows, {what}; `lanecheck report --format csv` has all",)


def _fewer_columns(table: Table, width: int, shown: Shown) -> tuple[Table, list[Column]]:
    """Drops the columns that give way first, until the table fits or no more may go."""
    dropped: list[Column] = []
    while _total(widths(table, shown)) > width:
        place = max(range(len(table.columns)), key=lambda i: (table.columns[i].drop, -i))
        if table.columns[place].drop == 0:
            break
        dropped.append(table.columns[place])
        table = _columns(table, [i for i in range(len(table.columns)) if i != place])
    return table, dropped


def _dropped(columns: Sequence[Column]) -> tuple[str, ...]:
    """How many sizes the page has no room for; other columns go silently, they only add to what is there."""
    sizes = [column.name for column in columns if column.name.endswith("B")]
    return (f"{len(sizes)} more sizes do not fit; `lanecheck report --format csv` has all",) if sizes else ()


def _shortened(table: Table, width: int, shown: Shown) -> Table:
    """Cuts the widest text column where the table still does not fit: long names."""
    sizes = widths(table, shown)
    over = _total(sizes) - width
    texts = [place for place, column in enumerate(table.columns) if column.kind == "text"]
    if over <= 0 or not texts:
        return table
    widest = max(texts, key=lambda place: sizes[place])
    room = max(_LEAST_TEXT, sizes[widest] - over)
    return replace(table, rows=tuple(_cut(row, widest, room) for row in table.rows))


def _cut(row: tuple[Cell, ...], place: int, room: int) -> tuple[Cell, ...]:
    text = style.shorten(style.clean(row[place].text), room)
    return (*row[:place], replace(row[place], text=text), *row[place + 1 :])


def _columns(table: Table, places: Sequence[int]) -> Table:
    """The table with these columns alone."""
    return replace(
        table,
        columns=tuple(table.columns[place] for place in places),
        rows=tuple(tuple(row[place] for place in places) for row in table.rows),
    )


def _total(sizes: Sequence[int]) -> int:
    return sum(sizes) + GAP * (len(sizes) - 1)
