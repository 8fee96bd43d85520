"""One thing is wrong, and it alone is blamed: what is made of slow copies, or waits for them, is not."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from functools import cache
from typing import Any

import pytest

from suite.judge.findings import findings
from suite.measure.simulated.engine import SimulatedEngine
from suite.records.machine import LinkState, Machine
from suite.records.run import Failure, Run, Settings
from suite.records.scenario import Fault, Scenario
from suite.units import MIB
from tests.data.machines import build
from tests.judge.pipeline import Judged, plan, run
from tests.judge.small import judged, last, limits, link, result, under_load, watch

SCENARIOS = build.scenarios()
EVERYTHING = ("link", "host_memory", "host_copy", "host_staging", "peer_copy", "allreduce")
TROUBLE = ("FAIL", "WARN", "INDETERMINATE")


@cache
def _judged(*faults: Fault, machine: str = "2xpcie") -> Judged:
    return run(replace(SCENARIOS[machine], faults=faults), groups=EVERYTHING)


def _far(fraction: float) -> tuple[Fault, ...]:
    return tuple(Fault("node_to_gpu_capacity", gpu=gpu, node=1 - gpu, rate=fraction * 54e9) for gpu in (0, 1))


def _causes(found: Judged) -> Counter[str]:
    return Counter(r.verdict.cause for r in found.run.results if r.verdict and r.verdict.status in TROUBLE)


def _smaller_slot(machine: Machine, most: LinkState) -> Machine:
    """GPU1's root port supports less than the card."""
    at = machine.gpus[1].address or ""
    port = (machine.function(at) or machine.pci[0]).parent
    pci = tuple(replace(f, link_max=most) if f.address == port else f for f in machine.pci)
    gpus = (machine.gpus[0], replace(machine.gpus[1], link_max=most))
    return replace(machine, pci=pci, gpus=gpus)


def test_a_far_node_that_costs_what_distance_costs_is_in_order() -> None:
    """0.72 of the near node: what healthy machines with two sockets show."""
    found = _judged(*_far(0.72))
    assert found.statuses() <= {"PASS", "UNAVAILABLE"}
    assert found.verdict("host_copy/host_to_device/gpu0/node1/256MiB").cause == "numa_far"
    assert found.verdict("host_staging/staging/gpu0_gpu1/node0").status == "PASS"


def test_a_weak_far_node_is_one_cause_for_staging_and_peer_copies_too() -> None:
    found = _judged(*_far(0.61))
    assert set(_causes(found)) == {"numa_far_weak", "as_its_copies"}
    assert found.found[0].cause == "numa_far_weak"


def test_a_slow_far_node_explains_what_is_staged_through_it() -> None:
    found = _judged(*_far(0.33))
    assert set(_causes(found)) == {"numa_far_slow", "as_its_copies"}
    assert [f.cause for f in found.found if f.status in TROUBLE] == ["numa_far_slow"]


def test_a_near_node_slower_than_a_far_one_is_said_before_the_slot_is_blamed() -> None:
    found = _judged(Fault("node_to_gpu_capacity", gpu=0, node=0, rate=18e9))
    first = found.found[0]
    assert (first.status, first.cause, first.subject) == ("FAIL", "numa_node_suspect", "GPU0")
    assert "Link and slot carry it" in (first.advice or "")
    assert [f.cause for f in found.found if f.status in TROUBLE] == ["numa_node_suspect"]


def test_memory_that_feeds_another_gpu_well_is_not_called_too_slow_for_this_one() -> None:
    """GPU1's own hop lets 41 GB/s through; node 1's memory bore 95 GB/s for copies of GPU0."""
    memory = result("host_memory_copy", 30.0, gpus=(), memory_node=0, target_node=0, case="host_memory/copy")
    other = result("both_ways", 95.0, memory_node=0, gpus=(1,), limits=limits(114.0))
    slow = result("both_ways", 80.0, memory_node=0, limits=limits(114.0))
    machine = SCENARIOS["2xpcie"].machine
    assert last(machine, memory, slow).cause == "host_limited"
    assert last(machine, memory, other, slow).cause == "below_expected"


@pytest.mark.parametrize("address", ["0000:21:00.0", "0000:a1:00.0"])
def test_memory_is_not_called_too_slow_where_an_equal_node_feeds_an_equal_gpu(address: str) -> None:
    found = _judged(Fault("hop_capacity", address=address, rate=41e9))
    assert "host_limited" not in _causes(found)


def test_a_far_pair_has_one_answer_whoever_copies_and_whichever_way() -> None:
    """The staged copy that stands beside a read is the other GPU's write; a kernel's ceiling is a little lower."""
    machine = SCENARIOS["2xpcie"].machine
    staged = result("peer_write", 53.0, case="off", gpus=(0, 1), p2p=False, limits=limits(57.6), engine="copy-engine")
    slow: dict[str, Any] = {"p2p": True, "engine": "copy-engine", "limits": limits(57.6)}
    kernel: dict[str, Any] = slow | {"engine": "sm", "limits": limits(53.1)}
    for one in (
        result("peer_write", 37.0, gpus=(0, 1), **slow),
        result("peer_read", 37.0, gpus=(1, 0), **slow),
        result("peer_write", 37.0, gpus=(0, 1), **kernel),
        result("peer_read", 37.0, gpus=(1, 0), **kernel),
    ):
        assert last(machine, staged, one).cause == "p2p_far"
    other_way = result("peer_read", 37.0, gpus=(0, 1), **slow)
    assert last(machine, staged, other_way).cause != "p2p_far"
    as_fast = result("peer_write", 47.0, gpus=(0, 1), **kernel)
    assert last(machine, staged, as_fast).cause == "healthy"


