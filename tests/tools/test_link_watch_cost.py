"""What the tool makes of its runs, and what it says where there is no GPU."""

from __future__ import annotations

import argparse
from collections.abc import Sequence

import pytest

from suite.errors import SuiteError
from suite.records.case import LinkReading, Plan, Samples
from suite.records.machine import Gpu, Machine
from suite.units import MIB
from tools import link_watch_cost as cost

OPTIONS = argparse.Namespace(gpu=0, mib=256, rounds=3)


class FakeWatcher:
    """Three readings every time."""

    def start(self, addresses: Sequence[str]) -> None:
        self.addresses = addresses

    def stop(self) -> dict[str, tuple[LinkReading, ...]]:
        return dict.fromkeys(self.addresses, (LinkReading(0.0),) * 3)


class FakeEngine:
    """Copies of 10 ms, 11 ms while it is watched."""

    def __init__(self, watcher: cost.Kept, wrong: bool = False) -> None:
        self.watcher, self.verified = watcher, not wrong

    def measure(self, plan: Plan) -> Samples:
        if plan.watch:
            self.watcher.start(plan.addresses)
            self.watcher.stop()
        return Samples((0.011 if plan.watch else 0.010,) * 3, "simulated", "simulated", verified=self.verified)

    def close(self) -> None:
        """Nothing to end."""


def machine() -> Machine:
    return Machine(gpus=(Gpu(0, "a card", "0000:01:00.0"),))


def test_a_watched_run_counts_its_readings_and_the_other_has_none() -> None:
    watcher = cost.Kept(FakeWatcher())  # type: ignore[arg-type]
    engine, plan = FakeEngine(watcher), cost.planned(OPTIONS, machine())
    on, off = (cost.run(engine, watcher, plan, 0, watched) for watched in (True, False))
    assert (on.readings, on.by_nvml, off.readings) == (3, 0, 0)
    assert off.bandwidth == pytest.approx(256 * MIB / 0.010)
    assert cost.summary([on, off])["ratio"] == pytest.approx(10 / 11)


def test_the_cost_is_that_of_the_pairs_not_of_the_drift_between_them() -> None:
    runs = [cost.Run(pair, watched, 50e9 + pair * 1e9, 9 * watched) for pair in range(5) for watched in (True, False)]
    answer = cost.summary(runs)
    assert (answer["cost"], answer["least_readings"]) == (0, 9)
    assert "costs 0.00%" in cost.text(answer)


def test_wrong_bytes_are_no_bandwidth() -> None:
    watcher = cost.Kept(FakeWatcher())  # type: ignore[arg-type]
    with pytest.raises(SuiteError, match="bytes are wrong"):
        cost.run(FakeEngine(watcher, wrong=True), watcher, cost.planned(OPTIONS, machine()), 0, False)


def test_without_the_gpu_it_is_one_sentence_that_says_why() -> None:
    with pytest.raises(SuiteError, match="no driver is loaded"):
        cost.planned(OPTIONS, Machine(why_no_gpu="no driver is loaded"))
