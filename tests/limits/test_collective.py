"""Limits of collectives: by algorithm, protocol, transport and edges."""

from __future__ import annotations

from dataclasses import replace

import pytest

from suite.limits import case, collective
from suite.limits.collective import bus_factor
from suite.records.case import Plan, Samples, Transport
from suite.records.machine import Cpu, Gpu, GpuPair, Machine, NvLink, PciFunction
from suite.records.run import Limits, Result
from tests.limits import machines as m


def nvswitch(count: int = 8, links: int = 18, *, rate: float | None = None, name: str = "H100") -> Machine:
    """GPUs that only a switch joins."""
    one = tuple(NvLink(i, active=True, version=4, remote="switch", rate=rate) for i in range(links))
    gpus = tuple(Gpu(n, name, address=f"0000:0{n + 1}:00.0", nvlinks=one) for n in range(count))
    return Machine(gpus=gpus)


def allreduce(machine: Machine, seen: Transport | None, **fields: object) -> Limits:
    plan = nccl(machine, **fields)
    return case.of(machine, plan, m.samples(transport=seen) if seen else None, loaded(machine))


def nccl(machine: Machine, **fields: object) -> Plan:
    count = len(machine.gpus)
    return m.plan("allreduce", *range(count), engine="nccl", backend="nccl", world_size=count, **fields)


def loaded(machine: Machine) -> list[Result]:
    """Link watches of every GPU at Gen4 x16 on every hop that the tests' machines have."""
    hops = [("0000:01:00.0", m.GEN4_X16)] if machine.function("0000:10:00.0") else []
    watch = m.watched(m.GEN4_X16, hops)
    return [Result(f"link/gpu{g.index}", "link_under_load", 1, gpus=(g.index,), link=watch) for g in machine.gpus]


@pytest.mark.parametrize(
    ("operation", "factor"),
    [("allreduce", 1.75), ("all_gather", 0.875), ("reduce_scatter", 0.875), ("all_to_all", 0.875), ("broadcast", 1.0)],
)
def test_busbw_over_algbw_is_nccl_tests_convention(operation: str, factor: float) -> None:
    assert bus_factor(operation, 8) == factor  # type: ignore[arg-type]


def test_no_ranks_is_refused() -> None:
    with pytest.raises(ValueError, match="at least 1"):
        bus_factor("allreduce", 0)


def test_eight_h100_that_reduce_in_the_switch_are_limited_at_700() -> None:
    """Field case 21: 470 GB/s is above 18 × 25 = 450, and right."""
    limit = allreduce(nvswitch(), Transport(name="P2P", algorithm="NVLS", protocol="Simple"))
    assert limit.now == pytest.approx(700e9)
    assert limit.why is not None
    assert "the switch reduces" in limit.why


def test_a_ring_through_the_switch_is_limited_by_all_links_of_one_gpu() -> None:
    limit = allreduce(nvswitch(), Transport(name="P2P", algorithm="Ring", protocol="Simple"))
    assert limit.now == pytest.approx(450e9)
    assert limit.binding == "18 NVLinks of 25 GB/s through NVSwitch"


def test_an_h100_nvl_is_limited_by_the_twelve_links_it_has() -> None:
    """Field case 11: not by the eighteen of the SXM part."""
    limit = allreduce(nvswitch(2, links=12, name="NVIDIA H100 NVL"), Transport(name="P2P", algorithm="Ring"))
    assert limit.now == pytest.approx(300e9)


def test_nvml_s_own_rate_comes_first() -> None:
    limit = allreduce(nvswitch(rate=26.5625e9), Transport(name="P2P", algorithm="Ring"))
    assert limit.now == pytest.approx(478.1e9, rel=0.001)


@pytest.mark.parametrize(("protocol", "factor"), [("LL", 0.5), ("LL128", 0.92), ("Simple", 1.0)])
def test_a_protocol_s_flags_cost_their_share(protocol: str, factor: float) -> None:
    limit = allreduce(nvswitch(), Transport(name="P2P", algorithm="Ring", protocol=protocol))
    assert limit.now == pytest.approx(450e9 * factor)


