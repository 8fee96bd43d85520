"""`lanecheck probe` as text."""

from __future__ import annotations

import itertools
import re
from dataclasses import replace

import pytest

from suite.records.machine import (
    AerCounters,
    Cpu,
    Environment,
    Gpu,
    GpuPair,
    LinkState,
    Machine,
    MemoryModule,
    NumaNode,
    NvLink,
    PcieConfig,
    PciFunction,
)
from suite.records.path import topology
from suite.report import gpu_facts, pci_tree
from suite.report.machine import render
from suite.report.remarks import ranges, remarks
from suite.units import GIB, MIB

GEN1, GEN4, GEN5 = LinkState(2.5, 16), LinkState(16.0, 16), LinkState(32.0, 16)
BRIDGE, CARD, NETWORK = 0x060400, 0x030200, 0x020000


def function(address: str, parent: str | None, code: int, bus: str, node: int | None) -> PciFunction:
    return PciFunction(address, parent, bus, class_code=code, numa_node=node, link=GEN5, link_max=GEN5)


def below_a_switch(socket: int, gpus: int) -> list[PciFunction]:
    """A root port, a switch, some GPUs and a network adapter, on buses 10, 11, … of the socket."""
    base, bus = 0x10 + 0x40 * socket, f"pci0000:{0x10 + 0x40 * socket:02x}"
    found = [
        function(f"0000:{base:02x}:01.0", None, BRIDGE, bus, socket),
        function(f"0000:{base + 1:02x}:00.0", f"0000:{base:02x}:01.0", BRIDGE, bus, socket),
    ]
    for place in range(gpus + 1):
        port = f"0000:{base + 2:02x}:{place:02x}.0"
        found.append(function(port, f"0000:{base + 1:02x}:00.0", BRIDGE, bus, socket))
        code = CARD if place < gpus else NETWORK
        found.append(function(f"0000:{base + 3 + place:02x}:00.0", port, code, bus, socket))
    return found


