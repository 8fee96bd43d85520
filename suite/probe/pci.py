"""PCI functions and bridges as sysfs shows them: who is below whom, and the links as found."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path

from suite.probe import config_space
from suite.probe.tree import Tree, cpu_list, whole_number
from suite.records.machine import GENERATION_GTS, AerCounters, LinkState, NumaNode, PciFunction

DEVICES = "sys/bus/pci/devices"
NVIDIA = 0x10DE

# 32-bit domains have more than four digits (Intel VMD, Hyper-V, some Arm servers).
ADDRESS = re.compile(r"[0-9a-f]{4,8}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-7]")
_ROOT_BUS = re.compile(r"pci[0-9a-f]{4,8}:[0-9a-f]{2}")
_SPEED = re.compile(r"(\d{1,4}(?:\.\d{1,2})?)\s*GT/s(?:\s+PCIe)?(?:/s)?", re.ASCII)
_WIDTHS = (1, 2, 4, 8, 12, 16, 32)

# PCI Code and ID Assignment Specification: class and subclass, the ones that matter beside a GPU.
_CLASSES = {
    0x0108: "NVMe controller",
    0x0200: "Ethernet controller",
    0x0207: "InfiniBand controller",
    0x0300: "VGA controller",
    0x0302: "3D controller",
    0x0380: "display controller",
    0x0604: "PCI bridge",
    0x0680: "bridge",
    0x0B40: "co-processor",
    0x1200: "accelerator",
}
_VENDORS = {
    0x1002: "AMD",
    0x1000: "Broadcom",
    0x1022: "AMD",
    0x10B5: "PLX",
    0x10DE: "NVIDIA",
    0x11F8: "Microchip",
    0x144D: "Samsung",
    0x14E4: "Broadcom",
    0x15B3: "Mellanox",
    0x1AF4: "virtio",
    0x1B36: "QEMU",
    0x1BCF: "NEC",
    0x1D0F: "Amazon",
    0x8086: "Intel",
}


def read(tree: Tree, only: Iterable[str] | None = None) -> tuple[PciFunction, ...]:
    """Every PCI function, or those named and the bridges above them, by address. NUMA nodes as sysfs names them."""
    folders: dict[str, Path] = {}
    for name in tree.names(DEVICES) if only is None else only:
        path = tree.path(f"{DEVICES}/{name}")
        if path is not None and path.is_dir():
            folders |= _chain(path)
    slots = _slots(tree)
    found = (_function(tree, address, folder, slots) for address, folder in folders.items())
    return tuple(sorted(found, key=lambda f: _order(f.address)))


def with_numa(functions: tuple[PciFunction, ...], nodes: tuple[NumaNode, ...]) -> tuple[PciFunction, ...]:
    """Gives functions that firmware left without a node (numa_node −1) the one whose CPUs are local to them."""
    return tuple(f if f.numa_node is not None else _derived(f, nodes) for f in functions)


def normal_address(text: str | None) -> str | None:
    """NVML's '00000000:65:00.0' (or lspci's '65:00.0') as sysfs writes it, '0000:65:00.0'; None if it is no address."""
    match = re.fullmatch(r"(?:([0-9a-f]{1,8}):)?([0-9a-f]{2}:[0-9a-f]{2}\.[0-7])", (text or "").strip().lower())
    return f"{int(match[1] or '0', 16):04x}:{match[2]}" if match else None


def link_speed(text: str | None) -> float | None:
    """GT/s per lane from any dialect: '8 GT/s', '8.0 GT/s PCIe', '32 GT/s PCIe/s'; None for 'Unknown' and the like."""
    match = _SPEED.fullmatch((text or "").strip())
    speed = float(match[1]) if match else None
    return speed if speed in GENERATION_GTS.values() else None


def link_width(text: str | None) -> int | None:
    """Lanes; None for 0, 255 (a link that is down or hidden) and whatever PCIe does not know."""
    width = whole_number((text or "").strip().lower().removeprefix("x"))
    return width if width in _WIDTHS else None


def link_state(tree: Tree, folder: str, which: str) -> LinkState:
    """A function's link as sysfs says it. which: 'current' or 'max'."""
    return LinkState(
        link_speed(tree.text(f"{folder}/{which}_link_speed")), link_width(tree.text(f"{folder}/{which}_link_width"))
    )


def aer_counters(tree: Tree, folder: str) -> AerCounters | None:
    """AER totals of a function; None where the kernel does not keep them."""
    text = tree.text(f"{folder}/aer_dev_correctable")
    nonfatal, fatal = (aer_total(tree.text(f"{folder}/aer_dev_{kind}")) for kind in ("nonfatal", "fatal"))
    counters = AerCounters(aer_total(text), nonfatal, fatal, aer_replays(text))
    return None if counters == AerCounters() else counters


def aer_total(text: str | None) -> int | None:
    """The total of an aer_dev_* file: its TOTAL_ERR_* line, or the sum of the lines where a kernel prints none."""
    counts = re.findall(r"^(.*?)[ \t]+(\d{1,18})$", text or "", re.MULTILINE | re.ASCII)
    total = next((int(n) for name, n in counts if name.startswith("TOTAL")), None)
    return total if total is not None or not counts else sum(int(n) for _, n in counts)


