"""The limits of whole cases, on small machines."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from suite.limits import case
from suite.records.case import Operation
from suite.records.machine import Cpu, LinkState, NumaNode
from suite.records.run import Result
from tests.limits import machines as m

WATCHED = m.samples(m.watched(m.GEN5_X16))


@pytest.mark.parametrize(("operation", "ceiling"), [("host_to_device", 58.45e9), ("device_to_host", 57.61e9)])
def test_an_h200_in_a_virtual_machine_is_limited_by_its_own_link(operation: str, ceiling: float) -> None:
    limit = case.of(m.virtual_h200(), m.plan(operation, 0), WATCHED, ())  # type: ignore[arg-type]
    assert limit.now == pytest.approx(ceiling, abs=5e6)
    assert limit.device == limit.platform == limit.now
    assert limit.basis == "virtualized"
    assert limit.binding == "0000:00:06.0 32 GT/s x16, MPS 256"
    assert limit.hard


def test_without_a_reading_under_load_there_is_no_limit_for_now() -> None:
    limit = case.of(m.virtual_h200(), m.plan("host_to_device", 0), m.samples(), ())
    assert limit.now is None
    assert limit.platform == pytest.approx(58.45e9, abs=5e6)
    assert limit.why is not None
    assert "not read under load" in limit.why


def test_a_watch_without_readings_in_the_transfer_does_not_count() -> None:
    seen = m.samples(m.watched(m.GEN5_X16, readings=0))
    assert case.of(m.virtual_h200(), m.plan("host_to_device", 0), seen, ()).now is None


def test_a_small_case_cites_the_watch_of_an_earlier_one() -> None:
    earlier = Result("link/gpu0", "link_under_load", 1 << 28, gpus=(0,), link=m.watched(LinkState(2.5, 16)))
    limit = case.of(m.virtual_h200(), m.plan("host_to_device", 0), m.samples(), (earlier,))
    assert limit.now == pytest.approx(3.71e9, abs=5e6)
    assert limit.why is not None
    assert "link/gpu0" in limit.why


def test_the_watch_of_another_gpu_does_not_count() -> None:
    earlier = Result("link/gpu0", "link_under_load", 1 << 28, gpus=(0,), link=m.watched(m.GEN4_X16))
    assert case.of(m.below_root_ports(), m.plan("host_to_device", 1), None, (earlier,)).now is None


def test_where_the_mps_was_not_read_256_is_shown_between_128_and_512() -> None:
    limit = case.of(m.virtual_h200(mps=None), m.plan("device_to_host", 0), WATCHED, ())
    assert limit.basis == "assumed"
    assert (limit.low, limit.now, limit.high) == pytest.approx((53.07e9, 57.61e9, 60.19e9), rel=0.001)


def test_both_ways_is_limited_by_the_sum_of_the_pair() -> None:
    limit = case.of(m.virtual_h200(), m.plan("both_ways", 0), WATCHED, ())
    assert limit.now == pytest.approx(115.75e9, rel=0.001)


def test_the_ceilings_of_the_generations_are_given_at_the_same_width() -> None:
    limit = case.of(m.virtual_h200(), m.plan("host_to_device", 0), WATCHED, ())
    assert limit.generations == pytest.approx((3.71e9, 7.42e9, 14.61e9, 29.22e9, 58.45e9), rel=0.001)


@pytest.mark.parametrize("operation", ["host_to_device", "device_to_host", "both_ways"])
def test_pageable_memory_has_the_link_s_ceiling_but_no_healthy_range(operation: Operation) -> None:
    """The driver's own buffer bounds it, far below what healthy machines reach with pinned memory."""
    pinned = case.of(m.virtual_h200(), m.plan(operation, 0), WATCHED, ())
    pageable = case.of(m.virtual_h200(), m.plan(operation, 0, memory="pageable"), WATCHED, ())
    assert pinned.expected is not None
    assert "Healthy machines" in (pinned.why or "")
    assert (pageable.now, pageable.generations) == (pinned.now, pinned.generations)
    assert pageable.expected is None
    assert "Healthy machines" not in (pageable.why or "")


@pytest.mark.parametrize("operation", ["host_to_device_latency", "peer_flag_latency"])
def test_a_latency_has_no_floor_until_one_is_known(operation: str) -> None:
    limit = case.of(m.virtual_h200(), m.plan(operation, 0), None, ())  # type: ignore[arg-type]
    assert (limit.now, limit.floor_s) == (None, None)


@pytest.mark.parametrize(
    ("operation", "given", "known"),
    [
        ("device_to_host_latency", {}, "8.4 to the host"),
        ("host_device_load_latency", {}, "1.32 across sockets"),
        ("peer_latency", {"p2p": False}, "P2P=Disabled"),
        ("peer_latency", {"p2p": True}, "P2P=Enabled"),
        ("peer_latency", {"p2p": True, "engine": "load-store"}, "too few to judge by"),
        ("peer_flag_latency", {"engine": "load-store"}, "1.86 µs through host memory"),
    ],
)
def test_a_latency_says_what_is_known_of_healthy_machines(operation: str, given: dict[str, Any], known: str) -> None:
    limit = case.of(m.virtual_h200(), m.plan(operation, 0, **given), None, ())  # type: ignore[arg-type]
    assert known in (limit.why or "")


def test_gloo_has_no_limit_and_says_why() -> None:
    limit = case.of(m.virtual_h200(), m.plan("allreduce", backend="gloo", world_size=2), None, ())
    assert limit.now is None
    assert limit.why is not None
    assert "loopback" in limit.why