def machine(gpus: int = 8) -> Machine:
    """Two sockets with one switch each, half the GPUs below each."""
    pci = [f for socket in (0, 1) for f in below_a_switch(socket, gpus // 2)]
    places = [f for f in pci if f.class_code == CARD]
    cards = tuple(
        Gpu(i, "NVIDIA H100 80GB HBM3", f.address, f.numa_node, memory_bytes=80 * GIB, bar1_bytes=128 * GIB, link=GEN5)
        for i, f in enumerate(places)
    )
    nodes = tuple(
        NumaNode(i, tuple(range(4 * i, 4 * i + 4)), memory_bytes=64 * GIB, distances=(10, 21), packages=(i,))
        for i in (0, 1)
    )
    found = Machine(nodes, Cpu("Some CPU", packages=2, cores=8, threads=8), tuple(pci), cards)
    pairs = (
        GpuPair(a.index, b.index, topology(found, a.address or "", b.address or ""), None, "OK", "OK", "OK", 0)
        for a, b in itertools.combinations(cards, 2)
    )
    return replace(found, pairs=tuple(pairs))


def with_function(found: Machine, address: str, **changes: object) -> Machine:
    pci = (replace(f, **changes) if f.address == address else f for f in found.pci)  # type: ignore[arg-type]
    return replace(found, pci=tuple(pci))


def with_gpu(found: Machine, index: int, **changes: object) -> Machine:
    gpus = (replace(g, **changes) if g.index == index else g for g in found.gpus)  # type: ignore[arg-type]
    return replace(found, gpus=tuple(gpus))


FIRST = machine().gpus[0].address or ""


def test_a_machine_of_eight_gpus_fits_a_screen() -> None:
    lines = render(machine(), width=100).splitlines()
    assert len(lines) <= 48
    assert max(map(len, lines)) <= 100


@pytest.mark.parametrize("width", [60, 80, 200])
def test_no_line_is_wider_than_asked_for(width: int) -> None:
    found = with_gpu(machine(), 0, notes=("word " * 60,))
    assert max(map(len, render(found, width=width).splitlines())) <= width


def test_a_narrow_page_loses_distances_before_it_loses_whose_gpus_a_node_has() -> None:
    nodes = tuple(NumaNode(i, (i,), distances=(10, *[21] * 15), packages=(0,)) for i in range(16))
    found = replace(machine(2), nodes=nodes)
    assert "distances" not in render(found, width=60)
    assert "GPUs" in next(line for line in render(found, width=60).splitlines() if line.startswith("NUMA node "))
    assert "distances" in render(found, width=140)


def test_plain_text_has_no_colour_codes_and_colours_change_nothing_else() -> None:
    found = with_function(machine(), FIRST, link=GEN1)
    plain, coloured = render(found, width=100), render(found, width=100, colour=True)
    assert "\033" not in plain
    assert re.sub(r"\033\[\d+m", "", coloured) == plain
    assert "\033[33mGen1 x16 of Gen5 x16\033[0m" in coloured
    assert "\033[32mGen5 x16\033[0m" in coloured


def test_a_line_of_the_tree_is_one_link_with_its_port_and_inner_switch_ports_get_none() -> None:
    texts = [line.text for line in pci_tree.lines(machine(2))]
    assert texts == [
        "pci0000:10, NUMA node 0",
        "└─ 11:00.0 switch (port 10:01.0)",
        "   ├─ 13:00.0 GPU 0 NVIDIA H100 80GB HBM3 (port 12:00.0)",
        "   └─ 14:00.0 device (port 12:01.0)",
        "pci0000:50, NUMA node 1",
        "└─ 51:00.0 switch (port 50:01.0)",
        "   ├─ 53:00.0 GPU 1 NVIDIA H100 80GB HBM3 (port 52:00.0)",
        "   └─ 54:00.0 device (port 52:01.0)",
    ]


@pytest.mark.parametrize(
    ("now", "state"),
    [
        (GEN5, "full"),
        (GEN1, "slow"),
        (LinkState(32.0, 8), "narrow"),
        (LinkState(2.5, 8), "narrow"),
        (LinkState(), "unknown"),
    ],
)
def test_links_have_a_state(now: LinkState, state: str) -> None:
    assert pci_tree.link_state(now, GEN5) == state


def test_an_idle_link_is_remarked_and_never_called_a_fault() -> None:
    (remark,) = [r for r in remarks(with_function(machine(), FIRST, link=GEN1)) if "Gen1" in r]
    assert remark == "GPU 0: the link runs Gen1 of Gen5 as found; only a reading under load tells more."


def test_the_narrowest_hop_above_a_gpu_is_named() -> None:
    found = with_function(machine(), "0000:11:00.0", link=LinkState(16.0, 4), link_max=LinkState(16.0, 4))
    text = "GPU 0: the narrowest hop of its path is 0000:11:00.0 below 0000:10:01.0, Gen4 x4."
    assert text in remarks(found)


def test_a_slot_that_can_do_less_than_the_card_is_named() -> None:
    found = with_function(machine(), "0000:12:00.0", link_max=GEN4)
    assert "GPU 0: device Gen5 x16, port Gen4 x16: the link is reduced to what the port can do, Gen4 x16." in remarks(
        found
    )


def test_a_hidden_link_is_said_to_be_unknown() -> None:
    found = Machine(pci=(PciFunction("0000:00:05.0", class_code=CARD),), gpus=(Gpu(0, "x", "0000:00:05.0"),))
    assert any("not shown" in r and "not known" in r for r in remarks(found))
    assert "Gen? x?" in render(found)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"bar1_bytes": 256 * MIB, "memory_bytes": 24 * GIB}, "only 256MiB of 24 GiB are mapped"),
        ({"nvlinks": (NvLink(0, False), NvLink(1, False))}, "2 NVLinks and none is active: no bridge is fitted"),
        ({"processes": 2}, "used by 2 processes"),
        ({"mig": True}, "MIG is on"),
        ({"c2c": True}, "PCIe model does not apply"),
        ({"compute_mode": "prohibited"}, "prohibited"),
        ({"virtualization": "vgpu"}, "a virtual GPU: its link belongs to the host"),
        ({"virtualization": "host_vgpu"}, "it serves virtual GPUs"),
        ({"power_limit_w": 300.0, "power_default_w": 450.0}, "its power limit is 300 W, its default 450 W"),
        ({"throttle": ("idle", "hardware thermal slowdown")}, "held down now: hardware thermal slowdown."),
        ({"throttle": ("application clocks",)}, "held down now: application clocks."),
    ],
)
def test_what_holds_a_gpu_back_is_remarked(changes: dict[str, object], words: str) -> None:
    assert any(words in remark for remark in remarks(with_gpu(machine(), 3, **changes)))
    assert not any(words in remark for remark in remarks(machine()))


@pytest.mark.parametrize(
    ("packages", "words"),
    [(((0,), (1,)), "crosses sockets"), (((0,), (0,)), "NUMA nodes of one socket"), (((), ()), "crosses NUMA nodes.")],
)
def test_different_nodes_are_different_sockets_only_where_the_packages_differ(
    packages: tuple[tuple[int, ...], tuple[int, ...]], words: str
) -> None:
    found = machine(2)
    nodes = tuple(replace(n, packages=p) for n, p in zip(found.nodes, packages, strict=True))
    assert any(words in remark for remark in remarks(replace(found, nodes=nodes)))


