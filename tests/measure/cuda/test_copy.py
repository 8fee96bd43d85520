"""Copies between host and GPU, against a CUDA that records what it is asked."""

from __future__ import annotations

import ctypes
import mmap
from collections.abc import Iterator

import pytest

from suite.errors import Unavailable
from suite.measure.cuda import copy
from suite.measure.cuda.error import CudaError
from suite.measure.cuda.session import Session
from suite.measure.numa import HostBuffer
from suite.records.case import Placement, Plan
from suite.units import GIB, KIB, MIB
from tests.measure.cuda import fake_api, fake_kernels
from tests.measure.cuda.fake_api import FakeApi, Gpu
from tests.measure.test_numa import a_node

ADDRESS = "0000:01:00.0"


def plan(operation: str, size: int = MIB, **fields: object) -> Plan:
    given = {"gpus": (0,), "addresses": (ADDRESS,), "rounds": 2, "iterations": 4, **fields}
    return Plan(case="a case", operation=operation, bytes=size, **given)  # type: ignore[arg-type]


@pytest.fixture
def cuda(monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[Session, FakeApi]]:
    monkeypatch.setattr("suite.measure.cuda.timing.WARM_UP_S", 0.0)
    runtime, api = fake_kernels.runtime()
    session = Session(runtime)
    yield session, api
    session.close()


@pytest.mark.parametrize(("operation", "rate"), [("host_to_device", 50e9), ("device_to_host", 55e9)])
def test_a_copy_is_timed_on_the_device_and_its_bytes_are_right(
    cuda: tuple[Session, FakeApi], operation: str, rate: float
) -> None:
    session, _ = cuda
    answer = copy.measured(session, plan(operation, 8 * MIB))
    assert answer.verified is True
    assert answer.clock == "cuda-event"
    assert answer.seconds == pytest.approx([8 * MIB / rate + fake_api.OVERHEAD_S] * 2)


@pytest.mark.parametrize(
    ("operation", "kind"), [("host_to_device", 1), ("device_to_host", 2), ("both_ways", 1), ("both_ways", 2)]
)
def test_one_wrong_byte_is_found(cuda: tuple[Session, FakeApi], operation: str, kind: int) -> None:
    session, api = cuda
    size = 3 * MIB + 4096
    api.corrupt = lambda k, n: k == kind and n == size
    answer = copy.measured(session, plan(operation, size))
    assert answer.verified is False
    assert answer.wrong is not None
    assert "should be" in answer.wrong


def test_bytes_that_never_arrive_are_found(cuda: tuple[Session, FakeApi], monkeypatch: pytest.MonkeyPatch) -> None:
    session, _ = cuda
    monkeypatch.setattr(copy, "copier", lambda *_: lambda: None)
    answer = copy.measured(session, plan("device_to_host"))
    assert answer.verified is False
    assert "never written" in (answer.wrong or "")


def test_the_stream_is_held_until_everything_is_queued(cuda: tuple[Session, FakeApi]) -> None:
    session, api = cuda
    copy.measured(session, plan("host_to_device"))
    names = api.names()
    last_gate = len(names) - 1 - names[::-1].index("launch gate")
    after = names[last_gate:]
    first_wait = after.index("streamSynchronize")
    assert after[1:first_wait].count("memcpyAsync") >= 4 + 1
    assert after[1:first_wait].count("eventRecord") == 2


def test_pageable_copies_are_never_held(cuda: tuple[Session, FakeApi]) -> None:
    session, api = cuda
    session.begin(plan("host_to_device"))
    gates = api.names().count("launch gate")
    answer = copy.measured(session, plan("host_to_device", memory="pageable"))
    assert api.names().count("launch gate") == gates
    assert answer.verified is True
    assert "pageable" in answer.notes[0]
    assert not session.buffers.host("host_to_device", MIB, "pageable").pinned


