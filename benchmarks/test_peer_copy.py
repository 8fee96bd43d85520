"""What do the paths between GPUs deliver, with P2P and without, pair by pair and all at once?

Every ordered pair is measured and verified at one size. What goes beyond that is measured in quick for one pair of each
class, and for pairs that disagree with their class.
"""

from suite.plugin import Check
from suite.records.case import Operation

Pair = tuple[int, int]


def test_local(check: Check, gpu: int, large_size: int) -> None:
    """Within one GPU: functional-only, no link is crossed. Its memory is the ceiling."""
    check("device_local_copy", gpus=(gpu,), bytes=large_size)


def test_staged(check: Check, pair: Pair) -> None:
    """P2P off: the driver stages the copy through host memory."""
    check("peer_write", gpus=pair, p2p=False)


def test_staged_sizes(check: Check, couple: Pair, sweep_size: int) -> None:
    """P2P off, over all sizes."""
    check.one_a_class("peer_write", gpus=couple, bytes=sweep_size, p2p=False)


def test_staged_both_ways(check: Check, couple: Pair) -> None:
    """P2P off, both directions at once."""
    check.one_a_class("peer_both_ways", gpus=couple, p2p=False)


def test_staged_latency(check: Check, couple: Pair) -> None:
    """P2P off: one small copy, from launch to completion."""
    check.one_a_class("peer_latency", gpus=couple, p2p=False)


def test_flag_through_host(check: Check, couple: Pair) -> None:
    """A flag through mapped host memory: what NCCL's shared memory transport waits for."""
    check.one_a_class("peer_flag_latency", engine="load-store", gpus=couple, p2p=False)


def test_direct(check: Check, pair: Pair, direct: Operation) -> None:
    """P2P on, copy engine: write to the peer, read from it, one small copy."""
    check(direct, gpus=pair, p2p=True)


def test_both_ways(check: Check, couple: Pair) -> None:
    """P2P on, both directions at once."""
    check.one_a_class("peer_both_ways", gpus=couple, p2p=True)


def test_sizes(check: Check, sweep: Operation, pair: Pair, sweep_size: int) -> None:
    """P2P on, copy engine, over all sizes."""
    check.one_a_class(sweep, gpus=pair, bytes=sweep_size, p2p=True)


def test_write_sm(check: Check, couple: Pair, large_size: int) -> None:
    """A kernel writes to the peer: what NCCL's kernels can reach."""
    check.one_a_class("peer_write", engine="sm", gpus=couple, bytes=large_size, p2p=True)


def test_read_sm(check: Check, couple: Pair, large_size: int) -> None:
    """A kernel reads from the peer."""
    check.one_a_class("peer_read", engine="sm", gpus=couple, bytes=large_size, p2p=True)


def test_both_ways_sm(check: Check, couple: Pair, large_size: int) -> None:
    """A kernel on each GPU writes to the other one."""
    check.one_a_class("peer_both_ways", engine="sm", gpus=couple, bytes=large_size, p2p=True)


def test_load_latency(check: Check, couple: Pair) -> None:
    """One dependent load from the peer's memory."""
    check.one_a_class("peer_latency", engine="load-store", gpus=couple, p2p=True)


def test_flag_through_peer(check: Check, couple: Pair) -> None:
    """A flag through peer memory: the floor of a small allreduce."""
    check.one_a_class("peer_flag_latency", engine="load-store", gpus=couple, p2p=True)


def test_at_once(check: Check, gpu_pattern: str) -> None:
    """All GPUs at once: disjoint pairs, one to all, all to one, a ring, all to all."""
    check("peer_pattern", transport=gpu_pattern)


def test_between_processes(check: Check, gpu: int, large_size: int) -> None:
    """One process copies memory that another one exports, on one GPU: functional-only."""
    check("ipc_copy", gpus=(gpu,), bytes=large_size)
