"""The hops above a device, the narrowest of them, and how near two devices are."""

from __future__ import annotations

from dataclasses import replace

import pytest

from suite.records.machine import Environment, LinkState, Machine, PcieConfig, PciFunction, PortType
from suite.records.path import path_to_root, slowest_hop, topology

GEN4, GEN5 = LinkState(16.0, 16), LinkState(32.0, 16)
BRIDGE, CARD = 0x060400, 0x030200


def function(
    address: str, parent: str | None = None, *, link: LinkState = GEN4, most: LinkState = GEN4, **more: object
) -> PciFunction:
    code = more.pop("class_code", CARD if address.startswith("g") else BRIDGE)
    fields = {"root_bus": "pci0000:00", "numa_node": 0} | more
    return PciFunction(address, parent, class_code=code, link=link, link_max=most, **fields)  # type: ignore[arg-type]


def behind_a_switch() -> Machine:
    """root – up – down – g, with a second GPU beside it."""
    return Machine(
        pci=(
            function("root"),
            function("up", "root"),
            function("down", "up"),
            function("g", "down"),
            function("down2", "up"),
            function("g2", "down2"),
        )
    )


def hops(machine: Machine, address: str) -> list[tuple[str, str | None]]:
    return [(h.lower, h.upper) for h in path_to_root(machine, address).hops]


def test_a_switch_has_two_links_on_the_path_and_none_inside() -> None:
    assert hops(behind_a_switch(), "g") == [("g", "down"), ("up", "root")]


def test_port_types_decide_where_they_are_known() -> None:
    kinds: dict[str, PortType] = {
        "root": "root_port",
        "up": "upstream_port",
        "down": "downstream_port",
        "g": "endpoint",
    }
    machine = behind_a_switch()
    typed = Machine(pci=tuple(replace(f, port_type=kinds.get(f.address)) for f in machine.pci))
    assert hops(typed, "g") == [("g", "down"), ("up", "root")]
    assert hops(typed, "down") == [("up", "root")]


@pytest.mark.parametrize("kind", ["pcie_to_pci", None])
def test_a_conventional_function_behind_a_bridge_has_no_link_of_its_own(kind: PortType | None) -> None:
    nothing = LinkState()
    machine = Machine(
        pci=(
            function("root"),
            function("bridge", "root", port_type=kind),
            function("g", "bridge", link=nothing, most=nothing),
        )
    )
    assert hops(machine, "g") == [("bridge", "root")]


def test_a_device_on_a_root_bus_shows_its_own_end_and_an_incomplete_path() -> None:
    machine = Machine(pci=(function("g", link=LinkState(2.5, 16), most=GEN5),))
    path = path_to_root(machine, "g")
    assert [(h.lower, h.upper, h.now, h.possible) for h in path.hops] == [("g", None, LinkState(2.5, 16), GEN5)]
    assert not path.complete


def test_an_address_that_is_not_there_has_no_hops() -> None:
    path = path_to_root(Machine(), "g")
    assert (path.hops, path.complete, slowest_hop(path)) == ((), False, None)


def test_what_a_hop_can_do_is_what_both_ends_can() -> None:
    machine = Machine(pci=(function("root", most=LinkState(16.0, 8)), function("g", "root", most=GEN5)))
    (hop,) = path_to_root(machine, "g").hops
    assert (hop.possible, hop.lower_max, hop.upper_max) == (LinkState(16.0, 8), GEN5, LinkState(16.0, 8))


def test_an_end_that_does_not_say_leaves_what_is_possible_unknown() -> None:
    machine = Machine(pci=(function("root", most=LinkState(16.0, None)), function("g", "root", most=GEN5)))
    (hop,) = path_to_root(machine, "g").hops
    assert hop.possible == LinkState(16.0, None)


def test_the_narrowest_hop_is_named_also_when_it_is_not_the_cards_own() -> None:
    narrow = LinkState(16.0, 4)
    functions = [replace(f, link=narrow, link_max=narrow) if f.address == "up" else f for f in behind_a_switch().pci]
    hop = slowest_hop(path_to_root(Machine(pci=tuple(functions)), "g"))
    assert hop is not None
    assert (hop.lower, hop.upper, hop.possible) == ("up", "root", narrow)


def test_of_equal_hops_the_nearest_is_named() -> None:
    hop = slowest_hop(path_to_root(behind_a_switch(), "g"))
    assert hop is not None
    assert hop.lower == "g"


def test_gen3_x8_carries_more_than_gen2_x12() -> None:
    """GT/s times lanes alone would say 64 against 60, but 8b/10b takes a fifth of the latter."""
    functions = (
        function("root", most=LinkState(8.0, 8)),
        function("up", "root", most=LinkState(8.0, 8)),
        function("down", "up", most=LinkState(5.0, 12)),
        function("g", "down", most=LinkState(5.0, 12)),
    )
    hop = slowest_hop(path_to_root(Machine(pci=functions), "g"))
    assert hop is not None
    assert hop.lower == "g"


@pytest.mark.parametrize(
    ("payloads", "virtual", "mps", "basis"),
    [
        ((256, 256), None, 256, "read"),
        ((256, 128), None, 128, "read"),
        ((256, 256), "KVM", 256, "virtualized"),
        ((256, None), None, None, "assumed"),
        ((None, None), None, None, "assumed"),
    ],
)
def test_the_payload_is_the_least_along_the_path_and_its_basis_is_told(
    payloads: tuple[int | None, int | None], virtual: str | None, mps: int | None, basis: str
) -> None:
    configs = [PcieConfig(mps=p, mrrs=512) if p else None for p in payloads]
    machine = Machine(
        pci=(function("root", config=configs[1]), function("g", "root", config=configs[0])),
        environment=Environment(virtual_machine=virtual),
    )
    path = path_to_root(machine, "g")
    assert (path.mps, path.basis) == (mps, basis)


def test_a_loop_in_a_recording_ends() -> None:
    machine = Machine(pci=(function("a", "b"), function("b", "a"), function("g", "a")))
    assert hops(machine, "g") == [("g", "a"), ("b", None)]


def test_topology_uses_the_words_of_nvidia_smi() -> None:
    switches = behind_a_switch()
    assert topology(switches, "g", "g") == "SELF"
    assert topology(switches, "g", "g2") == "PIX"
    cascade = Machine(pci=(*switches.pci, function("up3", "down2"), function("down3", "up3"), function("g3", "down3")))
    assert topology(cascade, "g", "g3") == "PXB"
    assert topology(cascade, "g", "absent") is None


@pytest.mark.parametrize(
    ("bus", "node", "word"),
    [("pci0000:00", 0, "PHB"), ("pci0000:40", 0, "NODE"), ("pci0000:80", 1, "SYS"), ("pci0000:80", None, None)],
)
def test_across_root_ports_the_host_bridge_and_the_node_decide(bus: str, node: int | None, word: str | None) -> None:
    machine = Machine(
        pci=(
            function("r1"),
            function("g1", "r1"),
            function("r2", root_bus=bus, numa_node=node),
            function("g2", "r2", root_bus=bus, numa_node=node),
        )
    )
    assert topology(machine, "g1", "g2") == word
    assert topology(machine, "g2", "g1") == word
