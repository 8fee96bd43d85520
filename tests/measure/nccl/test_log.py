"""NCCL's debug file: the same facts out of every version's way to say them."""

from __future__ import annotations

from pathlib import Path

import pytest

from suite.measure.nccl import buffers
from suite.measure.nccl.log import parse

RECENT = """\
host:10:11 [0] NCCL INFO NCCL version 2.29.1+cuda13.0
host:10:11 [0] NCCL INFO Channel 00/02 : 0 1
host:10:11 [0] NCCL INFO Channel 01/02 : 0 1
host:10:11 [0] NCCL INFO Trees [0] 1/-1/-1->0->-1 [1] 1/-1/-1->0->-1
host:10:11 [0] NCCL INFO Channel 00/0 : 0[0] -> 1[1] via P2P/CUMEM
host:10:11 [0] NCCL INFO Channel 01/0 : 0[0] -> 1[1] via P2P/CUMEM
host:10:11 [0] NCCL INFO AllReduce: 1024 Bytes -> Algo TREE proto LL channel{Lo..Hi}={0..0}
host:10:11 [0] NCCL INFO AllReduce: 1048576 Bytes -> Algo RING proto SIMPLE channel{Lo..Hi}={0..1}
host:10:11 [0] NCCL INFO AllGather: 1048576 Bytes -> Algo RING proto LL128 channel{Lo..Hi}={0..1}
"""
OTHER_RANK = "host:12:13 [1] NCCL INFO Channel 00/0 : 1[1] -> 0[0] via P2P/CUMEM\n"


def test_a_call_is_described_by_its_own_line_and_the_rings() -> None:
    taken = parse(RECENT, OTHER_RANK).transport("allreduce", 1 << 20)
    assert taken is not None
    assert (taken.name, taken.algorithm, taken.protocol, taken.channels) == ("P2P", "Ring", "Simple", 2)
    assert taken.edges == ("r0>r1 P2P/CUMEM", "r1>r0 P2P/CUMEM")
    assert taken.version == "2.29.1"


def test_operations_and_sizes_are_told_apart() -> None:
    log = parse(RECENT)
    small, gathered = log.transport("allreduce", 1024), log.transport("all_gather", 1 << 20)
    assert small is not None
    assert gathered is not None
    assert (small.algorithm, small.protocol, small.channels) == ("Tree", "LL", 1)
    assert gathered.protocol == "LL128"


def test_a_size_between_two_logged_ones_counts_as_the_smaller_and_one_below_all_is_unknown() -> None:
    log = parse(RECENT)
    between, below = log.transport("allreduce", 5000), log.transport("allreduce", 8)
    assert between is not None
    assert between.algorithm == "Tree"
    assert below is not None
    assert below.algorithm is None
    assert below.channels == 2


@pytest.mark.parametrize(
    ("line", "algorithm", "protocol"),
    [
        ("node:1:2 [0] NCCL INFO 4096 Bytes -> Algo 1 proto 0 time 12.345678", "Ring", "LL"),  # 2.19 to 2.22
        ("node:1:2 [0] NCCL INFO AllReduce: 4096 Bytes -> Algo 4 proto 2 time 30.1", "NVLS", "Simple"),  # 2.23
        (
            "[2026-01-02 03:04:05] node:1:2 [0] NCCL INFO AllReduce: 4096 Bytes -> Algo NVLS_TREE proto SIMPLE",
            "NVLSTree",
            "Simple",
        ),
        (
            "node:1:2 [0] NCCL INFO AllReduce: 4096 Bytes -> Algo Ring proto Simple channel{Lo..Hi}={0..31}",
            "Ring",
            "Simple",
        ),
        ("node:1:2 [0] NCCL INFO AllReduce: 4096 Bytes -> Algo 99 proto 9 time 1", None, None),
        (
            "node:1:2 [0] NCCL INFO AllReduce [Symmetric]: 4096 Bytes -> Kernel AllReduce_AGxLL_R nchannels 8",
            "AllReduce_AGxLL_R",
            "LL",
        ),
    ],
)
def test_every_versions_line_on_a_call_is_read(line: str, algorithm: str | None, protocol: str | None) -> None:
    taken = parse("NCCL version 2.20.5+cuda12.4\n" + line).transport("allreduce", 4096)
    assert taken is not None
    assert (taken.algorithm, taken.protocol) == (algorithm, protocol)