def test_a_smaller_slot_beside_a_larger_one_is_worth_a_look_and_no_fault_of_distance() -> None:
    for most, cost in ((link(5, 4), "25 %"), (link(4, 16), "half")):
        found = run(Scenario(_smaller_slot(SCENARIOS["2xpcie"].machine, most)), groups=EVERYTHING)
        assert _causes(found) == {"slot_uneven": 1}
        assert f"GPU1 gets {cost} of GPU0's bandwidth" in found.found[0].sentence


def test_all_gpus_at_once_wait_for_the_slow_one_and_the_root_complex_is_not_blamed() -> None:
    found = _judged(Fault("hop_capacity", address="0000:a1:00.0", rate=30e9))
    assert "root_complex_limited" not in _causes(found)
    together = found.verdict("host_copy/all_gpus_host_to_device")
    assert together.cause == "as_the_slowest"
    assert "2 times the 29." in together.evidence[0]
    assert (found.found[0].cause, found.found[0].subject) == ("outlier", "GPU1")


def test_all_links_that_gpus_share_are_named_with_their_number() -> None:
    found = run(SCENARIOS["8xpcie-switches"], groups=("link", "host_copy"))
    said = found.verdict("host_copy/all_gpus_host_to_device").evidence[0]
    assert "the 4 links that they share (0000:11:00.0, " in said


@pytest.mark.parametrize("cause", ["wrong_data", "hang"])
def test_p2p_is_not_to_be_switched_off_where_the_same_goes_wrong_without_it(cause: str) -> None:
    machine = SCENARIOS["2xpcie"].machine
    broken: dict[str, Any] = {"verified": False} if cause == "wrong_data" else {"error": Failure("hang", "no answer")}
    over = {"gpus": (0, 1), "world_size": 2, "backend": "nccl"}
    direct = result("allreduce", case="allreduce/p2p", transport="p2p", **over, **broken)
    shared = result("allreduce", case="allreduce/shm", transport="shm", **over, **broken)
    for results, told in (((direct,), True), ((direct, shared), False), ((shared,), False)):
        done = tuple(judged(machine, *results))
        first = findings(Run(machine, Settings(), done, len(done)))[0]
        assert first.cause == cause
        assert ("NCCL_P2P_DISABLE=1" in (first.advice or "")) is told


def test_bytes_that_go_wrong_between_two_gpus_arrive_right_through_shared_memory() -> None:
    machine = SCENARIOS["2xpcie"].machine
    engine = SimulatedEngine(Scenario(machine, (Fault("wrong_bytes", gpu=0, peer=1),)), lambda _m, _p: 1e-3)
    for transport, right in (("p2p", False), ("shm", True), ("net", True)):
        given: dict[str, Any] = {
            "gpus": (0, 1),
            "backend": "nccl",
            "world_size": 2,
            "transport": transport,
            "bytes": MIB,
        }
        assert engine.measure(plan(machine, f"allreduce/{transport}", "allreduce", **given)).verified is right


def test_an_idle_width_is_no_evidence_against_what_the_link_did_under_load() -> None:
    """GPU1 was found at x16 and ran at x8, as GPU0 does: neither is wider than the other."""
    machine = SCENARIOS["2xpcie"].machine
    other = under_load(link(5, 8), gpu=1)
    own = replace(under_load(link(5, 8)), link=watch(link(5, 8)))
    verdict = last(machine, other, own)
    assert verdict.cause == "downtrained_width"
    assert last(machine, own).cause == "width_fault"


def test_advice_for_a_gpu_on_a_coherent_link_names_no_slot_and_no_pcie() -> None:
    found = run(SCENARIOS["2xc2c"], groups=("link", "host_copy"))
    far = next(f for f in found.found if f.cause == "numa_far_slow")
    assert "xGMI" not in (far.advice or "")
    assert "extended tags" not in (far.advice or "")
    unknown = next(f for f in found.found if f.cause == "limit_unknown")
    assert "virtual machine" not in (unknown.advice or "")


def test_copies_over_nvlink_do_not_suffer_from_a_slow_way_between_processors() -> None:
    found = run(SCENARIOS["2xc2c"], groups=("link", "host_copy", "peer_copy"))
    assert {f.cause for f in found.found if f.status == "FAIL"} == {"numa_far_slow"}


def test_a_hidden_link_is_to_be_read_where_it_can_be() -> None:
    machine = SCENARIOS["2xpcie"].machine
    hidden = replace(machine, environment=replace(machine.environment, virtual_machine="KVM", root=False))
    advice = last(hidden, under_load(link(5, 16)), result("host_to_device", 30.0, limits=limits(None))).advice or ""
    assert advice.startswith("Run as root and outside the virtual machine where possible. ")


def test_a_link_that_is_read_faster_than_its_ends_support_is_a_contradiction() -> None:
    fault = Fault("link_state", gpu=1, address=SCENARIOS["2xpcie"].machine.gpus[1].address, link=LinkState(64.0, 16))
    verdict = _judged(fault).verdict("link/under_load/gpu1")
    assert (verdict.status, verdict.cause) == ("INDETERMINATE", "link_beyond_its_ends")
    assert "one of the two readings is wrong" in verdict.evidence[0]