def test_each_direction_of_both_ways_is_measured_while_the_other_runs(cuda: tuple[Session, FakeApi]) -> None:
    session, _ = cuda
    answer = copy.measured(session, plan("both_ways", 8 * MIB))
    assert answer.directions is not None
    down, up = answer.directions["host_to_device"][0], answer.directions["device_to_host"][0]
    assert down == pytest.approx(8 * MIB / 50e9 + fake_api.OVERHEAD_S)
    assert up == pytest.approx(8 * MIB / 55e9 + fake_api.OVERHEAD_S)
    assert answer.seconds[0] == pytest.approx(2 * 8 * MIB / (8 * MIB / down + 8 * MIB / up))
    assert not [n for n in answer.notes if "one way only" in n]


def test_opposing_copies_that_are_much_faster_are_given_more_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("suite.measure.cuda.timing.WARM_UP_S", 0.0)
    runtime, _ = fake_kernels.runtime(Gpu(rates={1: 10e9, 2: 50e9, 3: 1e12}))
    answer = copy.measured(Session(runtime), plan("both_ways", 8 * MIB))
    assert not [n for n in answer.notes if "one way only" in n]


def test_one_copy_engine_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("suite.measure.cuda.timing.WARM_UP_S", 0.0)
    runtime, _ = fake_kernels.runtime(Gpu(engines=1))
    answer = copy.measured(Session(runtime), plan("both_ways"))
    assert any("take turns" in note for note in answer.notes)


def test_small_copies_are_repeated_until_a_sample_is_long_enough(cuda: tuple[Session, FakeApi]) -> None:
    session, _ = cuda
    answer = copy.measured(session, plan("host_to_device", 4 * KIB))
    assert answer.iterations is not None
    assert answer.iterations * answer.seconds[0] >= 100e-6


