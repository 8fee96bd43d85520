"""The simulated engine: physics in, samples out."""

from __future__ import annotations

from dataclasses import fields, replace
from statistics import mean, median, stdev
from typing import Any

import pytest

from suite.errors import MeasureError, Unavailable
from suite.measure.simulated.engine import SimulatedEngine
from suite.records.case import Operation, Plan
from suite.records.machine import LinkState, Machine
from suite.records.scenario import Fault, Scenario
from suite.units import MIB
from tests.data.machines import build

MACHINE = build.two_pcie()
RATE = 57e9


def ideal(machine: Machine, plan: Plan) -> float | None:
    """A ceiling that follows the GPU's link under load: 57 GB/s at Gen5 x16."""
    gpu = machine.gpu(plan.gpus[0]) if plan.gpus else None
    if gpu is None or gpu.link.speed_gts is None or gpu.link.width is None or plan.operation.endswith("latency"):
        return None
    return plan.bytes / (RATE * gpu.link.speed_gts / 32 * gpu.link.width / 16)


def engine(*faults: Fault, **given: Any) -> SimulatedEngine:
    return SimulatedEngine(Scenario(given.pop("machine", MACHINE), faults, **given), ideal)


def plan(operation: Operation = "host_to_device", size: int = 256 * MIB, **given: Any) -> Plan:
    fields_ = {"case": f"host_copy/{operation}", "gpus": (0,), "memory_node": 0, **given}
    return Plan(operation=operation, bytes=size, **fields_)


def rate(engine_: SimulatedEngine, plan_: Plan) -> float:
    return plan_.bytes / median(engine_.measure(plan_).seconds)


def test_the_same_case_gives_the_same_samples_whatever_ran_before() -> None:
    one, other = engine(), engine()
    other.measure(plan("device_to_host"))
    assert one.measure(plan()) == other.measure(plan())


def test_another_seed_gives_other_samples() -> None:
    assert engine(seed=1).measure(plan()).seconds != engine(seed=2).measure(plan()).seconds


def test_noise_is_the_relative_standard_deviation() -> None:
    seconds = engine(noise=0.02, efficiency=0.85).measure(plan(rounds=400)).seconds
    assert stdev(seconds) / mean(seconds) == pytest.approx(0.02, rel=0.15)


def test_no_sample_beats_the_ceiling() -> None:
    seconds = engine(noise=0.05, efficiency=0.97).measure(plan(rounds=200)).seconds
    assert min(seconds) >= 256 * MIB / RATE


def test_small_copies_cost_their_start() -> None:
    one = engine(noise=0.0)
    rates = [rate(one, plan(size=size)) for size in (4096, 65536, MIB, 64 * MIB)]
    assert rates == sorted(rates)
    assert rates[0] < 0.1 * rates[-1]
    assert rates[-1] == pytest.approx(0.925 * RATE, rel=0.02)


def test_a_link_fault_is_seen_in_the_rate_and_in_the_watch() -> None:
    one = engine(Fault("link_state", gpu=0, link=LinkState(2.5, 16)), noise=0.0)
    assert rate(one, plan()) == pytest.approx(0.925 * RATE * 2.5 / 32, rel=0.01)
    watch = one.measure(plan("link_under_load", watch=True)).watch
    assert watch is not None
    assert (watch.load, watch.hops[0].load) == (LinkState(2.5, 16), LinkState(2.5, 16))


def test_a_link_fault_may_name_the_upper_end_of_its_hop() -> None:
    faulty = [Fault("link_state", address=end, link=LinkState(2.5, 16)) for end in ("0000:20:01.0", "0000:21:00.0")]
    upper, lower = (engine(fault, noise=0.0).measure(plan()).seconds for fault in faulty)
    assert upper == lower
    assert upper != engine(noise=0.0).measure(plan()).seconds


def test_a_healthy_link_idles_low_and_runs_full_under_load() -> None:
    watch = engine().measure(plan("link_under_load", watch=True)).watch
    assert watch is not None
    assert (watch.idle, watch.load) == (LinkState(2.5, 16), LinkState(32.0, 16))
    assert watch.readings > 0
    assert watch.aer_correctable == 0


def test_a_machine_that_hides_its_link_shows_none_under_load_either() -> None:
    scenario = build.scenarios()["1xvm-blank-link"]
    samples = SimulatedEngine(scenario, ideal).measure(plan("link_under_load", watch=True))
    assert samples.watch is not None
    assert samples.watch.load == LinkState()
    assert samples.watch.replays is None


