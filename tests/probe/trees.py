"""Small machines for tests: {path: text} written below a folder, and configuration space made from a few registers."""

from __future__ import annotations

import os
import struct
from collections.abc import Mapping
from pathlib import Path

Files = dict[str, str | bytes]


def write(root: Path, files: Mapping[str, str | bytes]) -> Path:
    """Writes the files; a path that ends in '@' becomes a symbolic link to its text."""
    for name, content in files.items():
        path = root / name.removesuffix("@")
        path.parent.mkdir(parents=True, exist_ok=True)
        if name.endswith("@"):
            path.symlink_to(str(content))
        else:
            path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return root


def function(place: str, *, now: str = "", most: str = "", config: bytes | None = None, **files: str) -> Files:
    """One PCI function. place: 'pci0000:00/0000:00:01.0/0000:01:00.0'; now, most: '16.0 GT/s PCIe x16'.

    Other files by name: vendor, device, numa_node, local_cpulist, aer_dev_correctable … `class_` for class.
    """
    folder = f"sys/devices/{place}"
    address = place.rpartition("/")[2]
    link = f"sys/bus/pci/devices/{address}@"
    made: Files = {link: os.path.relpath(folder, "sys/bus/pci/devices")}
    made |= {f"{folder}/{name.rstrip('_')}": text + "\n" for name, text in ({"class_": "0x060400"} | files).items()}
    for which, text in (("current", now), ("max", most)):
        if text:
            speed, _, width = text.rpartition(" x")
            made |= {f"{folder}/{which}_link_speed": speed + "\n", f"{folder}/{which}_link_width": width + "\n"}
    if config is not None:
        made[f"{folder}/config"] = config
    return made


def gpu(place: str, *, now: str = "16.0 GT/s PCIe x16", most: str = "16.0 GT/s PCIe x16", **files: str) -> Files:
    """An NVIDIA 3D controller."""
    return function(
        place, now=now, most=most, **({"class_": "0x030200", "vendor": "0x10de", "device": "0x2335"} | files)
    )


def node(index: int, cpus: str, *, distance: str = "10", kilobytes: int = 1 << 20) -> Files:
    """One NUMA node."""
    folder = f"sys/devices/system/node/node{index}"
    return {
        f"{folder}/cpulist": cpus + "\n",
        f"{folder}/distance": distance + "\n",
        f"{folder}/meminfo": f"Node {index} MemTotal:       {kilobytes} kB\nNode {index} MemFree:        1024 kB\n",
    }


def cpu(index: int, *, package: int = 0, siblings: str | None = None, cache: str = "", shared: str = "") -> Files:
    """One online CPU, its package, its core's CPUs, and its last-level cache ('32768K')."""
    folder = f"sys/devices/system/cpu/cpu{index}"
    made: Files = {
        f"{folder}/topology/physical_package_id": f"{package}\n",
        f"{folder}/topology/thread_siblings_list": f"{siblings or index}\n",
    }
    if cache:
        made |= {
            f"{folder}/cache/index3/level": "3\n",
            f"{folder}/cache/index3/size": cache + "\n",
            f"{folder}/cache/index3/shared_cpu_list": shared + "\n",
        }
    return made


def config_space(
    *,
    size: int = 4096,
    port: int = 0,
    payload: int = 1,
    payload_supported: int = 2,
    read_request: int = 5,
    link: tuple[int, int] = (5, 16),
    link_max: tuple[int, int] = (5, 16),
    target: int = 5,
    status_bits: int = 0,
    flit: bool = False,
    acs: int | None = None,
    serial: bytes = b"",
    rebar: bool = False,
) -> bytes:
    """Configuration space with a PCI Express capability at 0x60; codes as in the registers (payload 1 = 256 bytes)."""
    data = bytearray(4096)
    data[0:4] = struct.pack("<HH", 0x10DE, 0x2335)
    data[0x06] = 0x10
    data[0x34] = 0x60
    data[0x60:0x64] = struct.pack("<BBH", 0x10, 0, 2 | port << 4)
    data[0x64:0x68] = struct.pack("<I", payload_supported)
    data[0x68:0x6A] = struct.pack("<H", payload << 5 | read_request << 12 | 1 << 4 | 1 << 8)
    data[0x6C:0x70] = struct.pack("<I", link_max[0] | link_max[1] << 4)
    data[0x72:0x74] = struct.pack("<H", link[0] | link[1] << 4 | status_bits << 14)
    data[0x90:0x94] = struct.pack("<HH", target, flit << 10)
    bodies = {
        0x0001: b"\0" * 0x10,
        0x0003: serial,
        0x000D: b"" if acs is None else struct.pack("<HH", 0x7F, acs),
        0x0015: b"\1" * 8 if rebar else b"",
    }
    wanted = [(identity, body) for identity, body in bodies.items() if body]
    for index, (identity, body) in enumerate(wanted):
        place = 0x100 + 0x40 * index
        after = place + 0x40 if index + 1 < len(wanted) else 0
        data[place : place + 4] = struct.pack("<I", identity | 1 << 16 | after << 20)
        data[place + 4 : place + 4 + len(body)] = body
    return bytes(data[:size])
