"""A ring through host memory: what binds is a shared uplink, each GPU's own link, or the memory of a node."""

from __future__ import annotations

from dataclasses import replace

import pytest

from suite.limits import case
from suite.records.case import Transport
from suite.records.machine import Machine, MemoryModule, NumaNode
from suite.records.run import Limits
from suite.units import GIB
from tests.limits import machines as m
from tests.limits.test_collective import loaded, nccl

DDR4 = MemoryModule(size_bytes=16 * GIB, rate=3.2e9, width_bits=64)  # 25.6 GB/s


def with_memory(machine: Machine, nodes: int, modules: int) -> Machine:
    """GPUs spread over NUMA nodes in order, modules over all nodes."""
    count = len(machine.gpus)
    gpus = tuple(replace(gpu, numa_node=gpu.index * nodes // count) for gpu in machine.gpus)
    places = tuple(NumaNode(index=n, memory_bytes=64 * GIB) for n in range(nodes))
    return replace(machine, gpus=gpus, nodes=places, memory_modules=(DDR4,) * modules)


def shm(machine: Machine, channels: int = 1, protocol: str = "Simple") -> Limits:
    """The limits of a ring in rank order over shared memory, of that many channels."""
    count = len(machine.gpus)
    ring = [f"r{a}>r{(a + 1) % count} SHM/direct/direct" for a in range(count)]
    seen = Transport("SHM", "Ring", protocol, channels=channels, edges=tuple(ring * channels))
    return case.of(machine, nccl(machine, transport="shm"), m.samples(transport=seen), loaded(machine))


def test_a_ring_over_one_nodes_memory_is_bound_by_it() -> None:
    """8 edges end on the node, each written and read: 204.8 / (2 · 8) = 12.8, where the links carry 22.91."""
    limit = shm(with_memory(m.below_root_ports(8), nodes=1, modules=8))
    assert limit.now == pytest.approx(12.8e9)
    assert limit.binding == "memory of node 0, 205 GB/s"
    assert not limit.hard
    assert "Shared memory on one node: 8 of the edges" in (limit.why or "")


def test_the_same_ring_over_two_nodes_of_the_same_memory_is_bound_by_the_links() -> None:
    limit = shm(with_memory(m.below_root_ports(8), nodes=2, modules=16))
    assert limit.now == pytest.approx(22.91e9, rel=0.001)
    assert limit.hard
    assert (limit.binding or "").startswith("0000:")


def test_more_channels_share_the_same_memory() -> None:
    machine = with_memory(m.below_root_ports(8), nodes=1, modules=8)
    assert shm(machine, channels=4).now == pytest.approx(12.8e9)


def test_flags_of_a_protocol_use_memory_too() -> None:
    machine = with_memory(m.below_root_ports(8), nodes=1, modules=8)
    assert shm(machine, protocol="LL").now == pytest.approx(6.4e9)


def test_memory_that_is_not_known_binds_nothing() -> None:
    machine = with_memory(m.below_root_ports(8), nodes=1, modules=0)
    assert shm(machine).now == pytest.approx(22.91e9, rel=0.001)


def test_a_shared_uplink_binds_before_memory_does() -> None:
    """Field case 6: two cards without P2P below one switch are slower than two below root ports of their own."""
    below_a_switch = shm(with_memory(m.below_one_switch(2), nodes=1, modules=8))
    apart = shm(with_memory(m.below_root_ports(2), nodes=1, modules=8))
    assert below_a_switch.now == pytest.approx(22.91e9 / 2, rel=0.001)
    assert apart.now == pytest.approx(22.91e9, rel=0.001)
