"""What the plugin knows during one run of pytest. The machine and the session come at first need."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from suite.errors import SuiteError
from suite.plan.peers import Representatives
from suite.plugin import baseline, options
from suite.plugin.baseline import Baselines
from suite.plugin.floors import Function
from suite.plugin.lists import Lists
from suite.plugin.replay import Clock
from suite.plugin.signals import Signals
from suite.records.expect import NOTHING, Expectations
from suite.records.machine import Machine
from suite.records.run import Settings
from suite.records.scenario import Scenario

if TYPE_CHECKING:
    from suite.measure.engine import Engine
    from suite.session import Session

EXIT_USAGE = int(pytest.ExitCode.USAGE_ERROR)
EXIT_FAILED = int(pytest.ExitCode.TESTS_FAILED)


@dataclass
class State:
    """planned: cases that this run will measure. notes: sentences to show at the end. regressed: pytest-benchmark's
    comparison found a regression. broken: why the machine cannot be measured as asked, met while collecting. shown:
    groups whose tables were written while it ran. functions: all benchmarks, where floors ask for them. write_plan,
    results: the files of collectives on several hosts."""

    settings: Settings
    base: Path
    baselines: Baselines
    strict: bool = False
    host_name: bool = False
    scenario: Scenario | None = None
    write_plan: Path | None = None
    results: Path | None = None
    expected: Expectations = NOTHING
    thresholds: dict[str, float] = field(default_factory=dict)
    clock: Clock = field(default_factory=Clock)
    signals: Signals = field(default_factory=Signals)
    planned: int = 0
    session: Session | None = None
    notes: list[str] = field(default_factory=list)
    regressed: bool = False
    broken: pytest.UsageError | None = None
    shown: set[str] = field(default_factory=set)
    functions: list[Function] = field(default_factory=list)
    lists: Lists | None = None
    _machine: Machine | None = None
    _representatives: Representatives | None = None

    @property
    def simulated(self) -> bool:
        """The machine is a recorded or made-up one."""
        return self.scenario is not None

    @property
    def measures_here(self) -> bool:
        """Not a plan for other hosts, nor their results."""
        return self.write_plan is None and self.results is None

    def machine(self) -> Machine:
        """The machine to measure, read once. Raises pytest.UsageError where it cannot be read or lacks what was
        asked for: `pytest tests/` never pays for it."""
        if self._machine is None:
            machine = self.scenario.machine if self.scenario else _probe(self.host_name)
            require("--gpus", self.settings.gpus, [g.index for g in machine.gpus], machine.why_no_gpu or "no GPU")
            require("--nodes", self.settings.nodes, [n.index for n in machine.nodes], "no NUMA node")
            options.check_ranks(self.settings, machine)
            self.baselines.check(machine, self.settings, self.simulated)
            self._machine = machine
        return self._machine

    def lacks_gpu(self) -> bool:
        """A GPU that the manifest or the baseline names is not on this machine."""
        from suite.judge import machine as judge

        gone = self.baselines.against.gone(self.machine()) if self.baselines.against is not None else ()
        return any(f.status == "FAIL" for f in judge.of_machine(self.machine(), expected=self.expected, gone=gone))

    def representatives(self) -> Representatives:
        """Which pair of GPUs stands for which, by what was measured so far."""
        if self._representatives is None:
            self._representatives = Representatives(self.machine(), self.settings)
        return self._representatives

    def start(self) -> Session:
        """The session, with its folder and journal, from the first case on. Ends pytest where it cannot be made."""
        if self.session is None:
            from suite import session as pipeline

            try:
                folder = pipeline.new_folder(self.base)
                engine = self._engine(folder)
                self.session = pipeline.Session(
                    self.machine(), self.settings, engine, folder, self.planned, self.simulated,
                    expected=self.expected, overrides=self.thresholds, against=self.baselines.against,
                )  # fmt: skip
            except SuiteError as error:
                pytest.exit(str(error), returncode=EXIT_USAGE)
        return self.session

    def _engine(self, folder: Path) -> Engine:
        """What measures: this machine or a simulated one; for several hosts a file."""
        from suite import session as pipeline

        if self.write_plan is not None:
            return pipeline.plan_writer(self.write_plan)
        engine = pipeline.engine_for(self.scenario, folder)
        return pipeline.results_reader(self.results, engine) if self.results is not None else engine


KEY = pytest.StashKey[State]()


def configure(config: pytest.Config) -> State:
    """The state of this run, from its options. Raises pytest.UsageError."""
    options.validate(config)
    signals = Signals()
    if options.touches_benchmarks(config):
        config.add_cleanup(signals.give_back)
        signals.catch()
    path = config.getoption("machine")
    config.stash[KEY] = State(
        settings=options.settings(config),
        base=config.getoption("report_dir") or config.rootpath / "reports",
        baselines=baseline.configure(config),
        signals=signals,
        strict=config.getoption("strict_verdicts"),
        host_name=config.getoption("host_name"),
        scenario=_scenario(path) if path else None,
        write_plan=config.getoption("write_plan"),
        results=config.getoption("allreduce_results"),
        expected=_manifest(config.getoption("expect")),
        thresholds=_thresholds(config.getini("lanecheck_thresholds")),
    )
    if path:
        config.stash[KEY].machine()
    return config.stash[KEY]


def require(option: str, wanted: tuple[int, ...] | None, there: list[int], none: str) -> None:
    """Raises pytest.UsageError, with what is there, where an option names something that is not."""
    absent = [str(index) for index in wanted or () if index not in there]
    if absent:
        allowed = f"allowed are {', '.join(map(str, there))}" if there else f"there is none ({none})"
        raise pytest.UsageError(f"{option} {','.join(absent)}: not on this machine; {allowed}")


def _probe(host_name: bool) -> Machine:
    import platform

    from suite import session as pipeline

    try:
        machine = pipeline.probe()
    except SuiteError as error:
        raise pytest.UsageError(str(error)) from error
    return replace(machine, host_name=platform.node()) if host_name else machine


def _manifest(path: Path | None) -> Expectations:
    from suite.judge import expect

    if path is None:
        return NOTHING
    try:
        return expect.read(path.read_bytes())
    except OSError as error:
        raise pytest.UsageError(f"--expect {path}: cannot be read ({error.strerror})") from error
    except SuiteError as error:
        raise pytest.UsageError(f"--expect {path}: {error}") from error


def _thresholds(lines: list[str]) -> dict[str, float]:
    from suite.judge import thresholds

    try:
        return thresholds.parse(lines)
    except SuiteError as error:
        raise pytest.UsageError(f"lanecheck_thresholds: {error}") from error


def _scenario(path: Path) -> Scenario:
    from suite import session as pipeline

    try:
        return pipeline.load_machine(path)
    except SuiteError as error:
        raise pytest.UsageError(f"--machine: {error}") from error
