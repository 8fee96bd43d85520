"""Copies whose ceiling is not known: what is asked for, who is held against whom, and one finding a GPU."""

from __future__ import annotations

from typing import Any

from suite.judge.findings import findings
from suite.records.machine import LinkState
from suite.records.run import Result, Run, Settings
from tests.data.machines import build
from tests.judge.small import judged, last, limits, result, under_load

PCIE = build.two_pcie()


def copy(gpu: int, rate: float, node: int | None = None, **fields: Any) -> Result:
    operation = fields.pop("operation", "host_to_device")
    case = f"host_copy/{operation}/gpu{gpu}"
    return result(operation, rate, case=case, gpus=(gpu,), memory_node=node, limits=limits(None), **fields)


def run(*results: Result) -> Run:
    return Run(PCIE, Settings(), tuple(judged(PCIE, *results)), planned=len(results), complete=True)


def test_without_link_cases_the_advice_is_to_run_them() -> None:
    verdict = last(PCIE, copy(0, 27.2))
    assert (verdict.status, verdict.cause) == ("INDETERMINATE", "link_not_run")
    assert verdict.advice is not None
    assert '-k "link or host_copy"' in verdict.advice
    assert "root" not in verdict.advice


def test_a_link_that_was_watched_and_said_nothing_is_another_cause() -> None:
    assert last(PCIE, under_load(LinkState()), copy(0, 27.2)).cause == "limit_unknown"


def test_a_gpu_far_below_an_equal_one_is_worth_a_look_without_any_ceiling() -> None:
    verdict = last(PCIE, copy(0, 27.2), copy(1, 3.42))
    assert (verdict.status, verdict.cause) == ("WARN", "below_equal_gpu")
    assert "GPU1: 3.42 GB/s is 13 % of what GPU0" in verdict.evidence[0]


def test_equal_gpus_that_reach_about_the_same_are_not_held_against_each_other() -> None:
    assert last(PCIE, copy(0, 27.2), copy(1, 25.0)).cause == "link_not_run"


def test_each_gpu_has_a_finding_of_its_own_with_its_own_range() -> None:
    both = {"operation": "device_to_host"}
    found = [
        f
        for f in findings(run(copy(0, 27.2), copy(0, 26.4, **both), copy(1, 23.4), copy(1, 22.1, **both)))
        if f.cause == "link_not_run"
    ]
    assert sorted(f.subject for f in found) == ["GPU0", "GPU1"]
    said = {f.subject: f.sentence for f in found}
    assert "26.4 GB/s to 27.2 GB/s" in said["GPU0"]
    assert "22.1 GB/s to 23.4 GB/s" in said["GPU1"]
