"""Cards that are built with eight lanes, in slots of sixteen: eight is all of them, four is a loss."""

from __future__ import annotations

from suite.records.machine import Machine
from suite.records.scenario import Fault, Scenario
from tests.data.machines.build import card, link, machine, nodes, slot
from tests.judge.pipeline import run

NAME = "NVIDIA GeForce RTX 4060"
ADDRESSES = ("0000:21:00.0", "0000:a1:00.0")


def eight_lanes() -> Machine:
    """Two Gen4 x8 cards, each in a x16 slot of its own."""
    ports = ("0000:20:01.0", "0000:a0:01.0")
    pci = [f for i in (0, 1) for f in slot(ADDRESSES[i], ports[i], link(4, 8), i, link(4, 16))]
    return machine(pci, [card(i, NAME, pci, ADDRESSES[i]) for i in (0, 1)], nodes(2), p2p="GNS")


def test_eight_of_eight_lanes_in_a_slot_of_sixteen_are_no_fault() -> None:
    judged = run(Scenario(eight_lanes()), groups=("link", "host_copy"))
    assert judged.verdict("link/under_load/gpu0").status == "PASS"
    assert judged.statuses() == {"PASS"}
    assert judged.found == ()
    limits = judged.run.results[0].limits
    assert limits is not None
    assert limits.device == limits.platform == limits.now


def test_four_of_eight_lanes_are_a_fault() -> None:
    fault = Fault("link_state", address=ADDRESSES[0], link=link(4, 4))
    judged = run(Scenario(eight_lanes(), faults=(fault,)), groups=("link", "host_copy"))
    assert [(f.cause, f.subject) for f in judged.found] == [("width_fault", "GPU0")]