def test_a_missing_p2p_is_explained_once_for_all_pairs_alike() -> None:
    found = machine()
    pairs = tuple(replace(p, p2p_read="CNS", p2p_write="CNS") for p in found.pairs)
    said = [r for r in remarks(replace(found, pairs=pairs)) if "P2P" in r]
    assert len(said) == 1
    assert said[0].startswith("Every GPU pair: no P2P read and write (CNS): the chipset")


def test_a_topology_that_nvml_sees_otherwise_is_remarked() -> None:
    found = machine(2)
    pairs = (replace(found.pairs[0], topology_nvml="PHB"),)
    assert "GPU pair 0-1: SYS by the PCI tree, PHB by NVML." in remarks(replace(found, pairs=pairs))


def test_errors_acs_iommu_and_missing_rights_are_remarked() -> None:
    counted = AerCounters(7, 0, 1, replays=3)
    found = with_function(machine(), FIRST, aer=counted, config_note="needs root: only 64 bytes")
    found = with_function(found, "0000:12:00.0", config=PcieConfig(acs_redirect=True))
    found = replace(found, environment=Environment(iommu="DMA-FQ"))
    said = " ".join(remarks(found))
    assert "GPU 0: 7 correctable and 1 fatal PCIe errors counted since boot, 3 of them replays." in said
    assert "ACS sends peer traffic up to the root complex at 0000:12:00.0" in said
    assert "The IOMMU translates" in said
    assert "for 1 PCI function(s), needs root" in said
    assert "sudo lanecheck probe" in said
    inside = replace(found, environment=Environment(root=True))
    assert "CAP_SYS_ADMIN" in " ".join(remarks(inside))
    assert "IOMMU" not in " ".join(remarks(replace(found, environment=Environment(iommu="identity"))))


def test_odd_nodes_and_limits_of_the_process_are_remarked() -> None:
    nodes = (
        NumaNode(0, (0, 1), memory_bytes=0, packages=(0,)),
        NumaNode(1, (2, 3), memory_bytes=GIB, packages=(0,)),
        NumaNode(2, (), memory_bytes=GIB),
        NumaNode(3, (), memory_bytes=GIB, gpu="0000:01:00.0"),
    )
    found = Machine(
        nodes, Cpu(threads=4, offline=(4, 5)), environment=Environment(allowed_cpus=(0,), allowed_nodes=(0, 1))
    )
    said = " ".join(remarks(found))
    for words in (
        "node 0 has no memory",
        "node 2 has memory and no CPUs",
        "node 3 is the memory of the GPU at 0000:01:00.0",
        "Package 0 is split into NUMA nodes 0 and 1",
        "2 CPU(s) are offline",
        "may use 1 of 4 CPUs",
        "may not use the memory of NUMA node 2 and 3",
    ):
        assert words in said


def test_a_derived_and_an_unknown_node_are_said_so() -> None:
    found = with_function(machine(), FIRST, numa_basis="local_cpulist")
    assert "GPU 0: firmware names no NUMA node; node 0 follows from its local CPUs." in remarks(found)
    unknown = with_function(machine(), FIRST, numa_node=None)
    assert "GPU 0: neither firmware nor its local CPUs tell its NUMA node." in remarks(unknown)


def test_a_speed_that_is_set_below_what_the_link_could_do_is_remarked_by_the_port_that_decides() -> None:
    port = "0000:12:00.0"
    found = with_function(machine(), port, config=PcieConfig(target_speed_gts=8.0))
    said = [r for r in remarks(found) if "LnkCtl2" in r]
    assert said == ["GPU 0: the port above, 0000:12:00.0, is set to train at Gen3 at most (LnkCtl2), Gen5 is possible."]
    full = with_function(machine(), port, config=PcieConfig(target_speed_gts=32.0))
    assert not [r for r in remarks(full) if "LnkCtl2" in r]


def test_atomics_that_alone_are_missing_are_said_and_stage_no_copies() -> None:
    found = machine(2)
    pairs = (replace(found.pairs[0], p2p_atomics="NS"),)
    said = [r for r in remarks(replace(found, pairs=pairs)) if "P2P" in r]
    assert said == ["GPU pair 0-1: no P2P atomics (NS): peer-to-peer access is not supported between these GPUs."]
    assert "P2P read OK, write OK, atomics NS" in render(replace(found, pairs=pairs))