def test_an_ideal_copy_takes_the_time_that_the_recorded_link_needs() -> None:
    """The record of a simulated machine holds the link under load: here Gen1 x16."""
    seconds = case.ideal_seconds(m.virtual_h200(), m.plan("host_to_device", 0))
    assert seconds == pytest.approx((256 << 20) / 3.71e9, rel=0.002)


def test_both_ways_say_how_full_the_fuller_direction_was() -> None:
    size = 256 << 20
    ways = {"host_to_device": (size / 58.45e9,), "device_to_host": (size / 57.30e9,)}
    seen = m.samples(m.watched(m.GEN5_X16), directions=ways)
    limit = case.of(m.virtual_h200(), m.plan("both_ways", 0), seen, ())
    assert limit.utilisation == pytest.approx(1.0, abs=0.001)


def test_a_pair_of_rates_outside_the_region_is_more_than_full() -> None:
    size = 256 << 20
    ways = {"host_to_device": (size / 50e9,), "device_to_host": (size / 59e9,)}
    seen = m.samples(m.watched(m.GEN5_X16), directions=ways)
    limit = case.of(m.virtual_h200(), m.plan("both_ways", 0), seen, ())
    assert limit.utilisation is not None
    assert limit.utilisation > 1.02


def test_an_ideal_copy_both_ways_stays_within_the_region() -> None:
    machine = m.recorded_at(m.virtual_h200(), m.GEN5_X16)
    seconds = case.ideal_seconds(machine, m.plan("both_ways", 0))
    assert seconds is not None
    seen = m.samples(m.watched(m.GEN5_X16), seconds)
    assert case.of(machine, m.plan("both_ways", 0), seen, ()).utilisation == pytest.approx(1.0)


def test_a_gpu_joined_by_c2c_gets_no_pcie_limit() -> None:
    """Field case 4."""
    machine = replace(m.virtual_h200(), gpus=(replace(m.virtual_h200().gpus[0], c2c=True),))
    limit = case.of(machine, m.plan("device_to_host", 0), WATCHED, ())
    assert limit.now is None
    assert limit.why is not None
    assert "PCIe model is not applicable" in limit.why


def test_a_gpu_that_the_machine_does_not_have_has_no_limit() -> None:
    for operation in ("host_to_device", "staging", "peer_write", "device_local_copy"):
        assert case.of(m.virtual_h200(), m.plan(operation, 5, 6), None, ()).now is None  # type: ignore[arg-type]


def test_memory_on_another_node_is_said() -> None:
    limit = case.of(m.virtual_h200(), m.plan("host_to_device", 0, memory_node=1), WATCHED, ())
    assert limit.why is not None
    assert "Memory is on node 1, the GPU on node 0" in limit.why


def test_the_expected_range_lies_below_the_ceiling() -> None:
    limit = case.of(m.virtual_h200(), m.plan("host_to_device", 0), WATCHED, ())
    assert limit.expected is not None
    assert limit.now is not None
    assert limit.expected == pytest.approx((0.90 * limit.now, 0.98 * limit.now))


@given(
    st.sampled_from(sorted(get_args(Operation))),
    st.lists(st.integers(0, 3), max_size=4),
    st.sampled_from([None, 128, 256, 300, 0]),
    st.sampled_from([LinkState(), LinkState(16.0, 16), LinkState(7.0, 255), LinkState(8.0, None)]),
    st.sampled_from(["copy-engine", "sm", "nccl", "gloo", "memcpy"]),
)
def test_no_machine_and_no_plan_makes_a_traceback(
    operation: str, gpus: list[int], mps: int | None, link: LinkState, engine: str
) -> None:
    machine = m.below_root_ports(2, most=link, mps=mps)
    backend = engine if engine in ("nccl", "gloo") else None
    plan = m.plan(operation, *gpus, engine=engine, backend=backend, world_size=len(gpus))  # type: ignore[arg-type]
    limit = case.of(machine, plan, m.samples(m.watched(link, [("0000:01:00.0", link)])), ())
    assert limit.why
    assert limit.now is None or limit.now > 0
    seconds = case.ideal_seconds(machine, plan)
    assert seconds is None or seconds > 0


def test_extended_tags_that_are_off_are_named_as_a_reason_for_less() -> None:
    endpoint = m.function("0000:00:06.0")
    assert endpoint.config is not None
    few = replace(endpoint, config=replace(endpoint.config, mrrs=512, extended_tags=False))
    limit = case.of(replace(m.virtual_h200(), pci=(few,)), m.plan("host_to_device", 0), WATCHED, ())
    assert limit.now == pytest.approx(58.45e9, abs=5e6)
    assert limit.why is not None
    assert "32 reads of 512 bytes in flight bring 27.31 GB/s" in limit.why


def test_split_completions_are_a_hypothesis_beside_the_ceiling_of_reads_only() -> None:
    reads = case.of(m.virtual_h200(), m.plan("host_to_device", 0), WATCHED, ()).why
    writes = case.of(m.virtual_h200(), m.plan("device_to_host", 0), WATCHED, ()).why
    assert reads is not None
    assert writes is not None
    assert "48.01 GB/s" in reads
    assert "splits" not in writes


def test_the_processors_links_are_named_between_sockets_only() -> None:
    """With NPS4 two nodes of one socket are no two sockets (field case 20)."""
    plan, cpu = m.plan("host_to_device", 0, memory_node=1), Cpu(model="Intel(R) Xeon(R) Platinum 8480+")
    for second, crosses in ((0, False), (1, True)):
        nodes = (NumaNode(0, packages=(0,)), NumaNode(1, packages=(second,)))
        why = case.of(replace(m.virtual_h200(), nodes=nodes, cpu=cpu), plan, WATCHED, ()).why
        assert why is not None
        assert "Memory is on node 1" in why
        assert ("UPI at 16 GT/s" in why) is crosses
