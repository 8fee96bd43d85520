"""Typed launches of the CUDA kernels in suite.measure.cuda.source."""

from __future__ import annotations

import numpy as np

from suite.measure.cuda.runtime import Runtime

THREADS = 512
BOTH_THREADS = 1024


def load(runtime: Runtime, scratch: int, stream: int) -> None:
    """Launches every kernel once, doing nothing. With lazy loading a first launch behind a closed gate would wait for
    the gate for ever. scratch: 16 zeroed bytes that the device can write; waits for the stream."""
    gate(runtime, scratch, scratch + 4, 0.0, stream)
    copy16(runtime, scratch, scratch, 0, 1, stream)
    copy16_both(runtime, (scratch, scratch), (scratch, scratch), 0, stream)
    chase(runtime, scratch, 0, 0, 1, scratch + 8, stream)
    ping_pong(runtime, scratch, scratch, 0, False, 0.0, scratch + 4, stream)
    runtime.synchronize(stream)


def gate(runtime: Runtime, flag: int, said: int, timeout_s: float, stream: int) -> None:
    """Holds the stream until the 32-bit word at `flag` is not 0, at most timeout_s. Both addresses: the device's."""
    arguments = (np.uint64(flag), np.uint64(said), np.uint64(int(timeout_s * 1e9)))
    runtime.launch("gate", 1, 1, arguments, stream)


def copy16(runtime: Runtime, target: int, source: int, nbytes: int, blocks: int, stream: int) -> None:
    """Copies nbytes (a multiple of 16) with at most `blocks` blocks. Addresses: the device's.

    One launch is one copy: a loop inside the kernel could find its data in the GPU's caches.
    """
    words = nbytes // 16
    needed = max(1, min(blocks, -(-words // THREADS)))
    runtime.launch("copy16", needed, THREADS, (np.uint64(target), np.uint64(source), np.uint64(words)), stream)


def copy16_both(runtime: Runtime, way: tuple[int, int], back: tuple[int, int], nbytes: int, stream: int) -> None:
    """Copies nbytes (a multiple of 16) each way at once. way, back: (target, source) as the device sees them."""
    words = nbytes // 16
    blocks = max(1, -(-words // (BOTH_THREADS // 2)))
    arguments = tuple(np.uint64(a) for a in (*way, *back, words))
    runtime.launch("copy16_both", blocks, BOTH_THREADS, arguments, stream)


def chase(runtime: Runtime, start: int, loads: int, chosen: int, blocks: int, last: int, stream: int) -> None:
    """Follows `loads` pointers from `start`, by one thread of block `chosen`; leaves the last pointer at `last`."""
    arguments = (np.uint64(start), np.uint32(loads), np.uint32(chosen), np.uint64(last))
    runtime.launch("chase", blocks, 1, arguments, stream)


def ping_pong(
    runtime: Runtime, mine: int, other: int, rounds: int, first: bool, timeout_s: float, said: int, stream: int
) -> None:
    """One side of a flag exchange: waits for rounds 1..rounds at `mine`, sets them at `other`."""
    arguments = (
        np.uint64(mine),
        np.uint64(other),
        np.uint32(rounds),
        np.uint32(first),
        np.uint64(int(timeout_s * 1e9)),
        np.uint64(said),
    )
    runtime.launch("ping_pong", 1, 1, arguments, stream)