@pytest.mark.parametrize(
    ("line", "edge", "name"),
    [
        ("Channel 00 : 3[3] -> 2[2] via SHM/direct/direct", "r3>r2 SHM/direct/direct", "SHM"),
        ("Channel 01/0 : 0[0] -> 4[0] [send] via NET/Socket/0", "r0>r4 NET/Socket/0", "NET"),
        ("Channel 00/0 : 8[0] -> 0[0] [receive] via NET/IB/1/GDRDMA", "r8>r0 NET/IB/1/GDRDMA", "NET"),
        ("Ring 00 : 3[3] -> 2[2] via P2P/IPC", "r3>r2 P2P/IPC", "P2P"),
        ("Ring 00 : 15 -> 0 [send] via NET/Socket/0", "r15>r0 NET/Socket/0", "NET"),
        ("Channel 00 : 1[1b000] -> 0[1a000] via P2P/direct pointer", "r1>r0 P2P/direct pointer", "P2P"),
    ],
)
def test_every_versions_edge_is_read(line: str, edge: str, name: str) -> None:
    taken = parse(f"node:1:2 [3] NCCL INFO {line}").transport("allreduce", 8)
    assert taken is not None
    assert (taken.edges, taken.name) == ((edge,), name)


def test_tree_edges_are_left_out_where_the_rings_are_known() -> None:
    text = "Channel 00/01 : 0 1 2\n" + "".join(
        f"Channel 00/0 : {one}[{one}] -> {other}[{other}] via {via}\n"
        for one, other, via in [
            (0, 1, "P2P/IPC"),
            (1, 2, "P2P/IPC"),
            (2, 0, "SHM/direct/direct"),
            (0, 2, "NET/Socket/0"),
        ]
    )
    taken = parse(text).transport("allreduce", 8)
    assert taken is not None
    assert taken.name == "P2P+SHM"
    assert len(taken.edges) == 3


def test_a_log_that_says_nothing_is_unknown() -> None:
    assert parse("").transport("allreduce", 8) is None
    assert parse("\x00\ufffd via \n Bytes -> Algo\nChannel 00/64 :").transport("allreduce", 8) is None


def test_a_recorded_log_is_read() -> None:
    recorded = Path(__file__).resolve().parents[4] / "shared/field-data/h200/nccl-debug-2ranks-one-gpu.log"
    if not recorded.exists():
        pytest.skip("the recorded logs are not here")
    taken = parse(recorded.read_text(errors="replace")).transport("allreduce", 8)
    assert taken is not None
    assert (taken.version, taken.channels) == ("2.32.3", 64)


def test_host_buffers_are_summed_by_node() -> None:
    line = "host [0] NCCL INFO CUMEM Host Alloc Size {} pointer 0x7f00 handle {} numa {} dev 0 granularity 2097152"
    log = parse(line.format(4194304, "a1", 1), line.format(2097152, "0xb2", 1), line.format(1048576, "(nil)", 0))
    assert buffers.logged(log.host_buffers) == (
        "NCCL's shared memory allocated by CUDA: 1MiB on node 0, 6MiB on node 1 (NCCL's log)",
    )
    assert buffers.logged({}) == ()


def test_shared_files_are_found_in_the_page_tables(tmp_path: Path) -> None:
    maps = tmp_path / "numa_maps"
    maps.write_text(
        "7f0000000000 default file=/dev/shm/nccl-AbCdEf dirty=256 N0=256 kernelpagesize_kB=4\n"
        "7f0000100000 default file=/dev/shm/nccl-GhIjKl dirty=512 N1=512 kernelpagesize_kB=4\n"
        "7f0000200000 default anon=9 dirty=9 N0=9 kernelpagesize_kB=4\n"
    )
    assert buffers.shared_files(maps) == (
        "NCCL's shared memory in /dev/shm: 1MiB on node 0, 2MiB on node 1 (numa_maps)",
    )
    assert buffers.shared_files(tmp_path / "none") == ()
