"""The tables: GPU parts, NVLink, memory, healthy fractions."""

from __future__ import annotations

import pytest

from suite.limits import gpus, healthy, memory, nvlink, pcie
from suite.limits.case import of
from suite.limits.parts import PARTS, Part
from suite.records.case import Plan
from suite.records.machine import Cpu, Gpu, GpuPair, LinkState, Machine, MemoryModule, NumaNode, NvLink
from tests.limits import machines as m


@pytest.mark.parametrize(
    ("name", "part"),
    [
        ("NVIDIA H200", "H200"),
        ("NVIDIA H200 NVL", "H200 NVL"),
        ("NVIDIA H100 80GB HBM3", "H100 80GB HBM3"),
        ("NVIDIA H100 PCIe", "H100 PCIe"),
        ("NVIDIA GH200 480GB", "GH200 480GB"),
        ("NVIDIA GH200 120GB", "GH200 480GB"),
        ("NVIDIA B200", "B200"),
        ("NVIDIA GB200", "GB200"),
        ("NVIDIA A100-SXM4-40GB", "A100-SXM4-40GB"),
        ("A100-SXM4-40GB", "A100-SXM4-40GB"),
        ("NVIDIA A100-PCIE-40GB", "A100-PCIE-40GB"),
        ("NVIDIA A100 80GB PCIe", "A100 80GB PCIe"),
        ("Tesla V100-SXM2-16GB", "V100-SXM2-16GB"),
        ("Tesla V100S-PCIE-32GB", "V100S-PCIE-32GB"),
        ("Tesla T4", "T4"),
        ("NVIDIA A2", "A2"),
        ("NVIDIA A10", "A10"),
        ("NVIDIA A10G", "A10G"),
        ("NVIDIA A16", "A16"),
        ("NVIDIA L4", "L4"),
        ("NVIDIA L40", "L40"),
        ("NVIDIA L40S", "L40S"),
        ("NVIDIA GeForce RTX 3090", "RTX 3090"),
        ("NVIDIA GeForce RTX 3090 Ti", "RTX 3090 Ti"),
        ("GeForce RTX 2080 Ti", "RTX 2080 Ti"),
        ("NVIDIA GeForce RTX 4070 Ti", "RTX 4070 Ti"),
        ("NVIDIA GeForce RTX 4070 Ti SUPER", "RTX 4070 Ti SUPER"),
        ("NVIDIA GeForce RTX 4090 D", "RTX 4090 D"),
        ("NVIDIA RTX A2000 12GB", "RTX A2000 12GB"),
        ("Quadro RTX 8000", "Quadro RTX 6000"),
        ("NVIDIA RTX 6000 Ada Generation", "RTX 6000 Ada Generation"),
        ("NVIDIA RTX 4000 SFF Ada Generation", "RTX 4000 SFF Ada Generation"),
        ("NVIDIA RTX PRO 6000 Blackwell Server Edition", "RTX PRO 6000 Blackwell Server Edition"),
        ("NVIDIA RTX PRO 6000 Blackwell Workstation Edition", "RTX PRO 6000 Blackwell Workstation Edition"),
        (
            "NVIDIA RTX PRO 6000 Blackwell Max-Q Workstation Edition",
            "RTX PRO 6000 Blackwell Max-Q Workstation Edition",
        ),
        ("NVIDIA RTX PRO 5000 72GB Blackwell", "RTX PRO 5000 Blackwell"),
        ("RTX 4090", "RTX 4090"),
    ],
)
def test_a_part_is_found_by_the_name_that_nvml_gives(name: str, part: str) -> None:
    found = gpus.part(Gpu(0, name))
    assert found is not None
    assert found.name == part


@pytest.mark.parametrize(
    "name",
    [
        "",
        "NVIDIA",
        "unknown GPU",
        "Some New GPU",
        "NVIDIA H100",
        "NVIDIA H20-3e",
        "NVIDIA A100-SXM4-40GB MIG 1g.5gb",
        "GRID A100-10C",
        "NVIDIA A40-48Q",
        "NVIDIA GeForce RTX 4090 Laptop GPU",
        "NVIDIA RTX A5000 Laptop GPU",
        "NVIDIA RTX 6000",
        "NVIDIA RTX PRO 6000 Blackwell",
    ],
)
def test_a_name_that_only_resembles_a_part_s_is_of_no_known_part(name: str) -> None:
    assert gpus.part(Gpu(0, name)) is None


@pytest.mark.parametrize("name", ["NVIDIA GeForce RTX 3080", "NVIDIA GeForce RTX 3060 Ti", "NVIDIA GeForce RTX 3050"])
def test_a_name_that_two_parts_bear_is_of_no_known_part(name: str) -> None:
    assert gpus.part(Gpu(0, name)) is None


