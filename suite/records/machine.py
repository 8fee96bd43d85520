"""What is there: PCI functions and links, NUMA nodes, processors, GPUs, software."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Literal

# GT/s per lane of each PCIe generation (PCI Express Base Specification, revisions 1.0 to 7.0).
GENERATION_GTS: dict[int, float] = {1: 2.5, 2: 5.0, 3: 8.0, 4: 16.0, 5: 32.0, 6: 64.0, 7: 128.0}

PortType = Literal[
    "endpoint",
    "legacy_endpoint",
    "root_port",
    "upstream_port",
    "downstream_port",
    "pcie_to_pci",
    "integrated",
]
Basis = Literal["read", "assumed", "virtualized"]
Topology = Literal["SELF", "PIX", "PXB", "PHB", "NODE", "SYS"]


@dataclass(frozen=True)
class LinkState:
    """One PCIe link: GT/s per lane and number of lanes; None where not known."""

    speed_gts: float | None = None
    width: int | None = None

    @property
    def gen(self) -> int | None:
        """PCIe generation of the speed; None where the speed is unknown or no PCIe speed."""
        return next((gen for gen, gts in GENERATION_GTS.items() if gts == self.speed_gts), None)

    @property
    def known(self) -> bool:
        """Both speed and width are known."""
        return self.gen is not None and self.width is not None

    def __str__(self) -> str:
        speed = f"Gen{self.gen}" if self.gen else "Gen?"
        return f"{speed} x{self.width if self.width is not None else '?'}"


@dataclass(frozen=True)
class AerCounters:
    """PCIe Advanced Error Reporting totals since boot (counts); None where not reported.

    replays: those of the correctable errors that tell of packets sent again (replay number rollover, replay timeout).
    """

    correctable: int | None = None
    nonfatal: int | None = None
    fatal: int | None = None
    replays: int | None = None


@dataclass(frozen=True)
class PcieConfig:
    """What the PCI Express capability says; it lies beyond the 64 bytes that an ordinary user can read.

    mps, mps_supported, mrrs: bytes. target_speed_gts: GT/s (LnkCtl2). acs_redirect: peer traffic is sent upstream
    (ReqRedir, CmpltRedir or UpstreamFwd set). link_bandwidth_changed, autonomous_change: LnkSta bits 14 and 15.
    """

    mps: int | None = None
    mps_supported: int | None = None
    mrrs: int | None = None
    relaxed_ordering: bool | None = None
    extended_tags: bool | None = None
    no_snoop: bool | None = None
    flit_mode: bool | None = None
    aspm: str | None = None
    link: LinkState = LinkState()
    link_max: LinkState = LinkState()
    target_speed_gts: float | None = None
    autonomous_speed_disabled: bool | None = None
    link_bandwidth_changed: bool | None = None
    autonomous_change: bool | None = None
    acs: tuple[str, ...] | None = None
    acs_redirect: bool | None = None
    resizable_bar: bool | None = None


@dataclass(frozen=True)
class PciFunction:
    """One PCI function or bridge. Its link is the one towards its parent (for a root or downstream port: downwards).

    address: domain:bus:device.function in lower case. parent: address of the bridge above, None on a root bus.
    root_bus: the host bridge's bus as sysfs names it, 'pci0000:20'. config: None where it could not be read;
    config_note then says why ('needs root'). network_rate: bytes per second and direction of a network adapter's ports
    that are up.
    """

    address: str
    parent: str | None = None
    root_bus: str | None = None
    vendor_id: int | None = None
    device_id: int | None = None
    class_code: int | None = None
    port_type: PortType | None = None
    name: str | None = None
    numa_node: int | None = None
    numa_basis: Literal["numa_node", "local_cpulist", "parent"] | None = None
    local_cpus: tuple[int, ...] = ()
    link: LinkState = LinkState()
    link_max: LinkState = LinkState()
    config: PcieConfig | None = None
    config_note: str | None = None
    aer: AerCounters | None = None
    driver: str | None = None
    slot: str | None = None
    iommu_group: str | None = None
    network_rate: float | None = None

    @property
    def is_bridge(self) -> bool:
        """A PCI-to-PCI bridge: root port, switch port or conventional bridge (class 0x0604)."""
        return self.class_code is not None and self.class_code >> 8 == 0x0604


@dataclass(frozen=True)
class Hop:
    """One link on the way from a device to its root complex, named by both ends.

    upper: the port above, None where a virtual machine hides it. now: as found. possible: the most that both ends
    can do, None fields where an end does not say.
    """

    lower: str
    upper: str | None
    now: LinkState
    possible: LinkState
    lower_max: LinkState = LinkState()
    upper_max: LinkState = LinkState()


@dataclass(frozen=True)
class Path:
    """The hops from a device up to its root complex, nearest first, and what holds along all of them.

    mps: the minimum along the path in bytes. complete: False where no bridge is visible (virtual machines).
    """

    device: str
    hops: tuple[Hop, ...]
    mps: int | None = None
    mrrs: int | None = None
    flit_mode: bool | None = None
    basis: Basis = "assumed"
    complete: bool = True


@dataclass(frozen=True)
class NumaNode:
    """One NUMA node. cores: its online CPUs grouped by physical core. distances: to every node, in node order.

    memory_bytes: 0 is a real answer here: a node without memory. gpu: address of the GPU whose memory it is.
    """

    index: int
    cpus: tuple[int, ...] = ()
    cores: tuple[tuple[int, ...], ...] = ()
    memory_bytes: int | None = None
    free_bytes: int | None = None
    distances: tuple[int, ...] = ()
    packages: tuple[int, ...] = ()
    gpu: str | None = None


@dataclass(frozen=True)
class Cpu:
    """The processors. last_level_cache_bytes: of one cache; cache_bytes: of all last-level caches together."""

    model: str | None = None
    vendor: str | None = None
    packages: int | None = None
    cores: int | None = None
    threads: int | None = None
    offline: tuple[int, ...] = ()
    last_level_cache_bytes: int | None = None
    cache_bytes: int | None = None


@dataclass(frozen=True)
class MemoryModule:
    """One memory module as the board's firmware describes it. rate: transfers per second as configured; width_bits:
    data only, without error correction. Root only; virtual machines seldom say a rate."""

    size_bytes: int | None = None
    rate: float | None = None
    width_bits: int | None = None


@dataclass(frozen=True)
class NvLink:
    """One NVLink of a GPU. rate: bytes per second and direction as NVML gives it."""

    index: int
    active: bool | None = None
    version: int | None = None
    remote: Literal["gpu", "switch", "cpu"] | None = None
    remote_address: str | None = None
    rate: float | None = None


@dataclass(frozen=True)
class Gpu:
    """One GPU as NVML describes it. index: NVML's, which is PCI bus order.

    link: NVML's live answer. link_max: what the GPU and the system can do together. link_device: the GPU alone.
    processes: compute and graphics processes seen on it; processes_bytes: their memory.
    """

    index: int
    name: str
    address: str | None = None
    numa_node: int | None = None
    pci_device_id: int | None = None
    compute_capability: tuple[int, int] | None = None
    memory_bytes: int | None = None
    memory_free_bytes: int | None = None
    bar1_bytes: int | None = None
    link: LinkState = LinkState()
    link_max: LinkState = LinkState()
    link_device: LinkState = LinkState()
    performance_state: int | None = None
    vbios: str | None = None
    virtualization: Literal["none", "passthrough", "vgpu", "host_vgpu", "host_vsga"] | None = None
    mig: bool | None = None
    compute_mode: Literal["default", "exclusive_process", "prohibited"] | None = None
    persistence: bool | None = None
    processes: int | None = None
    processes_bytes: int | None = None
    utilization: float | None = None
    power_w: float | None = None
    power_limit_w: float | None = None
    power_default_w: float | None = None
    temperature_c: float | None = None
    sm_clock_mhz: int | None = None
    sm_clock_max_mhz: int | None = None
    throttle: tuple[str, ...] | None = None
    replays: int | None = None
    c2c: bool | None = None
    nvlinks: tuple[NvLink, ...] = ()
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class GpuPair:
    """Two GPUs (NVML indices, first < second): topology from the PCI tree and from NVML, P2P status both ways.

    p2p_*: NVML's words (OK, CNS, GNS, TNS, NS, …), None where not answered. nvlinks: active links between them,
    through a switch included.
    """

    first: int
    second: int
    topology: Topology | None = None
    topology_nvml: Topology | None = None
    p2p_read: str | None = None
    p2p_write: str | None = None
    p2p_atomics: str | None = None
    nvlinks: int | None = None


@dataclass(frozen=True)
class Software:
    """Versions as text; None where not installed or not found."""

    kernel: str | None = None
    python: str | None = None
    driver: str | None = None
    cuda_driver: str | None = None
    torch: str | None = None
    torch_cuda: str | None = None
    cupy: str | None = None
    cupy_cuda: str | None = None
    nccl: str | None = None
    pytest_benchmark: str | None = None
    lanecheck: str | None = None


@dataclass(frozen=True)
class Environment:
    """What else changes results. variables: NCCL_*, CUDA_* and OMP_* only. boot: a short hash of the boot id."""

    virtual_machine: str | None = None
    container: str | None = None
    root: bool | None = None
    iommu: str | None = None
    kernel_command_line: str | None = None
    board: str | None = None
    bios: str | None = None
    governor: str | None = None
    memlock_bytes: int | None = None
    shm_bytes: int | None = None
    allowed_cpus: tuple[int, ...] = ()
    allowed_nodes: tuple[int, ...] = ()
    variables: tuple[tuple[str, str], ...] = ()
    boot: str | None = None


@dataclass(frozen=True)
class Machine:
    """One machine as found. why_no_gpu: a sentence where gpus is empty. notes: findings of the probe, in sentences."""

    nodes: tuple[NumaNode, ...] = ()
    cpu: Cpu = Cpu()
    pci: tuple[PciFunction, ...] = ()
    gpus: tuple[Gpu, ...] = ()
    pairs: tuple[GpuPair, ...] = ()
    software: Software = Software()
    environment: Environment = Environment()
    why_no_gpu: str | None = None
    host_name: str | None = None
    notes: tuple[str, ...] = field(default=())
    memory_modules: tuple[MemoryModule, ...] = ()

    def function(self, address: str | None) -> PciFunction | None:
        """The PCI function at an address; None where it is not there."""
        return next((f for f in self.pci if f.address == address), None) if address else None

    def gpu(self, index: int) -> Gpu | None:
        """The GPU with an NVML index; None where it is not there."""
        return next((g for g in self.gpus if g.index == index), None)

    def node(self, index: int | None) -> NumaNode | None:
        """The NUMA node with an index; None where it is not there."""
        return next((n for n in self.nodes if n.index == index), None)

    def pair(self, one: int, other: int) -> GpuPair | None:
        """The record of two GPUs in either order; None where it is not there."""
        wanted = (min(one, other), max(one, other))
        return next((p for p in self.pairs if (p.first, p.second) == wanted), None)

    def ancestors(self, address: str | None) -> Iterator[PciFunction]:
        """A function and every bridge above it, nearest first; ends at the root bus (or at a recording's loop)."""
        seen: set[str] = set()
        function = self.function(address)
        while function is not None and function.address not in seen:
            seen.add(function.address)
            yield function
            function = self.function(function.parent)
