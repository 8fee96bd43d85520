"""On a real kernel with two NUMA nodes: memory goes where it is asked to, and the probe sees what is there."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.guest import machine

pytestmark = pytest.mark.guest


@pytest.fixture(scope="module")
def found() -> Any:
    """One boot for all tests of this file."""
    try:
        return json.loads(machine.run(Path(__file__).with_name("inside.py")).splitlines()[-1])
    except machine.GuestUnavailable as missing:
        pytest.skip(f"no emulated machine: {missing}")


@pytest.mark.parametrize(("source", "target"), [(0, 0), (0, 1), (1, 0), (1, 1)])
def test_host_memory_is_copied_between_nodes_with_proved_placement(found: Any, source: int, target: int) -> None:
    samples = found["copies"][f"{source}{target}"]
    assert samples["verified"] is True
    placement = samples["placement"]
    assert (placement["proved"], placement["method"]) == (True, "move_pages")
    assert (placement["node"], placement["target_node"], placement["cpu_node"]) == (source, target, source)
    assert (
        placement["detail"]
        == f"source: 2048 of 2048 pages on node {source}; target: 2048 of 2048 pages on node {target}"
    )


def test_a_page_that_was_moved_away_disproves_the_placement(found: Any) -> None:
    assert found["moved"]["before"]["proved"] is True
    assert found["moved"]["after"]["proved"] is False
    assert found["moved"]["after"]["detail"] == "63 of 64 pages on node 0, 1 of 64 pages on node 1"


def test_first_touch_places_memory_where_binding_is_refused(found: Any) -> None:
    placement = found["far_touch"]
    assert placement["method"] == "numa_maps"
    assert placement["proved"] is not False
    assert "pages on node 1; mbind was refused (EPERM); first touched by a thread on its CPUs" in placement["detail"]


def test_a_node_that_is_not_there_is_refused(found: Any) -> None:
    assert found["absent"] == "NUMA node 2 cannot be used: it is not there, has no memory, or the cpuset leaves it out"


def test_the_probe_sees_both_nodes_and_their_distances(found: Any) -> None:
    nodes = found["machine"]["nodes"]
    assert [tuple(node["cpus"]) for node in nodes] == [(0, 1), (2, 3)]
    assert [tuple(node["distances"]) for node in nodes] == [(10, 21), (21, 10)]
    assert all(node["memory_bytes"] > 512 << 20 for node in nodes)


def test_the_probe_sees_the_pci_tree_by_node(found: Any) -> None:
    functions = {function["address"]: function for function in found["machine"]["pci"]}
    displays = [f for f in functions.values() if f["class_code"] is not None and f["class_code"] >> 16 == 0x03]
    depths = sorted((f["numa_node"], len(ancestors(functions, f))) for f in displays)
    # One device right below its root port on node 0; two on node 1, below a switch's two ports and the root port.
    assert depths == [(0, 1), (1, 3), (1, 3)]


def test_the_probe_sees_that_emulated_links_train_below_their_ports(found: Any) -> None:
    ports = [f for f in found["machine"]["pci"] if f["port_type"] == "root_port" and f["link_max"]["width"] == 16]
    assert [port["link_max"]["speed_gts"] for port in ports] == [16.0]
    assert (ports[0]["link"]["speed_gts"], ports[0]["link"]["width"]) == (2.5, 1)


def ancestors(functions: dict[str, Any], function: Any) -> list[str]:
    """Addresses of the bridges above a function, nearest first."""
    above = []
    parent = function["parent"]
    while parent is not None:
        above.append(parent)
        parent = functions[parent]["parent"]
    return above
