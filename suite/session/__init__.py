"""The pipeline without pytest: plan → measure → limits → judge → store → report. It alone knows all rooms."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

from suite import __version__
from suite.errors import MeasureError, SuiteError, Unavailable
from suite.judge import findings as judge_findings
from suite.judge import rules, thresholds
from suite.judge.against import is_worse
from suite.limits import case as limits_case
from suite.measure import plan_file
from suite.measure.engine import Engine
from suite.measure.simulated.engine import SimulatedEngine
from suite.measure.workers import WorkerEngine
from suite.plan import cases
from suite.probe import link as probe_link
from suite.probe import machine as probe_machine
from suite.probe import recording
from suite.records.case import Plan, Samples
from suite.records.comparison import Comparison
from suite.records.expect import NOTHING, Expectations
from suite.records.machine import Machine
from suite.records.run import Failure, Finding, Result, Run, Settings, Verdict
from suite.records.scenario import Scenario
from suite.report import markdown
from suite.session import assemble
from suite.session.against import Against
from suite.store import files, runs
from suite.store.journal import Journal

CHECKPOINT_S = 2.0


def probe() -> Machine:
    """This machine, read now. Raises ProbeError."""
    return probe_machine.read()


def load_machine(path: Path) -> Scenario:
    """A recorded or simulated machine from a file or folder. Raises ProbeError with one sentence."""
    return recording.load(path)


def engine_for(scenario: Scenario | None, folder: Path) -> Engine:
    """Workers on this machine, or the simulator where a scenario is given. folder: for the workers' output."""
    if scenario is None:
        return WorkerEngine(probe_link.Watcher(), folder)

    def ideal_seconds(machine: Machine, plan: Plan) -> float | None:
        return limits_case.ideal_seconds(machine, plan)

    return SimulatedEngine(scenario, ideal_seconds)


def plan_writer(path: Path) -> Engine:
    """An engine that writes the collectives' plans for other hosts and measures nothing."""
    return plan_file.PlanWriter(path)


def results_reader(path: Path, otherwise: Engine) -> Engine:
    """An engine that takes collectives from what ranks of other hosts wrote. Raises StoreError."""
    return plan_file.ResultsReader(path, otherwise)


def new_folder(base: Path) -> Path:
    """A fresh folder for a run, named by the time. Raises StoreError where it cannot be made."""
    return files.new_folder(base, time.strftime("%Y%m%d-%H%M%S"))


