"""Host memory copies: all bytes, in every thread's share, verified, with the number of threads told."""

from __future__ import annotations

import mmap
import os
from itertools import pairwise
from typing import Any

import numpy as np
import pytest

from suite.errors import Unavailable
from suite.measure import host_memory
from suite.measure.answer import Answer, Rank
from suite.measure.workers import WorkerEngine
from tests.measure.conftest import plan
from tests.measure.test_numa import a_node

CPUS = tuple(sorted(os.sched_getaffinity(0)))
ALONE = Rank(0, 1, "")


def measured(**fields: Any) -> Answer:
    fields = {"bytes": 1 << 20, "engine": "memcpy", "rounds": 3, **fields}
    return host_memory.measure(plan("host_memory_copy", **fields), ALONE)


def test_a_copy_is_timed_verified_and_its_placement_proved() -> None:
    node = a_node()
    answer = measured(memory_node=node, target_node=node, cpu_node=node, cpus=CPUS)
    assert len(answer.seconds) == 3
    assert min(answer.seconds) > 0
    assert answer.verified is True
    assert answer.placement is not None
    assert answer.placement.proved is True
    assert answer.window is not None
    assert answer.window[0] < answer.window[1]
    assert "bytes copied once" in (answer.counted or "")


@pytest.mark.parametrize("size", [1, mmap.PAGESIZE - 1, 3 * mmap.PAGESIZE + 5])
def test_odd_sizes_and_more_threads_than_pages_copy_every_byte(size: int) -> None:
    assert measured(bytes=size, threads=4, cpus=CPUS).verified is True


def test_a_copy_that_does_not_happen_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(host_memory.ctypes, "memmove", lambda *_: None)
    answer = measured(threads=1)
    assert answer.verified is False
    assert (answer.wrong or "").startswith(f"{1 << 20} of {1 << 20} bytes are wrong; byte 0 is ")


def test_one_lost_share_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(host_memory, "slices", lambda nbytes, _parts: [(0, nbytes // 2)])
    answer = measured(threads=1)
    assert (answer.wrong or "").startswith(f"{1 << 19} of {1 << 20} bytes are wrong; byte {1 << 19} is ")


def test_threads_are_swept_where_the_plan_leaves_them_open() -> None:
    answer = measured(threads=0, cpus=CPUS, cpu_node=0)
    assert "as many as it took to saturate" in answer.notes[0]
    assert answer.threads in host_memory.thread_counts(len(CPUS))


@pytest.mark.parametrize(("seconds", "chosen"), [([4, 2, 1, 0.5], 8), ([4, 2, 1.99, 2.05], 2), ([4, 5, 1, 1.02], 4)])
def test_the_fewest_threads_within_5_percent_of_the_fastest_are_taken(
    monkeypatch: pytest.MonkeyPatch, seconds: list[float], chosen: int
) -> None:
    times = dict(zip([1, 2, 4, 8], seconds, strict=True))
    monkeypatch.setattr(host_memory, "_best_pass", lambda _source, _target, _cpus, threads: times[threads])
    unused: Any = None
    assert host_memory.saturating(unused, unused, tuple(range(8))) == chosen


def test_thread_counts_double_and_end_at_all_cores() -> None:
    assert host_memory.thread_counts(1) == [1]
    assert host_memory.thread_counts(6) == [1, 2, 4, 6]
    assert host_memory.thread_counts(8) == [1, 2, 4, 8]


@pytest.mark.parametrize(("nbytes", "parts"), [(1, 4), (10 * mmap.PAGESIZE + 1, 3), (8 * mmap.PAGESIZE, 8)])
def test_the_shares_cover_every_byte_once(nbytes: int, parts: int) -> None:
    shares = host_memory.slices(nbytes, parts)
    assert len(shares) == parts
    assert sum(length for _, length in shares) == nbytes
    assert all(a + n == b for (a, n), (b, _) in pairwise(shares))


def test_two_patterns_differ_and_fill_the_tail() -> None:
    one, other = np.zeros(1003, dtype=np.uint8), np.zeros(1003, dtype=np.uint8)
    host_memory.pattern(one)
    host_memory.pattern(other)
    assert not np.array_equal(one, other)
    assert one[-8:].any()


def test_cpus_that_are_not_allowed_are_said() -> None:
    with pytest.raises(Unavailable, match="none of the node's CPUs may be used"):
        measured(cpus=(100_000,))


def test_an_absent_node_is_unavailable() -> None:
    a_node()
    with pytest.raises(Unavailable, match="NUMA node 900"):
        measured(memory_node=0, target_node=900)


def test_the_engine_measures_it_in_a_worker(engine_with: Any) -> None:
    engine: WorkerEngine = engine_with()
    samples = engine.measure(plan("host_memory_copy", bytes=1 << 20, engine="memcpy", threads=0))
    assert samples.engine == "memcpy"
    assert samples.verified is True
    assert len(samples.seconds) == 2
