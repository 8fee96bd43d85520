"""A run for the terminal: the answer, the findings, then tables that fit the width."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from suite.records.run import Finding, Result, Run, Status
from suite.report import banner, grid, style
from suite.report.tables import groups, machine, words
from suite.report.tables.model import worst

WIDTH = 100
_MOST_CASES = 3
_MOST_TROUBLES = 5
_MARKS = "✓ PASS, ! WARN, ✗ FAIL, ? INDETERMINATE (cannot be told)."
_PERCENT = (
    "% is of the ceiling of the path with its links as they ran under load, a bar of what it could be if every link "
    "ran at what both its ends can do; ~ marks a ceiling that is soft or rests on an assumed payload size."
)


def summary(
    run: Run,
    findings: Sequence[Finding],
    headline: str,
    *,
    width: int = WIDTH,
    colour: bool = False,
    without: Collection[str] = (),
) -> str:
    """The whole report. The first line answers: is this machine right? Ends with a newline.

    without: groups whose tables are left out, since they were shown before.
    """
    lines = _head(run, findings, headline, width, colour)
    for finding in (f for f in findings if f.status != "PASS"):
        lines += ["", *_finding(finding, width, colour)]
    lines += _known([f for f in findings if f.status == "PASS"], width, colour)
    lines += ["", *_machine(run, width, colour)]
    if "link" not in groups.names(run):
        lines += _links(run, width, colour)
    for name in groups.names(run):
        if name not in without:
            lines += ["", *_group(run, name, width, colour)]
    lines += ["", *style.wrapped(legend(run), width)]
    return "\n".join(lines) + "\n"


def legend(run: Run) -> str:
    """What the marks mean; what percents and bars mean only where a table has them."""
    tables = [table for name in groups.names(run) for table in groups.tables(run, name, brief=True)]
    shown = {column.name for table in tables for column in table.columns}
    return f"{_MARKS} {_PERCENT}" if "%" in shown else _MARKS


def answer(run: Run, findings: Sequence[Finding], headline: str, *, width: int = WIDTH, colour: bool = False) -> str:
    """The summary's first lines alone: is this machine right? Without a newline at its end."""
    return "\n".join(_answer(run, findings, headline, width, colour))


def group(run: Run, name: str, *, width: int = WIDTH, colour: bool = False) -> str:
    """The tables of one group and what went wrong in it, to be shown as it ends. Ends with a newline."""
    lines = ["SIMULATED"] if run.simulated else []
    lines += _group(run, name, width, colour)
    found = _alike(groups.troubles(groups.members(run, name)))
    for alike in found[:_MOST_TROUBLES]:
        lines += _trouble(alike, width, colour)
    if len(found) > _MOST_TROUBLES:
        lines.append(f"… {sum(map(len, found[_MOST_TROUBLES:]))} more")
    return "\n".join(lines) + "\n"


def _head(run: Run, findings: Sequence[Finding], headline: str, width: int, colour: bool) -> list[str]:
    lines = _answer(run, findings, headline, width, colour)
    for said in banner.lines(run):
        lines += [style.strong(line, colour) for line in style.wrapped(said, width, rest="  ")]
    return [*lines, words.counts(run.results)]


def _answer(run: Run, findings: Sequence[Finding], headline: str, width: int, colour: bool) -> list[str]:
    top = worst([*(f.status for f in findings), *(words.status(r) for r in run.results)])
    first = style.wrapped(banner.titled(run, headline), width)
    return [style.strong(style.paint(line, top, colour), colour) for line in first]


def _finding(finding: Finding, width: int, colour: bool) -> list[str]:
    label = style.marked(finding.status, finding.status)
    lines = style.wrapped(f"{label}  {_subject(finding)}", width, rest="  ")
    lines[0] = lines[0].replace(label, style.paint(label, finding.status, colour), 1)
    if finding.advice:
        lines += style.wrapped(finding.advice, width, first="  → ", rest="    ")
    return lines + _cases(finding.cases, width)


def _known(findings: Sequence[Finding], width: int, colour: bool) -> list[str]:
    """What is in order and worth a sentence all the same; its cases need no looking up."""
    said = [" ".join(part for part in (_subject(f), f.advice) if part) for f in findings]
    lines = [line for text in said for line in style.wrapped(text, width, first="· ", rest="  ")]
    return ["", style.strong("Worth knowing", colour), *lines] if lines else []


def _subject(finding: Finding) -> str:
    """The sentence, with its subject before it where the sentence does not begin with one of its own."""
    own = finding.sentence.startswith(("GPU", "node ", "Node ", "the host"))
    if own or not finding.subject or finding.subject.lower() in finding.sentence.lower():
        return finding.sentence
    return f"{finding.subject}: {finding.sentence}"


def _cases(cases: Sequence[str], width: int) -> list[str]:
    if not cases:
        return []
    more = f" and {len(cases) - _MOST_CASES} more" if len(cases) > _MOST_CASES else ""
    return style.wrapped(f"seen in {', '.join(cases[:_MOST_CASES])}{more}", width, first="  ", rest="    ")


def _machine(run: Run, width: int, colour: bool) -> list[str]:
    """Names and values; a long value (why there is no GPU) goes on in the next line."""
    table = machine.machine(run.machine)
    lines = [style.strong(table.title, colour)]
    room = max([len(name.text) for name, _ in table.rows], default=0) + 2
    for name, value in table.rows:
        lines += style.wrapped(value.text, width, first=name.text.ljust(room), rest=" " * room)
    for note in table.notes:
        lines += style.wrapped(note, width, first="  ", rest="  ")
    return lines


def _links(run: Run, width: int, colour: bool) -> list[str]:
    found = machine.links(run)
    return ["", *grid.lines(found, width, colour)] if found else []


def _group(run: Run, name: str, width: int, colour: bool) -> list[str]:
    lines: list[str] = []
    for table in groups.tables(run, name, brief=True):
        lines += [*([""] if lines else []), *grid.lines(table, width, colour)]
    for absent in groups.absent(run, name):
        lines += style.wrapped(absent, width, rest="  ")
    return lines


def _alike(results: Sequence[Result]) -> list[list[Result]]:
    """Results of which the same is said, together: one slow link makes many."""
    found: dict[tuple[Status | None, str], list[Result]] = {}
    for result in results:
        found.setdefault((words.status(result), words.sentence(result)), []).append(result)
    return list(found.values())


def _trouble(alike: Sequence[Result], width: int, colour: bool) -> list[str]:
    status = words.status(alike[0]) or "FAIL"
    mark = words.MARKS[status]
    more = f" and {len(alike) - 1} more" if len(alike) > 1 else ""
    lines = style.wrapped(f"{mark} {alike[0].case}{more}: {words.sentence(alike[0])}", width, rest="  ")
    lines[0] = style.paint(mark, status, colour) + lines[0][len(mark) :]
    return lines
