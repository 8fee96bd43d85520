"""Every CUDA operation once on a real GPU: verified, and plausible for any card from PCIe Gen1 x1 on."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from suite.errors import MeasureError, Unavailable
from suite.measure.answer import Answer, Rank
from suite.measure.cuda.session import Session
from suite.measure.workers import WorkerEngine
from suite.records.case import Plan
from suite.units import GIB, KIB, MIB
from tests.measure.cuda import fake_api

pytestmark = pytest.mark.gpu

# A PCIe Gen1 x1 link carries 0.25 GB/s, a Gen7 x16 one 236 GB/s, each way (PCI Express Base Specification).
SLOWEST, FASTEST = 0.15e9, 300e9


@pytest.fixture(scope="module")
def session() -> Iterator[Session]:
    cupy = pytest.importorskip("cupy", reason="cupy is not installed", exc_type=ImportError)
    if not cupy.cuda.is_available():
        pytest.skip("no NVIDIA GPU that CUDA can use")
    from suite.measure.cuda.session import current

    affinity = os.sched_getaffinity(0)
    found = current()
    yield found
    found.close()
    os.sched_setaffinity(0, affinity)


def plan(operation: str, size: int = 16 * MIB, *, gpus: int = 1, **fields: object) -> Plan:
    import cupy

    given = {
        "gpus": tuple(range(gpus)),
        "addresses": tuple(cupy.cuda.runtime.deviceGetPCIBusId(i) for i in range(gpus)),
        "rounds": 3,
        "iterations": 16,
        **fields,
    }
    return Plan(case="on a GPU", operation=operation, bytes=size, **given)  # type: ignore[arg-type]


def copied(session: Session, asked: Plan) -> Answer:
    from suite.measure.cuda import copy

    answer = copy.measured(session, asked)
    assert answer.verified is not False, answer.wrong
    return answer


def peered(session: Session, asked: Plan) -> Answer:
    from suite.measure.cuda import peer

    answer = peer.measured(session, asked, Rank(0, 1, "nowhere"))
    assert answer.verified is not False, answer.wrong
    return answer


def need_gpus(count: int) -> None:
    import cupy

    found = cupy.cuda.runtime.getDeviceCount()
    if found < count:
        pytest.skip(f"needs {count} GPUs and {found} is there")


def plausible(size: int, answer: Answer, *, fastest: float = FASTEST) -> None:
    assert len(answer.seconds) >= 2
    for seconds in answer.seconds:
        assert SLOWEST < size / seconds < fastest


def test_the_fake_has_only_what_cupy_has(session: Session) -> None:
    import cupy

    own = {"fail", "names", "left_over", "current", "queue_kernel", "arrive", "latest"}
    offered = {name for name in vars(fake_api.FakeApi) if not name.startswith("_")} - own
    assert not [name for name in offered if not hasattr(cupy.cuda.runtime, name)]
    assert session.runtime is not None


def test_the_kernels_compile_and_the_gate_opens_when_it_is_told(session: Session) -> None:
    (device, *_), _ = session.begin(plan("host_to_device"))
    assert device.why_no_kernels is None
    gate, stream = session.devices.gate(), device.streams[0]
    with session.runtime.events([device.index] * 2) as (start, end):
        gate.close()
        session.runtime.record(start, stream)
        gate.hold(stream)
        session.runtime.record(end, stream)
        time.sleep(0.05)
        assert not session.runtime.passed(end)
        gate.open()
        session.runtime.synchronize(stream)
        assert session.runtime.elapsed(start, end) >= 0.045
    assert not gate.timed_out


@pytest.mark.parametrize("operation", ["host_to_device", "device_to_host"])
@pytest.mark.parametrize("engine", ["copy-engine", "sm"])
@pytest.mark.parametrize("size", [4 * KIB, 64 * MIB])
def test_one_way(session: Session, operation: str, engine: str, size: int) -> None:
    answer = copied(session, plan(operation, size, engine=engine))
    assert answer.verified is True
    assert not [note for note in answer.notes if "launches" in note]
    assert answer.iterations is not None
    assert answer.iterations * answer.seconds[0] >= 90e-6
    if size >= MIB:
        plausible(size, answer)


@pytest.mark.parametrize("engine", ["copy-engine", "sm"])
def test_both_ways(session: Session, engine: str) -> None:
    answer = copied(session, plan("both_ways", 64 * MIB, engine=engine))
    plausible(2 * 64 * MIB, answer, fastest=2 * FASTEST)
    assert not [note for note in answer.notes if "one way only" in note]


@pytest.mark.parametrize("memory", ["pinned", "registered", "host_alloc", "huge", "write_combined", "pageable"])
@pytest.mark.parametrize("operation", ["host_to_device", "device_to_host"])
def test_every_kind_of_host_memory(session: Session, operation: str, memory: str) -> None:
    plausible(16 * MIB, copied(session, plan(operation, memory=memory)))


def test_the_link_under_load(session: Session) -> None:
    answer = copied(session, plan("link_under_load", 64 * MIB, min_seconds=0.5))
    assert answer.window is not None
    assert answer.window[1] - answer.window[0] >= 0.5
    plausible(2 * 64 * MIB, answer, fastest=2 * FASTEST)


@pytest.mark.parametrize("operation", ["host_to_device_latency", "device_to_host_latency"])
def test_a_small_copy_takes_microseconds(session: Session, operation: str) -> None:
    answer = copied(session, plan(operation, 8, iterations=100))
    assert all(1e-6 < s < 1e-3 for s in answer.seconds)


def test_a_load_from_host_memory_takes_a_fraction_of_that(session: Session) -> None:
    answer = copied(session, plan("host_device_load_latency", 8))
    assert all(1e-7 < s < 2e-5 for s in answer.seconds)


@pytest.mark.parametrize("chunk", [256 * KIB, 4 * MIB])
def test_staging_on_one_gpu(session: Session, chunk: int) -> None:
    plausible(64 * MIB, copied(session, plan("staging", 64 * MIB, chunk_bytes=chunk)))


@pytest.mark.parametrize("operation", ["all_gpus_host_to_device", "all_gpus_device_to_host", "all_gpus_both_ways"])
def test_all_gpus_at_once(session: Session, operation: str) -> None:
    import cupy

    count = cupy.cuda.runtime.getDeviceCount()
    answer = copied(session, plan(operation, 64 * MIB, gpus=count))
    assert all(s > 0 for s in answer.seconds)
    assert not [note for note in answer.notes if "gate" in note]


def test_a_copy_within_the_device(session: Session) -> None:
    answer = peered(session, plan("device_local_copy", 256 * MIB))
    plausible(256 * MIB, answer, fastest=20e12)


def test_flags_between_two_kernels_of_one_gpu(session: Session) -> None:
    answer = peered(session, plan("peer_flag_latency", 4))
    assert all(1e-7 < s < 5e-5 for s in answer.seconds)


@pytest.mark.parametrize("operation", ["peer_write", "peer_read", "peer_both_ways"])
@pytest.mark.parametrize("p2p", [True, False])
@pytest.mark.parametrize("engine", ["copy-engine", "sm"])
def test_a_pair(session: Session, operation: str, p2p: bool, engine: str) -> None:
    need_gpus(2)
    try:
        answer = peered(session, plan(operation, 64 * MIB, gpus=2, p2p=p2p, engine=engine))
    except Unavailable as reason:
        pytest.skip(str(reason))
    plausible(64 * MIB, answer, fastest=2e12)


@pytest.mark.parametrize("p2p", [True, False])
def test_latencies_of_a_pair(session: Session, p2p: bool) -> None:
    need_gpus(2)
    try:
        answer = peered(session, plan("peer_flag_latency", 4, gpus=2, p2p=p2p))
        copy = peered(session, plan("peer_latency", 16, gpus=2, p2p=p2p, iterations=50))
    except Unavailable as reason:
        pytest.skip(str(reason))
    assert all(1e-7 < s < 5e-5 for s in answer.seconds)
    assert all(1e-6 < s < 1e-3 for s in copy.seconds)


@pytest.mark.parametrize("name", ["ring", "one_to_all", "all_to_one", "all_to_all", "disjoint"])
def test_patterns_of_all_gpus(session: Session, name: str) -> None:
    import cupy

    need_gpus(2)
    answer = peered(session, plan("peer_pattern", 32 * MIB, gpus=cupy.cuda.runtime.getDeviceCount(), transport=name))
    assert answer.verified is True


def test_two_processes_share_memory(session: Session, tmp_path: Path) -> None:
    assert session is not None
    engine = WorkerEngine(None, tmp_path)
    try:
        samples = engine.measure(plan("ipc_copy", 64 * MIB, world_size=2))
    except Unavailable as reason:
        pytest.skip(str(reason))
    finally:
        engine.close()
    assert samples.verified is True


def test_a_worker_answers_as_this_process_does(session: Session, tmp_path: Path) -> None:
    assert session is not None
    engine = WorkerEngine(None, tmp_path)
    try:
        samples = engine.measure(plan("host_to_device", 64 * MIB))
    finally:
        engine.close()
    assert samples.verified is True
    assert samples.clock == "cuda-event"
    assert all(SLOWEST < 64 * MIB / s < FASTEST for s in samples.seconds)


@pytest.mark.parametrize("after_s", [0.05, 0.4, 1.5])
def test_a_worker_killed_while_it_copies_costs_that_case_only(session: Session, tmp_path: Path, after_s: float) -> None:
    """Killed while it starts CUDA, while it fills buffers, while copies are under way."""
    assert session is not None
    engine = WorkerEngine(None, tmp_path)
    long = plan("both_ways", 256 * MIB, rounds=2000, deadline_s=120.0)
    killer = threading.Timer(after_s, kill_children)
    try:
        killer.start()
        with pytest.raises(MeasureError) as lost:
            engine.measure(long)
        killer.join()
        samples = engine.measure(plan("host_to_device", 64 * MIB))
    finally:
        killer.cancel()
        engine.close()
    assert lost.value.kind == "crash"
    assert samples.verified is True


def kill_children() -> None:
    """Kills this process's worker; waits for it where it has not started yet."""
    end = time.monotonic() + 10
    while not (workers := psutil.Process().children()) and time.monotonic() < end:
        time.sleep(0.01)
    for worker in workers:
        worker.kill()


def test_too_large_a_buffer_is_refused_in_words(session: Session) -> None:
    (device, *_), _ = session.begin(plan("host_to_device"))
    with pytest.raises(Unavailable, match="GPU memory"):
        session.buffers.device("too large", device, 1 << 50)
    assert session.runtime.memory()[1] > GIB
