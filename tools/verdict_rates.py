"""How often are machines in order called wrong? Simulated runs of the shipped benchmarks with fresh noise each.

    python tools/verdict_rates.py tests/data/machines/2xpcie.json --runs 1000 --seed 7

Efficiencies are drawn from 0.80 to 0.97 (one a run), each sample has 3 % noise. A machine in order must never FAIL, and
WARN in less than 1 % of its cases. Exit status 1 where that does not hold.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import tempfile
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from random import Random

import pytest

import suite.session as pipeline
from suite.errors import MeasureError, Unavailable
from suite.judge import rules
from suite.limits import case as limits_case
from suite.measure.engine import Engine
from suite.records.case import Plan, Samples
from suite.records.machine import Machine
from suite.records.run import Failure, Result
from suite.records.scenario import Scenario
from suite.session import assemble

ROOT = Path(__file__).parents[1]
EFFICIENCIES = (0.80, 0.97)
NOISE = 0.03
MOST_WARNED = 0.01
SAID = ("FAIL", "WARN", "INDETERMINATE")


@dataclass
class Rates:
    """Counts over the runs of one machine. causes: (status, cause, operation) → cases. runs: status → runs with it."""

    cases: int = 0
    statuses: Counter[str] = field(default_factory=Counter)
    runs: Counter[str] = field(default_factory=Counter)
    causes: Counter[tuple[str, str, str]] = field(default_factory=Counter)

    def add(self, results: Sequence[Result]) -> None:
        """Counts one run."""
        verdicts = [(r.verdict, r.operation) for r in results if r.verdict is not None]
        self.cases += len(verdicts)
        self.statuses.update(verdict.status for verdict, _ in verdicts)
        self.runs.update({verdict.status for verdict, _ in verdicts})
        self.causes.update((v.status, v.cause, operation) for v, operation in verdicts if v.status in SAID)

    @property
    def right(self) -> bool:
        """No FAIL, and few enough WARNs."""
        return not self.statuses["FAIL"] and self.statuses["WARN"] < MOST_WARNED * max(self.cases, 1)


class Recorder:
    """A pytest plugin that notes every plan on its way to the engine."""

    def __init__(self) -> None:
        self.plans: list[Plan] = []
        self._engine_for = pipeline.engine_for

    def pytest_configure(self) -> None:
        """Puts itself in front of the engine."""
        pipeline.engine_for = self._recording

    def pytest_unconfigure(self) -> None:
        """Puts the engine back."""
        pipeline.engine_for = self._engine_for

    def _recording(self, scenario: Scenario | None, folder: Path) -> Engine:
        self._inner = self._engine_for(scenario, folder)
        return self

    def measure(self, plan: Plan) -> Samples:
        """The engine's answer."""
        self.plans.append(plan)
        return self._inner.measure(plan)

    def close(self) -> None:
        """Ends the engine."""
        self._inner.close()


def plans_of(machine: Path) -> list[Plan]:
    """Every plan that `pytest benchmarks/` measures on a machine, in its order."""
    recorder, said = Recorder(), io.StringIO()
    with tempfile.TemporaryDirectory() as folder, contextlib.redirect_stdout(said):
        given = [str(ROOT / "benchmarks"), f"--rootdir={ROOT}", f"--machine={machine}", f"--report-dir={folder}", "-q"]
        pytest.main(["-p", "no:hypothesispytest", *given], plugins=[recorder])
    if not recorder.plans:
        raise SystemExit(said.getvalue())
    return recorder.plans


def judged(scenario: Scenario, plans: Sequence[Plan]) -> list[Result]:
    """One run without files."""
    engine = pipeline.engine_for(scenario, Path())
    results: list[Result] = []
    for plan in plans:
        one = _judged(scenario.machine, engine, plan, results)
        if one is not None:
            results.append(one)
    return results


def _judged(machine: Machine, engine: Engine, plan: Plan, so_far: Sequence[Result]) -> Result | None:
    samples = failure = None
    try:
        samples = engine.measure(plan)
    except MeasureError as error:
        failure = Failure(error.kind, str(error), error.said)
    except Unavailable:
        return None
    measured = assemble.result(plan, samples, failure)
    limited = assemble.with_limits(measured, limits_case.of(machine, plan, samples, so_far))
    return replace(limited, verdict=rules.judge(limited, machine, so_far))


def rates(scenario: Scenario, plans: Sequence[Plan], runs: int, random: Random) -> Rates:
    """Runs of one machine, each with an efficiency and a seed of its own."""
    found = Rates()
    for _ in range(runs):
        efficiency, seed = random.uniform(*EFFICIENCIES), random.randrange(10**9)
        found.add(judged(replace(scenario, efficiency=efficiency, noise=NOISE, seed=seed), plans))
    return found


def main() -> int:
    """Prints a line a machine, and below it what was said against it."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("machines", nargs="+", type=Path)
    parser.add_argument("--runs", type=int, default=100)
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    right = True
    for path in arguments.machines:
        found = rates(
            pipeline.load_machine(path), plans_of(path), arguments.runs, Random(f"{arguments.seed}/{path.stem}")
        )
        counts = ", ".join(f"{found.statuses[s]} {s} (in {found.runs[s]} runs)" for s in SAID)
        print(f"{path.stem}: {arguments.runs} runs, {found.cases} cases: {counts}", flush=True)
        for (status, cause, operation), count in found.causes.most_common(10):
            print(f"    {count} × {status} {cause} on {operation}")
        right = right and found.right
    return 0 if right else 1


if __name__ == "__main__":
    raise SystemExit(main())
