"""Real machines that we recorded with `lanecheck record` read back as what they are."""

from pathlib import Path

from suite.limits import case as limits
from suite.probe import recording
from suite.records.case import Plan
from suite.records.machine import LinkState, Machine
from suite.records.path import path_to_root

MACHINES = Path(__file__).parents[1] / "data" / "machines"
GEN5 = LinkState(32.0, 16)


def recorded(name: str) -> Machine:
    return recording.load(MACHINES / name).machine


def test_an_h200_in_a_virtual_machine_shows_its_own_link_and_no_bridge() -> None:
    machine = recorded("recorded-1xh200-vm.tar.gz")
    (gpu,) = machine.gpus
    path = path_to_root(machine, gpu.address or "")
    assert (gpu.name, path.complete, path.basis) == ("NVIDIA H200", False, "virtualized")
    assert [(hop.now, hop.upper) for hop in path.hops] == [(GEN5, None)]
    assert (path.mps, path.mrrs) == (256, 4096)


def test_two_h200_are_joined_by_eighteen_nvlinks_of_version_4() -> None:
    machine = recorded("recorded-2xh200-vm.tar.gz")
    pair = machine.pair(0, 1)
    assert pair is not None
    assert (pair.topology, pair.topology_nvml, pair.nvlinks) == ("PHB", "PHB", 18)
    assert (pair.p2p_read, pair.p2p_write) == ("OK", "OK")
    links = machine.gpus[0].nvlinks
    assert {(link.version, link.remote, link.rate) for link in links if link.active} == {(4, "switch", 26.562e9)}


def test_their_peer_copies_are_held_against_the_nvlinks() -> None:
    machine = recorded("recorded-2xh200-vm.tar.gz")
    plan = Plan("peer_copy/x", "peer_write", 1 << 28, gpus=(0, 1), p2p=True)
    found = limits.of(machine, plan, None, ())
    assert found.now is not None
    assert round(found.now / 1e9, 1) == 478.1


def test_a_recording_names_nobody() -> None:
    for file in MACHINES.glob("recorded-*.tar.gz"):
        machine = recording.load(file).machine
        assert machine.host_name is None
        assert not any("UUID" in text for _, text in machine.environment.variables)
