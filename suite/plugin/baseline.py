"""`--baseline` judges by a baseline while it measures, `--save-baseline` adds this run to one."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from suite.errors import SuiteError
from suite.records.machine import Machine
from suite.records.run import Run, Settings

if TYPE_CHECKING:
    from suite.session.against import Against

_FACTS = 8  # differences of the machine that are named at the end; `lanecheck compare` has all
_CASES = 3


def add(parser: pytest.Parser) -> None:
    """Our options."""
    group = parser.getgroup("lanecheck")
    group.addoption("--baseline", metavar="NAME", help="judge by this baseline too: worse than it fails")
    group.addoption("--save-baseline", metavar="NAME", help="add this run to a baseline")
    group.addoption("--baseline-dir", type=Path, metavar="DIR", help="where they are. Default: reports/baselines/")
    group.addoption("--force-baseline", action="store_true", help="take a baseline of another machine or effort too")


@dataclass
class Baselines:
    """What this run has to do with baselines. against: the one to judge by. save: the name to add this run to; there:
    the one of that name as it is, where there is one. nothing_compared: no case of the run is in the baseline."""

    folder: Path
    against: Against | None = None
    save: str | None = None
    there: Against | None = None
    force: bool = False
    nothing_compared: bool = False

    def check(self, machine: Machine, settings: Settings, simulated: bool) -> None:
        """Raises pytest.UsageError where a baseline says nothing about this run: told before anything is measured."""
        for option, one in (("--baseline", self.against), ("--save-baseline", self.there)):
            reasons = one.why_not(machine, settings, simulated) if one is not None and not self.force else ()
            if one is not None and reasons:
                raise pytest.UsageError(
                    f"{option} {one.baseline.name}: {'; '.join(reasons)}: take another one, or add --force-baseline"
                )

    def end(self, run: Run) -> list[str]:
        """Sentences for the end of the run: how it stands beside the baseline, and what was saved."""
        return [*(self._compared(run) if self.against is not None else ()), *self._saved(run)]

    def _compared(self, run: Run) -> list[str]:
        from suite.report import compare_words

        if self.against is None or not run.results:
            return []
        name = self.against.baseline.name
        try:
            found = self.against.compare(run)
        except SuiteError as error:  # the cases are judged all the same
            return [f"baseline {name}: {error}."]
        self.nothing_compared = not found.changes
        facts = [str(difference) for difference in found.machine]
        more = [f"{len(facts) - _FACTS} more: lanecheck compare {name} RUN"] if len(facts) > _FACTS else []
        changed = [f"Changed since the baseline {name}: {'; '.join([*facts[:_FACTS], *more])}."] if facts else []
        headline = compare_words.headline(found)
        return [f"baseline {name}: {headline}", *changed, *compare_words.missing(found.missing, _CASES)]

    def _saved(self, run: Run) -> list[str]:
        from suite.store import baselines

        if self.save is None:
            return []
        if not run.complete:
            return [f"The run is incomplete and was not added to the baseline {self.save}."]
        if not any(result.samples_s for result in run.results):
            return [f"Nothing was measured, so that nothing was added to the baseline {self.save}."]
        try:
            saved = baselines.save(self.folder, self.save, [run], "add")
        except SuiteError as error:
            return [f"Not saved as a baseline: {error}."]
        count = f"{len(saved.runs)} run{'s' if len(saved.runs) != 1 else ''}"
        return [f"baseline {self.save}: {count} now, in {baselines.path_of(self.folder, self.save)}"]


def configure(config: pytest.Config) -> Baselines:
    """Reads what the options name. Raises pytest.UsageError with one sentence."""
    name, save = config.getoption("baseline"), config.getoption("save_baseline")
    folder = config.getoption("baseline_dir") or config.rootpath / "reports" / "baselines"
    known = Baselines(folder, save=save, force=config.getoption("force_baseline"))
    if name is not None:
        known.against = _load("--baseline", folder, name)
    if save is not None:
        known.there = _load("--save-baseline", folder, save, must=False)
    return known


def _load(option: str, folder: Path, name: str, must: bool = True) -> Against | None:
    from suite.session.against import Against
    from suite.store import baselines

    try:
        if not must and not baselines.path_of(folder, name).exists():
            return None
        return Against(baselines.load(folder, name))
    except SuiteError as error:
        raise pytest.UsageError(f"{option}: {error}") from error
