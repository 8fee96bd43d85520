"""The count of wrong verdicts on machines in order, in little; the whole of it is `python -m tools.verdict_rates`."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from random import Random

from suite.records.scenario import Fault
from suite.session import load_machine
from tools.verdict_rates import Rates, judged, plans_of, rates

MACHINE = Path(__file__).parents[1] / "data" / "machines" / "1xvm-h200.json"


def test_a_machine_in_order_is_called_right_in_every_run() -> None:
    scenario, plans = load_machine(MACHINE), plans_of(MACHINE)
    found = rates(scenario, plans, 5, Random(7))
    assert found.right
    assert not found.causes
    assert found.cases == 5 * len(plans)


def test_a_machine_with_a_fault_is_not_called_right() -> None:
    scenario, plans = load_machine(MACHINE), plans_of(MACHINE)
    slow = replace(scenario, faults=(Fault("outstanding_reads", gpu=0, rate=20e9),))
    found = Rates()
    found.add(judged(slow, plans))
    assert not found.right
    assert found.statuses["FAIL"]


def test_one_warning_in_a_hundred_is_too_many() -> None:
    found = Rates(cases=100)
    found.statuses["WARN"] = 1
    assert not found.right
    found.cases = 101
    assert found.right
