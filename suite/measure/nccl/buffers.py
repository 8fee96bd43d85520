"""Where NCCL's own host buffers lie: by its log, or by the page tables of a rank that maps its shared files."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping
from pathlib import Path

from suite.units import format_bytes

NOTE = "NCCL's shared memory"
# 'CUMEM Host Alloc Size 10485760 pointer 0x… handle … numa 1 dev 0 granularity 2097152' (src/include/alloc.h, 2.24 on)
HOST_ALLOCATION = re.compile(r"CUMEM Host Alloc Size (\d+) pointer \S+ handle \S+ numa (-?\d+)")
_SHARED = re.compile(r"/dev/shm/nccl-")
_PAGES = re.compile(r"\bN(\d+)=(\d+)")
_PAGE_KIB = re.compile(r"\bkernelpagesize_kB=(\d+)")


def shared_files(numa_maps: Path = Path("/proc/self/numa_maps")) -> tuple[str, ...]:
    """A note on the nodes that hold this process's mappings of NCCL's files in /dev/shm; () where there are none.

    With drivers from 12.2 and NCCL from 2.24 on NCCL allocates by CUDA instead, and its log names the node.
    """
    try:
        lines = numa_maps.read_text(errors="replace").splitlines()
    except OSError:
        return ()
    nodes: Counter[int] = Counter()
    for line in filter(_SHARED.search, lines):
        size = _PAGE_KIB.search(line)
        for node, pages in _PAGES.findall(line):
            nodes[int(node)] += int(pages) * 1024 * (int(size[1]) if size else 4)
    return (f"{NOTE} in /dev/shm: {_by_node(nodes)} (numa_maps)",) if nodes else ()


def logged(nodes: Mapping[int, int]) -> tuple[str, ...]:
    """A note on what the log says: bytes by node; () where it says nothing."""
    return (f"{NOTE} allocated by CUDA: {_by_node(nodes)} (NCCL's log)",) if nodes else ()


def only_once(notes: Iterable[str]) -> tuple[str, ...]:
    """Equal notes of several ranks once."""
    return tuple(dict.fromkeys(notes))


def _by_node(nodes: Mapping[int, int]) -> str:
    return ", ".join(f"{format_bytes(size)} on node {node}" for node, size in sorted(nodes.items()))
