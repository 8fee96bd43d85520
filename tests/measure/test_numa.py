"""Host memory on a node: a proof is a proof, and everything else is not called one."""

from __future__ import annotations

import errno
import mmap
import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from suite.errors import Unavailable
from suite.measure.numa import HostBuffer, in_numa_maps, together
from suite.measure.numa_calls import NumaCalls, cpu_list
from suite.records.case import Placement

PAGES = 8
SIZE = PAGES * mmap.PAGESIZE


def a_node() -> int:
    """A node that this process may use; skips where the kernel tells none."""
    try:
        calls = NumaCalls()
        with HostBuffer(SIZE) as buffer:
            node = int(calls.page_nodes(buffer.address, 1, mmap.PAGESIZE)[0])
    except OSError as error:
        pytest.skip(f"move_pages is refused here: {error}")
    return node


class Refusing(NumaCalls):
    """A container: mbind is refused, and so is move_pages if told."""

    def __init__(self, number: int = errno.EPERM, move_pages: bool = True, numa_maps: bool = False) -> None:
        super().__init__()
        self._number, self._move_pages, self._numa_maps = number, move_pages, numa_maps

    def bind(self, *_: Any) -> None:
        raise OSError(self._number, os.strerror(self._number))

    def page_nodes(self, *arguments: Any) -> Any:
        if self._move_pages:
            raise OSError(self._number, os.strerror(self._number))
        return super().page_nodes(*arguments)

    def numa_maps(self) -> str:
        if self._numa_maps:
            raise PermissionError(errno.EACCES, "no")
        return super().numa_maps()


class Elsewhere(NumaCalls):
    """One page went to another node."""

    def page_nodes(self, _address: int, pages: int, _page_bytes: int) -> Any:
        status = np.zeros(pages, dtype=np.int32)
        status[3] = 1
        return status


def test_a_buffer_on_a_node_is_proved_page_by_page() -> None:
    node = a_node()
    with HostBuffer(SIZE, node) as buffer:
        placement = buffer.prove()
    assert (placement.proved, placement.method, placement.node) == (True, "move_pages", node)
    assert placement.detail == f"{PAGES} of {PAGES} pages on node {node}"


def test_pages_that_were_dropped_on_purpose_are_not_proved() -> None:
    node = a_node()
    with HostBuffer(SIZE, node) as buffer:
        drop(buffer, page=2)
        placement = buffer.prove()
    assert placement.proved is None
    assert placement.detail == f"{PAGES - 1} of {PAGES} pages on node {node}, 1 not touched"


def test_a_page_on_another_node_disproves() -> None:
    if 0 not in NumaCalls().cpus(0) and not NumaCalls().free_bytes(0):
        pytest.skip("no node 0 here")
    with HostBuffer(SIZE, 0, calls=Elsewhere()) as buffer:
        placement = buffer.prove()
    assert placement.proved is False
    assert placement.detail == "7 of 8 pages on node 0, 1 of 8 pages on node 1"


def test_no_node_asked_for_proves_nothing_but_says_where_it_lies() -> None:
    node = a_node()
    with HostBuffer(SIZE) as buffer:
        placement = buffer.prove()
    assert (placement.node, placement.proved) == (None, None)
    assert f"on node {node}" in (placement.detail or "")


@pytest.mark.parametrize("number", [errno.EPERM, errno.ENOSYS])
def test_where_mbind_is_refused_it_is_touched_first_from_the_node(number: int) -> None:
    node = a_node()
    with HostBuffer(SIZE, node, calls=Refusing(number, move_pages=False)) as buffer:
        placement = buffer.prove()
    assert placement.proved is True
    assert f"mbind was refused ({errno.errorcode[number]}); first touched" in (placement.detail or "")


def test_where_no_cpu_of_the_node_may_be_used_it_is_touched_from_here_and_said() -> None:
    class NoCpus(Refusing):
        def cpus(self, _node: int) -> tuple[int, ...]:
            return (1000,)

    with HostBuffer(SIZE, a_node(), calls=NoCpus(move_pages=False)) as buffer:
        assert "no CPU of the node may be used to touch it first" in (buffer.prove().detail or "")


def test_where_move_pages_is_refused_numa_maps_is_the_witness() -> None:
    node = a_node()
    with HostBuffer(64 << 20, node, calls=Refusing()) as buffer:
        placement = buffer.prove()
    assert placement.method == "numa_maps"
    assert placement.proved is not False
    assert f"on node {node}" in (placement.detail or "")


def test_without_any_witness_it_is_usable_and_not_called_proved() -> None:
    with HostBuffer(SIZE, a_node(), calls=Refusing(numa_maps=True)) as buffer:
        buffer.array[:] = 7
        placement = buffer.prove()
    assert (placement.proved, placement.method) == (None, None)
    assert "could not be read" in (placement.detail or "")


def test_an_absent_node_is_unavailable_in_a_sentence() -> None:
    a_node()
    with pytest.raises(Unavailable, match="NUMA node 1000 cannot be used"), HostBuffer(SIZE, 1000):
        pass


def test_more_than_the_node_has_is_refused_before_it_is_touched() -> None:
    node = a_node()
    with pytest.raises(Unavailable, match=rf"NUMA node {node} has .* free"), HostBuffer(1 << 60, node):
        pass


def test_the_array_is_the_memory_and_starts_at_a_page() -> None:
    with HostBuffer(SIZE - 5) as buffer:
        assert buffer.address % mmap.PAGESIZE == 0
        assert buffer.address == buffer.array.ctypes.data
        assert buffer.array.shape == (SIZE - 5,)
        buffer.array[:] = 3
        kept = buffer.array[:4]
    assert kept.tolist() == [3, 3, 3, 3]
    with pytest.raises(ValueError, match="not mapped"):
        _ = buffer.array


