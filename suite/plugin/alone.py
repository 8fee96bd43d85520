"""What is wrong with the machine itself is carried by no case: it fails the run, and is a test of its own in JUnit and
in pytest's counts."""

from __future__ import annotations

from typing import Any

import pytest

from suite.plugin import lists
from suite.plugin.state import State
from suite.records.run import Finding

_FILE = "machine"


def failing(state: State) -> list[Finding]:
    """Findings that make this run fail; none where nothing is judged here, as where a plan is written."""
    if state.session is None or state.write_plan is not None:
        return []
    from suite.judge import findings

    return findings.failing(state.session.findings(), state.strict)


def report(session: pytest.Session, state: State) -> None:
    """Hands each of them to pytest's reporters as a test that failed. The terminal's own only counts them: our summary
    says them, and its line of letters has ended."""
    plugins = session.config.pluginmanager
    terminal = plugins.getplugin("terminalreporter")
    quiet = [plugin for plugin in (terminal, plugins.getplugin("lanecheck-live")) if plugin is not None]
    tell = plugins.subset_hook_caller("pytest_runtest_logreport", remove_plugins=quiet)
    for finding in failing(state):
        failed = _report(finding, "call", outcome="failed", longrepr=_sentence(finding))
        lists.mark_alone(failed)
        tell(report=failed)
        tell(report=_report(finding, "teardown", outcome="passed", longrepr=None))
        if terminal is not None:
            terminal.stats.setdefault("failed", []).append(failed)


def _report(finding: Finding, when: Any, **given: Any) -> pytest.TestReport:
    name = f"{finding.cause}[{finding.subject}]"
    told = {"verdict": finding.status, "cause": finding.cause, "advice": finding.advice}
    properties = [(key, value) for key, value in told.items() if value is not None]
    return pytest.TestReport(
        f"{_FILE}::{name}", (_FILE, None, name), keywords={}, when=when, user_properties=properties, **given
    )


def _sentence(finding: Finding) -> str:
    return "\n".join(
        [
            f"{finding.subject}: {finding.cause.replace('_', ' ')}",
            f"  {finding.sentence}",
            *([f"  next: {finding.advice}"] if finding.advice else []),
        ]
    )
