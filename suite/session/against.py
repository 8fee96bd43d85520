"""A baseline beside a run while it is measured: what it says of each case, and of the run as a whole at its end."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from suite.judge import against as judge
from suite.judge.thresholds import DEFAULT, Thresholds
from suite.records.comparison import Baseline, Comparison, Reference
from suite.records.machine import LinkState, Machine
from suite.records.run import Result, Run, Settings, Verdict
from suite.store import compare, compare_cases, compare_gpus, compare_machine
from suite.units import format_bandwidth, format_seconds


class Against:
    """One baseline. Knows the cases of its runs by name."""

    def __init__(self, baseline: Baseline) -> None:
        self.baseline = baseline
        self._cases = compare_cases.collect(baseline.runs)

    def why_not(self, machine: Machine, settings: Settings, simulated: bool) -> tuple[str, ...]:
        """Why a run on this machine says nothing beside the baseline, a clause each; empty where it does."""
        run = Run(machine=machine, settings=settings, simulated=simulated)
        return tuple(compare.why_not(self.baseline.runs, (run,)))

    def gone(self, machine: Machine) -> tuple[str, ...]:
        """GPUs of the baseline's newest run that this machine lacks, in words."""
        return tuple(map(compare_gpus.name, compare_gpus.gone(self.baseline.runs[-1].machine, machine)))

    def decide(self, result: Result, machine: Machine, thresholds: Thresholds = DEFAULT) -> Verdict:
        """The verdict of a judged result once the baseline has been heard."""
        if result.verdict is None:
            raise ValueError(f"{result.case} has no verdict yet")
        reference = self._reference(result)
        return judge.decide(result.verdict, result, machine, reference, thresholds) if reference else result.verdict

    def again(self, first: Result, second: Result) -> Result:
        """Of a case that was worse than the baseline and was measured once more, the second result; it says that it is
        the second, and only it counts."""
        number = format_seconds(first.latency_s) if first.bandwidth is None else format_bandwidth(first.bandwidth)
        outcome = "it repeated" if judge.is_worse(second) else "it did not repeat"
        note = f"Measured twice, since it was worse than the baseline: {number} the first time, {outcome}."
        return replace(second, notes=(*second.notes, note))

    def compare(self, run: Run) -> Comparison:
        """The whole run beside the baseline."""
        names = (f"baseline {self.baseline.name}", "this run")
        return compare.compare(self.baseline.runs, (run,), names=names, force=True)

    def _reference(self, result: Result) -> Reference | None:
        known = self._cases.get(result.case)
        if known is None:
            return None
        now = compare_cases.of_result(result)
        change = compare_cases.change(known, now) if compare_cases.comparable(known, now) else None
        return Reference(self.baseline.name, len(known.values), change, self._least_link(result))

    def _least_link(self, result: Result) -> LinkState | None:
        """The least that the link of a link case was in any run of the baseline."""
        if result.operation != "link_under_load" or not result.gpus:
            return None
        seen = [compare_machine.link_under_load(run, result.gpus[0]) for run in self.baseline.runs]
        loads = [watch.load for watch in seen if watch is not None and watch.load.known]
        if not loads:
            return None
        return LinkState(min(_known(loads, "speed_gts")), int(min(_known(loads, "width"))))


def _known(loads: list[LinkState], name: str) -> Iterator[float]:
    return (getattr(load, name) for load in loads)