def test_huge_pages_are_aligned_and_say_what_they_are() -> None:
    with HostBuffer(4 << 20, huge=True) as buffer:
        assert buffer.address % (2 << 20) == 0
        assert buffer.pages in ("hugetlb", "transparent")


def test_reserved_huge_pages_of_another_node_are_not_taken_for_this_one() -> None:
    """Bound to a node without free ones, the first touch of such a mapping ends the process."""

    class Empty(NumaCalls):
        def free_huge_pages(self, *_: Any) -> int:
            return 0

    with HostBuffer(4 << 20, a_node(), huge=True, calls=Empty()) as buffer:
        assert buffer.pages == "transparent"


def test_huge_pages_that_were_asked_for_and_not_got_are_unavailable() -> None:
    class Small(NumaCalls):
        def free_huge_pages(self, *_: Any) -> int:
            return 0

        def huge_bytes(self, *_: Any) -> int:
            return 0

    words = "only 0B of 4MiB came in huge pages: reserve some"
    with pytest.raises(Unavailable, match=words), HostBuffer(4 << 20, a_node(), huge=True, calls=Small()):
        pass


def test_huge_bytes_are_those_of_the_mappings_that_hold_the_range(tmp_path: Path) -> None:
    (tmp_path / "proc/self").mkdir(parents=True)
    maps = ((0x1000, 0x3000, 8), (0x3000, 0x5000, 2048), (0x9000, 0xA000, 4096))
    text = "".join(f"{a:x}-{b:x} rw-p 00000000 00:00 0\nSize: 8 kB\nAnonHugePages:  {kib} kB\n" for a, b, kib in maps)
    (tmp_path / "proc/self/smaps").write_text(text)
    calls = NumaCalls(tmp_path)
    assert calls.huge_bytes(0x3000, 0x1000) == 2048 << 10
    assert calls.huge_bytes(0x2000, 0x2000) == (2048 + 8) << 10
    assert calls.huge_bytes(0x6000, 0x1000) is None


def test_locked_memory_beyond_the_limit_is_unavailable() -> None:
    class Limited(NumaCalls):
        def lock(self, *_: Any) -> None:
            raise OSError(errno.ENOMEM, "Cannot allocate memory")

    with pytest.raises(Unavailable, match="raise `ulimit -l`"), HostBuffer(SIZE, lock=True, calls=Limited()):
        pass


MAPS = """\
55d000000000 default file=/usr/bin/python3 mapped=3 N0=3 kernelpagesize_kB=4
7f0000000000 bind:1 anon=8 dirty=8 N1=8 kernelpagesize_kB=4
7f0000100000 default anon=20 dirty=20 N0=12 N1=8 kernelpagesize_kB=4
7f0000200000 bind:0 huge anon=2 N0=2 kernelpagesize_kB=2048
"""


def test_numa_maps_finds_the_mapping_of_an_address() -> None:
    seen = in_numa_maps(MAPS, 0x7F0000000000 + 4096, 8)
    assert seen is not None
    assert (dict(seen.nodes), seen.untouched, seen.mixed) == ({1: 8}, 0, False)


def test_numa_maps_of_neighbours_on_several_nodes_tells_nothing_of_one_buffer() -> None:
    seen = in_numa_maps(MAPS, 0x7F0000100000, 8)
    assert seen is not None
    assert seen.mixed


def test_huge_pages_of_numa_maps_count_as_the_base_pages_that_they_hold() -> None:
    seen = in_numa_maps(MAPS, 0x7F0000200000, 1024)
    assert seen is not None
    assert sum(seen.nodes.values()) == 2 * (2 << 20) // mmap.PAGESIZE


def test_an_address_below_every_mapping_is_not_found() -> None:
    assert in_numa_maps(MAPS, 4096, 1) is None
    assert in_numa_maps("", 4096, 1) is None


def test_two_looks_prove_only_what_both_saw() -> None:
    yes, no, unknown = (Placement(node=0, proved=p, detail=str(p)) for p in (True, False, None))
    assert together([yes, yes]).proved is True
    assert together([yes, no]).proved is False
    assert together([unknown, yes]).proved is None
    assert together([yes, no]).detail == "False"


def test_cpu_lists_of_the_kernel_are_read() -> None:
    assert cpu_list("0-2,8\n") == (0, 1, 2, 8)
    assert cpu_list("\n") == ()


def test_free_memory_counts_what_the_kernel_can_drop(tmp_path: Path) -> None:
    folder = tmp_path / "sys/devices/system/node/node1"
    folder.mkdir(parents=True)
    (folder / "meminfo").write_text("Node 1 MemTotal: 100 kB\nNode 1 MemFree: 10 kB\nNode 1 Inactive(file): 5 kB\n")
    assert NumaCalls(tmp_path).free_bytes(1) == 15 * 1024
    assert NumaCalls(tmp_path).free_bytes(2) is None


def drop(buffer: HostBuffer, page: int) -> None:
    """Gives one page back to the kernel, as if it had never been touched."""
    import ctypes

    libc = ctypes.CDLL(None, use_errno=True)
    start = ctypes.c_void_p(buffer.address + page * mmap.PAGESIZE)
    assert libc.madvise(start, ctypes.c_size_t(mmap.PAGESIZE), mmap.MADV_DONTNEED) == 0
