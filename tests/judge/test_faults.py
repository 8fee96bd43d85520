"""Physical faults between GPUs, in uplinks and in memory, injected into shipped machines: the right cause comes first.

The list says beforehand where a fault can be seen and what it must be called. All of it must hold.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cache
from typing import Any

import pytest

from suite.records.machine import Machine
from suite.records.scenario import Fault, Scenario
from tests.data.machines import build
from tests.judge.pipeline import Judged, run
from tests.judge.small import link

SCENARIOS = build.scenarios()
EVERYTHING = ("link", "host_memory", "host_copy", "host_staging", "peer_copy", "allreduce")
TWO, EIGHT, SWITCHED = "2xpcie", "8xpcie-switches", "8xnvswitch"
UPLINK = "0000:41:00.0"  # of the switch above GPU2 and GPU3


@dataclass(frozen=True)
class Case:
    """machine, what is physically wrong with it, the cause that must come first, and whose it is."""

    machine: str
    faults: tuple[Fault, ...]
    cause: str
    subject: str


def pair(kind: str, **fields: Any) -> Fault:
    """Something wrong between GPU0 and GPU1."""
    return Fault(kind, gpu=0, peer=1, **fields)  # type: ignore[arg-type]


BOTH = "GPU0, GPU1"
ALL = "GPU0 to GPU7"
CASES: dict[str, Case] = {
    "pair below one switch slow": Case(EIGHT, (pair("pair_capacity", rate=9.9e9),), "p2p_slower_than_staging", BOTH),
    "pair across sockets slow": Case(TWO, (pair("pair_capacity", rate=20e9),), "p2p_far", BOTH),
    "NVLinks between two GPUs slow": Case(SWITCHED, (pair("pair_capacity", rate=30e9),), "nvlink_slow", BOTH),
    "peer bytes wrong, 2 GPUs": Case(TWO, (pair("wrong_bytes", group="peer_copy"),), "wrong_data", BOTH),
    "peer bytes wrong, switch": Case(EIGHT, (pair("wrong_bytes", group="peer_copy"),), "wrong_data", BOTH),
    "peer bytes wrong, NVLink": Case(SWITCHED, (pair("wrong_bytes", group="peer_copy"),), "wrong_data", BOTH),
    "peer copies hang": Case(EIGHT, (pair("hang", group="peer_copy"),), "hang", BOTH),
    "allreduce hangs, 2 GPUs": Case(TWO, (Fault("hang", group="allreduce"),), "hang", BOTH),
    "allreduce hangs, 8 GPUs": Case(EIGHT, (Fault("hang", group="allreduce"),), "hang", ALL),
    "allreduce crashes": Case(SWITCHED, (Fault("crash", group="allreduce"),), "crash", ALL),
    "allreduce wrong": Case(SWITCHED, (Fault("wrong_bytes", group="allreduce"),), "wrong_data", ALL),
    "allreduce late, 2 GPUs": Case(
        TWO, (Fault("latency", group="allreduce", seconds=1e-4),), "collective_latency", BOTH
    ),
    "allreduce late, 8 GPUs": Case(
        EIGHT, (Fault("latency", group="allreduce", seconds=3e-4),), "collective_latency", ALL
    ),
    "allreduce late, NVLink": Case(
        SWITCHED, (Fault("latency", group="allreduce", seconds=2e-4),), "collective_latency", ALL
    ),
    "staging bytes wrong": Case(TWO, (Fault("wrong_bytes", gpu=1, group="host_staging"),), "wrong_data", "GPU1"),
    "staging hangs": Case(EIGHT, (Fault("hang", gpu=3, group="host_staging"),), "hang", "GPU3"),
    "uplink at Gen3": Case(
        EIGHT, (Fault("link_state", address=UPLINK, link=link(3, 16)),), "downtrained_speed", "GPU2, GPU3"
    ),
    "uplink at half width": Case(
        EIGHT, (Fault("link_state", address=UPLINK, link=link(5, 8)),), "downtrained_width", "GPU2, GPU3"
    ),
    "uplink counts errors": Case(
        EIGHT, (Fault("link_errors", address=UPLINK, rate=225.0),), "signal_integrity", "GPU2, GPU3"
    ),
    "uplink carries less than it says": Case(
        EIGHT, (Fault("hop_capacity", address=UPLINK, rate=20e9),), "outlier", "GPU2, GPU3"
    ),
    "link errors, switch": Case(
        EIGHT, (Fault("link_errors", address="0000:14:00.0", rate=225.0),), "signal_integrity", "GPU1"
    ),
    "link errors, NVSwitch": Case(
        SWITCHED, (Fault("link_errors", address="0000:11:00.0", rate=225.0),), "signal_integrity", "GPU1"
    ),
    "far memory slow, both GPUs": Case(
        TWO, tuple(Fault("node_to_gpu_capacity", gpu=g, node=1 - g, rate=12e9) for g in (0, 1)), "numa_far_slow", BOTH
    ),
    "a CPU's link to the other slow": Case(TWO, (Fault("node_capacity", node=0, rate=9e9),), "numa_far_slow", "GPU1"),
}


@cache
def judged(case: Case) -> Judged:
    """Each machine runs once for both tests."""
    return run(replace(SCENARIOS[case.machine], faults=case.faults), groups=EVERYTHING)


@pytest.mark.parametrize("name", list(CASES))
def test_the_right_cause_comes_first(name: str) -> None:
    case = CASES[name]
    found = judged(case).found
    assert (found[0].cause, found[0].subject) == (case.cause, case.subject), found


@pytest.mark.parametrize("name", list(CASES))
def test_other_gpus_are_not_blamed(name: str) -> None:
    case = CASES[name]
    blamed = {int(word) for word in case.subject.replace("GPU", "").replace(",", " ").split() if word.isdigit()}
    if case.subject == ALL:
        blamed = set(range(8))
    others = [r for r in judged(case).run.results if len(r.gpus) <= 2 and not set(r.gpus) & blamed and r.gpus]
    assert {r.verdict.status for r in others if r.verdict} <= {"PASS"}


def test_an_nvlink_that_is_down_on_one_gpu_is_said() -> None:
    healthy = SCENARIOS[SWITCHED].machine
    down = tuple(replace(one, active=one.index >= 4) for one in healthy.gpus[1].nvlinks)
    gpus = tuple(replace(g, nvlinks=down) if g.index == 1 else g for g in healthy.gpus)
    found = run(Scenario(_with(healthy, gpus=gpus)), groups=EVERYTHING).found
    assert (found[0].cause, found[0].subject) == ("nvlink_partly_down", "GPU1")


def _with(machine: Machine, **fields: Any) -> Machine:
    return replace(machine, **fields)