@pytest.mark.parametrize(("device_id", "rate"), [(0x2206, 760.3e9), (0x2216, 760.3e9), (0x220A, 912.4e9)])
def test_device_ids_tell_parts_of_one_name_apart(device_id: int, rate: float) -> None:
    found = gpus.part(Gpu(0, "NVIDIA GeForce RTX 3080", pci_device_id=device_id))
    assert found is not None
    assert found.memory == pytest.approx(rate)


@pytest.mark.parametrize("name", ["A2", "A16"])
def test_names_tell_parts_of_one_device_id_apart(name: str) -> None:
    found = gpus.part(Gpu(0, f"NVIDIA {name}", pci_device_id=0x25B6))
    assert found is not None
    assert found.name == name
    assert gpus.part(Gpu(0, "renamed", pci_device_id=0x25B6)) is None


@pytest.mark.parametrize("device_id", [0x2335, 0x233510DE])
def test_a_part_is_found_by_either_form_of_its_device_id(device_id: int) -> None:
    found = gpus.part(Gpu(0, "renamed", pci_device_id=device_id))
    assert found is not None
    assert found.name == "H200"


def test_an_unlisted_device_id_is_not_guessed_by_name() -> None:
    assert gpus.part(Gpu(0, "NVIDIA H200", pci_device_id=0x9999)) is None


def test_no_two_parts_have_both_a_device_id_and_a_name_in_common() -> None:
    pairs = [(device_id, name.lower()) for part in PARTS for device_id in part.device_ids for name in part.names]
    assert len(pairs) == len(set(pairs))


@pytest.mark.parametrize("part", PARTS, ids=lambda part: f"{part.name} {part.device_ids[0]:04x}")
def test_every_part_has_a_source_and_figures_that_can_be(part: Part) -> None:
    """The bounds catch a slip of units or digits: no GPU has less than 50 GB/s of memory or more than 10 TB/s."""
    assert part.source
    assert part.memory is None or 50e9 < part.memory < 10e12
    assert part.link == LinkState() or (part.link.gen in (3, 4, 5) and part.link.width in (8, 16))
    assert (part.nvlinks is None) == (part.nvlink_rate is None)
    assert part.nvlink_rate is None or 10e9 < part.nvlink_rate <= 50e9


def test_a_part_is_found_again_by_each_of_its_device_ids_and_names_together() -> None:
    for part in PARTS:
        for device_id in part.device_ids:
            for name in part.names:
                assert gpus.part(Gpu(0, f"NVIDIA {name}", pci_device_id=device_id)) is part


@pytest.mark.parametrize(
    ("name", "link"),
    [
        ("NVIDIA GeForce RTX 4060", m.GEN4_X8),
        ("NVIDIA GeForce RTX 4060 Ti", m.GEN4_X8),
        ("NVIDIA RTX 2000 Ada Generation", m.GEN4_X8),
        ("NVIDIA A2", m.GEN4_X8),
        ("NVIDIA GeForce RTX 4070 Ti", m.GEN4_X16),
        ("NVIDIA GeForce RTX 5060 Ti", LinkState(32.0, 8)),
        ("NVIDIA GH200 480GB", LinkState()),
    ],
)
def test_cards_that_are_built_with_eight_lanes_are_known_as_such(name: str, link: LinkState) -> None:
    found = gpus.part(Gpu(0, name))
    assert found is not None
    assert found.link == link


def test_the_table_s_eight_lanes_limit_the_device_where_nothing_else_tells_its_link() -> None:
    hidden = Machine(
        nodes=(NumaNode(0),),
        pci=(m.function("0000:00:06.0", most=LinkState(), now=LinkState()),),
        gpus=(Gpu(0, "NVIDIA GeForce RTX 4060", address="0000:00:06.0", numa_node=0),),
    )
    limit = of(hidden, m.plan("host_to_device", 0), None, ())
    x8 = pcie.raw(4, 8, False)
    assert limit.device is not None
    assert 0.8 * x8 < limit.device < x8


def test_a_part_whose_memory_rate_is_not_known_has_no_limit_and_says_why() -> None:
    machine = Machine(gpus=(Gpu(0, "NVIDIA GeForce RTX 4070", address="0000:01:00.0"),))
    limit = of(machine, m.plan("device_local_copy", 0), None, ())
    assert limit.now is None
    assert "bear this name" in (limit.why or "")


def test_ga102_links_are_slower_than_their_version_says() -> None:
    bond = nvlink.between(bridged("NVIDIA RTX A6000", 4), 0, 1)
    assert bond is not None
    assert bond.capacity == pytest.approx(56.25e9)
    assert not bond.switched


def test_only_active_links_count() -> None:
    assert nvlink.between(bridged("NVIDIA RTX A6000", 4, active=False), 0, 1) is None


