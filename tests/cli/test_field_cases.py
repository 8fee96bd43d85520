"""Cases from the field as `lanecheck probe` and the limits see them before anything is measured. The judge has its own.

Numbers are those of the cases that are collected for the project; the machines are made for these tests.
"""

from __future__ import annotations

from dataclasses import replace

import pytest

from suite.limits import case
from suite.records.case import HopWatch, LinkWatch, Plan, Samples, Transport
from suite.records.machine import LinkState, Machine, PcieConfig
from suite.records.path import path_to_root
from suite.records.run import Limits
from suite.report.machine import render
from suite.report.remarks import remarks
from suite.units import GIB, MIB
from tests.data.machines import build
from tests.data.machines.build import link


def under_load(machine: Machine, operation: str = "device_to_host", gpu: int = 0) -> Limits:
    """The limits of a large copy while every hop runs as fast as both of its ends can."""
    card = machine.gpu(gpu)
    hops = path_to_root(machine, card.address or "").hops if card else ()
    watch = LinkWatch(
        load=hops[0].possible if hops else LinkState(),
        readings=20,
        hops=tuple(HopWatch(hop.lower, hop.upper, load=hop.possible) for hop in hops),
    )
    plan = Plan("host_copy/x", operation, 256 * MIB, gpus=(gpu,))  # type: ignore[arg-type]
    return case.of(machine, plan, Samples((0.01,), "simulated", "simulated", watch=watch), ())


def said(machine: Machine) -> str:
    return "\n".join(remarks(machine))


def test_1_an_idle_gen1_is_shown_as_found_and_gives_no_limit() -> None:
    machine = build.one_gen3()
    assert "Gen1 x16 of Gen3 x16" in render(machine)
    assert "GPU 0: the link runs Gen1 of Gen3 as found; only a reading under load tells more." in said(machine)
    limits = case.of(machine, Plan("x", "device_to_host", MIB, gpus=(0,)), None, ())
    assert limits.now is None
    assert limits.platform == pytest.approx(14.40e9, rel=0.005)


def test_9_the_x4_hop_above_the_second_card_is_named_by_both() -> None:
    machine = build.x4_hop()
    assert "GPU 1: the narrowest hop of its path is 0000:02:00.0 below 0000:00:1c.0, Gen4 x4." in said(machine)
    assert under_load(machine, gpu=0).now == pytest.approx(28.81e9 / 2, rel=0.005)
    second = under_load(machine, gpu=1)
    assert second.now == pytest.approx(28.81e9 / 4, rel=0.005)
    assert (second.binding or "").startswith("0000:02:00.0 16 GT/s x4")


def test_10_a_blank_link_is_unknown_and_nothing_is_made_up() -> None:
    machine = build.blank_link()
    assert "Gen? x?" in render(machine)
    assert "GPU 0: the link is not shown (virtual machines often hide it); its limit is not known." in said(machine)
    limits = under_load(machine)
    assert (limits.now, limits.platform, limits.expected, limits.generations) == (None, None, None, ())


def test_11_an_h100_nvl_is_limited_by_its_12_links() -> None:
    machine = build.h100_nvl()
    assert "NV12 of 12 possible, version 4" in render(machine)
    limits = case.of(machine, Plan("x", "peer_write", 256 * MIB, gpus=(0, 1)), None, ())
    assert limits.now == pytest.approx(300e9)


def test_12_a_payload_of_512_raises_the_ceiling() -> None:
    machine = build.two_pcie()
    config = PcieConfig(mps=512, mps_supported=512, mrrs=4096)
    large = replace(machine, pci=tuple(replace(f, config=config) for f in machine.pci))
    assert under_load(large).now == pytest.approx(60.19e9, rel=0.005)
    assert under_load(machine).now == pytest.approx(57.61e9, rel=0.005)
    assert "MPS 512 along the path" in render(large)


def test_14_the_card_s_own_edge_counts_not_the_endpoint_behind_its_switch() -> None:
    """A card with a switch of its own: the endpoint below it trains 32 GT/s x16, the edge 16 GT/s x8."""
    pci = [
        build.port("0000:00:01.0", link(4, 8), 0),
        build.port("0000:01:00.0", link(4, 8), 0, "0000:00:01.0", port_type="upstream_port"),
        build.port("0000:02:00.0", link(5, 16), 0, "0000:01:00.0"),
        build.endpoint("0000:03:00.0", "0000:02:00.0", link(5, 16), 0),
    ]
    machine = build.machine(pci, [build.card(0, "a card", pci, "0000:03:00.0")], build.nodes(1))
    assert "GPU 0: the narrowest hop of its path is 0000:01:00.0 below 0000:00:01.0, Gen4 x8." in said(machine)
    assert under_load(machine).now == pytest.approx(28.81e9 / 2, rel=0.005)


def test_15_x8_of_x16_has_three_possible_reasons() -> None:
    text = said(build.cloud_x8())
    assert "GPU 0-3: the link runs x8 of x16: slot wiring, bifurcation, or a fault." in text


def test_18_a_small_bar1_is_remarked_with_who_sets_it() -> None:
    text = said(build.small_bar1())
    assert "GPU 0: only 256MiB of 24 GiB are mapped (BAR1)" in text
    assert "setting of the BIOS or VBIOS" in text


def test_19_the_idle_workstation_crosses_sockets_and_has_no_bridge() -> None:
    text = said(build.a6000s())
    assert "GPU pair 0-1: the path crosses sockets." in text
    assert "GPU 0-1: 4 NVLinks and none is active: no bridge is fitted" in text
    assert "only a reading under load tells more" in text


def test_20_nodes_of_one_socket_are_not_called_sockets() -> None:
    text = said(build.nps4())
    assert "GPU pair 0-1: the path crosses NUMA nodes of one socket." in text
    assert "GPU pairs 0-2 and 1-2: the path crosses sockets." in text
    assert "Package 0 is split into NUMA nodes 0, 1, 2 and 3 (sub-NUMA clustering, NPS)." in text


def test_21_reducing_in_the_switch_has_a_ceiling_of_700() -> None:
    plan = Plan("allreduce/x", "allreduce", 2 * GIB, gpus=tuple(range(8)), backend="nccl", world_size=8, engine="nccl")
    machine = build.nvswitch()
    switched, ring = (
        case.of(machine, plan, Samples((0.01,), "simulated", "nccl", transport=Transport("P2P", name)), ())
        for name in ("NVLS", "Ring")
    )
    assert switched.now == pytest.approx(700e9, rel=0.005)
    assert ring.now == pytest.approx(450e9, rel=0.005)


def test_23_an_unread_payload_is_assumed_between_128_and_512_and_root_would_settle_it() -> None:
    machine = build.two_pcie()
    note = "needs root: only the first 64 bytes of the configuration space are readable"
    hidden = replace(machine, pci=tuple(replace(f, config=None, config_note=note) for f in machine.pci))
    limits = under_load(hidden)
    assert limits.basis == "assumed"
    assert (limits.low, limits.now, limits.high) == pytest.approx((53.07e9, 57.61e9, 60.19e9), rel=0.005)
    ordinary = replace(hidden, environment=replace(hidden.environment, root=False))
    assert "needs root: MPS, MRRS, ACS, target speed, flit mode. One `sudo lanecheck probe` settles them." in said(
        ordinary
    )