def test_a_slow_path_makes_fewer_copies_than_planned(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("suite.measure.cuda.timing.WARM_UP_S", 0.0)
    runtime, _ = fake_kernels.runtime(Gpu(rates={1: 10e6, 2: 10e6, 3: 1e9}))
    answer = copy.measured(Session(runtime), plan("host_to_device", 8 * MIB, iterations=16, deadline_s=9.0))
    assert answer.iterations == 1


def test_the_link_watch_gets_a_window_that_the_transfers_fill(cuda: tuple[Session, FakeApi]) -> None:
    session, _ = cuda
    answer = copy.measured(session, plan("link_under_load", 8 * MIB, min_seconds=0.05))
    assert answer.window is not None
    assert answer.window[1] - answer.window[0] >= 0.05
    assert answer.verified is True
    assert len(answer.seconds) > 1
    assert set(answer.directions or ()) == {"host_to_device", "device_to_host"}


def test_sm_copies_go_through_the_kernel(cuda: tuple[Session, FakeApi]) -> None:
    session, api = cuda
    answer = copy.measured(session, plan("device_to_host", engine="sm"))
    assert answer.engine == "sm"
    assert answer.verified is True
    assert api.names().count("launch copy16") > 4


def test_sm_copies_both_ways_are_one_kernel_whose_time_is_that_of_each_direction(
    cuda: tuple[Session, FakeApi],
) -> None:
    session, api = cuda
    answer = copy.measured(session, plan("both_ways", 8 * MIB, engine="sm"))
    assert "launch copy16" not in api.names()[api.names().index("hostRegister") :]
    assert api.names().count("launch copy16_both") > 4
    assert answer.verified is True
    one = pytest.approx([8 * MIB / 40e9 + fake_api.OVERHEAD_S] * 2)
    assert answer.directions == {"host_to_device": one, "device_to_host": one}
    assert answer.seconds == one


@pytest.mark.parametrize("arrival", [0, 1])
def test_one_wrong_byte_of_either_direction_of_the_one_kernel_is_found(
    cuda: tuple[Session, FakeApi], arrival: int
) -> None:
    session, api = cuda
    arrivals = iter(range(10**6))
    api.corrupt = lambda kind, n: kind == 0 and n == MIB and next(arrivals) % 2 == arrival
    answer = copy.measured(session, plan("both_ways", engine="sm"))
    assert answer.verified is False
    assert ("device to host" if arrival else "host to device") in (answer.wrong or "")


def test_sm_copies_without_nvrtc_are_unavailable_with_the_reason() -> None:
    runtime, _ = fake_kernels.runtime(why_no_kernels="NVRTC is missing")
    with pytest.raises(Unavailable, match="NVRTC is missing"):
        copy.measured(Session(runtime), plan("host_to_device", engine="sm"))


def test_without_nvrtc_copies_are_timed_all_the_same_and_it_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("suite.measure.cuda.timing.WARM_UP_S", 0.0)
    monkeypatch.setattr("suite.measure.cuda.timing.torch_sleep", lambda *_: False)
    runtime, _ = fake_kernels.runtime(why_no_kernels="NVRTC is missing")
    answer = copy.measured(Session(runtime), plan("host_to_device"))
    assert answer.verified is True
    assert any("launches" in note for note in answer.notes)


@pytest.mark.parametrize("memory", ["pinned", "registered", "host_alloc", "huge", "write_combined", "pageable"])
def test_every_kind_of_memory_is_given_back(monkeypatch: pytest.MonkeyPatch, memory: str) -> None:
    monkeypatch.setattr("suite.measure.cuda.timing.WARM_UP_S", 0.0)
    runtime, api = fake_kernels.runtime()
    session = Session(runtime)
    answer = copy.measured(session, plan("both_ways", memory=memory))
    session.close()
    assert answer.verified is True
    assert api.left_over() == {}


def test_buffers_are_kept_while_the_size_stays_and_freed_when_it_changes(cuda: tuple[Session, FakeApi]) -> None:
    session, api = cuda
    copy.measured(session, plan("host_to_device", 4 * MIB))
    made = api.names().count("malloc")
    copy.measured(session, plan("host_to_device", 4 * MIB))
    assert api.names().count("malloc") == made
    copy.measured(session, plan("host_to_device", 8 * MIB))
    assert api.names().count("free") == 1


def test_a_gpu_that_others_filled_is_said_in_one_sentence() -> None:
    runtime, _ = fake_kernels.runtime(Gpu(free=512 * MIB))
    with pytest.raises(Unavailable, match=r"0\.5 of 8\.0 GiB are free"):
        copy.measured(Session(runtime), plan("host_to_device", GIB))


def test_a_resident_server_leaves_room_enough(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("suite.measure.cuda.timing.WARM_UP_S", 0.0)
    runtime, _ = fake_kernels.runtime(Gpu(total=80 * GIB, free=3 * GIB + 512 * MIB))
    assert copy.measured(Session(runtime), plan("both_ways", 16 * MIB)).verified is True


def test_no_page_locked_memory_is_said_with_the_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    runtime, api = fake_kernels.runtime()
    monkeypatch.setattr("resource.getrlimit", lambda _which: (64 * KIB, 64 * KIB))
    api.fail("hostRegister", 2)
    with pytest.raises(Unavailable, match="ulimit -l"):
        copy.measured(Session(runtime), plan("host_to_device"))


def test_exclusive_mode_is_a_reason_and_not_a_fault() -> None:
    runtime, api = fake_kernels.runtime()
    api.fail("streamCreateWithFlags", 46)
    with pytest.raises(Unavailable, match="exclusive"):
        copy.measured(Session(runtime), plan("host_to_device"))


def test_a_gpu_that_cuda_does_not_show_is_a_reason() -> None:
    runtime, _ = fake_kernels.runtime()
    with pytest.raises(Unavailable, match="CUDA_VISIBLE_DEVICES"):
        copy.measured(Session(runtime), plan("host_to_device", addresses=("0000:99:00.0",)))


def test_an_error_in_the_middle_leaves_nothing_behind(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("suite.measure.cuda.timing.WARM_UP_S", 0.0)
    runtime, api = fake_kernels.runtime()
    session = Session(runtime)
    api.fail("memcpyAsync", 700, after=5)
    with pytest.raises(CudaError, match="memcpyAsync"):
        copy.measured(session, plan("device_to_host"))
    session.close()
    assert api.left_over() == {}


def test_the_placement_is_looked_at_after_registering_and_after_timing(
    cuda: tuple[Session, FakeApi], monkeypatch: pytest.MonkeyPatch
) -> None:
    session, api = cuda
    looks: list[int] = []

    def prove(_buffer: HostBuffer) -> Placement:
        looks.append(len(api.calls))
        return Placement(proved=len(looks) == 1, method="move_pages")

    monkeypatch.setattr(HostBuffer, "prove", prove)
    answer = copy.measured(session, plan("host_to_device"))
    first, second = looks
    assert "hostRegister" in api.names()[:first]
    assert "eventRecord" in api.names()[first:second]
    assert answer.placement is not None
    assert answer.placement.proved is False


@pytest.mark.parametrize("dropped", [False, True])
def test_a_placement_broken_while_copying_is_not_called_proved(cuda: tuple[Session, FakeApi], dropped: bool) -> None:
    """The kernel is made to take a page of the buffer away after it was registered; only the second look can see it."""
    session, api = cuda
    copying = api.memcpyAsync
    broken: list[int] = []

    def memcpy(target: int, source: int, nbytes: int, kind: int, stream: int) -> None:
        copying(target, source, nbytes, kind, stream)
        if dropped and not broken and nbytes == MIB and kind == 1:
            drop_page(source + MIB)  # of the buffer, but not of what is copied
            broken.append(source)

    api.memcpyAsync = memcpy  # type: ignore[method-assign]
    answer = copy.measured(session, plan("host_to_device", memory_node=a_node()))
    assert answer.verified is True
    assert answer.placement is not None
    assert (answer.placement.proved, bool(broken)) == ((None, True) if dropped else (True, False))
    if dropped:
        assert "1 not touched" in (answer.placement.detail or "")


def drop_page(address: int) -> None:
    """Gives a page back to the kernel: it lies nowhere until it is written again."""
    libc = ctypes.CDLL(None, use_errno=True)
    aligned = ctypes.c_void_p(address - address % mmap.PAGESIZE)
    assert libc.madvise(aligned, ctypes.c_size_t(mmap.PAGESIZE), mmap.MADV_DONTNEED) == 0


@pytest.mark.parametrize(
    ("call", "status", "sentence"),
    [
        ("hostRegister", 2, "page-locked memory could be had: end other programs that pin memory"),
        ("malloc", 2, "GPU memory could be had: another process took it meanwhile"),
        ("streamCreateWithFlags", 46, "exclusive or prohibited compute mode and another process holds it"),
        ("deviceGetByPCIBusId", 101, "hidden by CUDA_VISIBLE_DEVICES, or be split by MIG"),
    ],
)
def test_what_the_machine_refuses_is_one_sentence_that_says_what_to_do(
    monkeypatch: pytest.MonkeyPatch, call: str, status: int, sentence: str
) -> None:
    monkeypatch.setattr("resource.getrlimit", lambda _which: (-1, -1))
    runtime, api = fake_kernels.runtime()
    api.fail(call, status)
    with pytest.raises(Unavailable) as refused:
        copy.measured(Session(runtime), plan("host_to_device"))
    assert sentence in str(refused.value)
    assert "\n" not in str(refused.value)


def test_a_containers_memory_limit_is_one_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("suite.measure.cuda.room.cgroup_free", lambda _root: 2 * MIB)
    runtime, _ = fake_kernels.runtime()
    with pytest.raises(Unavailable, match="left by the container's memory limit"):
        copy.measured(Session(runtime), plan("host_to_device", 4 * MIB))
