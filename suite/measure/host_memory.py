"""How fast threads on one NUMA node's CPUs copy from one node's memory to another's."""

from __future__ import annotations

import ctypes
import mmap
import os
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from suite.errors import Unavailable
from suite.measure import numa, progress
from suite.measure.answer import Answer, Rank
from suite.measure.numa import HostBuffer
from suite.records.case import Placement, Plan

COUNTED = "bytes copied once; DRAM traffic is 2 bytes a byte with streaming stores, 3 with write-allocate"
ENOUGH_GAIN = 1.05  # more threads must bring 5 %, else the memory is saturated
SWEEP_PASSES = 2
Bytes = npt.NDArray[np.uint8]


@dataclass(frozen=True)
class _Timing:
    """One pass: from the first thread's start to the last one's end, in time.monotonic() seconds."""

    start: float
    end: float

    @property
    def seconds(self) -> float:
        return self.end - self.start


def measure(plan: Plan, _rank: Rank) -> Answer:
    """Copies plan.bytes from memory_node to target_node; plan.threads 0: as many as it takes to saturate."""
    cpus = usable(plan.cpus)
    with HostBuffer(plan.bytes, plan.memory_node) as source, HostBuffer(plan.bytes, plan.target_node) as target:
        pattern(source.array)
        before = (source.prove(), target.prove())
        threads = plan.threads or saturating(source, target, cpus)
        np.invert(source.array, out=target.array)  # poisoned: no byte is right before it is copied
        timings = _rounds(plan, source, target, cpus, threads)
        after = (source.prove(), target.prove())
        wrong = difference(source.array, target.array)
    return Answer(
        seconds=tuple(t.seconds / plan.iterations for t in timings),
        engine="memcpy",
        verified=wrong is None,
        wrong=wrong,
        placement=_placement(plan, (before[0], after[0]), (before[1], after[1])),
        window=(timings[0].start, timings[-1].end),
        counted=COUNTED,
        threads=threads,
        notes=(_threads_note(plan, threads, cpus),),
    )


def usable(cpus: tuple[int, ...]) -> tuple[int, ...]:
    """Those of the wanted CPUs that this process may run on. None wanted: none, nothing is pinned."""
    allowed = tuple(cpu for cpu in cpus if cpu in os.sched_getaffinity(0))
    if cpus and not allowed:
        raise Unavailable("none of the node's CPUs may be used here: the cpuset or taskset leaves them out")
    return allowed