def test_many_gpus_are_named_as_a_range() -> None:
    found = machine()
    for gpu in found.gpus:
        found = with_function(found, gpu.address or "", link=GEN1)
    assert "GPU 0-7: the link runs Gen1 of Gen5 as found; only a reading under load tells more." in remarks(found)


def test_nvlinks_of_a_pair_have_a_version_and_how_many_are_possible() -> None:
    found = machine(2)
    links = tuple(NvLink(i, active=i < 12, version=4) for i in range(18))
    for index in (0, 1):
        found = with_gpu(found, index, nvlinks=links)
    found = replace(found, pairs=(replace(found.pairs[0], nvlinks=12),))
    assert "NV12 of 18 possible, version 4, SYS, P2P OK: GPU pair 0-1" in render(found)


def test_what_is_set_on_alike_gpus_is_one_line() -> None:
    found = machine(2)
    config = PcieConfig(
        mps=256, mrrs=512, extended_tags=True, relaxed_ordering=False, aspm="L1", acs_redirect=False, resizable_bar=True
    )
    for function_ in found.pci:
        found = with_function(found, function_.address, config=config)
    for gpu in found.gpus:
        found = with_gpu(found, gpu.index, vbios="96.00", power_limit_w=600.0, power_default_w=700.0, mig=False)
    assert (
        "GPU 0-1: MPS 256 along the path, MRRS 512, extended tags on, relaxed ordering off, ASPM L1, ACS redirect off, "
        "resizable BAR there, VBIOS 96.00, MIG off, power limit 600 W (default 700)"
    ) in render(found, width=200)
    one = with_function(found, FIRST, config=replace(config, mps=128, autonomous_speed_disabled=True))
    assert "GPU 0: MPS 128 along the path" in render(one, width=200)
    assert "autonomous speed changes off" in render(one, width=200)


def test_the_path_of_a_network_adapter_is_told_like_that_of_a_gpu() -> None:
    found = machine(2)
    config = PcieConfig(mps=256, mrrs=4096, extended_tags=True)
    for function_ in found.pci:
        found = with_function(found, function_.address, config=config)
    line = "MPS 256 along the path, MRRS 4096, extended tags on"
    assert [text for text in gpu_facts.lines(found) if not text.startswith("GPU")] == [
        f"0000:14:00.0 and 0000:54:00.0: {line}"
    ]


def test_kernel_options_variables_and_memory_modules_are_shown_where_there_are_any() -> None:
    facts = Environment(kernel_command_line="iommu=pt", variables=(("NCCL_P2P_DISABLE", "1"),))
    modules = (MemoryModule(32 * GIB, 4800e6, 64),) * 16
    text = render(replace(machine(), environment=facts, memory_modules=modules))
    assert "Kernel options: iommu=pt\nVariables: NCCL_P2P_DISABLE=1" in text
    assert "16 memory modules, 4800 MT/s" in text
    assert "Kernel options" not in render(machine())


def test_what_root_would_add_beyond_pci_is_said_to_an_ordinary_user() -> None:
    ordinary = replace(machine(), environment=Environment(root=False))
    assert any("rate of the memory modules" in r and "sudo" in r for r in remarks(ordinary))
    assert not any("memory modules" in r for r in remarks(replace(machine(), environment=Environment(root=True))))


def test_a_machine_that_is_not_this_one_says_so_first() -> None:
    assert render(machine(), source="SIMULATED machine (x.json): t.").startswith(
        "SIMULATED machine (x.json): t.\n\n8 GPUs"
    )


def test_a_tree_whose_switches_name_no_root_bus_hangs_below_the_root_ports() -> None:
    found = machine(2)
    for function_ in found.pci:
        if function_.parent:
            found = with_function(found, function_.address, root_bus=None)
    roots = [line.text for line in pci_tree.lines(found) if line.state is None]
    assert roots == ["pci0000:10, NUMA node 0", "pci0000:50, NUMA node 1"]


def test_a_slot_is_named_beside_its_port() -> None:
    found = with_function(machine(2), FIRST, slot="4")
    assert any("(port 12:00.0, slot 4)" in line.text for line in pci_tree.lines(found))


def test_an_empty_machine_renders() -> None:
    text = render(Machine(why_no_gpu="No driver."))
    assert text.startswith("0 GPUs, 0 NUMA nodes")
    assert text.endswith("- No driver.")


def test_numbers_become_ranges() -> None:
    assert ranges((0, 1, 2, 5, 7, 8)) == "0-2,5,7-8"
    assert ranges(()) == ""
