"""PCI functions from sysfs trees."""

from __future__ import annotations

from pathlib import Path

import pytest

from suite.probe import config_space, pci
from suite.probe.tree import Tree
from suite.records.machine import AerCounters, LinkState, NumaNode
from tests.probe import trees

ROOT = "pci0000:40/0000:40:01.0"
SWITCH = f"{ROOT}/0000:41:00.0/0000:42:08.0"


@pytest.mark.parametrize(
    ("text", "speed"),
    [
        ("8 GT/s", 8.0),
        ("8.0 GT/s PCIe", 8.0),
        ("2.5 GT/s", 2.5),
        ("32 GT/s PCIe/s", 32.0),
        ("64.0 GT/s PCIe\n", 64.0),
        ("16GT/s", 16.0),
        ("Unknown", None),
        ("Unknown speed", None),
        ("", None),
        (None, None),
        ("0.0 GT/s", None),
        ("7 GT/s", None),
        ("-8 GT/s", None),
        ("8 GT/s 8", None),
    ],
)
def test_link_speeds_of_every_dialect_parse_or_are_unknown(text: str | None, speed: float | None) -> None:
    assert pci.link_speed(text) == speed


@pytest.mark.parametrize(
    ("text", "width"),
    [("16", 16), ("x8", 8), ("1\n", 1), ("12", 12), ("0", None), ("255", None), ("", None), (None, None), ("-1", None)],
)
def test_link_widths_of_a_dead_or_hidden_link_are_unknown(text: str | None, width: int | None) -> None:
    assert pci.link_width(text) == width


@pytest.mark.parametrize(
    ("text", "address"),
    [
        ("00000000:65:00.0", "0000:65:00.0"),
        ("00010000:01:00.0", "10000:01:00.0"),
        ("0000:AF:1F.7", "0000:af:1f.7"),
        ("65:00.0", "0000:65:00.0"),
        ("not an address", None),
        ("0000:65:00.8", None),
        (None, None),
    ],
)
def test_addresses_of_nvml_become_those_of_sysfs(text: str | None, address: str | None) -> None:
    assert pci.normal_address(text) == address


def test_the_real_path_gives_the_chain_of_bridges_also_those_not_listed_as_devices(tmp_path: Path) -> None:
    files = trees.gpu(f"{SWITCH}/0000:43:00.0") | trees.function(SWITCH, now="8 GT/s x16", most="16 GT/s x16")
    del files["sys/bus/pci/devices/0000:42:08.0@"]
    found = {f.address: f for f in pci.read(Tree(trees.write(tmp_path, files)))}
    assert list(found) == ["0000:40:01.0", "0000:41:00.0", "0000:42:08.0", "0000:43:00.0"]
    assert [found[a].parent for a in found] == [None, "0000:40:01.0", "0000:41:00.0", "0000:42:08.0"]
    assert found["0000:42:08.0"].link == LinkState(8.0, 16)
    assert {f.root_bus for f in found.values()} == {"pci0000:40"}


def test_a_domain_of_32_bits_below_another_device_is_a_tree_of_its_own(tmp_path: Path) -> None:
    place = "pci0000:5d/0000:5d:05.5/pci10000:00/10000:00:02.0/10000:01:00.0"
    found = {f.address: f for f in pci.read(Tree(trees.write(tmp_path, trees.gpu(place))))}
    assert found["10000:01:00.0"].parent == "10000:00:02.0"
    assert found["10000:00:02.0"].parent is None
    assert found["10000:00:02.0"].root_bus == "pci10000:00"


def test_a_link_out_of_a_recorded_tree_reads_as_absent(tmp_path: Path) -> None:
    outside = trees.write(tmp_path / "outside", {"class": "0x030200"})
    inside = trees.write(tmp_path / "tree", {"sys/bus/pci/devices/0000:01:00.0@": str(outside)})
    assert pci.read(Tree(inside)) == ()


def test_a_pipe_in_place_of_a_file_does_not_block(tmp_path: Path) -> None:
    import os

    trees.write(tmp_path, trees.gpu("pci0000:00/0000:00:01.0"))
    speed = tmp_path / "sys/devices/pci0000:00/0000:00:01.0/current_link_speed"
    speed.unlink()
    os.mkfifo(speed)
    assert pci.read(Tree(tmp_path))[0].link == LinkState(None, 16)


def test_numa_nodes_that_firmware_leaves_out_follow_from_local_cpus_and_say_so(tmp_path: Path) -> None:
    files = trees.gpu("pci0000:00/0000:00:01.0", numa_node="-1", local_cpulist="4-7")
    files |= trees.gpu("pci0000:00/0000:00:02.0", numa_node="-1", local_cpulist="0-7")
    files |= trees.gpu("pci0000:00/0000:00:03.0", numa_node="0", local_cpulist="0-3")
    nodes = (NumaNode(0, cpus=(0, 1, 2, 3)), NumaNode(1, cpus=(4, 5, 6, 7)))
    found = pci.with_numa(pci.read(Tree(trees.write(tmp_path, files))), nodes)
    assert [(f.numa_node, f.numa_basis) for f in found] == [(1, "local_cpulist"), (None, None), (0, "numa_node")]


