"""A run as Markdown (GitHub's dialect), for a report.md that can be pasted into an issue."""

from __future__ import annotations

import html
import re
from collections.abc import Sequence

from suite import units
from suite.records.run import Finding, Run
from suite.report import banner, grid, style
from suite.report.fit import fit
from suite.report.tables import groups, machine, words
from suite.report.tables.model import Cell, Column, Table

_WIDTH = 120
_MOST_CASES = 3
_SPECIAL = re.compile(r"([\\`*_\[\]|~])")
# '@name' and '#12' would mention people and issues, escaped or not; an empty comment inside stops that.
_MENTION = re.compile(r"([@#])(?=\w)(?<!&#)")


def render(run: Run, findings: Sequence[Finding], headline: str) -> str:
    """The report as Markdown: the answer, findings, machine, groups. Ends with a newline."""
    parts = [f"# {escape(banner.titled(run, headline))}"]
    parts += [f"> **{escape(line)}**" for line in banner.lines(run)]
    parts.append(escape(words.counts(run.results)))
    wrong = [_finding(finding) for finding in findings if finding.status != "PASS"]
    known = [_known(finding) for finding in findings if finding.status == "PASS"]
    parts += ["## Findings\n\n" + "\n".join(wrong)] if wrong else []
    parts += ["## Worth knowing\n\n" + "\n".join(known)] if known else []
    parts += table_parts(machine.machine(run.machine), "##")
    if "link" not in groups.names(run) and (links := machine.links(run)):
        parts += table_parts(links, "##")
    for name in groups.names(run):
        for table in groups.tables(run, name, brief=True):
            parts += table_parts(table, "##")
        parts += [escape(line) for line in groups.absent(run, name)]
    return "\n\n".join([*parts, _origin(run)]) + "\n"


def escape(text: str) -> str:
    """Text that means itself in Markdown, inside table cells too."""
    marked = _SPECIAL.sub(r"\\\1", html.escape(style.clean(text), quote=False))
    return _MENTION.sub(r"\1<!-- -->", marked)


def own(text: str) -> str:
    """A sentence of lanecheck's own, whose `code spans` stay such; all else in it means itself."""
    if text.count("`") % 2:
        return escape(text)
    parts = style.clean(text).split("`")
    return "".join(code(part) if place % 2 else _spaced(part) for place, part in enumerate(parts))


def _spaced(text: str) -> str:
    """Escaped text with the spaces at its ends."""
    inner = text.strip()
    before, _, after = text.partition(inner) if inner else (text, "", "")
    return before + escape(inner) + after


def code(text: str) -> str:
    """Text as a code span. A backtick cannot be written inside one of a single backtick: it becomes an apostrophe."""
    return "`" + style.clean(text).replace("`", "'").replace("|", "\\|") + "`"


def _finding(finding: Finding) -> str:
    lines = [f"- **{style.marked(finding.status, finding.status)}** {escape(finding.sentence)}"]
    if finding.advice:
        lines.append(f"  → {own(finding.advice)}")
    if finding.cases:
        more = f" and {len(finding.cases) - _MOST_CASES} more" if len(finding.cases) > _MOST_CASES else ""
        lines.append(f"  Seen in {', '.join(code(case) for case in finding.cases[:_MOST_CASES])}{more}.")
    return "  \n".join(lines)


def _known(finding: Finding) -> str:
    parts = [escape(finding.sentence), *([own(finding.advice)] if finding.advice else [])]
    return f"- {' '.join(parts)}"


def table_parts(table: Table, level: str) -> list[str]:
    """A table's heading, itself and its notes. level: '##'."""
    fitted = fit(_without_bars(table), _WIDTH, grid.plain)
    parts = [f"{level} {escape(table.title)}"]
    if fitted.rows:
        head = _row([escape(column.name) or " " for column in fitted.columns])
        rule = _row(["--:" if column.kind == "number" else ":--" for column in fitted.columns])
        body = [_row([_cell(c, column) for c, column in zip(row, fitted.columns, strict=True)]) for row in fitted.rows]
        parts.append("\n".join([head, rule, *body]))
    return [*parts, *(own(note) for note in fitted.notes)]


def _without_bars(table: Table) -> Table:
    keep = [place for place, column in enumerate(table.columns) if column.kind != "bar"]
    columns = tuple(table.columns[place] for place in keep)
    rows = tuple(tuple(row[place] for place in keep) for row in table.rows)
    return Table(table.title, columns, rows, table.notes)


def _cell(cell: Cell, column: Column) -> str:
    return escape(grid.plain(cell, column))


def _row(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _origin(run: Run) -> str:
    """Where the numbers come from: version, time, settings."""
    sizes = ", ".join(map(units.format_bytes, run.settings.sizes or ())) or "default sizes"
    said = [f"lanecheck {run.lanecheck or '(unknown version)'}", run.started, f"{run.settings.effort}, {sizes}"]
    return "---\n\n" + escape("; ".join(part for part in said if part))
