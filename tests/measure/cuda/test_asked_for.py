"""What CUDA and the kernel are asked for is what the plan says: flags, nodes, CPUs, streams, and in which order."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any

import pytest

from suite.errors import Unavailable
from suite.measure.cuda import buffers, copy, staging
from suite.measure.cuda.device import Gate
from suite.measure.numa import HostBuffer
from suite.units import MIB
from tests.measure.cuda.fake_api import FakeApi
from tests.measure.cuda.plans import fake_session, plan

PORTABLE, MAPPED, WRITE_COMBINED = 1, 2, 4  # CUDA Runtime API reference, cudaHostAlloc and cudaHostRegister


@pytest.fixture(autouse=True)
def _awake(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("suite.measure.cuda.timing.WARM_UP_S", 0.0)


@pytest.fixture
def placed(monkeypatch: pytest.MonkeyPatch) -> list[dict[str, Any]]:
    """What every placed host buffer was asked to be."""
    asked: list[dict[str, Any]] = []

    def make(nbytes: int, node: int | None, *, huge: bool) -> HostBuffer:
        asked.append({"bytes": nbytes, "node": node, "huge": huge})
        return HostBuffer(nbytes)

    monkeypatch.setattr(buffers, "HostBuffer", make)
    return asked


@pytest.fixture
def cpus() -> Iterator[set[int]]:
    """The CPUs of this process, given back afterwards."""
    found = os.sched_getaffinity(0)
    yield set(found)
    os.sched_setaffinity(0, found)


def flags(api: FakeApi, name: str, size: int) -> list[int]:
    return [args[-1] for call, _, args in api.calls if call == name and size in args[:2]]


@pytest.mark.parametrize(
    ("memory", "allocated", "registered"),
    [
        ("pinned", [], True),
        ("huge", [], True),
        ("host_alloc", [PORTABLE | MAPPED], False),
        ("write_combined", [PORTABLE | MAPPED | WRITE_COMBINED], False),
        ("pageable", [], False),
    ],
)
def test_every_kind_of_memory_is_asked_of_cuda_as_what_it_is(
    memory: str, allocated: list[int], registered: bool, placed: list[dict[str, Any]]
) -> None:
    session, api = fake_session()
    answer = copy.measured(session, plan("host_to_device", 6 * MIB, memory=memory))
    assert flags(api, "hostAlloc", 6 * MIB) == allocated
    assert set(flags(api, "hostRegister", 6 * MIB)) <= {PORTABLE | MAPPED}
    host = session.buffers.host("host_to_device", 6 * MIB, memory)  # type: ignore[arg-type]
    assert (host.address in api._registered) is registered
    assert (True in [one["huge"] for one in placed]) is (memory == "huge")
    assert answer.placement is not None
    assert answer.placement.proved is None


def test_memory_that_cuda_allocates_is_never_called_proved() -> None:
    session, _ = fake_session()
    answer = copy.measured(session, plan("host_to_device", memory="host_alloc", memory_node=0))
    assert answer.placement is not None
    assert answer.placement.proved is None
    assert "cannot be looked at" in (answer.placement.detail or "")


def test_the_staging_buffer_lies_on_the_plan_s_node(placed: list[dict[str, Any]]) -> None:
    session, _ = fake_session(2)
    copy.measured(session, plan("staging", 8 * MIB, gpus=2, chunk_bytes=MIB, memory_node=1))
    assert {one["node"] for one in placed} == {1}


def test_the_copying_thread_runs_on_the_plan_s_cpus_and_says_where_it_may_not(cpus: set[int]) -> None:
    session, _ = fake_session()
    one = min(cpus)
    assert session.begin(plan("host_to_device", cpus=(one,)))[1] == ()
    assert os.sched_getaffinity(0) == {one}
    notes = session.begin(plan("host_to_device", cpus=(4000,)))[1]
    assert notes == ("not pinned: this process may not run on the CPUs 4000",)
    assert os.sched_getaffinity(0) == cpus


@pytest.mark.parametrize("operation", ["host_to_device", "device_to_host"])
def test_what_was_never_written_at_the_target_is_called_so(operation: str, monkeypatch: pytest.MonkeyPatch) -> None:
    session, _ = fake_session()
    monkeypatch.setattr(copy, "copier", lambda *_: lambda: None)
    assert "never written" in (copy.measured(session, plan(operation)).wrong or "")


def test_a_staging_target_that_nothing_reached_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    session, _ = fake_session(2)
    monkeypatch.setattr(staging, "queue", lambda *_: None)
    assert "never written" in (copy.measured(session, plan("staging", 4 * MIB, gpus=2)).wrong or "")


def test_both_links_of_a_staging_are_woken_and_stay_known_as_awake() -> None:
    session, _ = fake_session(2)
    copy.measured(session, plan("staging", 4 * MIB, gpus=2))
    assert not session.devices.at("0000:01:00.0").asleep
    assert not session.devices.at("0000:02:00.0").asleep


def test_opposing_copies_wait_for_the_start_of_the_measured_ones() -> None:
    """Every batch on the opposing stream begins with a wait for an event of the measured one."""
    session, api = fake_session()
    copy.measured(session, plan("both_ways", 4 * MIB, iterations=2))
    down, up = session.devices.at("0000:01:00.0").streams
    recent: list[tuple[str, int]] = []
    for name, _, args in api.calls:
        if name == "launch gate":
            recent = []
        elif name in ("memcpyAsync", "streamWaitEvent") and len(args) > 1:
            recent.append((name, args[-2] if name == "streamWaitEvent" else args[-1]))
    waited = {stream for name, stream in recent if name == "streamWaitEvent"}
    assert waited == {down}  # the last samples measure the way to the host
    assert recent.index(("streamWaitEvent", down)) < recent.index(("memcpyAsync", down))
    assert ("memcpyAsync", up) in recent


def test_a_gate_that_gave_up_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    session, _ = fake_session()
    monkeypatch.setattr(Gate, "timed_out", property(lambda _gate: True))
    answer = copy.measured(session, plan("host_to_device"))
    assert any("launches may be part" in note for note in answer.notes)


def test_every_gpu_s_bytes_are_looked_at(monkeypatch: pytest.MonkeyPatch) -> None:
    session, _ = fake_session(3)
    seen: list[str] = []

    def difference(_session: Any, _plan: Any, way: copy.Direction) -> str | None:
        seen.append(way.device.device.address)
        return "one byte" if way.device.device.address == "0000:03:00.0" else None

    monkeypatch.setattr(copy, "difference", difference)
    answer = copy.measured(session, plan("all_gpus_host_to_device", MIB, gpus=3))
    assert seen == ["0000:01:00.0", "0000:02:00.0", "0000:03:00.0"]
    assert (answer.verified, answer.wrong) == (False, "gpu2: one byte")


@pytest.mark.parametrize("call", ["setDevice", "streamCreateWithFlags", "hostAlloc"])
def test_a_gpu_too_full_for_a_context_is_one_sentence(call: str) -> None:
    session, api = fake_session()
    api.fail(call, 2)
    with pytest.raises(Unavailable, match="no CUDA context fits beside it: end it"):
        copy.measured(session, plan("host_to_device"))


def test_page_locking_that_is_not_supported_is_one_sentence(placed: list[dict[str, Any]]) -> None:
    session, api = fake_session()
    api.fail("hostRegister", 801)
    with pytest.raises(Unavailable, match="no page-locked memory of this kind here"):
        copy.measured(session, plan("host_to_device"))
    assert placed
