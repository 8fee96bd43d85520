"""The pytest plugin: `pytest benchmarks/` measures this machine and judges it. Here are the hooks only."""

from __future__ import annotations

from collections.abc import Generator
from typing import Any

import pytest
from pytest_benchmark.session import PerformanceRegression

from suite import __version__
from suite.plugin import (
    alone,
    baseline,
    checks,
    closing,
    collect,
    compare,
    lists,
    live,
    options,
    saving,
    sentences,
    state,
    unmeasured,
    versions,
)
from suite.plugin.checks import Check

__all__ = ["Check"]


def pytest_addoption(parser: pytest.Parser) -> None:
    """Our options."""
    options.add(parser)
    baseline.add(parser)


@pytest.hookimpl(tryfirst=True)
def pytest_configure(config: pytest.Config) -> None:
    """Before pytest-benchmark's, which reads the options that are settled here."""
    config.addinivalue_line("markers", f"{collect.UNAVAILABLE}(reason): this cannot be measured on this machine")
    state.configure(config)


def pytest_sessionstart(session: pytest.Session) -> None:
    """What would be wrong after the whole run is said before it: no baseline, a GPU that is not there."""
    options.check_compare(session.config)
    if options.touches_benchmarks(session.config):
        session.config.stash[state.KEY].machine()


def pytest_report_header(config: pytest.Config) -> list[str] | None:
    """What is measured, and how thoroughly; what does not fit together."""
    known = config.stash[state.KEY]
    if not options.touches_benchmarks(config):
        return None
    machine = known.machine()
    described = sentences.machine(machine, simulated=known.simulated)
    return [
        f"lanecheck {__version__}: {described}; effort {known.settings.effort}",
        *(f"lanecheck: {sentence}" for sentence in versions.mismatches(machine)),
        *(f"lanecheck: {sentence}" for sentence in options.idle(known.settings, machine)),
    ]


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Axes from the machine."""
    if collect.FIXTURE in metafunc.fixturenames:
        collect.parametrize(metafunc, metafunc.config.stash[state.KEY])


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Before pytest-benchmark's and -k's: order and markers."""
    known = config.stash[state.KEY]
    if known.broken is not None:
        raise known.broken
    if any(collect.is_case(item) for item in items):
        collect.check_floors(config, items, known)
        collect.arrange(items, known.machine())
    for item in filter(collect.is_case, items):
        collect.mark(item, known.clock)


def pytest_collection_finish(session: pytest.Session) -> None:
    """The cases are known now."""
    known = session.config.stash[state.KEY]
    cases = [item for item in session.items if collect.is_case(item)]
    known.planned = len(cases)
    if cases and session.config.pluginmanager.hasplugin("terminalreporter"):
        session.config.pluginmanager.register(live.Live(session.config, known, cases), "lanecheck-live")


@pytest.fixture
def check(benchmark: Any, request: pytest.FixtureRequest) -> Check:
    """Measures and judges one case: `check("host_to_device", gpus=(gpu,), memory_node=node, bytes=size)`."""
    if hasattr(request.config, "workerinput"):
        pytest.fail("benchmarks cannot run under xdist, they would disturb each other: drop -n", pytrace=False)
    return Check(benchmark, request.node, request.config.stash[state.KEY])


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Outermost, since pytest-benchmark's own wrapper sets what is corrected here."""
    report = yield
    if collect.is_case(item):
        lists.mark(item, report, call)
        checks.excuse(item, getattr(item, "funcargs", {}).get("benchmark"), report)
    return report


@pytest.hookimpl(tryfirst=True)
def pytest_report_teststatus(report: pytest.TestReport) -> tuple[str, str, tuple[str, dict[str, bool]]] | None:
    """'w' and 'i' for cases that passed with a doubt."""
    return checks.progress(report)


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_sessionfinish(session: pytest.Session, exitstatus: int) -> Generator[None, None, None]:
    """Outermost: everything is on the disk before any other hook can fail."""
    known = session.config.stash[state.KEY]
    closing.close(known, exitstatus)
    alone.report(session, known)
    with saving.overheard(session.config):
        yield
    ended = closing.exit_status(known, exitstatus, len(getattr(session, "items", ())))
    session.exitstatus = unmeasured.status(session, known, ended)


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_terminal_summary(
    terminalreporter: pytest.TerminalReporter, exitstatus: int, config: pytest.Config
) -> Generator[None, None, None]:
    """Outermost: ours is the last that is read, whatever happens inside. Where something regressed pytest-benchmark has
    said so and raises: exit status 1, without a traceback of its own insides."""
    known = config.stash[state.KEY]
    known.lists = lists.Lists(terminalreporter, config)
    known.lists.for_blocks()
    try:
        yield
    except PerformanceRegression:
        known.regressed = True
    finally:
        known.lists.restore()
        closing.summarise(terminalreporter, config, known, exitstatus)
        saving.tell(terminalreporter, config)
        unmeasured.tell(terminalreporter, config, known, exitstatus)


@pytest.hookimpl(tryfirst=True, specname="pytest_terminal_summary")
def pytest_terminal_summary_between(config: pytest.Config) -> None:
    """After pytest's blocks and before its short summary."""
    found = config.stash[state.KEY].lists
    if found is not None:
        found.for_lines()


@pytest.hookimpl(optionalhook=True)
def pytest_benchmark_update_machine_info(config: pytest.Config, machine_info: dict[str, Any]) -> None:
    """Our facts beside pytest-benchmark's."""
    compare.update_machine_info(machine_info, config.stash[state.KEY])


@pytest.hookimpl(optionalhook=True, tryfirst=True)
def pytest_benchmark_compare_machine_info(
    config: pytest.Config, machine_info: dict[str, Any], compared_benchmark: dict[str, Any]
) -> None:
    """Our facts only."""
    compare.compare_machine_info(machine_info, compared_benchmark, config.stash[state.KEY])


@pytest.hookimpl(optionalhook=True, tryfirst=True)
def pytest_benchmark_group_stats(
    benchmarks: list[dict[str, Any]], group_by: str
) -> list[tuple[str | None, list[dict[str, Any]]]] | None:
    """Groups in the order of the run, sizes ascending."""
    return compare.groups(benchmarks, group_by)