def pattern(array: Bytes) -> None:
    """Fresh random bytes, other ones in every case."""
    words = array[: array.size // 8 * 8].view(np.uint64)
    generator = np.random.default_rng()
    step = 1 << 21  # 16 MiB at a time: no second buffer of the whole size
    for first in range(0, words.size, step):
        part = words[first : first + step]
        part[:] = generator.integers(0, 1 << 64, part.size, dtype=np.uint64)
    array[words.size * 8 :] = generator.integers(0, 256, array.size - words.size * 8, dtype=np.uint8)


def difference(wanted: Bytes, got: Bytes) -> str | None:
    """The first byte that is wrong and how many are; None where all are right."""
    if np.array_equal(wanted, got):
        return None
    places = np.flatnonzero(wanted != got)
    first = int(places[0])
    return f"{places.size} of {wanted.size} bytes are wrong; byte {first} is {got[first]}, not {wanted[first]}"


def saturating(source: HostBuffer, target: HostBuffer, cpus: tuple[int, ...]) -> int:
    """The least of 1, 2, 4, … threads that come within 5 % of the fastest count; one a CPU at most. All counts are
    tried: where other programs use the memory too, one doubling may bring nothing and the next one much."""
    most = len(cpus) or len(os.sched_getaffinity(0))
    seconds = {}
    for threads in thread_counts(most):
        seconds[threads] = _best_pass(source, target, cpus, threads)
        progress.step()
    enough = min(seconds.values()) * ENOUGH_GAIN
    return min(threads for threads, taken in seconds.items() if taken <= enough)


def thread_counts(most: int) -> list[int]:
    """1, 2, 4, … and `most` itself."""
    counts = [1 << power for power in range(most.bit_length()) if 1 << power <= most]
    return counts if counts[-1] == most else [*counts, most]


def slices(nbytes: int, parts: int) -> list[tuple[int, int]]:
    """(offset, length) of every thread's share: whole pages, near equal, all of it."""
    pages = -(-nbytes // mmap.PAGESIZE)
    edges = [min(nbytes, pages * part // parts * mmap.PAGESIZE) for part in range(parts)] + [nbytes]
    return [(start, end - start) for start, end in pairwise(edges)]


def _best_pass(source: HostBuffer, target: HostBuffer, cpus: tuple[int, ...], threads: int) -> float:
    with _Team(source, target, cpus, threads) as team:
        return min(team.copy(1).seconds for _ in range(SWEEP_PASSES))


def _rounds(plan: Plan, source: HostBuffer, target: HostBuffer, cpus: tuple[int, ...], threads: int) -> list[_Timing]:
    with _Team(source, target, cpus, threads) as team:
        for _ in range(plan.warmup):
            team.copy(1)
        timings = []
        for _ in range(plan.rounds):
            progress.step()
            timings.append(team.copy(plan.iterations))
        return timings


class _Team:
    """Threads that wait for a shared start, each pinned to one CPU, each with its own slice of the buffers."""

    def __init__(self, source: HostBuffer, target: HostBuffer, cpus: tuple[int, ...], threads: int) -> None:
        self._iterations = 0
        self._go = threading.Barrier(threads + 1)
        self._done = threading.Barrier(threads + 1)
        self._times: list[_Timing | None] = [None] * threads
        shares = slices(source.nbytes, threads)
        self._threads = [
            threading.Thread(
                target=self._work,
                args=(
                    i,
                    target.address + offset,
                    source.address + offset,
                    length,
                    cpus[i % len(cpus)] if cpus else None,
                ),
                daemon=True,
            )
            for i, (offset, length) in enumerate(shares)
        ]

    def __enter__(self) -> _Team:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._iterations = 0
        self._go.wait()
        for thread in self._threads:
            thread.join()

    def copy(self, iterations: int) -> _Timing:
        """All slices `iterations` times; total time from the first start to the last end."""
        self._iterations = iterations
        self._go.wait()
        self._done.wait()
        times = [t for t in self._times if t is not None]
        return _Timing(min(t.start for t in times), max(t.end for t in times))

    def _work(self, index: int, to: int, source: int, length: int, cpu: int | None) -> None:
        if cpu is not None:
            os.sched_setaffinity(0, {cpu})  # pid 0 is the calling thread
        while True:
            self._go.wait()
            if not self._iterations:
                return
            start = time.monotonic()
            for _ in range(self._iterations):
                ctypes.memmove(to, source, length)  # without the interpreter's lock
            self._times[index] = _Timing(start, time.monotonic())
            self._done.wait()


def _placement(plan: Plan, source: Sequence[Placement], target: Sequence[Placement]) -> Placement:
    """Proved where both buffers were seen in place after touching and again after timing."""
    first, second = numa.together(source), numa.together(target)
    proofs = (first.proved, second.proved)
    return Placement(
        node=plan.memory_node,
        target_node=plan.target_node,
        cpu_node=plan.cpu_node,
        proved=False if False in proofs else None if None in proofs else True,
        method=first.method,
        detail=f"source: {first.detail}; target: {second.detail}",
    )


def _threads_note(plan: Plan, threads: int, cpus: tuple[int, ...]) -> str:
    pinned = f"on {len(cpus)} CPUs of node {plan.cpu_node}" if cpus else "not pinned"
    chosen = "" if plan.threads else ", as many as it took to saturate"
    return f"{threads} thread{'s' if threads > 1 else ''} {pinned}{chosen}"
