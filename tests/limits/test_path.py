"""Whole paths: the narrowest hop, shared uplinks, staging, and copies between GPUs."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from suite.limits import case, path, pcie
from suite.limits.links import as_recorded
from suite.limits.path import DOWN, UP, Packets
from suite.records.machine import Cpu, GpuPair, LinkState, Machine
from suite.records.run import Result
from tests.limits import machines as m

SWITCH_PORT = "0000:01:00.0"
links = st.builds(LinkState, st.sampled_from([8.0, 16.0, 32.0]), st.sampled_from([1, 4, 8, 16]))


def test_a_narrow_hop_above_an_x8_card_is_named() -> None:
    """Field case 9: both cards say Gen4 x8; one has an x4 hop above it."""
    machine = m.below_one_switch(1, most=m.GEN4_X8)
    seen = m.samples(m.watched(m.GEN4_X8, [("0000:10:00.0", m.GEN4_X8), (SWITCH_PORT, LinkState(16.0, 4))]))
    limit = case.of(machine, m.plan("host_to_device", 0), seen, ())
    assert limit.binding == "0000:01:00.0 16 GT/s x4, MPS 256"
    assert limit.now == pytest.approx(7.31e9, rel=0.001)
    assert limit.platform == pytest.approx(14.61e9, rel=0.001)


def test_the_cards_own_edge_counts_not_only_its_endpoint() -> None:
    """Field case 14: the endpoint says 32 GT/s x16, the card's edge runs at 16 GT/s x8."""
    machine = m.below_one_switch(1, most=m.GEN5_X16)
    seen = m.samples(m.watched(m.GEN5_X16, [("0000:10:00.0", m.GEN5_X16), (SWITCH_PORT, m.GEN4_X8)]))
    limit = case.of(machine, m.plan("host_to_device", 0), seen, ())
    assert limit.binding == "0000:01:00.0 16 GT/s x8, MPS 256"
    assert limit.now == pytest.approx(14.61e9, rel=0.001)


def test_an_mps_of_512_raises_the_ceiling() -> None:
    """Field case 12: MPS 512 is fine, and more than 256."""
    limit = case.of(m.virtual_h200(mps=512), m.plan("device_to_host", 0), m.samples(m.watched(m.GEN5_X16)), ())
    assert limit.now == pytest.approx(60.19e9, rel=0.001)


def test_a_hop_without_a_reading_is_left_out_and_named() -> None:
    machine = m.below_one_switch(1)
    limit = case.of(machine, m.plan("host_to_device", 0), m.samples(m.watched(m.GEN4_X16)), ())
    assert limit.now == pytest.approx(29.22e9, rel=0.001)
    assert limit.why is not None
    assert "Not known, so not counted: 0000:01:00.0" in limit.why


@given(links, links)
def test_a_path_is_never_faster_than_any_of_its_hops(endpoint: LinkState, uplink: LinkState) -> None:
    states = {"0000:10:00.0": endpoint, SWITCH_PORT: uplink}
    demand = path.host_demand(m.below_one_switch(1), [("0000:10:00.0", UP + DOWN)])
    packets = Packets(256, 512)
    found = path.bound(demand, lambda hop: states[hop.lower], packets)
    assert found is not None
    for lower, traffic in demand.traffic.items():
        assert found.rate <= path.hop_rate(demand, traffic, states[lower], packets)


def test_two_gpus_at_once_share_the_uplink_of_their_switch() -> None:
    machine = m.below_one_switch(2)
    demand = path.host_demand(machine, [("0000:10:00.0", DOWN), ("0000:11:00.0", DOWN)])
    assert path.loads(demand) == {"0000:10:00.0": 1, SWITCH_PORT: 2, "0000:11:00.0": 1}
    both = [m.watched(m.GEN4_X16, [(SWITCH_PORT, m.GEN4_X16)])] * 2
    earlier = [Result(f"link/gpu{n}", "link_under_load", 1, gpus=(n,), link=one) for n, one in enumerate(both)]
    limit = case.of(machine, m.plan("all_gpus_host_to_device", 0, 1), None, earlier)
    assert limit.now == pytest.approx(29.22e9, rel=0.001)
    assert limit.binding is not None
    assert limit.binding.startswith(SWITCH_PORT)


def test_two_gpus_at_once_on_ports_of_their_own_reach_twice_one_link() -> None:
    machine = m.below_root_ports(2)
    seconds = case.ideal_seconds(m.recorded_at(machine, m.GEN4_X16), m.plan("all_gpus_host_to_device", 0, 1))
    assert seconds == pytest.approx(2 * (256 << 20) / 58.45e9, rel=0.001)


