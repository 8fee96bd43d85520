"""Runs that were asked for benchmarks and measured none: they must not look like a measurement that went well."""

from __future__ import annotations

import pytest

from suite.plugin.options import touches_benchmarks
from suite.plugin.state import State


def status(session: pytest.Session, state: State, exitstatus: int) -> int:
    """pytest's exit status, but 5 (nothing collected) where all tests were benchmarks that something skipped, as
    --benchmark-skip does, and they were not only to be listed."""
    collected = len(getattr(session, "items", ()))
    skipped = state.session is None and collected and state.planned == collected
    if exitstatus == pytest.ExitCode.OK and skipped and not session.config.option.collectonly:
        return int(pytest.ExitCode.NO_TESTS_COLLECTED)
    return exitstatus


def tell(reporter: pytest.TerminalReporter, config: pytest.Config, state: State, exitstatus: int) -> None:
    """One line where benchmarks were asked for and none ran: a green last line must not pass for a measurement."""
    ended = exitstatus in (pytest.ExitCode.OK, pytest.ExitCode.NO_TESTS_COLLECTED)
    ran = any(reporter.stats.get(name) for name in ("passed", "failed", "error", "xfailed", "xpassed"))
    if state.session is not None or not ended or ran or config.option.collectonly or not touches_benchmarks(config):
        return
    deselected = len(reporter.stats.get("deselected", ()))
    if config.getoption("benchmark_skip", False):
        why = "--benchmark-skip skips every case"
    elif deselected:
        why = f"no case is left of {deselected}, see -k, -m and --deselect; --collect-only -q lists their names"
    else:
        why = "no case ran"
    reporter.write_line(f"lanecheck: nothing was measured: {why}", yellow=True)