def test_a_pair_s_count_is_enough_where_links_name_no_remote() -> None:
    links = (NvLink(0, active=True, version=2), NvLink(1, active=True, version=2))
    machine = Machine(gpus=(Gpu(0, "X", nvlinks=links), Gpu(1, "X", nvlinks=links)), pairs=(GpuPair(0, 1, nvlinks=2),))
    bond = nvlink.between(machine, 0, 1)
    assert bond is not None
    assert bond.capacity == pytest.approx(50e9)


def test_a_peer_copy_over_nvlink_is_limited_by_the_bond_and_both_ways_by_twice_it() -> None:
    machine = bridged("NVIDIA RTX A6000", 4)
    assert of(machine, m.plan("peer_write", 0, 1), None, ()).now == pytest.approx(56.25e9)
    assert of(machine, m.plan("peer_both_ways", 0, 1), None, ()).now == pytest.approx(112.5e9)


@pytest.mark.parametrize(("pattern", "total"), [("ring", 8 * 450e9), ("one_to_all", 450e9), ("all_to_all", 8 * 450e9)])
def test_patterns_through_a_switch_share_each_gpu_s_links(pattern: str, total: float) -> None:
    links = tuple(NvLink(i, active=True, version=4, remote="switch") for i in range(18))
    machine = Machine(gpus=tuple(Gpu(n, "NVIDIA H200", address=f"0000:0{n}:00.0", nvlinks=links) for n in range(8)))
    plan = m.plan("peer_pattern", *range(8), transport=pattern)
    assert of(machine, plan, None, ()).now == pytest.approx(total)


def test_a_copy_within_a_gpu_reads_and_writes_its_memory() -> None:
    limit = of(m.virtual_h200(), m.plan("device_local_copy", 0), None, ())
    assert limit.now == pytest.approx(2400e9)
    assert not limit.hard


@pytest.mark.parametrize(
    ("model", "rate"),
    [
        ("Intel(R) Xeon(R) Platinum 8480+", 32e9),
        ("Intel(R) Xeon(R) Gold 6248 CPU @ 2.50GHz", 20.8e9),
        ("AMD EPYC 7763 64-Core Processor", 36e9),
        ("AMD EPYC 9654 96-Core Processor", 64e9),
        ("AMD Ryzen 9 7950X", None),
        (None, None),
    ],
)
def test_processors_links_are_known_for_listed_models_only(model: str | None, rate: float | None) -> None:
    found = memory.processor_link(Cpu(model=model))
    assert (found[0] if found else None) == rate


def test_every_healthy_range_is_a_range_with_a_source() -> None:
    for row in healthy.HEALTHY:
        assert 0 < row.low < row.high <= 1
        assert row.source


def test_a_kind_of_machine_without_a_row_gets_the_span_of_all() -> None:
    row = healthy.expected("host_to_device", "copy-engine", 6)
    assert (row.low, row.high) == healthy.ANYWHERE


def bridged(name: str, links: int, *, active: bool = True) -> Machine:
    """Two GPUs with a bridge between them."""
    addresses = ("0000:01:00.0", "0000:02:00.0")
    gpus_ = tuple(
        Gpu(
            n,
            name,
            address=addresses[n],
            nvlinks=tuple(NvLink(i, active, 3, "gpu", addresses[1 - n]) for i in range(links)),
        )
        for n in range(2)
    )
    return Machine(gpus=gpus_)


MODULES = (MemoryModule(32 << 30, 4800e6, 64),) * 16


def two_nodes(modules: tuple[MemoryModule, ...]) -> Machine:
    nodes = tuple(NumaNode(i, (i,), memory_bytes=1 << 38) for i in (0, 1))
    return Machine((*nodes, NumaNode(2, memory_bytes=0)), memory_modules=modules)


@pytest.mark.parametrize(("target", "rate"), [(0, 153.6e9), (1, 307.2e9)])
def test_a_copy_of_host_memory_is_softly_limited_by_the_modules_of_its_nodes(target: int, rate: float) -> None:
    plan = Plan("x", "host_memory_copy", 1 << 26, memory_node=0, target_node=target)
    found = of(two_nodes(MODULES), plan, None, ())
    assert found.now == pytest.approx(rate)
    assert not found.hard
    assert "614.4 GB/s" in (found.why or "")


def test_a_module_that_says_no_width_carries_64_bits_a_transfer() -> None:
    modules = (MemoryModule(16 << 30, 3200e6), MemoryModule(16 << 30, 3200e6, 32), MemoryModule(16 << 30))
    assert memory.module_rates(Machine(memory_modules=modules)) == pytest.approx([25.6e9, 12.8e9])


def test_modules_without_a_rate_leave_host_memory_unlimited_and_say_why() -> None:
    plan = Plan("x", "host_memory_copy", 1 << 26, memory_node=0, target_node=0)
    found = of(two_nodes((MemoryModule(32 << 30),)), plan, None, ())
    assert found.now is None
    assert "root" in (found.why or "")
