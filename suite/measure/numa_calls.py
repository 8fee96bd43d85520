"""NUMA memory calls of Linux, raw through ctypes: no library has to be installed for them."""

from __future__ import annotations

import ctypes
import errno
import os
import platform
import re
from pathlib import Path

import numpy as np
import numpy.typing as npt

# Linux arch/x86/entry/syscalls/syscall_64.tbl and include/uapi/asm-generic/unistd.h: (mbind, move_pages).
_NUMBERS = {"x86_64": (237, 279), "aarch64": (235, 239)}
# Linux include/uapi/linux/mempolicy.h
_MPOL_BIND = 2
_MPOL_MF_STRICT, _MPOL_MF_MOVE = 1, 2
REFUSED = (errno.EPERM, errno.ENOSYS)  # containers' seccomp filters answer the first, kernels without NUMA the second
ABSENT = (-errno.EFAULT, -errno.ENOENT)  # what move_pages says of a page that nobody has touched
Nodes = npt.NDArray[np.int32]


class NumaCalls:
    """The calls on this process's own memory. Tests put refusals in their place. Every method raises OSError."""

    def __init__(self, root: Path = Path("/")) -> None:
        self._libc = ctypes.CDLL(None, use_errno=True)
        self._libc.syscall.restype = ctypes.c_long
        self._numbers = _NUMBERS.get(platform.machine())
        self._root = root

    def bind(self, address: int, nbytes: int, node: int) -> None:
        """mbind: pages of the range come from this node alone, those already there move. EINVAL: no such node."""
        words = node // 64 + 1
        mask = (ctypes.c_ulong * words)()
        mask[node // 64] = 1 << (node % 64)
        # The kernel reads maxnode − 1 bits.
        arguments = (address, nbytes, _MPOL_BIND, ctypes.addressof(mask), words * 64 + 1)
        self._syscall(0, *arguments, _MPOL_MF_STRICT | _MPOL_MF_MOVE)

    def page_nodes(self, address: int, pages: int, page_bytes: int) -> Nodes:
        """move_pages without a target: the node of each page, or a negative errno (−14 or −2: never touched)."""
        addresses = address + np.arange(pages, dtype=np.uint64) * np.uint64(page_bytes)
        status = np.full(pages, -errno.EFAULT, dtype=np.int32)
        self._syscall(1, 0, pages, addresses.ctypes.data, 0, status.ctypes.data, 0)
        return status

    def move(self, address: int, pages: int, page_bytes: int, node: int) -> Nodes:
        """move_pages with a target: where each page lies afterwards, or a negative errno."""
        addresses = address + np.arange(pages, dtype=np.uint64) * np.uint64(page_bytes)
        nodes = np.full(pages, node, dtype=np.int32)
        status = np.empty(pages, dtype=np.int32)
        self._syscall(1, 0, pages, addresses.ctypes.data, nodes.ctypes.data, status.ctypes.data, _MPOL_MF_MOVE)
        return status

    def lock(self, address: int, nbytes: int) -> None:
        """mlock: the pages stay in memory. ENOMEM or EPERM beyond `ulimit -l`."""
        if self._libc.mlock(ctypes.c_void_p(address), ctypes.c_size_t(nbytes)) != 0:
            raise _error("mlock")

    def numa_maps(self) -> str:
        """/proc/self/numa_maps: every mapping with its policy and the pages that it has on each node."""
        return (self._root / "proc/self/numa_maps").read_text()

    def cpus(self, node: int) -> tuple[int, ...]:
        """CPUs of a node; none where it has none."""
        return cpu_list((self._root / f"sys/devices/system/node/node{node}/cpulist").read_text())

    def free_bytes(self, node: int) -> int | None:
        """Memory of a node that is free or holds only file pages; None where the kernel does not say."""
        try:
            text = (self._root / f"sys/devices/system/node/node{node}/meminfo").read_text()
        except OSError:
            return None
        fields = {name: int(kib) * 1024 for name, kib in re.findall(r"(\S+):\s+(\d+) kB", text)}
        names = ("MemFree", "Active(file)", "Inactive(file)", "SReclaimable")
        return sum(fields.get(n, 0) for n in names) if "MemFree" in fields else None

    def free_huge_pages(self, node: int, page_bytes: int) -> int | None:
        """Reserved huge pages of a node that nobody uses; None where the kernel does not say."""
        name = f"sys/devices/system/node/node{node}/hugepages/hugepages-{page_bytes >> 10}kB/free_hugepages"
        try:
            return int((self._root / name).read_text())
        except (OSError, ValueError):
            return None

    def huge_bytes(self, address: int, nbytes: int) -> int | None:
        """Bytes in transparent huge pages of the mappings that hold a range, which may reach beyond it; None where the
        kernel does not say."""
        try:
            text = (self._root / "proc/self/smaps").read_text()
        except OSError:
            return None
        return _huge_in_smaps(text, address, nbytes)

    def _syscall(self, which: int, *arguments: int) -> None:
        if self._numbers is None:
            raise OSError(errno.ENOSYS, f"NUMA system calls on {platform.machine()} are not known here")
        words = [ctypes.c_ulong(a) for a in arguments]
        if self._libc.syscall(ctypes.c_long(self._numbers[which]), *words) < 0:
            raise _error(("mbind", "move_pages")[which])


def cpu_list(text: str) -> tuple[int, ...]:
    """'0-2,8' as 0, 1, 2, 8."""
    cpus: list[int] = []
    for part in filter(None, text.strip().split(",")):
        first, _, last = part.partition("-")
        cpus.extend(range(int(first), int(last or first) + 1))
    return tuple(cpus)


def _huge_in_smaps(text: str, address: int, nbytes: int) -> int | None:
    """Sum of AnonHugePages over the mappings ('7f…-7f… rw-p …') that overlap a range."""
    found: int | None = None
    inside = False
    for line in text.splitlines():
        limits = re.match(r"([0-9a-f]+)-([0-9a-f]+) ", line)
        if limits:
            inside = int(limits[1], 16) < address + nbytes and int(limits[2], 16) > address
        elif inside and line.startswith("AnonHugePages:"):
            found = (found or 0) + int(line.split()[1]) * 1024
    return found


def _error(call: str) -> OSError:
    number = ctypes.get_errno()
    return OSError(number, f"{call}: {os.strerror(number)}")
