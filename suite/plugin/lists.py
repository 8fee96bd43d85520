"""pytest's own lists of failures: a verdict is none of the code's, and one slow link can be a hundred of them.

One cause said a hundred times buries the answer, so that verdicts are left out of the FAILURES blocks (back with -v or
--tb=STYLE) and of the short summary (back with -v or -rf). Errors of the code stay in both. The counts stay whole.
"""

from __future__ import annotations

from typing import Any, NoReturn

import pytest

DEFAULT_REPORT = "fE"  # pytest's -r where none is given
_MARK = "lanecheck_verdict"
_ALONE = "of the machine"
_BY_VERDICT = pytest.StashKey[bool]()


def fail(item: pytest.Item, sentence: str) -> NoReturn:
    """Fails a case by its verdict."""
    item.stash[_BY_VERDICT] = True
    pytest.fail(sentence, pytrace=False)


def mark(item: pytest.Item, report: pytest.TestReport, call: pytest.CallInfo[None]) -> None:
    """Remembers in the report whether it was the verdict that failed the case, and not what came after it."""
    failed = call.when == "call" and call.excinfo is not None and call.excinfo.errisinstance(pytest.fail.Exception)
    setattr(report, _MARK, failed and item.stash.get(_BY_VERDICT, False))


def mark_alone(report: pytest.TestReport) -> None:
    """Marks what is wrong with the machine itself, which is no case."""
    setattr(report, _MARK, _ALONE)


class Lists:
    """The failures that a terminal reporter would list, with and without the verdicts."""

    def __init__(self, reporter: pytest.TerminalReporter, config: pytest.Config) -> None:
        self._stats = reporter.stats
        self._all = list(reporter.stats.get("failed", ()))
        self._others = [report for report in self._all if not getattr(report, _MARK, False)]
        self._verbose = config.get_verbosity() > 0
        self._style = config.option.tbstyle
        self._blocks = self._verbose or self._style not in ("auto", "no")
        self._whole: list[tuple[pytest.TestReport, Any]] = []
        self._lines = self._verbose or config.option.reportchars != DEFAULT_REPORT

    @property
    def left_out(self) -> int:
        """How many verdicts of cases the short summary does not name."""
        return 0 if self._lines else sum(1 for report in self._all if getattr(report, _MARK, False) is True)

    def for_blocks(self) -> None:
        """Before pytest writes its FAILURES blocks."""
        self._set(self._all if self._blocks else self._others)
        if self._blocks and self._style != "line":
            self._whole = _shorten([report for report in self._all if getattr(report, _MARK, False)])

    def for_lines(self) -> None:
        """Before pytest writes its short summary, which reads more of a report than its text."""
        self._restore_texts()
        self._set(self._all if self._lines else self._others)

    def restore(self) -> None:
        """Before pytest counts."""
        self._restore_texts()
        self._set(self._all)

    def _restore_texts(self) -> None:
        for report, text in self._whole:
            report.longrepr = text
        self._whole = []

    def _set(self, reports: list[pytest.TestReport]) -> None:
        """An empty list would still make pytest's last line red."""
        self._stats["failed"] = reports
        if not reports:
            del self._stats["failed"]


def _shorten(reports: list[pytest.TestReport]) -> list[tuple[pytest.TestReport, Any]]:
    """After the first of a root cause the others say what is their own, and name that one. The reports that were
    changed, with what was in them."""
    first: dict[tuple[str, ...], tuple[str, set[str]]] = {}
    whole = []
    for report in reports:
        lines = str(report.longrepr).rstrip().split("\n")
        name, told = first.setdefault(_cause(lines), (report.head_line or report.nodeid, set(lines)))
        if name == (report.head_line or report.nodeid):
            continue
        whole.append((report, report.longrepr))
        own = [line for line in lines[1:] if line not in told]
        report.longrepr = "\n".join([lines[0], *own, f"  same cause as {name}"])
    return whole


def _cause(lines: list[str]) -> tuple[str, ...]:
    """Equal for cases of one root cause: what it is called, the first evidence, the next step. Without evidence every
    case is its own."""
    if len(lines) < 3:
        return tuple(lines)
    return (lines[0].rpartition(": ")[2], lines[1], lines[-1])
