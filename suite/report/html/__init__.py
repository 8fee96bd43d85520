"""A run as one HTML file that needs nothing else: no network, no script but its own."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Sequence
from importlib import resources

import jinja2
from markupsafe import Markup

from suite.records.run import Finding, Result, Run
from suite.report import banner, style
from suite.report.html import curves, machine
from suite.report.tables import groups, raw, words
from suite.report.tables import machine as machine_tables
from suite.report.tables.model import Cell, Table, all_notes, worst
from suite.report.tables.words import MARKS

_SHADES = 9


def render(run: Run, findings: Sequence[Finding], headline: str) -> str:
    """The page. Needs jinja2 (imported with this module only)."""
    css, script = _own("page.css"), _own("page.js")
    return _template().render(
        run=run,
        headline=headline,
        title=banner.titled(run, headline),
        banner=banner.lines(run),
        status=worst([*(f.status for f in findings), *(words.status(r) for r in run.results)]),
        findings=findings,
        counts=_counts(run.results),
        picture=machine.draw(run),
        facts=machine_tables.machine(run.machine),
        sections=_sections(run),
        charts=curves.charts(run),
        raw=raw.table(run),
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
    made = [(groups.title(name), groups.tables(run, name, brief=False), groups.absent(run, name)) for name in names]
    links = machine_tables.links(run)
    if "link" not in names and links:
        made.insert(0, ("Links", [links], []))
    return made


def _kind(table: Table, place: int) -> str:
    return table.columns[place].kind


def _shades(table: Table) -> dict[int, int]:
    """Where cells compare: a shade from 0 (least) to 9 (most) for each measured cell, by the cell's id()."""
    if not table.heat:
        return {}
    cells = [cell for row in table.rows for cell in row if cell.status is not None and cell.sort is not None]
    most = max((cell.sort or 0.0 for cell in cells), default=0.0)
    return {id(cell): _shade(cell, most) for cell in cells}


def _shade(cell: Cell, most: float) -> int:
    return round(_SHADES * (cell.sort or 0.0) / most) if most else 0
