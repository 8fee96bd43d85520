"""Staging through the host, and all GPUs at once, against a CUDA that records what it is asked."""

from __future__ import annotations

from dataclasses import replace

import pytest

from suite.measure.cuda import copy, staging
from suite.measure.cuda.buffers import Host
from suite.records.case import Memory, Placement
from suite.units import MIB
from tests.measure.cuda.plans import fake_session, plan


@pytest.fixture(autouse=True)
def _no_warm_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("suite.measure.cuda.timing.WARM_UP_S", 0.0)
    monkeypatch.setattr("suite.measure.cuda.together.WARM_UP_S", 0.0)


@pytest.mark.parametrize("gpus", [1, 2])
@pytest.mark.parametrize("size", [MIB, 8 * MIB, 9 * MIB + 4096])
def test_staged_bytes_arrive_whole_and_in_order(gpus: int, size: int) -> None:
    session, api = fake_session(gpus)
    answer = copy.measured(session, plan("staging", size, gpus=gpus, chunk_bytes=MIB))
    session.close()
    assert answer.verified is True
    assert api.left_over() == {}


def test_two_chunks_are_under_way_at_once() -> None:
    session, _ = fake_session(rates={1: 50e9, 2: 50e9, 3: 1e12})
    answer = copy.measured(session, plan("staging", 16 * MIB, chunk_bytes=MIB))
    serial = 2 * 16 * MIB / 50e9
    pipelined = 16 * MIB / 50e9 * 17 / 16
    assert pipelined * 0.99 < answer.seconds[0] < 0.7 * serial


@pytest.mark.parametrize(("chunk", "slots"), [(64 * MIB, 2), (8 * MIB, 2), (4 * MIB, 4), (MIB, 8), (4096, 8)])
def test_small_chunks_get_more_slots(chunk: int, slots: int) -> None:
    assert staging.slots_of(chunk) == slots


def test_a_slot_is_not_overwritten_before_its_chunk_has_left() -> None:
    session, api = fake_session(rates={1: 5e9, 2: 50e9, 3: 1e12})
    answer = copy.measured(session, plan("staging", 32 * MIB, chunk_bytes=MIB))
    assert answer.verified is True
    assert api.names().count("streamWaitEvent") > 0
    assert answer.seconds[0] > 32 * MIB / 5e9


def test_a_byte_broken_on_the_way_out_of_the_staging_buffer_is_found() -> None:
    session, api = fake_session(2)
    api.corrupt = lambda kind, nbytes: kind == 1 and nbytes == MIB + 4096
    answer = copy.measured(session, plan("staging", 4 * (MIB + 4096), gpus=2, chunk_bytes=MIB + 4096))
    assert answer.verified is False
    assert "staged" in (answer.wrong or "")


def test_every_copy_of_a_staging_runs_on_the_device_of_its_stream() -> None:
    session, api = fake_session(2)
    copy.measured(session, plan("staging", 4 * MIB, gpus=2, chunk_bytes=MIB))
    copies = [(device, args[3]) for name, device, args in api.calls if name == "memcpyAsync"]
    assert (0, 2) in copies
    assert (1, 1) in copies
    assert (1, 2) in copies  # the check reads the target back


def test_so_many_chunks_that_no_gate_can_hold_them_are_measured_and_said() -> None:
    session, _ = fake_session()
    answer = copy.measured(session, plan("staging", 512 * 64 * 1024, chunk_bytes=64 * 1024))
    assert answer.verified is True
    assert any("queue ahead" in note for note in answer.notes)


@pytest.mark.parametrize("operation", ["all_gpus_host_to_device", "all_gpus_device_to_host", "all_gpus_both_ways"])
def test_all_gpus_copy_at_once_and_every_byte_is_right(operation: str) -> None:
    session, api = fake_session(3)
    answer = copy.measured(session, plan(operation, 4 * MIB, gpus=3))
    session.close()
    assert answer.verified is True
    assert answer.clock == "host-monotonic"
    assert len(answer.seconds) == 2
    assert len(answer.directions or {}) == (6 if operation.endswith("both_ways") else 3)
    assert api.left_over() == {}


def test_every_gpu_copies_with_a_buffer_on_its_own_node(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[tuple[str, int | None]] = []
    session, _ = fake_session(2)
    allocate = session.buffers.host

    def host(role: str, nbytes: int, memory: Memory = "pinned", node: int | None = None) -> Host:
        asked.append((role, node))
        return replace(allocate(role, nbytes, memory, None), node=node)

    monkeypatch.setattr(session.buffers, "host", host)
    monkeypatch.setattr(Host, "prove", lambda one: Placement(node=one.node, proved=True, method="move_pages"))
    answer = copy.measured(session, plan("all_gpus_host_to_device", 4 * MIB, gpus=2, gpu_nodes=(0, 1)))
    buffers = [(role, node) for role, node in asked if role != "spare"]
    assert buffers == [("host_to_device 0000:01:00.0", 0), ("host_to_device 0000:02:00.0", 1)]
    assert answer.placement == Placement(
        proved=True, method="move_pages", detail="every page of gpu0's on node 0, gpu1's on node 1"
    )


def test_one_gpus_buffer_elsewhere_disproves_the_placement_of_all(monkeypatch: pytest.MonkeyPatch) -> None:
    session, _ = fake_session(2)
    looks: list[bool] = []

    def prove(_host: Host) -> Placement:
        looks.append(len(looks) != 3)  # two buffers, two looks: the last one is wrong
        return Placement(proved=looks[-1], method="move_pages")

    monkeypatch.setattr(Host, "prove", prove)
    answer = copy.measured(session, plan("all_gpus_device_to_host", 4 * MIB, gpus=2))
    assert answer.placement is not None
    assert answer.placement.proved is False


def test_one_gate_holds_the_streams_of_all_gpus() -> None:
    session, api = fake_session(2)
    copy.measured(session, plan("all_gpus_host_to_device", 4 * MIB, gpus=2))
    gates = [(device, args[2]) for name, device, args in api.calls if name == "launch gate"][-2:]
    assert {device for device, _ in gates} == {0, 1}
    assert len({flag for _, flag in gates}) == 1


def test_the_gpu_whose_bytes_are_wrong_is_named() -> None:
    session, api = fake_session(2)
    moved = 3 * MIB + 4096
    broken: list[int] = []
    api.corrupt = lambda kind, nbytes: kind == 2 and nbytes == moved and not broken.append(1)
    answer = copy.measured(session, plan("all_gpus_device_to_host", moved, gpus=2))
    assert answer.verified is False
    assert (answer.wrong or "").startswith("gpu0: ")
