"""What GPUs are built with, for where NVML and sysfs do not say: small, kept by hand, sourced. Unknown parts: None.

Device ids: the PCI ID Repository (pci-ids.ucw.cz). Rates are per direction; datasheets print both directions together.
"""

from __future__ import annotations

from dataclasses import dataclass

from suite.records.machine import GENERATION_GTS, Gpu, LinkState

NVIDIA = 0x10DE


@dataclass(frozen=True)
class Part:
    """One GPU product. memory: bytes per second. nvlinks × nvlink_rate: bytes per second and direction; 0 links: none.

    words: all of them in NVML's name mean this part, where the device id is not known.
    """

    name: str
    device_ids: tuple[int, ...]
    words: tuple[str, ...]
    memory: float
    gen: int
    nvlinks: int
    nvlink_rate: float | None
    source: str
    width: int = 16

    @property
    def link(self) -> LinkState:
        """The PCIe link that the part supports."""
        return LinkState(GENERATION_GTS[self.gen], self.width)


def _part(
    name: str, ids: tuple[int, ...], memory_gb: float, gen: int, nvlink: tuple[int, float] | None, source: str
) -> Part:
    """A part whose NVML name holds every word of `name`. memory_gb and the NVLink rate in GB/s."""
    links, rate = (nvlink[0], nvlink[1] * 1e9) if nvlink else (0, None)
    return Part(name, ids, tuple(name.lower().split()), memory_gb * 1e9, gen, links, rate, source)


_GA102 = "NVIDIA Ampere GA102 GPU Architecture whitepaper"
PARTS: tuple[Part, ...] = (
    _part("P100 SXM2", (0x15F9,), 732, 3, (4, 20.0), "NVIDIA Tesla P100 datasheet"),
    _part("P100 PCIe", (0x15F8,), 732, 3, None, "NVIDIA Tesla P100 datasheet"),
    _part("V100 SXM2", (0x1DB1, 0x1DB5), 900, 3, (6, 25.0), "NVIDIA V100 datasheet"),
    _part("V100 PCIe", (0x1DB4, 0x1DB6), 900, 3, None, "NVIDIA V100 datasheet"),
    _part("T4", (0x1EB8,), 320, 3, None, "NVIDIA T4 datasheet"),
    _part("A100 SXM4 40GB", (0x20B0,), 1555, 4, (12, 25.0), "NVIDIA A100 datasheet"),
    _part("A100 SXM4 80GB", (0x20B2,), 2039, 4, (12, 25.0), "NVIDIA A100 datasheet"),
    _part("A100 PCIe 40GB", (0x20B1, 0x20F1), 1555, 4, (12, 25.0), "NVIDIA A100 datasheet"),
    _part("A100 PCIe 80GB", (0x20B5,), 1935, 4, (12, 25.0), "NVIDIA A100 datasheet"),
    _part("A30", (0x20B7,), 933, 4, (4, 25.0), "NVIDIA A30 datasheet: NVLink 200 GB/s"),
    _part("A10", (0x2236,), 600, 4, None, "NVIDIA A10 datasheet"),
    _part("A40", (0x2235,), 696, 4, (4, 14.0625), "NVIDIA A40 datasheet; " + _GA102),
    _part("RTX A6000", (0x2230,), 768, 4, (4, 14.0625), "NVIDIA RTX A6000 datasheet; " + _GA102),
    _part("RTX A5000", (0x2231,), 768, 4, (4, 14.0625), "NVIDIA RTX A5000 datasheet; " + _GA102),
    _part("RTX 3090 Ti", (0x2203,), 1008, 4, (4, 14.0625), _GA102),
    _part("RTX 3090", (0x2204,), 936, 4, (4, 14.0625), _GA102),
    _part("RTX 4090", (0x2684,), 1008, 4, None, "NVIDIA Ada GPU Architecture whitepaper"),
    _part("RTX 6000 Ada", (0x26B1,), 960, 4, None, "NVIDIA RTX 6000 Ada Generation datasheet"),
    _part("L40S", (0x26B9,), 864, 4, None, "NVIDIA L40S datasheet"),
    _part("L40", (0x26B5,), 864, 4, None, "NVIDIA L40 datasheet"),
    _part("L4", (0x27B8,), 300, 4, None, "NVIDIA L4 datasheet"),
    _part("H100 NVL", (0x2321,), 3900, 5, (12, 25.0), "NVIDIA H100 datasheet: NVLink 600 GB/s"),
    _part("H100 PCIe", (0x2331,), 2000, 5, (12, 25.0), "NVIDIA H100 PCIe product brief: NVLink 600 GB/s"),
    _part("H100 80GB HBM3", (0x2330,), 3350, 5, (18, 25.0), "NVIDIA H100 datasheet: NVLink 900 GB/s"),
    _part("H200 NVL", (0x233B,), 4800, 5, (18, 25.0), "NVIDIA H200 datasheet: NVLink 900 GB/s"),
    _part("H200", (0x2335,), 4800, 5, (18, 25.0), "NVIDIA H200 datasheet: NVLink 900 GB/s"),
    _part("RTX 5090", (0x2B85,), 1792, 5, None, "NVIDIA RTX Blackwell GPU Architecture whitepaper"),
    _part("RTX PRO 6000 Blackwell Server", (0x2BB5,), 1597, 5, None, "NVIDIA RTX PRO 6000 Server Edition datasheet"),
    _part("RTX PRO 6000 Blackwell", (0x2BB1, 0x2BB4), 1792, 5, None, "NVIDIA RTX PRO 6000 Blackwell datasheet"),
    _part("B200", (0x2901,), 8000, 5, (18, 50.0), "NVIDIA HGX B200 datasheet: NVLink 1.8 TB/s a GPU"),
)


def part(gpu: Gpu) -> Part | None:
    """The product that a GPU is: by its PCI device id, else by its name; None where the table has none."""
    device_id = _device_id(gpu.pci_device_id)
    if device_id is not None:
        return next((one for one in PARTS if device_id in one.device_ids), None)
    words = set(gpu.name.lower().replace("-", " ").split())
    found = [one for one in PARTS if words.issuperset(one.words)]
    return max(found, key=lambda one: len(one.words), default=None)


def _device_id(value: int | None) -> int | None:
    """The 16-bit device id; NVML puts it above the vendor's (0x233510DE)."""
    if value is None:
        return None
    return value >> 16 if value > 0xFFFF and value & 0xFFFF == NVIDIA else value
