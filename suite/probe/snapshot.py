"""What a recording holds: the files that the probe reads, as {name below the root: content}, cleaned of all that names
one machine. Everything is on a list of what is kept; nothing is copied because it happened to be there."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from suite.probe import config_space, pci
from suite.probe.tree import Tree

_FUNCTION_FILES = (
    *("class", "vendor", "device", "numa_node", "local_cpulist"),
    *("current_link_speed", "current_link_width", "max_link_speed", "max_link_width"),
    *("aer_dev_correctable", "aer_dev_nonfatal", "aer_dev_fatal"),
)
# A function's links, and the folders that they lead to: of these only the names are kept.
_FUNCTION_LINKS = {"driver": "sys/bus/pci/drivers", "iommu_group": "sys/kernel/iommu_groups"}
_FILES = (
    "sys/bus/pci/slots/*/address",
    "sys/devices/system/node/online",
    "sys/devices/system/node/node*/cpulist",
    "sys/devices/system/node/node*/distance",
    "sys/devices/system/node/node*/meminfo",
    "sys/devices/system/cpu/online",
    "sys/devices/system/cpu/offline",
    "sys/devices/system/cpu/present",
    "sys/devices/system/cpu/cpu*/topology/thread_siblings_list",
    "sys/devices/system/cpu/cpu*/topology/physical_package_id",
    "sys/devices/system/cpu/cpu*/cache/index*/level",
    "sys/devices/system/cpu/cpu*/cache/index*/size",
    "sys/devices/system/cpu/cpu*/cache/index*/shared_cpu_list",
    "sys/module/nvidia/version",
    "proc/sys/kernel/osrelease",
    "proc/meminfo",
    "proc/driver/nvidia/version",
    "proc/driver/nvidia/gpus/*/numa_status",
)
# Lines kept of files that hold more: Arm's cpuinfo has a serial number, status the process' name.
_LINES = {
    "proc/cpuinfo": re.compile(rb"(processor|vendor_id|model name|cpu|CPU implementer|CPU part)\s*:.*"),
    "proc/self/status": re.compile(rb"(Cpus_allowed_list|Mems_allowed_list):.*"),
}
# Capabilities whose registers the probe reads: (id, bytes). Of the others only the header stays, which holds the list
# together; Device Serial Number and vendor-specific ones may name the card.
_KEPT = {config_space.PCI_EXPRESS: 0x3C}
_KEPT_EXTENDED = {config_space.AER: 0x48, config_space.ACS: 8, config_space.RESIZABLE_BAR: 0x34}
# The header (PCI Local Bus 3.0 §6.1) up to the class code, the header type, and the capability pointer.
_HEADER = ((0x00, 0x10), (0x34, 0x35))


@dataclass(frozen=True)
class Link:
    """A symbolic link of sysfs, relative."""

    to: str


Content = bytes | Link


def take(tree: Tree) -> dict[str, Content]:
    """The snapshot: names below the root, sorted."""
    found: dict[str, Content] = {}
    for function in pci.read(tree):
        found |= _function(tree, function.address)
    for name in (_below(tree, path) for pattern in _FILES for path in sorted(tree.root.glob(pattern))):
        if (data := tree.data(name)) is not None:
            found[name] = data
    for name, wanted in _LINES.items():
        if (data := tree.data(name)) is not None:
            found[name] = b"".join(line + b"\n" for line in _kept(data.splitlines(), wanted))
    return dict(sorted(found.items()))


def clean_config(data: bytes) -> bytes:
    """Configuration space with only the registers that the probe reads; the lists stay whole, the rest is 0."""
    kept = bytearray(len(data))
    spans = list(_HEADER)
    spans += [(place, place + _KEPT.get(name, 2)) for name, place in config_space.capabilities(data)]
    spans += [(place, place + _KEPT_EXTENDED.get(name, 4)) for name, place in config_space.extended_capabilities(data)]
    for first, last in spans:
        kept[first:last] = data[first:last]
    return bytes(kept)


def _function(tree: Tree, address: str) -> dict[str, Content]:
    """One function's files, its place among the devices, and where its driver and IOMMU group links point."""
    place = f"{pci.DEVICES}/{address}"
    path = tree.path(place)
    if path is None:  # a bridge that only another function's path names
        return {}
    folder = tree.below(path)
    found: dict[str, Content] = {place: Link(os.path.relpath(folder, pci.DEVICES))}
    for name in _FUNCTION_FILES:
        if (data := tree.data(f"{folder}/{name}")) is not None:
            found[f"{folder}/{name}"] = data
    found |= _ports(tree, folder)
    if (config := tree.data(f"{folder}/config", most=4096)) is not None:
        found[f"{folder}/config"] = clean_config(config)
    for name, home in _FUNCTION_LINKS.items():
        if (to := tree.target(f"{folder}/{name}")) is not None:
            found[f"{folder}/{name}"] = Link(os.path.relpath(f"{home}/{to}", folder))
    return found


def _ports(tree: Tree, folder: str) -> dict[str, Content]:
    """The rates of a network adapter's ports, which lose their names: some are those of a site's networks."""
    found: dict[str, Content] = {}
    for index, name in enumerate(tree.names(f"{folder}/net")):
        if (data := tree.data(f"{folder}/net/{name}/speed")) is not None:
            found[f"{folder}/net/port{index}/speed"] = data
    for index, name in enumerate(tree.names(f"{folder}/infiniband")):
        for port in tree.names(f"{folder}/infiniband/{name}/ports"):
            for file in ("rate", "state"):
                if (data := tree.data(f"{folder}/infiniband/{name}/ports/{port}/{file}")) is not None:
                    found[f"{folder}/infiniband/device{index}/ports/{port}/{file}"] = data
    return found


def _kept(lines: Iterable[bytes], wanted: re.Pattern[bytes]) -> list[bytes]:
    """The wanted lines; of /proc/cpuinfo's further processors only the number."""
    kept = [line for line in lines if wanted.fullmatch(line)]
    first = next((i for i, line in enumerate(kept) if line.startswith(b"processor") and i > 0), len(kept))
    return kept[:first] + [line for line in kept[first:] if line.startswith(b"processor")]


def _below(tree: Tree, path: Path) -> str:
    return path.relative_to(tree.root).as_posix()
