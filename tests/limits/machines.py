"""Small machines for the tests of limits, built by hand."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from suite.records.case import HopWatch, LinkWatch, Operation, Plan, Samples
from suite.records.machine import (
    Environment,
    Gpu,
    LinkState,
    Machine,
    NumaNode,
    PcieConfig,
    PciFunction,
    PortType,
)

GEN3_X16 = LinkState(8.0, 16)
GEN4_X8 = LinkState(16.0, 8)
GEN4_X16 = LinkState(16.0, 16)
GEN5_X16 = LinkState(32.0, 16)
IDLE = LinkState(2.5, 16)


def function(
    address: str,
    parent: str | None = None,
    *,
    port: PortType | None = None,
    most: LinkState = GEN5_X16,
    now: LinkState = IDLE,
    mps: int | None = 256,
    mrrs: int | None = 4096,
    acs: bool | None = None,
    root_bus: str = "pci0000:00",
) -> PciFunction:
    """One function; mps None: its config space could not be read. A bridge where `port` is given."""
    return PciFunction(
        address,
        parent,
        root_bus=root_bus,
        class_code=0x060400 if port else 0x030200,
        port_type=port or "endpoint",
        numa_node=0,
        link=now,
        link_max=most,
        config=PcieConfig(mps=mps, mrrs=mrrs, acs_redirect=acs) if mps else None,
    )


def virtual_h200(*, mps: int | None = 256) -> Machine:
    """One Gen5 x16 GPU whose bridges a virtual machine hides."""
    return Machine(
        nodes=(NumaNode(0, cpus=(0, 1)), NumaNode(1, cpus=(2, 3))),
        pci=(function("0000:00:06.0", mps=mps),),
        gpus=(Gpu(0, "NVIDIA H200", address="0000:00:06.0", numa_node=0, link_device=GEN5_X16),),
        environment=Environment(virtual_machine="kvm"),
    )


def below_root_ports(count: int = 2, *, most: LinkState = GEN4_X16, mps: int | None = 256) -> Machine:
    """GPUs that have a root port each: 0000:0n:00.0 below 0000:00:0n.0."""
    pci = []
    for n in range(1, count + 1):
        pci.append(function(f"0000:00:0{n}.0", port="root_port", most=most, mps=mps))
        pci.append(function(f"0000:0{n}:00.0", f"0000:00:0{n}.0", most=most, mps=mps, mrrs=512))
    gpus = tuple(Gpu(n, "GPU", address=f"0000:0{n + 1}:00.0", numa_node=0) for n in range(count))
    return Machine(nodes=(NumaNode(0),), pci=tuple(pci), gpus=gpus)


def below_one_switch(count: int = 2, *, most: LinkState = GEN4_X16, acs: bool = False) -> Machine:
    """GPUs below one switch: root port 0000:00:01.0, upstream port 0000:01:00.0, downstream ports 0000:02:0n.0."""
    pci = [
        function("0000:00:01.0", port="root_port", most=most),
        function("0000:01:00.0", "0000:00:01.0", port="upstream_port", most=most),
    ]
    for n in range(count):
        pci.append(function(f"0000:02:0{n}.0", "0000:01:00.0", port="downstream_port", most=most, acs=acs))
        pci.append(function(f"0000:1{n}:00.0", f"0000:02:0{n}.0", most=most))
    gpus = tuple(Gpu(n, "GPU", address=f"0000:1{n}:00.0", numa_node=0) for n in range(count))
    return Machine(nodes=(NumaNode(0),), pci=tuple(pci), gpus=gpus)


def watched(load: LinkState, hops: Sequence[tuple[str, LinkState]] = (), readings: int = 20) -> LinkWatch:
    """A watch that saw the GPU's link, and hops by the address of their lower end, in these states."""
    return LinkWatch(
        idle=IDLE,
        load=load,
        readings=readings,
        hops=tuple(HopWatch(lower, idle=IDLE, load=state) for lower, state in hops),
    )


def samples(watch: LinkWatch | None = None, seconds: float = 0.005, **fields: object) -> Samples:
    """What an engine would answer."""
    return Samples((seconds,), "cuda-event", "copy-engine", watch=watch, **fields)  # type: ignore[arg-type]


def plan(operation: Operation, *gpus: int, **fields: object) -> Plan:
    """A plan of 256 MiB for some GPUs."""
    given = {"bytes": 256 << 20, **fields}
    return Plan(f"group/{operation}", operation, gpus=gpus, **given)  # type: ignore[arg-type]


def recorded_at(machine: Machine, link: LinkState, **fields: object) -> Machine:
    """The machine with every link recorded in one state, and with other fields replaced."""
    return replace(machine, pci=tuple(replace(f, link=link) for f in machine.pci), **fields)  # type: ignore[arg-type]