def aer_replays(text: str | None) -> int | None:
    """Replays in an aer_dev_correctable file; None where it names none. Names: Linux' drivers/pci/pcie/aer.c."""
    counts = re.findall(r"^(?:Rollover|Timeout)[ \t]+(\d{1,18})$", text or "", re.MULTILINE | re.ASCII)
    return sum(map(int, counts)) if counts else None


def network_rate(tree: Tree, folder: str) -> float | None:
    """Bytes per second and direction of all ports of a network adapter that are up; None where there is none.

    Linux' Documentation/ABI: net/*/speed in Mbit/s (-1: unknown), infiniband/*/ports/*/rate as '200 Gb/sec (4X HDR)'.
    A port of both kinds is the same one, so that the larger sum counts.
    """
    ethernet = [tree.number(f"{folder}/net/{name}/speed") for name in tree.names(f"{folder}/net")]
    megabits = sum(speed for speed in ethernet if speed is not None and speed > 0)
    gigabits = sum(
        _infiniband_rate(tree, f"{folder}/infiniband/{device}/ports/{port}")
        for device in tree.names(f"{folder}/infiniband")
        for port in tree.names(f"{folder}/infiniband/{device}/ports")
    )
    return max(megabits * 1e6, gigabits * 1e9) / 8 or None


def _infiniband_rate(tree: Tree, port: str) -> float:
    """Gbit/s of one port; 0 where it is down."""
    match = re.match(r"(\d{1,5}(?:\.\d)?) Gb/sec", tree.text(f"{port}/rate") or "", re.ASCII)
    active = "ACTIVE" in (tree.text(f"{port}/state") or "")
    return float(match[1]) if match and active else 0.0


def is_nvidia_gpu(function: PciFunction) -> bool:
    """An NVIDIA display or 3D controller."""
    return function.vendor_id == NVIDIA and (function.class_code or 0) >> 16 == 0x03


def _chain(path: Path) -> dict[str, Path]:
    """A function and the bridges above it, from its real path: a recording may list fewer than it holds."""
    found: dict[str, Path] = {}
    for folder in (*reversed(path.parents), path):
        if ADDRESS.fullmatch(folder.name):
            found[folder.name] = folder
    return found


def _function(tree: Tree, address: str, path: Path, slots: dict[str, str]) -> PciFunction:
    folder = tree.below(path)
    config = config_space.parse(tree.data(f"{folder}/config", most=4096))
    vendor, class_code = tree.number(f"{folder}/vendor"), tree.number(f"{folder}/class")
    node = tree.number(f"{folder}/numa_node")
    parent, root_bus = _above(path)
    return PciFunction(
        address=address,
        parent=parent,
        root_bus=root_bus,
        vendor_id=vendor,
        device_id=tree.number(f"{folder}/device"),
        class_code=class_code,
        port_type=config.port_type,
        name=_name(vendor, class_code),
        numa_node=node if node is not None and node >= 0 else None,
        numa_basis="numa_node" if node is not None and node >= 0 else None,
        local_cpus=cpu_list(tree.text(f"{folder}/local_cpulist")) or (),
        link=link_state(tree, folder, "current"),
        link_max=link_state(tree, folder, "max"),
        config=config.pcie,
        config_note=config.note,
        aer=aer_counters(tree, folder),
        driver=tree.target(f"{folder}/driver"),
        slot=slots.get(address.rpartition(".")[0]),
        iommu_group=tree.target(f"{folder}/iommu_group"),
        network_rate=network_rate(tree, folder),
    )


def _above(path: Path) -> tuple[str | None, str | None]:
    """(the bridge above, the root bus). A root bus inside another device (Intel VMD) starts a tree of its own."""
    parent = path.parent.name if ADDRESS.fullmatch(path.parent.name) else None
    return parent, next((p.name for p in path.parents if _ROOT_BUS.fullmatch(p.name)), None)


def _name(vendor: int | None, class_code: int | None) -> str | None:
    what = _CLASSES.get(class_code >> 8) if class_code is not None else None
    return " ".join(filter(None, (_VENDORS.get(vendor or 0), what))) or None


def _slots(tree: Tree) -> dict[str, str]:
    """Physical slots by device address without function: '0000:65:00' → '4'."""
    named = ((tree.text(f"sys/bus/pci/slots/{slot}/address"), slot) for slot in tree.names("sys/bus/pci/slots"))
    return {address: slot for address, slot in named if address}


def _derived(function: PciFunction, nodes: tuple[NumaNode, ...]) -> PciFunction:
    fitting = [n for n in nodes if function.local_cpus and set(function.local_cpus) <= set(n.cpus)]
    if len(fitting) != 1:
        return function
    fields = function.__dict__ | {"numa_node": fitting[0].index, "numa_basis": "local_cpulist"}
    return PciFunction(**fields)


def _order(address: str) -> tuple[int, str]:
    domain, _, rest = address.partition(":")
    return int(domain, 16), rest