def test_an_unread_algorithm_through_a_switch_gets_the_highest_ceiling() -> None:
    assert allreduce(nvswitch(), None).now == pytest.approx(700e9)


def test_a_tree_loads_an_interior_gpu_twice() -> None:
    limit = allreduce(nvswitch(), Transport(name="P2P", algorithm="Tree"))
    assert limit.now == pytest.approx(7 / 8 * 450e9)


def test_two_gpus_in_a_tree_are_bound_by_their_cut_only() -> None:
    assert collective.tree(2, 100e9) == pytest.approx(100e9)
    assert collective.tree(8, 100e9) == pytest.approx(87.5e9)


def test_a_p2p_ring_over_pcie_writes_128_byte_packets() -> None:
    edges = ("r0>r1 P2P/direct pointer", "r1>r0 P2P/direct pointer")
    limit = allreduce(m.below_one_switch(2), Transport(name="P2P", algorithm="Ring", protocol="Simple", edges=edges))
    assert limit.now == pytest.approx(26.53e9, rel=0.001)


def test_a_ring_through_host_memory_reads_and_writes_at_once() -> None:
    limit = allreduce(m.below_root_ports(2), Transport(name="SHM", algorithm="Ring", protocol="Simple"))
    assert limit.now == pytest.approx(22.91e9, rel=0.001)


def test_rings_through_host_memory_share_the_uplink_of_a_switch() -> None:
    seen = Transport(name="SHM", algorithm="Ring", protocol="Simple")
    limit = allreduce(m.below_one_switch(4), seen, transport="shm")
    assert limit.now == pytest.approx(22.91e9 / 4, rel=0.001)
    assert limit.binding is not None
    assert limit.binding.startswith("0000:01:00.0")


def test_equal_rings_over_all_channels_change_nothing() -> None:
    ring = ("r0>r1 SHM/direct/direct", "r1>r0 SHM/direct/direct")
    one = allreduce(m.below_root_ports(2), Transport(name="SHM", algorithm="Ring", edges=ring))
    many = allreduce(m.below_root_ports(2), Transport(name="SHM", algorithm="Ring", edges=ring * 4, channels=4))
    assert one.now == pytest.approx(many.now)


def test_two_rings_over_a_mesh_carry_more_than_one() -> None:
    """Three GPUs, each pair with two links: rings both ways around use every link."""
    machine = mesh({(0, 1): 2, (1, 2): 2, (0, 2): 2})
    around = ("r0>r1 P2P", "r1>r2 P2P", "r2>r0 P2P")
    back = ("r1>r0 P2P", "r2>r1 P2P", "r0>r2 P2P")
    one = allreduce(machine, Transport(name="P2P", algorithm="Ring", edges=around, channels=1))
    both = allreduce(machine, Transport(name="P2P", algorithm="Ring", edges=around + back, channels=2))
    assert one.now == pytest.approx(50e9)
    assert both.now == pytest.approx(100e9)


def test_without_the_rings_a_mesh_is_bound_by_its_narrowest_cut() -> None:
    machine = mesh({(0, 1): 2, (1, 2): 2, (0, 2): 2})
    assert allreduce(machine, Transport(name="P2P", algorithm="Ring")).now == pytest.approx(4 / 3 * 100e9)


def test_bridged_pairs_are_bound_by_pcie_between_the_pairs() -> None:
    machine = mesh({(0, 1): 4, (2, 3): 4}, below=m.below_root_ports(4))
    edges = ("r0>r1 P2P/CUMEM", "r1>r2 SHM/direct", "r2>r3 P2P/CUMEM", "r3>r0 SHM/direct")
    limit = allreduce(machine, Transport(name="P2P", algorithm="Ring", edges=edges))
    assert limit.now == pytest.approx(26.53e9, rel=0.001)
    assert limit.binding is not None
    assert "16 GT/s x16" in limit.binding


