"""Copies between GPUs against a CUDA that records what it is asked: order, devices, streams, peer access, clean-up."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest

from suite.errors import MeasureError, Unavailable
from suite.measure.answer import Answer, Rank
from suite.measure.cuda import ipc, latency, peer
from suite.measure.cuda.error import CudaError
from suite.measure.cuda.session import Session
from suite.records.case import Plan
from suite.units import MIB
from tests.measure.cuda import fake_api, fake_kernels
from tests.measure.cuda.fake_api import FakeApi
from tests.measure.cuda.plans import fake_session, plan

ALONE = Rank(0, 1, "nowhere")


@pytest.fixture(autouse=True)
def _no_warm_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("suite.measure.cuda.timing.WARM_UP_S", 0.0)
    monkeypatch.setattr("suite.measure.cuda.together.WARM_UP_S", 0.0)


def measured(session: Session, asked: Plan) -> Answer:
    return peer.measured(session, asked, ALONE)


def peer_calls(api: FakeApi) -> list[tuple[str, int, int]]:
    """(enable or disable, the device that was current, its peer), in order."""
    return [
        (name.removeprefix("device").removesuffix("PeerAccess"), device, args[0])
        for name, device, args in api.calls
        if name in ("deviceEnablePeerAccess", "deviceDisablePeerAccess")
    ]


def test_a_write_runs_on_the_source_and_a_read_on_the_target() -> None:
    for operation, edge in (("peer_write", (1, 0)), ("peer_read", (0, 1))):
        session, api = fake_session(2)
        answer = measured(session, plan(operation, 4 * MIB, gpus=2, p2p=True))
        copies = {(device, args[1], args[3]) for name, device, args in api.calls if name == "memcpyPeerAsync"}
        # (the device that runs it, to, from): the first GPU's engine does both.
        assert copies == {(0, *edge)}
        assert answer.verified is True


def test_peer_access_is_given_before_the_copies_and_taken_back_after_them() -> None:
    session, api = fake_session(2)
    measured(session, plan("peer_write", gpus=2, p2p=True))
    assert peer_calls(api) == [("Enable", 0, 1), ("Disable", 0, 1)]
    names = api.names()
    last_copy = len(names) - 1 - names[::-1].index("memcpyPeerAsync")
    assert names.index("deviceEnablePeerAccess") < names.index("memcpyPeerAsync")
    assert last_copy < names.index("deviceDisablePeerAccess")


def test_both_ways_needs_access_from_both_sides() -> None:
    session, api = fake_session(2)
    answer = measured(session, plan("peer_both_ways", 4 * MIB, gpus=2, p2p=True))
    assert peer_calls(api) == [("Enable", 0, 1), ("Enable", 1, 0), ("Disable", 1, 0), ("Disable", 0, 1)]
    assert set(answer.directions or ()) == {"gpu0_gpu1", "gpu1_gpu0"}
    seconds = 4 * MIB / 25e9 + fake_api.OVERHEAD_S
    assert answer.seconds == pytest.approx([seconds] * 2)


def test_without_peer_access_the_driver_stages_and_nothing_is_enabled() -> None:
    session, api = fake_session(2)
    answer = measured(session, plan("peer_write", 4 * MIB, gpus=2, p2p=False))
    assert peer_calls(api) == []
    assert answer.seconds[0] == pytest.approx(4 * MIB / 12e9 + fake_api.OVERHEAD_S)
    assert any("stages" in note for note in answer.notes)


def test_peer_access_that_is_asked_for_and_not_offered_is_unavailable() -> None:
    session, _ = fake_session(2, peers=False)
    with pytest.raises(Unavailable, match=r"no peer access from 0000:01:00\.0 to 0000:02:00\.0"):
        measured(session, plan("peer_write", gpus=2, p2p=True))


def test_where_nobody_asks_a_pair_without_access_is_staged_and_it_is_said() -> None:
    session, _ = fake_session(2, peers=False)
    answer = measured(session, plan("peer_write", gpus=2))
    assert answer.verified is True
    assert any("offers no peer access" in note for note in answer.notes)


def test_access_that_was_there_before_stays() -> None:
    session, api = fake_session(2)
    session.runtime.enable_peer(0, 1)
    measured(session, plan("peer_write", gpus=2, p2p=True))
    assert api.enabled == {(0, 1)}


def test_an_error_in_the_middle_takes_peer_access_back_and_leaves_nothing() -> None:
    session, api = fake_session(2)
    api.fail("memcpyPeerAsync", 719, after=3)
    with pytest.raises(CudaError, match="memcpyPeerAsync"):
        measured(session, plan("peer_both_ways", gpus=2, p2p=True))
    assert api.enabled == set()
    session.close()
    assert api.left_over() == {}


def test_a_failing_second_enable_takes_the_first_one_back() -> None:
    session, api = fake_session(2)
    api.fail("deviceEnablePeerAccess", 711, after=1)
    with pytest.raises(CudaError):
        measured(session, plan("peer_both_ways", gpus=2, p2p=True))
    assert api.enabled == set()


def test_wrong_bytes_of_a_pair_are_found_and_the_flow_is_named() -> None:
    session, api = fake_session(2)
    api.corrupt = lambda kind, nbytes: kind == 3 and nbytes == 4 * MIB
    answer = measured(session, plan("peer_write", 4 * MIB, gpus=2, p2p=True))
    assert answer.verified is False
    assert (answer.wrong or "").startswith("gpu0_gpu1: byte")


def test_sm_copies_go_through_the_kernel_on_the_device_that_runs_them() -> None:
    session, api = fake_session(2)
    answer = measured(session, plan("peer_read", gpus=2, p2p=True, engine="sm"))
    launches = [(device, args[0]) for name, device, args in api.calls if name == "launch copy16"]
    assert launches[-1] == (0, 2)
    assert answer.verified is True
    with pytest.raises(Unavailable, match="peer access"):
        measured(session, plan("peer_read", gpus=2, p2p=False, engine="sm"))


@pytest.mark.parametrize(("p2p", "gated"), [(True, True), (False, False)])
def test_copies_that_the_driver_stages_never_wait_behind_the_gate(p2p: bool, gated: bool) -> None:
    session, api = fake_session(2)
    measured(session, plan("peer_write", gpus=2, p2p=p2p))  # opening a GPU launches every kernel once
    before = api.names().count("launch gate")
    answer = measured(session, plan("peer_write", gpus=2, p2p=p2p))
    assert answer.verified is True
    assert (api.names().count("launch gate") > before) == gated
    assert any("without holding the stream" in note for note in answer.notes) != gated


@pytest.mark.parametrize(
    ("name", "edges"),
    [
        ("ring", [(0, 1), (1, 2), (2, 3), (3, 0)]),
        ("one_to_all", [(0, 1), (0, 2), (0, 3)]),
        ("all_to_one", [(1, 0), (2, 0), (3, 0)]),
        ("disjoint_pairs", [(0, 1), (2, 3)]),
    ],
)
def test_a_pattern_runs_all_its_flows_from_one_gate(name: str, edges: list[tuple[int, int]]) -> None:
    session, api = fake_session(4)
    answer = measured(session, plan("peer_pattern", MIB, gpus=4, p2p=True, transport=name))
    assert list(answer.directions or ()) == [f"gpu{a}_gpu{b}" for a, b in edges]
    assert answer.verified is True
    names = api.names()
    gates = [i for i, called in enumerate(names) if called == "launch gate"][-len(edges) :]
    assert "streamSynchronize" not in names[gates[0] : gates[-1]]
    session.close()
    assert api.left_over() == {}


def test_all_to_all_among_sixteen_gpus_is_planned_as_every_ordered_pair() -> None:
    asked = plan("peer_pattern", gpus=16, transport="all_to_all")
    assert len(set(peer.edges(asked))) == 240


def test_one_gpu_is_no_pair() -> None:
    session, _ = fake_session(1)
    with pytest.raises(Unavailable, match="two different GPUs"):
        measured(session, plan("peer_write"))


def test_a_copy_within_a_gpu_counts_its_bytes_once() -> None:
    session, _ = fake_session()
    answer = measured(session, plan("device_local_copy", 64 * MIB))
    assert answer.seconds[0] == pytest.approx(64 * MIB / 2000e9 + fake_api.OVERHEAD_S)
    assert answer.verified is True
    assert any("functional-only" in note for note in answer.notes)


def test_a_small_peer_copy_is_timed_by_the_host() -> None:
    session, api = fake_session(2)
    answer = measured(session, plan("peer_latency", 16, gpus=2, p2p=True))
    assert answer.clock == "host-monotonic"
    assert answer.verified is True
    assert api.enabled == set()


def test_loads_from_a_peer_follow_a_chain_in_the_peers_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(latency, "CHASE_LOADS", 5)
    session, api = fake_session(2)
    answer = measured(session, plan("peer_latency", 8, gpus=2, p2p=True, engine="load-store"))
    assert answer.seconds == pytest.approx([1e-6, 1e-6])
    assert peer_calls(api) == [("Enable", 0, 1), ("Disable", 0, 1)]


@pytest.mark.parametrize("p2p", [True, False])
def test_flags_travel_through_peer_memory_or_through_the_host(p2p: bool) -> None:
    session, api = fake_session(2)
    answer = measured(session, plan("peer_flag_latency", 4, gpus=2, p2p=p2p))
    launches = [device for name, device, _ in api.calls if name == "launch ping_pong"][-2:]
    assert launches == [1, 0]
    assert bool(peer_calls(api)) is p2p
    assert answer.seconds == pytest.approx([1e-6, 1e-6])
    assert any(("peer memory" if p2p else "host memory") in note for note in answer.notes)


def test_one_gpu_alone_exchanges_flags_with_itself_through_the_host() -> None:
    session, api = fake_session(1)
    answer = measured(session, plan("peer_flag_latency", 4))
    streams = {args[-1] for name, _, args in api.calls if name == "launch ping_pong" and args[4]}
    assert len(streams) == 2
    assert len(answer.seconds) == 2


def test_a_flag_that_never_comes_back_is_an_error_in_words(monkeypatch: pytest.MonkeyPatch) -> None:
    session, _ = fake_session(2)
    monkeypatch.setattr(fake_kernels.FakeKernels, "_ping_pong", lambda *_: lambda _now: 2.0)
    with pytest.raises(MeasureError, match="did not come back"):
        measured(session, plan("peer_flag_latency", 4, gpus=2, p2p=True))


def test_two_processes_share_memory_and_the_bytes_are_right(tmp_path: Path) -> None:
    answers = _two_ranks(tmp_path, lambda _kind, _nbytes: False)
    assert answers[0].verified is True
    assert len(answers[0].seconds) == 2
    assert answers[1].seconds == ()
    assert list(tmp_path.iterdir()) == []


def test_wrong_bytes_between_processes_are_found(tmp_path: Path) -> None:
    answers = _two_ranks(tmp_path, lambda kind, _nbytes: kind == 3)
    assert answers[0].verified is False


def test_an_ipc_copy_needs_two_ranks() -> None:
    session, _ = fake_session()
    with pytest.raises(Unavailable, match="two ranks"):
        measured(session, plan("ipc_copy"))


def test_a_rank_whose_partner_is_silent_says_so(tmp_path: Path) -> None:
    session, _ = fake_session()
    with pytest.raises(MeasureError, match="did not answer"):
        ipc.measured(session, plan("ipc_copy", deadline_s=0.1), Rank(0, 2, str(tmp_path / "store")))


def _two_ranks(folder: Path, corrupt: object) -> list[Answer]:
    """Both ranks of an IPC copy, as threads over two pretended CUDAs that share this process's memory."""
    answers: dict[int, Answer] = {}
    sessions = [fake_session() for _ in range(2)]
    # The fetching side must accept memory that the other fake allocated.
    fetching, offering = sessions[0][1], sessions[1][1]
    fetching.lenders = [offering]
    fetching.corrupt = corrupt  # type: ignore[assignment]

    def run(rank: int) -> None:
        asked = plan("ipc_copy", 2 * MIB, world_size=2)
        answers[rank] = peer.measured(sessions[rank][0], asked, Rank(rank, 2, str(folder / "store")))

    threads = [threading.Thread(target=run, args=(rank,)) for rank in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for session, api in sessions:
        session.close()
        assert api.left_over() == {}
    return [answers[0], answers[1]]
