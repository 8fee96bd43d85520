"""The machine of the sample runs: two sockets, and behind each root port a switch with two GPUs."""

from __future__ import annotations

from suite.records.machine import (
    Cpu,
    Environment,
    Gpu,
    GpuPair,
    LinkState,
    Machine,
    NumaNode,
    PciFunction,
    Software,
)

GEN1 = LinkState(2.5, 16)
GEN4 = LinkState(16.0, 16)
GEN4_X4 = LinkState(16.0, 4)


def address(gpu: int) -> str:
    """A GPU's PCI address: two GPUs below each switch, each switch below a root port of its own node."""
    return f"0000:{16 * (gpu // 2) + 3 + gpu % 2:02x}:00.0"


def machine(gpus: int = 4, nodes: int = 2, name: str = "RTX 6000 Ada") -> Machine:
    """Two sockets; behind each root port a switch with two GPUs."""
    devices = tuple(_gpu(index, name, _node_of(index, gpus, nodes)) for index in range(gpus))
    ports = [f for switch in range((gpus + 1) // 2) for f in _switch(switch, _node_of(2 * switch, gpus, nodes))]
    ends = [_endpoint(g) for g in devices]
    pairs = tuple(
        GpuPair(a, b, topology="PIX" if a // 2 == b // 2 else "SYS", p2p_read="OK", p2p_write="OK")
        for a in range(gpus)
        for b in range(a + 1, gpus)
    )
    return Machine(
        nodes=tuple(_numa(index, nodes) for index in range(nodes)),
        cpu=Cpu(model="AMD EPYC 9354", vendor="AuthenticAMD", packages=2, cores=64, threads=128),
        pci=(*ports, *ends),
        gpus=devices,
        pairs=pairs,
        software=Software(kernel="6.8.0", driver="570.124.06", cuda_driver="12.8", nccl="2.26.2", torch="2.7.0"),
        environment=Environment(board="Example Board", bios="1.2", variables=(("NCCL_P2P_LEVEL", "SYS"),)),
        why_no_gpu=None if gpus else "no NVIDIA driver is loaded",
    )


def _node_of(gpu: int, gpus: int, nodes: int) -> int:
    return gpu * nodes // gpus if gpus else 0


def _gpu(index: int, name: str, node: int) -> Gpu:
    return Gpu(index, name, address(index), node, memory_bytes=48 << 30, link=GEN1, link_max=GEN4, link_device=GEN4)


def _numa(index: int, nodes: int) -> NumaNode:
    cpus = tuple(range(index * 64, index * 64 + 64))
    distances = tuple(10 if other == index else 32 for other in range(nodes))
    return NumaNode(index, cpus, memory_bytes=256 << 30, distances=distances, packages=(index,))


def _switch(switch: int, node: int) -> list[PciFunction]:
    """Root port, upstream port and two downstream ports."""
    bus, root = 16 * switch, f"pci0000:{16 * switch:02x}"
    names = [f"0000:{bus:02x}:01.0", f"0000:{bus + 1:02x}:00.0", f"0000:{bus + 2:02x}:00.0", f"0000:{bus + 2:02x}:01.0"]
    parents = [None, names[0], names[1], names[1]]
    kinds = ("root_port", "upstream_port", "downstream_port", "downstream_port")
    return [
        PciFunction(name, parent, root, class_code=0x060400, port_type=kind, numa_node=node, link=GEN4, link_max=GEN4)  # type: ignore[arg-type]
        for name, parent, kind in zip(names, parents, kinds, strict=True)
    ]


def _endpoint(gpu: Gpu) -> PciFunction:
    assert gpu.address is not None
    bus = 16 * (gpu.index // 2)
    return PciFunction(
        gpu.address,
        f"0000:{bus + 2:02x}:{gpu.index % 2:02x}.0",
        f"pci0000:{bus:02x}",
        vendor_id=0x10DE,
        class_code=0x030000,
        port_type="endpoint",
        numa_node=gpu.numa_node,
        link=GEN1,
        link_max=GEN4,
    )
