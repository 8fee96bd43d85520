"""A run as one HTML file that needs nothing else: no network, no script but its own."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Sequence
from importlib import resources
from math import isfinite

import jinja2
from markupsafe import Markup

from suite.records.comparison import Comparison
from suite.records.run import Finding, Result, Run
from suite.report import banner, style
from suite.report.html import changes, curves, machine, narrow
from suite.report.merge import healthy_rows
from suite.report.tables import groups, raw, words
from suite.report.tables import machine as machine_tables
from suite.report.tables.model import Cell, Column, Table, all_notes, without_empty, worst
from suite.report.tables.words import MARKS

_SHADES = 9
_LEAST_OF = 4  # columns that give way first on a narrow page, by Column.drop


def render(run: Run, findings: Sequence[Finding], headline: str, comparison: Comparison | None = None) -> str:
    """The page. comparison: with the baseline that was given. Needs jinja2 (imported with this module only)."""
    css, script = _own("page.css"), _own("page.js")
    return _template().render(
        run=run,
        headline=banner.bare(headline),
        title=banner.titled(run, headline),
        banner=banner.warnings(run),
        status=worst([*(f.status for f in findings), *(words.status(r) for r in run.results)]),
        wrong=[finding for finding in findings if finding.status != "PASS"],
        known=[finding for finding in findings if finding.status == "PASS"],
        compared=changes.section(comparison) if comparison else None,
        counts=_counts(run.results),
        pictures=[picture for picture in (machine.draw(run), narrow.draw(run)) if picture],
        facts=machine_tables.machine(run.machine),
        sections=_sections(run),
        charts=curves.charts(run),
        raw=without_empty(raw.table(run)),
        css=Markup(css),
        script=Markup(script),
        policy=_policy(css, script),
    )


def _template() -> jinja2.Template:
    environment = jinja2.Environment(
        autoescape=True, trim_blocks=True, lstrip_blocks=True, undefined=jinja2.StrictUndefined
    )
    environment.filters |= {
        "clean": style.clean,
        "mark": MARKS.get,
        "kind": _kind,
        "shades": _shades,
        "ident": id,
        "notes": all_notes,
        "less": _less,
    }
    return environment.from_string(_own("page.html.j2"))


def _own(name: str) -> str:
    return (resources.files("suite.report.html") / name).read_text("utf-8")


def _policy(css: str, script: str) -> str:
    """The content security policy: nothing may be fetched, and only this style and this script count."""
    rules = ("default-src 'none'", f"style-src {_digest(css)}", f"script-src {_digest(script)}", "base-uri 'none'")
    return "; ".join([*rules, "form-action 'none'"])


def _digest(text: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"


def _counts(results: Sequence[Result]) -> list[tuple[str, int]]:
    found = [words.status(result) for result in results]
    return [(status, found.count(status)) for status in MARKS if status in found]


def _sections(run: Run) -> list[tuple[str, list[Table], list[str]]]:
    """Every group's title, tables and lines on what was not measured. Links come first, measured or not."""
    names = groups.names(run)
    made = [(groups.title(name), _tables(run, name), groups.absent(run, name)) for name in names]
    links = machine_tables.links(run)
    if "link" not in names and links:
        made.insert(0, ("Links", [links], []))
    return made


def _tables(run: Run, name: str) -> list[Table]:
    """A group's tables. Equal healthy paths share a row, as everywhere: each by itself stands under All results."""
    return [healthy_rows(table) for table in groups.tables(run, name, brief=False)]


def _kind(table: Table, place: int) -> str:
    return table.columns[place].kind


def _less(column: Column) -> bool:
    """Whether a column gives way on a narrow page: it only adds to what the others say."""
    return column.drop >= _LEAST_OF or column.kind == "bar"


def _shades(table: Table) -> dict[int, int]:
    """Where cells compare: a shade from 0 (nothing) to 9 (most) for each measured cell, by the cell's id(). The
    diagonal is no link, and would leave all others pale."""
    if not table.heat:
        return {}
    cells = [
        cell
        for row in table.rows
        for cell, column in zip(row, table.columns, strict=True)
        if cell.status is not None and cell.sort is not None and column.name != row[0].text
    ]
    most = max((cell.sort or 0.0 for cell in cells), default=0.0)
    return {id(cell): _shade(cell, most) for cell in cells}


def _shade(cell: Cell, most: float) -> int:
    """0 too where a clock gave what is no number: the page is made all the same."""
    share = (cell.sort or 0.0) / most if most else 0.0
    return round(_SHADES * share) if isfinite(share) else 0