def test_link_errors_are_counted_at_the_end_that_sees_them() -> None:
    one = engine(Fault("link_errors", address="0000:20:01.0", rate=100.0))
    watch = one.measure(plan("link_under_load", watch=True)).watch
    assert watch is not None
    assert watch.aer_correctable == 60
    assert watch.hops[0].aer_upper is not None
    assert watch.hops[0].aer_upper.correctable == 60
    assert watch.hops[0].aer_lower is not None
    assert watch.hops[0].aer_lower.correctable == 0


@pytest.mark.parametrize(
    ("fault", "slow", "untouched"),
    [
        (Fault("hop_capacity", address="0000:21:00.0", rate=10e9), plan(), plan(gpus=(1,), memory_node=1)),
        (Fault("hop_capacity", address="0000:20:01.0", rate=10e9), plan(), plan(gpus=(1,), memory_node=1)),
        (Fault("node_capacity", node=1, rate=10e9), plan(memory_node=1), plan(gpus=(1,), memory_node=1)),
        (Fault("node_to_gpu_capacity", gpu=0, node=1, rate=10e9), plan(memory_node=1), plan(memory_node=0)),
        (Fault("outstanding_reads", gpu=0, rate=10e9), plan(), plan("device_to_host")),
        (
            Fault("pair_capacity", gpu=0, peer=1, rate=10e9),
            plan("peer_write", gpus=(0, 1), p2p=True),
            plan("peer_write", gpus=(0, 1), p2p=False),
        ),
    ],
    ids=lambda value: value.kind if isinstance(value, Fault) else "",
)
def test_a_capacity_binds_its_own_path_only(fault: Fault, slow: Plan, untouched: Plan) -> None:
    one = engine(fault, noise=0.0)
    assert rate(one, slow) == pytest.approx(10e9, rel=0.01)
    assert rate(one, untouched) > 30e9


def test_one_weak_direction_shows_in_both_ways_as_that_direction() -> None:
    directions = engine(Fault("outstanding_reads", gpu=0, rate=10e9)).measure(plan("both_ways")).directions
    assert directions is not None
    assert median(directions["host_to_device"]) > 3 * median(directions["device_to_host"])


def test_a_latency_fault_adds_its_seconds() -> None:
    healthy, slow = engine(noise=0.0), engine(Fault("latency", gpu=0, seconds=1e-4), noise=0.0)
    small = plan(size=4096)
    assert slow.measure(small).seconds[0] - healthy.measure(small).seconds[0] == pytest.approx(1e-4)


def test_wrong_bytes_are_said_and_named_no_cause() -> None:
    samples = engine(Fault("wrong_bytes", gpu=0, group="host_copy")).measure(plan())
    assert samples.verified is False
    assert samples.wrong


@pytest.mark.parametrize("kind", ["hang", "crash"])
def test_a_worker_that_does_not_answer_is_a_measure_error_with_what_ranks_said(kind: Any) -> None:
    with pytest.raises(MeasureError) as caught:
        engine(Fault(kind, group="host_copy")).measure(plan())
    assert caught.value.kind == kind
    assert len(caught.value.said) == 1


def test_a_fault_of_one_group_leaves_the_others_alone() -> None:
    assert engine(Fault("hang", gpu=0, group="allreduce")).measure(plan()).verified


def test_peer_copies_without_p2p_are_unavailable_with_the_reason() -> None:
    one = engine(machine=build.two_pcie(p2p="GNS"))
    with pytest.raises(Unavailable, match="GNS"):
        one.measure(plan("peer_write", gpus=(0, 1), p2p=True))
    assert one.measure(plan("peer_write", gpus=(0, 1), p2p=False)).seconds


def test_placement_is_proved_where_there_is_a_host_buffer() -> None:
    placement = engine().measure(plan()).placement
    assert placement is not None
    assert (placement.node, placement.proved, placement.method) == (0, True, "simulated")
    assert (
        engine().measure(plan("allreduce", gpus=(), memory_node=None, backend="gloo", world_size=2)).placement is None
    )


def test_far_host_memory_is_slower_than_near() -> None:
    one = engine(noise=0.0)
    near = plan("host_memory_copy", gpus=(), target_node=0, cpu_node=0)
    assert rate(one, near) > rate(one, replace(near, target_node=1))


def test_a_scenario_cannot_name_a_cause() -> None:
    """Faults are physical: an address, a rate, a link, seconds."""
    assert {f.name for f in fields(Fault)} == {
        "kind",
        "gpu",
        "peer",
        "node",
        "address",
        "group",
        "link",
        "rate",
        "seconds",
    }