class Session:
    """One run: measures plans one by one, judges each, and has it on disk before the next one starts."""

    def __init__(
        self,
        machine: Machine,
        settings: Settings,
        engine: Engine,
        folder: Path,
        planned: int,
        simulated: bool,
        *,
        expected: Expectations = NOTHING,
        overrides: Mapping[str, float] | None = None,
        against: Against | None = None,
    ) -> None:
        """expected: the manifest. overrides: thresholds by name. against: the baseline to judge by."""
        self.folder = folder
        self.results: list[Result] = []
        self._engine = engine
        self._against = against
        self._header = Run(
            machine=machine,
            settings=settings,
            planned=planned,
            simulated=simulated,
            started=datetime.now(UTC).isoformat(timespec="milliseconds"),
            lanecheck=__version__,
            expected=expected,
            thresholds=dict(overrides or {}),
            gone=against.gone(machine) if against is not None else (),
        )
        self._thresholds = thresholds.of(self._header.thresholds)
        self._found: tuple[int, Sequence[Finding]] = (-1, ())
        self._journal = Journal(folder, self._header)
        self._checkpoint()

    @property
    def machine(self) -> Machine:
        """The machine that is measured."""
        return self._header.machine

    def check(self, plan: Plan) -> Result:
        """Measures, judges and keeps one case; one that is worse than the baseline is measured once more. Only bugs
        raise: what a machine does wrong is a verdict."""
        result = self._checked(plan)
        if self._against is not None and is_worse(result):
            result = self._against.again(result, self._checked(plan))
        return self.keep(result)

    def see_links(self, gpus: Sequence[int]) -> None:
        """Watches the links of these GPUs under load, each once in a run: without it no case of theirs has a ceiling,
        and a slow link would pass unseen. What is measured so is a case of the run like any other."""
        for gpu in dict.fromkeys(gpus):
            if any(r.operation == "link_under_load" and gpu in r.gpus for r in self.results):
                continue
            self._header = replace(self._header, planned=self._header.planned + 1)
            self._journal.plan(self._header.planned)
            case = f"link/under_load/gpu{gpu}"
            self.check(cases.complete(self.machine, self._header.settings, case, "link_under_load", gpus=(gpu,)))

    @property
    def planned(self) -> int:
        """How many cases the run has when it is whole."""
        return self._header.planned

    def keep(self, result: Result) -> Result:
        """Writes a result to the journal, and the readable files when they are 2 s old."""
        self.results.append(result)
        self._journal.append(result)
        if time.monotonic() - self._checkpoint_at >= CHECKPOINT_S:
            self._checkpoint()
        return result

    def run(self, complete: bool = False) -> Run:
        """The run so far."""
        return replace(self._header, results=tuple(self.results), complete=complete)

    def findings(self) -> Sequence[Finding]:
        """Root causes over the run so far; looked for again only where results came."""
        if self._found[0] != len(self.results):
            self._found = (len(self.results), judge_findings.findings(self.run()))
        return self._found[1]

    def close(self, complete: bool) -> Run:
        """Ends the workers and writes everything. complete: every planned case ended."""
        self._engine.close()
        self._journal.end(complete)
        run = self.run(complete)
        found = self.findings()
        write(self.folder, run, found)
        write_page(self.folder, run, found, self._comparison(run))
        return run

    def _comparison(self, run: Run) -> Comparison | None:
        """The run beside its baseline; None without one, or where the two cannot be compared (the plugin says why)."""
        if self._against is None or not run.results:
            return None
        try:
            return self._against.compare(run)
        except SuiteError:  # its sentence stands in the terminal's notes; the page is worth having all the same
            return None

    def _checked(self, plan: Plan) -> Result:
        samples, failure, why = self._measure(plan)
        measured = assemble.result(plan, samples, failure)
        if why is not None:
            return replace(measured, verdict=rules.unavailable(measured, self.machine, self.results, why))
        limited = assemble.with_limits(measured, limits_case.of(self.machine, plan, samples, self.results))
        return replace(limited, verdict=self._judge(limited))

    def _judge(self, limited: Result) -> Verdict:
        verdict = rules.judge(limited, self.machine, self.results, self._thresholds, self._header.expected)
        if self._against is None:
            return verdict
        return self._against.decide(replace(limited, verdict=verdict), self.machine, self._thresholds)

    def _measure(self, plan: Plan) -> tuple[Samples | None, Failure | None, str | None]:
        try:
            return self._engine.measure(plan), None, None
        except MeasureError as error:
            return None, Failure(error.kind, str(error), error.said), None
        except Unavailable as reason:
            return None, None, str(reason)

    def _checkpoint(self) -> None:
        write(self.folder, self.run(), self.findings())
        self._checkpoint_at = time.monotonic()


def write(folder: Path, run: Run, found: Sequence[Finding]) -> None:
    """run.json and report.md of a run, each replaced in one step. found: its findings."""
    runs.write(folder, run)
    text = markdown.render(run, found, judge_findings.headline(run, found))
    files.write_atomic(folder / "report.md", text.encode())


def write_page(folder: Path, run: Run, found: Sequence[Finding], comparison: Comparison | None = None) -> None:
    """report.html of a run, with before and after where it was compared. It takes longer than the rest, so it is
    written once, at the end."""
    from suite.report import html  # brings jinja2, which nothing before the end needs

    page = html.render(run, found, judge_findings.headline(run, found), comparison)
    files.write_atomic(folder / "report.html", page.encode())
