"""The end of a run: files closed whatever happened, exit status, and the summary on the terminal."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from suite.errors import SuiteError
from suite.plugin import alone, compare, floors, versions
from suite.plugin.state import State

if TYPE_CHECKING:
    from suite.session import Session

SCREEN = 30  # lines that a terminal shows
WHOLE = (pytest.ExitCode.OK, pytest.ExitCode.TESTS_FAILED)


def close(state: State, exitstatus: int) -> None:
    """Ends the workers and closes the files. A file that cannot be written is a note, not the end of pytest."""
    if state.session is None:
        return
    try:
        with state.signals.undisturbed():
            run = state.session.close(complete(state.session, exitstatus))
            state.notes += state.baselines.end(run)
    except SuiteError as error:
        state.notes.append(f"{error}.")


def complete(session: Session, exitstatus: int) -> bool:
    """Every planned case ended, and pytest was not interrupted."""
    return exitstatus in WHOLE and len(session.results) == session.planned


def exit_status(state: State, exitstatus: int, collected: int) -> int:
    """pytest's own, but 1 for a regression against a baseline or where the machine itself is wrong, and 5 (nothing
    collected) where there were only benchmarks and none of them could be measured, or compared with the baseline."""
    if exitstatus != pytest.ExitCode.OK:
        return exitstatus
    if state.regressed or alone.failing(state):
        return int(pytest.ExitCode.TESTS_FAILED)
    if state.baselines.nothing_compared:
        return int(pytest.ExitCode.NO_TESTS_COLLECTED)
    only_ours = state.planned == collected
    planned = state.write_plan is not None and state.write_plan.exists()
    if state.session is None or not only_ours or planned or any(r.samples_s for r in state.session.results):
        return exitstatus
    return int(pytest.ExitCode.NO_TESTS_COLLECTED)


def summarise(reporter: pytest.TerminalReporter, config: pytest.Config, state: State, exitstatus: int) -> None:
    """Our last section: the answer, findings, the tables that were not written while it ran, notes, and where the
    report is. Where that is long the answer is said again at its end, which is what a terminal still shows."""
    if state.session is None:
        return
    from suite.judge import findings
    from suite.report import text

    run = state.session.run(complete(state.session, exitstatus))
    found = state.session.findings()
    headline = findings.headline(run, found)
    writer = config.get_terminal_writer()
    reporter.section("lanecheck")
    if config.get_verbosity() < -1:
        reporter.write_line(headline)
    else:
        width, colour = writer.fullwidth, writer.hasmarkup
        shown = text.summary(run, found, headline, width=width, colour=colour, without=state.shown).rstrip("\n")
        reporter.write_line(shown)
        if shown.count("\n") > SCREEN:
            reporter.write_line("\n" + text.answer(run, found, headline, width=width, colour=colour))
    for note in notes(config, state):
        reporter.write_line(note)
    reporter.write_line(f"report: {state.session.folder / 'report.md'}")


def notes(config: pytest.Config, state: State) -> list[str]:
    """Sentences beside the verdicts: versions that do not fit, and what a comparison does not cover."""
    benchmarks = config.pluginmanager.getplugin("pytest-benchmark")
    uncovered = compare.missing(benchmarks) if benchmarks is not None else []
    return [
        *_besides(state),
        *versions.mismatches(state.machine()),
        *state.notes,
        *uncovered,
        *_unmet(state),
        *_left_out(state),
    ]


def _besides(state: State) -> list[str]:
    """Cases of the run that are no test of it, so that its count is not pytest's."""
    count = state.session.planned - state.planned if state.session else 0
    if count < 1:
        return []
    return [f"{count} link case{'s' if count > 1 else ''} ran besides, to know what the links carry under load"]


def _unmet(state: State) -> list[str]:
    """Floors that were compared with nothing: a misspelt one must not look as if it were kept."""
    cases = [result.case for result in state.session.results] if state.session else []
    return [
        f"the manifest's floor of {name} fits no case of this run"
        for name in floors.unmet(state.expected.floors, cases)
    ]


def _left_out(state: State) -> list[str]:
    count = state.lists.left_out if state.lists else 0
    if not count:
        return []
    cases, them = (
        ("1 case fails by its verdict", "it") if count == 1 else (f"{count} cases fail by their verdict", "them")
    )
    return [f"{cases}: -rf lists {them}, -v says the evidence and the next step of each"]