def test_error_counters_are_totals_and_none_where_the_kernel_keeps_none(tmp_path: Path) -> None:
    files = trees.gpu(
        "pci0000:00/0000:00:01.0", aer_dev_correctable="RxErr 3\nBadTLP 4\nTOTAL_ERR_COR 7", aer_dev_fatal="Undefined 2"
    )
    files |= trees.gpu("pci0000:00/0000:00:02.0")
    text = "RxErr 1\nRollover 2\nTimeout 3\nTOTAL_ERR_COR 6"
    files |= trees.gpu("pci0000:00/0000:00:03.0", aer_dev_correctable=text)
    first, second, third = pci.read(Tree(trees.write(tmp_path, files)))
    assert third.aer == AerCounters(correctable=6, replays=5)
    assert first.aer is not None
    assert first.aer.replays is None
    assert first.aer is not None
    assert (first.aer.correctable, first.aer.nonfatal, first.aer.fatal) == (7, None, 2)
    assert second.aer is None


def test_the_capability_gives_payloads_links_and_port_type() -> None:
    found = config_space.parse(trees.config_space(port=4, link=(1, 16), link_max=(4, 16), target=1, flit=True))
    assert found.port_type == "root_port"
    assert found.pcie is not None
    assert (found.pcie.mps, found.pcie.mps_supported, found.pcie.mrrs) == (256, 512, 4096)
    assert (found.pcie.link, found.pcie.link_max) == (LinkState(2.5, 16), LinkState(16.0, 16))
    assert (found.pcie.target_speed_gts, found.pcie.flit_mode) == (2.5, True)
    assert (found.pcie.relaxed_ordering, found.pcie.extended_tags, found.pcie.no_snoop) == (True, True, False)


@pytest.mark.parametrize(("control", "redirects"), [(0x00, False), (0x01, False), (0x04, True), (0x1D, True)])
def test_source_validation_alone_does_not_redirect_peer_traffic(control: int, redirects: bool) -> None:
    found = config_space.parse(trees.config_space(acs=control)).pcie
    assert found is not None
    assert found.acs_redirect is redirects


def test_what_64_bytes_cannot_tell_needs_root_and_stays_unknown() -> None:
    found = config_space.parse(trees.config_space(size=64))
    assert found.pcie is None
    assert found.note is not None
    assert "root" in found.note


def test_without_the_extended_part_acs_and_resizable_bar_are_unknown_not_absent() -> None:
    short, full = (config_space.parse(trees.config_space(size=size)).pcie for size in (256, 4096))
    assert short is not None
    assert full is not None
    assert (short.mps, short.acs, short.acs_redirect, short.resizable_bar) == (256, None, None, None)
    assert (full.acs, full.acs_redirect, full.resizable_bar) == ((), False, False)


def test_capabilities_that_a_hypervisor_hides_are_unknown_and_those_it_shows_are_read() -> None:
    data = bytearray(trees.config_space(acs=0x1D, rebar=True))
    data[0x180:0x182] = b"\0\0"  # the place of resizable BAR, its id taken away
    found = config_space.parse(bytes(data)).pcie
    assert found is not None
    assert (found.acs_redirect, found.resizable_bar) == (True, None)


def test_a_device_that_fell_off_the_bus_is_said_to_be_silent() -> None:
    found = config_space.parse(b"\xff" * 4096)
    assert found.pcie is None
    assert "does not answer" in (found.note or "")


def test_loops_in_the_capability_lists_end() -> None:
    data = bytearray(trees.config_space(acs=1, rebar=True))
    data[0x61] = 0x60
    data[0x140:0x144] = (0x0015 | 1 << 16 | 0x100 << 20).to_bytes(4, "little")
    assert config_space.parse(bytes(data)).pcie is not None


@pytest.mark.parametrize(("bits", "seen"), [(0, (False, False)), (1, (True, False)), (3, (True, True))])
def test_the_bandwidth_bits_of_link_status_are_read(bits: int, seen: tuple[bool, bool]) -> None:
    assert config_space.status_bits(trees.config_space(status_bits=bits)) == seen
    assert config_space.status_bits(trees.config_space(size=64)) is None


@pytest.mark.parametrize(
    ("files", "rate"),
    [
        ({"net/eth0/speed": "100000\n"}, 12.5e9),
        ({"net/eth0/speed": "-1\n"}, None),
        ({"net/eth0/speed": ""}, None),
        (
            {"infiniband/mlx5_0/ports/1/rate": "200 Gb/sec (4X HDR)\n", "infiniband/mlx5_0/ports/1/state": "4: ACTIVE"},
            25e9,
        ),
        (
            {"infiniband/mlx5_0/ports/1/rate": "10 Gb/sec (4X SDR)\n", "infiniband/mlx5_0/ports/1/state": "1: DOWN"},
            None,
        ),
        (
            {
                "net/eth0/speed": "200000",
                "infiniband/mlx5_0/ports/1/rate": "200 Gb/sec (2X NDR)",
                "infiniband/mlx5_0/ports/1/state": "4: ACTIVE",
            },
            25e9,
        ),
        ({}, None),
    ],
)
def test_the_ports_of_an_adapter_that_are_up_add_to_its_rate(
    tmp_path: Path, files: dict[str, str], rate: float | None
) -> None:
    place = "pci0000:00/0000:00:01.0"
    made = trees.function(place, class_="0x020700") | {
        f"sys/devices/{place}/{name}": text for name, text in files.items()
    }
    (found,) = pci.read(Tree(trees.write(tmp_path, made)))
    assert found.network_rate == rate
