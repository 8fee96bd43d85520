"""A comparison as text and as Markdown: what changed in the machine first, then what changed in the numbers."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import median

from suite.records.comparison import Call, Change, Comparison
from suite.records.run import Status
from suite.report import compare_words as words
from suite.report import grid, markdown, style
from suite.report.tables.model import Cell, Column, Table

WIDTH = 100
_ROWS = 25
_REASONS = 3
_STATUS: dict[Call, Status] = {"worse": "FAIL", "better": "PASS", "inconclusive": "INDETERMINATE", "same": "PASS"}
_HOW = (
    "The unit is a run: its value is the median of its rounds. change: the median of all pairwise ratios "
    "(Hodges–Lehmann) with its exact 95 % interval; tail: the same of the slowest tenth of the rounds. "
    "docs/comparing.md"
)


def render(comparison: Comparison, *, width: int = WIDTH, colour: bool = False) -> str:
    """For the terminal. Ends with a newline."""
    lines = [
        style.strong(style.paint(line, _STATUS[comparison.call], colour), colour)
        for line in style.wrapped(words.headline(comparison), width)
    ]
    for text in _head(comparison):
        lines += style.wrapped(text, width, rest="  ")
    for title, items in _sections(comparison, most=20):
        lines += ["", style.strong(title, colour)]
        lines += [line for item in items for line in style.wrapped(item, width, first="  ", rest="    ")]
    for table in tables(comparison):
        lines += ["", *grid.lines(table, width, colour)]
    lines += ["", *(line for text in _foot(comparison) for line in style.wrapped(text, width))]
    return "\n".join(lines) + "\n"


def render_markdown(comparison: Comparison) -> str:
    """As Markdown, with every case that was not compared. Ends with a newline."""
    parts = [f"# {markdown.escape(words.headline(comparison))}"]
    parts.append("\n".join(f"- {markdown.escape(text)}" for text in _head(comparison)))
    for title, items in _sections(comparison, most=None):
        parts += [f"## {title}", "\n".join(f"- {markdown.escape(item)}" for item in items)]
    for table in tables(comparison):
        parts += markdown.table_parts(table, "##")
    return "\n\n".join([*parts, *(markdown.escape(text) for text in _foot(comparison))]) + "\n"


def tables(comparison: Comparison) -> list[Table]:
    """Cases that changed, or might have; then all cases by group."""
    changes = [*words.called(comparison.changes), *words.doubtful(comparison.changes)]
    changes.sort(key=lambda c: (("worse", "better", "inconclusive", "same").index(c.call), -words.size(c)))
    return [*([_changed(changes)] if changes else []), *([_groups(comparison.changes)] if comparison.changes else [])]


def _head(comparison: Comparison) -> list[str]:
    forced = [f"FORCED: {reason}." for reason in comparison.forced]
    return [*forced, *(words.side(side) for side in (comparison.before, comparison.after))]


def _sections(comparison: Comparison, most: int | None) -> list[tuple[str, list[str]]]:
    """Titles with their sentences; sections without any are left out."""
    machine = [str(difference) for difference in comparison.machine] or ["nothing that was looked at"]
    numbers = [*words.sentences(comparison), *words.missing(comparison.missing, most)]
    notes = [*(f"{sentence}." for sentence in comparison.busy), *comparison.notes]
    found = [("What changed in the machine", machine), ("What changed in the numbers", numbers), ("Notes", notes)]
    return [(title, items) for title, items in found if items]


def _foot(comparison: Comparison) -> list[str]:
    confirm = words.confirm(comparison)
    return [*([confirm] if confirm else []), _HOW]


def _changed(changes: Sequence[Change]) -> Table:
    columns = (
        Column("case"),
        Column("before", "number"),
        Column("after", "number"),
        Column("change", "number"),
        Column("tail", "number", drop=1),
        Column("95 % interval", "number", drop=2),
        Column("gate", "number", drop=3),
        Column("runs", "number", drop=4),
        Column("", "verdict"),
    )
    left = len(changes) - _ROWS
    more = (f"… {left} more; --json has all",) if left > 0 else ()
    reasons = [f"{c.case}: {c.why}" for c in words.doubtful(changes)][:_REASONS]
    rows = tuple(_row(change) for change in changes[:_ROWS])
    return Table("Cases that changed, or might have", columns, rows, notes=(*more, *reasons))


def _row(change: Change) -> tuple[Cell, ...]:
    gate = f"{change.gate * 100:.1f} %" if change.gate is not None else "–"
    tails = change.tail_after / change.tail_before if change.tail_after and change.tail_before else None
    return (
        Cell(change.case),
        Cell(words.value(change, change.before)),
        Cell(words.value(change, change.after)),
        Cell(words.ratio(change.ratio), sort=change.ratio),
        Cell(words.ratio(tails), sort=tails),
        Cell(words.interval(change)),
        Cell(gate),
        Cell(f"{change.runs_before}/{change.runs_after}"),
        Cell(words.CALLS[change.call], status=_STATUS[change.call]),
    )


def _groups(changes: Sequence[Change]) -> Table:
    """Gains by group: above 1 is better, whatever the quantity."""
    columns = (
        Column("group"),
        *(Column(name, "number") for name in ("cases", "worse", "better", "inconclusive", "no change")),
        Column("gain", "number"),
        Column("least", "number", drop=1),
        Column("most", "number", drop=1),
    )
    groups: dict[str, list[Change]] = {}
    for change in changes:
        groups.setdefault(change.case.partition("/")[0], []).append(change)
    rows = tuple(_group_row(name, members) for name, members in groups.items())
    return Table("All compared cases", columns, rows, notes=("gain: the median over cases; above 0 is better",))


def _group_row(name: str, members: Sequence[Change]) -> tuple[Cell, ...]:
    calls = [change.call for change in members]
    gains = sorted(change.gain for change in members if change.gain is not None)
    spread = (median(gains), gains[0], gains[-1]) if gains else (None, None, None)
    counts = (calls.count(call) for call in ("worse", "better", "inconclusive", "same"))
    return (
        Cell(name),
        Cell(str(len(members))),
        *(Cell(str(count) if count else "") for count in counts),
        *(Cell(words.ratio(number)) for number in spread),
    )
