"""Host memory on a chosen NUMA node, and the proof that it lies there. Placement is proved, not asked for."""

from __future__ import annotations

import ctypes
import errno
import mmap
import os
import re
from collections import Counter
from collections.abc import Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Literal

import numpy as np
import numpy.typing as npt

from suite.errors import Unavailable
from suite.measure.numa_calls import ABSENT, REFUSED, NumaCalls
from suite.records.case import Placement
from suite.units import format_bytes

_MAP_HUGETLB = 0x40000  # Linux include/uapi/asm-generic/mman-common.h
_MOSTLY = 0.9  # of a buffer: the ends of a mapping may be small pages
_PER_NODE = "/sys/devices/system/node/node*/hugepages/*/nr_hugepages"
Pages = Literal["base", "hugetlb", "transparent"]


@dataclass(frozen=True)
class Seen:
    """Pages of a buffer by node, those that nobody has touched, and those that answered something else.

    mixed: pages of other mappings may be among them (numa_maps shows neighbours as one mapping).
    """

    method: Literal["move_pages", "numa_maps"]
    nodes: Mapping[int, int]
    untouched: int = 0
    unknown: int = 0
    mixed: bool = False


class HostBuffer:
    """Anonymous host memory of `nbytes`, mapped, bound to `node`, and touched, from `with` on:

        with HostBuffer(256 * MIB, node=1) as buffer:
            buffer.address  # of the first byte, aligned to a page (huge: to a huge page)
            buffer.array    # numpy, uint8, nbytes long
            buffer.prove()  # Placement: call it after registering with CUDA and again after timing

    node None leaves the placement to the kernel. huge: huge pages, reserved ones or else transparent ones; `pages`
    says which were got. lock: keeps the pages in memory (mlock). Where mbind is refused, a thread on the node's CPUs
    touches the memory first, and `note` says so. The memory lives until the last view of it is gone.
    Raises Unavailable with a sentence where the node is absent, the memory is not there or may not be locked.
    """

    def __init__(
        self,
        nbytes: int,
        node: int | None = None,
        *,
        huge: bool = False,
        lock: bool = False,
        calls: NumaCalls | None = None,
    ) -> None:
        self.nbytes = nbytes
        self.node = node
        self.note: str | None = None
        self.pages: Pages = "base"
        self.address = 0
        self._unit = _huge_page_bytes() if huge else mmap.PAGESIZE
        self._huge = huge
        self._lock = lock
        self._calls = calls or NumaCalls()
        self._array: npt.NDArray[np.uint8] | None = None

    @property
    def array(self) -> npt.NDArray[np.uint8]:
        """The bytes. Raises ValueError outside `with`."""
        if self._array is None:
            raise ValueError("the buffer is not mapped: use it in a with statement")
        return self._array

    def __enter__(self) -> HostBuffer:
        self._check_room()
        self._map()
        try:
            self._place()
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Lets go of the memory. Safe to call twice."""
        self._array = None
        self.address = 0

    def prove(self) -> Placement:
        """Where the pages lie now: by move_pages page by page, or by /proc/self/numa_maps where that is refused."""
        seen = self._by_move_pages() or self._by_numa_maps()
        return _placement(self.node, seen, self.note)

    def _check_room(self) -> None:
        """Binding more than a node has ends in the out-of-memory killer, so it is refused before."""
        free = None if self.node is None else self._calls.free_bytes(self.node)
        if free is not None and free < self.nbytes:
            have = f"has {format_bytes(free)} free" if free else "has no free memory"
            raise Unavailable(f"NUMA node {self.node} {have}, {format_bytes(self.nbytes)} are needed")

    def _map(self) -> None:
        length = self._length()
        memory = self._map_reserved(length) or self._map_plain(length + (self._unit if self._huge else 0))
        whole = np.frombuffer(memory, dtype=np.uint8)
        start = -whole.ctypes.data % self._unit
        self._array = whole[start : start + self.nbytes]
        self.address = int(self._array.ctypes.data)

    def _map_reserved(self, length: int) -> mmap.mmap | None:
        if not self._huge or not self._reserved_on_node(length):
            return None
        try:
            memory = mmap.mmap(-1, length, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | _MAP_HUGETLB)
        except OSError:
            return None  # none are reserved: transparent ones are the next try
        self.pages = "hugetlb"
        return memory

    def _reserved_on_node(self, length: int) -> bool:
        """The kernel reserves for a mapping from all nodes together: bound to a node with too few, its first touch
        would end the process (SIGBUS)."""
        free = 0 if self.node is None else self._calls.free_huge_pages(self.node, self._unit)
        return self.node is None or (free is not None and free * self._unit >= length)

    def _map_plain(self, length: int) -> mmap.mmap:
        try:
            memory = mmap.mmap(-1, length, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
        except OSError as error:
            raise Unavailable(
                f"{format_bytes(self.nbytes)} of host memory cannot be mapped: {error.strerror}"
            ) from error
        if self._huge and hasattr(mmap, "MADV_HUGEPAGE"):
            memory.madvise(mmap.MADV_HUGEPAGE)
            self.pages = "transparent"
        return memory

    def _place(self) -> None:
        if self.node is None or self._bind(self.node):
            _touch(self.address, self.nbytes)
        else:
            self._touch_from(self.node)
        if self.pages == "transparent":
            self._see_huge_pages()
        if self._lock:
            self._lock_pages()

    def _see_huge_pages(self) -> None:
        """Asking for transparent huge pages is no getting: they may be off, or memory in pieces."""
        got = self._calls.huge_bytes(self.address, self.nbytes)
        if got is not None and got < _MOSTLY * self.nbytes:
            raise Unavailable(
                f"only {format_bytes(min(got, self.nbytes))} of {format_bytes(self.nbytes)} came in huge pages: "
                f"reserve some (`sysctl vm.nr_hugepages`, for each node {_PER_NODE}) or allow transparent ones "
                "(/sys/kernel/mm/transparent_hugepage/enabled: madvise)"
            )
        if got is None:
            self.note = "; ".join(filter(None, (self.note, "whether the pages are huge could not be read")))

    def _bind(self, node: int) -> bool:
        """False where the kernel lets nobody bind memory here."""
        try:
            self._calls.bind(self.address, self._length(), node)
        except OSError as error:
            if error.errno in REFUSED:
                self.note = f"mbind was refused ({errno.errorcode[error.errno]})"
                return False
            if error.errno == errno.EINVAL:
                raise Unavailable(
                    f"NUMA node {node} cannot be used: it is not there, has no memory, or the cpuset leaves it out"
                ) from error
            raise
        return True

    def _touch_from(self, node: int) -> None:
        """First touch by a thread on the node's CPUs: the kernel's default is to take memory from where it runs."""
        try:
            cpus = self._calls.cpus(node)
        except OSError as error:
            raise Unavailable(f"NUMA node {node} is not there") from error
        with ThreadPoolExecutor(1) as pool:
            pinned = pool.submit(_touch_pinned, self.address, self.nbytes, cpus).result()
        how = "first touched by a thread on its CPUs" if pinned else "no CPU of the node may be used to touch it first"
        self.note = f"{self.note}; {how}"

    def _lock_pages(self) -> None:
        try:
            self._calls.lock(self.address, self.nbytes)
        except OSError as error:
            raise Unavailable(
                f"{format_bytes(self.nbytes)} cannot be locked in memory ({error.strerror}): raise `ulimit -l`"
            ) from error

    def _length(self) -> int:
        """Bytes in whole pages: the kernel binds no part of a page."""
        return -(-self.nbytes // self._unit) * self._unit

    def _page_count(self) -> int:
        return -(-self.nbytes // mmap.PAGESIZE)

    def _by_move_pages(self) -> Seen | None:
        try:
            status = self._calls.page_nodes(self.address, self._page_count(), mmap.PAGESIZE)
        except OSError as error:
            if error.errno in REFUSED:
                return None
            raise
        values, counts = np.unique(status, return_counts=True)
        found = dict(zip(values.tolist(), counts.tolist(), strict=True))
        untouched = sum(found.pop(code, 0) for code in ABSENT)
        nodes = {node: count for node, count in found.items() if node >= 0}
        return Seen("move_pages", nodes, untouched, sum(found.values()) - sum(nodes.values()))

    def _by_numa_maps(self) -> Seen | None:
        try:
            text = self._calls.numa_maps()
        except OSError:
            return None  # no second witness: the result says that nothing is proved
        return in_numa_maps(text, self.address, self._page_count())


def in_numa_maps(text: str, address: int, pages: int) -> Seen | None:
    """The mapping of /proc/PID/numa_maps that holds an address; None where there is none.

    Lines are '7f…000 bind:1 anon=512 dirty=512 N1=512 kernelpagesize_kB=4'. A buffer's pages are a part of its mapping.
    """
    starts = [(int(line.split()[0], 16), line) for line in text.splitlines() if line.strip()]
    line = next((line for start, line in sorted(starts, reverse=True) if start <= address), None)
    if line is None:
        return None
    page = re.search(r"kernelpagesize_kB=(\d+)", line)
    scale = int(page[1]) * 1024 // mmap.PAGESIZE if page else 1
    nodes = {int(node): int(count) * scale for node, count in re.findall(r"\bN(\d+)=(\d+)", line)}
    there = sum(nodes.values())
    return Seen("numa_maps", nodes, untouched=max(0, pages - there), mixed=there > pages)


def together(proofs: Iterable[Placement]) -> Placement:
    """Several looks at one buffer, in order: proved only where every one of them says so. The last one's words."""
    looks = list(proofs)
    states = [look.proved for look in looks]
    worst = next((look for look in looks if look.proved is False), None) or next(
        (look for look in looks if look.proved is None), looks[-1]
    )
    proved = False if False in states else None if None in states else True
    return Placement(node=worst.node, proved=proved, method=worst.method, detail=worst.detail)


