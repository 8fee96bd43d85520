"""Latencies that are high on every GPU alike: no equal GPU stands out, and they are called unusual all the same."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

import pytest

from suite.judge import copies
from suite.judge.view import View
from suite.records.case import Operation
from suite.records.machine import Machine
from suite.records.run import Limits, Result
from suite.records.scenario import Fault, Scenario
from tests.data.machines import build
from tests.judge.pipeline import run
from tests.judge.small import last, limits, link, result, under_load

PCIE, SWITCHED = build.two_pcie(), build.nvswitch()
PEER_LOAD: dict[str, Any] = {"gpus": (0, 1), "engine": "load-store", "p2p": True}


def timed(operation: Operation, *microseconds: float, **fields: Any) -> Result:
    samples = tuple(one * 1e-6 for one in microseconds)
    given: dict[str, Any] = {"bytes": 8, "samples_s": samples * (5 if len(samples) == 1 else 1)}
    return result(operation, case=f"host_copy/{operation}", **given, **fields)


@pytest.mark.parametrize(
    ("operation", "in_order", "unusual", "fields"),
    [
        ("host_to_device_latency", 31, 120, {"memory_node": 0}),
        ("device_to_host_latency", 31, 120, {"memory_node": 0}),
        ("host_device_load_latency", 1.4, 6, {"memory_node": 0}),
        ("peer_flag_latency", 1.9, 11, {"gpus": (0, 1), "engine": "load-store", "p2p": False}),
        ("peer_latency", 40, 120, {"gpus": (0, 1), "engine": "copy-engine", "p2p": False}),
        ("peer_latency", 1.8, 6, PEER_LOAD),
    ],
)
def test_a_latency_far_above_every_known_machine_is_unusual(
    operation: Operation, in_order: float, unusual: float, fields: dict[str, Any]
) -> None:
    assert last(SWITCHED, timed(operation, in_order, **fields)).cause == "healthy"
    verdict = last(SWITCHED, timed(operation, unusual, **fields))
    assert (verdict.status, verdict.cause) == ("WARN", "latency_high")
    assert "unusual for any GPU" in verdict.evidence[0]


def test_a_load_from_a_peer_over_pcie_is_not_judged_as_too_little_is_known_of_it() -> None:
    assert last(PCIE, timed("peer_latency", 60, **PEER_LOAD)).status == "PASS"


def test_one_sample_in_order_speaks_for_the_path_and_the_spread_is_said() -> None:
    verdict = last(PCIE, timed("host_device_load_latency", 1.2, 6, 7, 8, 9))
    assert verdict.status == "PASS"
    assert "the samples spread" in verdict.evidence[1]


def test_a_gpu_that_is_slower_than_its_equal_is_held_against_that_one() -> None:
    first, second = (timed("host_device_load_latency", t, gpus=(g,)) for g, t in ((0, 1.2), (1, 9)))
    assert last(PCIE, first, second).cause == "latency_out_of_family"


def test_what_is_known_to_add_latency_is_named() -> None:
    environment = replace(PCIE.environment, virtual_machine="KVM", iommu="DMA-FQ", governor="powersave")
    pci = tuple(replace(f, config=replace(f.config, aspm="L1") if f.config else None) for f in PCIE.pci)
    machine = replace(PCIE, environment=environment, pci=pci)
    limits = Limits(why="Healthy machines load in 1 µs.")
    verdict = last(machine, timed("host_device_load_latency", 20, memory_node=1, limits=limits))
    assert verdict.evidence[1:] == (
        "Healthy machines load in 1 µs.",
        "this is a virtual machine (KVM)",
        "the IOMMU translates addresses (DMA-FQ)",
        "the CPU governor is powersave",
        "ASPM of GPU0's link: L1",
        "the memory is on node 1, GPU0 on node 0",
    )


def test_nothing_is_said_of_what_is_not_known() -> None:
    assert len(last(Machine(), timed("host_device_load_latency", 20)).evidence) == 1


def below_switches(count: int) -> Machine:
    """One GPU with some switches in a row between it and its root port."""
    most, gpu = build.link(5, 16), "0000:99:00.0"
    pci, above = [build.port("0000:01:01.0", most, 0)], "0000:01:01.0"
    for bus in range(2, 2 * count + 2, 2):
        up, down = f"0000:{bus:02x}:00.0", f"0000:{bus + 1:02x}:00.0"
        pci += [build.port(up, most, 0, above, port_type="upstream_port"), build.port(down, most, 0, up)]
        above = down
    pci.append(build.endpoint(gpu, above, most, 0))
    return build.machine(pci, [build.card(0, "RTX PRO 6000", pci, gpu)], build.nodes(1))


def test_a_gpu_behind_more_than_one_switch_is_told_so() -> None:
    slow = timed("host_device_load_latency", 20)
    assert len(last(below_switches(1), slow).evidence) == 1
    assert last(below_switches(2), slow).evidence[1:] == ("GPU0 is 3 links below its root complex",)


def test_a_simulated_machine_that_is_slow_throughout_warns_once_for_hosts_and_once_for_peers() -> None:
    judged = run(Scenario(PCIE, (Fault("latency", seconds=2e-4),)), groups=("latency",))
    assert {r.verdict.cause for r in judged.run.results if r.verdict} == {"latency_high"}
    host, peers = (f for f in judged.found if f.cases)
    assert (host.status, host.subject, len(host.cases)) == ("WARN", "GPU0, GPU1", 6)
    assert re.search(r"6 cases are like this, (199|20\d) µs to 20\d µs", host.sentence)
    assert (peers.status, peers.subject, len(peers.cases)) == ("WARN", "GPU0, GPU1", 2)
    assert "switches and retimers" in (host.advice or "")


@pytest.mark.parametrize("machine", [PCIE, SWITCHED])
def test_a_simulated_machine_in_order_does_not_warn(machine: Machine) -> None:
    assert run(Scenario(machine, noise=0.03), groups=("latency",)).statuses() == {"PASS"}


def test_time_that_a_slower_link_takes_is_no_latency() -> None:
    """GPU1 runs at Gen1, which its owner accepts: 2 MiB take longer than on GPU0 for that alone."""
    given: dict[str, Any] = {"bytes": 2 << 20, "memory_node": None}
    fast = result("host_to_device", gpus=(0,), samples_s=(45e-6,) * 5, limits=limits(58.0), **given)
    slow = result("host_to_device", gpus=(1,), samples_s=(900e-6,) * 5, limits=limits(3.7), **given)
    alike = [under_load(link(5, 16), gpu=gpu) for gpu in (0, 1)]
    differing = [under_load(link(5, 16), gpu=0), under_load(link(1, 16), gpu=1)]
    fast, slow = replace(fast, bandwidth=46e9), replace(slow, bandwidth=2.3e9)
    assert copies.latency_out_of_family(View(slow, PCIE, (*alike, fast))) is not None
    assert copies.latency_out_of_family(View(slow, PCIE, (*differing, fast))) is None
