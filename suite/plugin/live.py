"""What is seen while it runs: on a terminal a line that says how far it is, in logs each group's table as it ends."""

from __future__ import annotations

import os
import time
from collections import Counter
from collections.abc import Generator, Sequence
from statistics import median_low

import pytest

from suite.plugin import collect, sentences
from suite.plugin.state import State

ENOUGH = 2  # cases to expect others from
LEAST_ROOM = 16  # columns: enough for '  123 of 456'


class Live:
    """Registered for runs that have cases of ours and a terminal reporter. cases: in the order in which they run."""

    def __init__(self, config: pytest.Config, state: State, cases: Sequence[pytest.Item]) -> None:
        self._reporter = config.pluginmanager.getplugin("terminalreporter")
        self._writer = config.get_terminal_writer()
        self._quiet = config.get_verbosity() < 0
        self._terminal = bool(self._reporter.isatty) and os.environ.get("TERM") != "dumb"
        # A terminal with -v has a line a case already.
        self._line = self._terminal and config.get_verbosity() == 0
        self._state = state
        self._last: str | None = None
        self._pace = Pace([collect.group_of(item) for item in cases])
        self._names = {item.nodeid: collect.case_of(item) for item in cases}

    @pytest.hookimpl(trylast=True)
    def pytest_runtest_logstart(self, nodeid: str) -> None:
        """After the reporter has begun its own line."""
        if self._line and nodeid in self._names:
            self._draw(f"{self._pace.ended + 1} of {self._pace.total}{self._pace.left()}: {self._names[nodeid]}")

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Before the reporter writes its letter, which may end the line. A set-up that passed has no letter: the line
        stays while the case is measured."""
        if self._line and (report.when != "setup" or not report.passed):
            self._draw("")

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item, nextitem: pytest.Item | None) -> Generator[None, bool, bool]:
        """Times a case, and shows a group's table after its last one."""
        if item.nodeid not in self._names:
            return (yield)
        started = time.monotonic()
        try:
            return (yield)
        finally:
            group = collect.group_of(item)
            self._pace.end(group, time.monotonic() - started)
            ended = nextitem is not None and collect.group_of(nextitem) != group
            self._last = group
            if ended:
                self._table(group)

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtestloop(self) -> Generator[None, object, object]:
        """Outermost: the last group's table comes after the reporter's last percentage."""
        result = yield
        if self._last is not None:
            self._table(self._last)
        return result

    def _draw(self, text: str) -> None:
        """Writes behind the reporter's letters and puts the cursor back (DEC save and restore cursor, erase line)."""
        room = self._writer.fullwidth - self._writer.width_of_current_line - 1
        shown = f"  {text}"[:room] if text and room >= LEAST_ROOM else ""
        # Not through write(): it would count these letters as the reporter's own.
        self._writer._file.write(f"\x1b7\x1b[K{shown}\x1b8")
        self._writer.flush()

    def _table(self, group: str) -> None:
        from suite.report import text

        if self._state.session is None or self._quiet or self._terminal:
            return
        self._reporter.ensure_newline()
        shown = text.group(
            self._state.session.run(), group, width=self._writer.fullwidth, colour=self._writer.hasmarkup
        ).rstrip("\n")
        self._reporter.write_line(shown)
        self._state.shown.add(group)


class Pace:
    """Expects the cases that are left to take as long as those of their group did, or else as all did.

    Medians, the lower of two: a group's first case starts the worker pool for all others.
    """

    def __init__(self, groups: Sequence[str]) -> None:
        self.total = len(groups)
        self.ended = 0
        self._left = Counter(groups)
        self._took: dict[str, list[float]] = {}

    def end(self, group: str, seconds: float) -> None:
        """A case of a group ended after so many seconds."""
        self.ended += 1
        self._left[group] -= 1
        self._took.setdefault(group, []).append(seconds)

    def seconds_left(self) -> float | None:
        """None before two cases ended."""
        if self.ended < ENOUGH:
            return None
        overall = median_low(seconds for took in self._took.values() for seconds in took)
        return sum(count * self._usual(group, overall) for group, count in self._left.items())

    def left(self) -> str:
        """The expected time as text to append; empty where nothing is known."""
        seconds = self.seconds_left()
        return "" if seconds is None else f", {sentences.time_left(seconds)}"

    def _usual(self, group: str, overall: float) -> float:
        took = self._took.get(group, [])
        return median_low(took) if len(took) >= ENOUGH else overall