def _placement(node: int | None, seen: Seen | None, note: str | None) -> Placement:
    if seen is None:
        return Placement(node=node, detail=_sentence("where the pages lie could not be read", note))
    total = sum(seen.nodes.values()) + seen.untouched + seen.unknown
    parts = [f"{count} of {total} pages on node {at}" for at, count in sorted(seen.nodes.items())]
    if seen.untouched:
        parts.append(f"{seen.untouched} not touched")
    if seen.unknown:
        parts.append(f"{seen.unknown} not told")
    return Placement(
        node=node, proved=_proved(node, seen), method=seen.method, detail=_sentence(", ".join(parts), note)
    )


def _proved(node: int | None, seen: Seen) -> bool | None:
    """True: every page is on the node. False: some are elsewhere. None: it cannot be told, or no node was asked for."""
    if node is None or not seen.nodes:
        return None
    elsewhere = Counter(seen.nodes)
    elsewhere.pop(node, None)
    if elsewhere:
        return None if seen.mixed else False
    return None if seen.untouched or seen.unknown else True


def _sentence(text: str, note: str | None) -> str:
    return f"{text}; {note}" if note else text


def _touch(address: int, nbytes: int) -> None:
    """Writes every byte: the kernel gives a page its place when it is written first."""
    ctypes.memset(address, 0, nbytes)


def _touch_pinned(address: int, nbytes: int, cpus: tuple[int, ...]) -> bool:
    """Writes every byte from the CPUs, in a thread of its own; False where none of them may be used."""
    try:
        os.sched_setaffinity(0, cpus)  # pid 0 is the calling thread
    except OSError:
        pinned = False
    else:
        pinned = True
    _touch(address, nbytes)
    return pinned


def _huge_page_bytes() -> int:
    match = re.search(r"Hugepagesize:\s+(\d+) kB", Path("/proc/meminfo").read_text())
    return int(match[1]) * 1024 if match else 2 << 20