def test_an_unread_algorithm_over_pcie_gets_the_cut_bound() -> None:
    limit = allreduce(m.below_root_ports(2), Transport(name="SHM"))
    assert limit.now == pytest.approx(2 / 2 * 22.91e9, rel=0.001)
    assert limit.why is not None
    assert "Cut bound" in limit.why


def test_ranks_that_share_a_gpu_have_no_limit() -> None:
    plan = m.plan("allreduce", 0, 0, engine="nccl", backend="nccl", world_size=2)
    limit = case.of(m.virtual_h200(), plan, None, ())
    assert limit.now is None
    assert limit.why is not None
    assert "share a GPU" in limit.why


def test_a_network_whose_adapters_tell_no_rate_has_no_limit() -> None:
    limit = allreduce(m.below_root_ports(2), Transport(name="NET", algorithm="Ring"))
    assert (limit.now, limit.platform) == (None, None)
    assert "no adapter of this machine tells its rate" in (limit.why or "")


def with_adapters(machine: Machine, *rates: float) -> Machine:
    adapters = tuple(
        PciFunction(f"0000:a{i}:00.0", class_code=0x020700, network_rate=rate) for i, rate in enumerate(rates)
    )
    return replace(machine, pci=(*machine.pci, *adapters))


def test_ranks_of_one_host_over_the_network_are_told_the_adapters_and_get_no_limit_for_now() -> None:
    limit = allreduce(with_adapters(m.below_root_ports(2), 25e9, 25e9), Transport(name="NET", algorithm="Ring"))
    assert limit.now is None
    assert limit.platform == pytest.approx(25e9)
    assert not limit.hard
    assert (limit.binding or "").startswith("0000:a0:00.0, 0000:a1:00.0: 50.0 GB/s")


def test_two_hosts_are_bound_by_the_adapters_of_one_over_all_rings() -> None:
    machine = with_adapters(m.below_root_ports(2), 12.5e9)
    edges = tuple(
        text
        for _ in range(2)
        for text in ("r0>r1 P2P/direct pointer", "r1>r2 NET/IB/0", "r2>r3 P2P/direct pointer", "r3>r0 NET/IB/0")
    )
    plan = m.plan("allreduce", 0, 1, engine="nccl", backend="nccl", world_size=4)
    seen = m.samples(transport=Transport("NET", "Ring", edges=edges))
    limit = case.of(machine, plan, seen, loaded(machine))
    assert limit.now == pytest.approx(12.5e9)
    assert not limit.hard
    assert "2 ring(s) leave this host 2 time(s)" in (limit.why or "")


def test_ranks_of_several_hosts_that_name_no_gpus_here_are_two_hosts_at_least() -> None:
    machine = with_adapters(m.below_root_ports(2), 12.5e9)
    plan = m.plan("allreduce", engine="nccl", backend="nccl", world_size=2)
    seen = m.samples(transport=Transport("NET", "Ring", edges=("r0>r1 NET/IB/0", "r1>r0 NET/IB/0")))
    assert case.of(machine, plan, seen, ()).now == pytest.approx(12.5e9)


def test_the_network_s_share_follows_rings_and_crossings() -> None:
    assert collective.network(50e9, channels=4, crossings=4) == pytest.approx(50e9)
    assert collective.network(50e9, channels=4, crossings=8) == pytest.approx(25e9)


def test_the_floor_is_hops_times_the_flag_latency_of_the_same_gpus() -> None:
    flag = Result("peer/flag", "peer_flag_latency", 8, gpus=(0, 1), latency_s=1e-6)
    machine = m.below_root_ports(4)
    shm = Samples((1e-3,), "cuda-event", "nccl", transport=Transport(name="SHM", algorithm="Ring"))
    assert case.of(machine, nccl(machine), shm, [flag]).floor_s == pytest.approx(6e-6)
    assert case.of(machine, nccl(machine), shm, []).floor_s is None