def test_staging_as_a_whole_takes_the_time_of_both_copies() -> None:
    limit = _staged(chunk_bytes=None)
    assert limit == pytest.approx(1 / (1 / 28.81e9 + 1 / 29.22e9), rel=0.001)


def test_staging_in_chunks_between_two_links_is_a_pipeline() -> None:
    """min(W, R) · N / (N + 1) for N chunks where both copies are about as fast."""
    assert _staged(chunk_bytes=64 << 20) == pytest.approx(28.81e9 * 4 / 5, rel=0.005)


def test_staging_on_one_gpu_loads_its_link_both_ways() -> None:
    machine = m.recorded_at(m.below_root_ports(1), m.GEN4_X16)
    plan = m.plan("staging", 0, chunk_bytes=1 << 16)
    seconds = case.ideal_seconds(machine, plan)
    assert seconds is not None
    both = pcie.share(UP + DOWN, 4, 16, 256, 512)
    assert plan.bytes / seconds == pytest.approx(both, rel=0.001)
    assert both < pcie.device_to_host(4, 16, 256)


def test_staging_below_one_switch_loads_the_uplink_once_each_way() -> None:
    demand = path.host_demand(m.below_one_switch(2), [("0000:10:00.0", UP), ("0000:11:00.0", DOWN)])
    assert demand.traffic[SWITCH_PORT] == UP + DOWN


def test_a_peer_copy_below_one_switch_does_not_touch_the_uplink() -> None:
    demand = path.peer_demand(m.below_one_switch(2), "0000:10:00.0", "0000:11:00.0")
    assert set(demand.hops) == {"0000:10:00.0", "0000:11:00.0"}


def test_acs_redirect_sends_a_peer_copy_over_the_uplink() -> None:
    machine = m.below_one_switch(2, acs=True)
    assert SWITCH_PORT in path.peer_demand(machine, "0000:10:00.0", "0000:11:00.0").hops
    limit = case.of(m.recorded_at(machine, m.GEN4_X16), m.plan("peer_write", 0, 1), None, ())
    assert limit.why is not None
    assert "ACS redirects" in limit.why


def test_a_peer_copy_over_pcie_is_posted_writes_on_both_links() -> None:
    limit = case.as_recorded(m.recorded_at(m.below_root_ports(2), m.GEN4_X16), m.plan("peer_write", 0, 1))
    assert limit.now == pytest.approx(28.81e9, rel=0.001)
    assert limit.hard


def test_across_an_intel_host_bridge_peer_packets_have_64_bytes_and_the_limit_is_soft() -> None:
    machine = m.recorded_at(m.below_root_ports(2), m.GEN4_X16, cpu=Cpu(vendor="GenuineIntel"))
    limit = case.as_recorded(machine, m.plan("peer_write", 0, 1))
    assert limit.now == pytest.approx(22.91e9, rel=0.001)
    assert not limit.hard


def test_with_p2p_off_a_peer_copy_is_staged() -> None:
    machine = m.recorded_at(m.below_one_switch(2), m.GEN4_X16)
    limit = case.as_recorded(machine, m.plan("peer_write", 0, 1, p2p=False))
    assert limit.why is not None
    assert "stages the copy" in limit.why
    assert limit.binding is not None
    assert limit.binding.startswith(SWITCH_PORT)


def test_a_pair_on_two_nodes_names_the_processors_links() -> None:
    pair = GpuPair(0, 1, topology="SYS")
    cpu = Cpu(model="AMD EPYC 9554 64-Core Processor", vendor="AuthenticAMD")
    machine = m.recorded_at(m.below_root_ports(2), m.GEN4_X16, cpu=cpu, pairs=(pair,))
    why = case.as_recorded(machine, m.plan("peer_write", 0, 1)).why
    assert why is not None
    assert "xGMI x16 at 32 GT/s" in why


def test_an_unknown_width_is_no_link() -> None:
    """A width of 255 or an odd one from a broken reading is not computed with."""
    machine = m.below_root_ports(1)
    demand = path.host_demand(machine, [("0000:01:00.0", UP)])
    assert path.bound(demand, lambda _hop: LinkState(16.0, 3), Packets(256, 512)) is None
    assert path.bound(path.host_demand(Machine(), [("0000:01:00.0", UP)]), as_recorded, Packets(256, 512)) is None


def _staged(chunk_bytes: int | None) -> float:
    machine = m.recorded_at(m.below_root_ports(2), m.GEN4_X16)
    plan = m.plan("staging", 0, 1, chunk_bytes=chunk_bytes)
    seconds = case.ideal_seconds(machine, plan)
    assert seconds is not None
    return plan.bytes / seconds