def test_the_floor_of_shared_memory_is_a_flag_through_host_memory() -> None:
    through = {
        way: Result("peer/flag", "peer_flag_latency", 8, gpus=(0, 1), latency_s=t, p2p=way)
        for way, t in ((True, 1e-6), (False, 2e-6))
    }
    machine = m.below_root_ports(2)
    for name, hop in (("SHM", 2e-6), ("P2P", 1e-6)):
        edges = (f"r0>r1 {name}/x", f"r1>r0 {name}/x")
        seen = Samples((1e-3,), "cuda-event", "nccl", transport=Transport(name=name, algorithm="Ring", edges=edges))
        assert case.of(machine, nccl(machine), seen, list(through.values())).floor_s == pytest.approx(2 * hop)


@pytest.mark.parametrize(
    ("vendor", "kind"), [("AuthenticAMD", "P2P over PCIe"), ("GenuineIntel", "shared host memory")]
)
def test_a_pair_across_the_host_bridge_is_taken_to_use_what_nccl_would(vendor: str, kind: str) -> None:
    machine = m.recorded_at(
        m.below_root_ports(2), m.GEN4_X16, cpu=Cpu(vendor=vendor), pairs=(GpuPair(0, 1, topology="PHB"),)
    )
    why = case.as_recorded(machine, nccl(machine)).why
    assert why is not None
    assert kind in why


def test_an_ideal_ring_takes_the_time_of_its_busbw() -> None:
    seconds = case.ideal_seconds(nvswitch(), nccl(nvswitch()))
    assert seconds == pytest.approx((256 << 20) * 1.75 / 450e9)


@pytest.mark.parametrize("operation", ["all_gather", "reduce_scatter", "broadcast", "all_to_all", "send_recv"])
def test_every_other_collective_is_limited_by_what_leaves_one_gpu(operation: str) -> None:
    machine = nvswitch()
    plan = m.plan(operation, *range(8), engine="nccl", backend="nccl", world_size=8)  # type: ignore[arg-type]
    assert case.of(machine, plan, None, ()).now == pytest.approx(450e9)


def mesh(bonds: dict[tuple[int, int], int], below: Machine | None = None) -> Machine:
    """GPUs joined by direct NVLinks of version 2: bonds[a, b] links between them."""
    base = below or m.below_root_ports(3)
    gpus = []
    for gpu in base.gpus:
        links: list[NvLink] = []
        for (a, b), count in bonds.items():
            if gpu.index in (a, b):
                other = base.gpus[b if gpu.index == a else a].address
                links += [NvLink(len(links) + i, True, 2, "gpu", other) for i in range(count)]
        gpus.append(Gpu(gpu.index, "V100", address=gpu.address, nvlinks=tuple(links)))
    return Machine(nodes=base.nodes, pci=base.pci, gpus=tuple(gpus))


def test_shm_as_the_sum_of_a_ring_still_lets_p2p_run_below_a_switch() -> None:
    """Four GPUs below one switch: NCCL uses SHM between some only, unless P2P was switched off."""
    machine, seen = m.below_one_switch(4), Transport(name="SHM", algorithm="Ring")
    both = Transport(name="P2P+SHM", algorithm="Ring")
    assert allreduce(machine, seen).now == pytest.approx(26.53e9, rel=0.001)
    assert allreduce(machine, both).now == pytest.approx(26.53e9, rel=0.001)
    assert allreduce(m.below_root_ports(4), both).now == pytest.approx(22.91e9, rel=0.001)
    assert allreduce(machine, seen, transport="shm").now == pytest.approx(22.91e9 / 4, rel=0.001)


def test_a_ring_says_what_two_real_gpus_reached_of_its_ceiling_and_a_tree_nothing() -> None:
    switched = allreduce(nvswitch(2), Transport(name="P2P", algorithm="Ring"))
    shared = allreduce(m.below_root_ports(2), Transport(name="SHM", algorithm="Ring", protocol="Simple"))
    for limit, low in ((switched, 0.55), (shared, 0.58)):
        assert limit.now is not None
        assert limit.expected is not None
        assert limit.expected[0] == pytest.approx(low * limit.now)
    assert allreduce(nvswitch(2), Transport(name="P2P", algorithm="Tree")).expected is None
