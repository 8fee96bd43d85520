"""Worker pools: what a good case costs, and that a bad one costs its deadline and nothing more."""

from __future__ import annotations

import errno
import os
import signal
import subprocess
import sys
import textwrap
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from suite.errors import MeasureError, Unavailable
from suite.measure import pool as pool_module
from suite.measure import processes
from suite.measure.workers import WorkerEngine
from suite.records.case import LinkReading, Plan
from suite.records.machine import LinkState
from tests.measure.conftest import ROOT, plan

Make = Callable[..., WorkerEngine]
PAIR: dict[str, Any] = {"world_size": 2}
GLOO: dict[str, Any] = {"backend": "gloo", "engine": "gloo", **PAIR}
# Far above what a failure takes, far below what the faulty handlers would sleep.
BOUND_S = 30.0
GRACE_S = 5.0  # beyond its deadline no bad case may last longer


def workers() -> set[int]:
    """Pids of this process's worker processes."""
    found = set()
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit() and _is_worker(entry):
            found.add(int(entry.name))
    return found


def _is_worker(process: Path) -> bool:
    try:
        command = (process / "cmdline").read_bytes()
    except OSError:
        return False
    return b"suite.measure.worker" in command and f'"parent":{os.getpid()},'.encode() in command


def failure(engine: WorkerEngine, **fields: Any) -> MeasureError:
    """The error of a bad case; checks that it left no worker and ended soon after its deadline."""
    return failure_of(engine, plan("both_ways", **fields))


def failure_of(engine: WorkerEngine, bad: Plan) -> MeasureError:
    began = time.monotonic()
    with pytest.raises(MeasureError) as caught:
        engine.measure(bad)
    started = engine._start_s if "not ready" in str(caught.value) else 0.0
    assert time.monotonic() - began < min(BOUND_S, bad.deadline_s + started + GRACE_S)
    assert workers() == set()
    return caught.value


def test_the_slowest_rank_counts_and_the_mean_stands_beside_it(engine_with: Make) -> None:
    samples = engine_with(both_ways="fine").measure(plan("both_ways", **PAIR))
    assert samples.seconds == (0.2, 0.2)
    assert samples.mean_seconds == pytest.approx((0.15, 0.15))
    assert samples.verified is True


def test_one_rank_with_wrong_bytes_is_enough(engine_with: Make) -> None:
    samples = engine_with(both_ways="sees_wrong_bytes").measure(plan("both_ways", **PAIR))
    assert samples.verified is False
    assert samples.wrong == "rank 1: byte 3 is 7, not 5"


def test_a_pool_serves_many_cases(engine_with: Make) -> None:
    engine = engine_with(both_ways="tells_its_pid")
    pids = {engine.measure(plan("both_ways", gpus=(gpu,))).notes for gpu in (0, 1, 0)}
    assert len(pids) == 1


def test_another_transport_gets_workers_of_its_own_and_only_one_pool_is_alive(engine_with: Make) -> None:
    engine = engine_with(both_ways="tells_its_pid")
    first = engine.measure(plan("both_ways"))
    second = engine.measure(plan("both_ways", variables=(("NCCL_P2P_DISABLE", "1"),)))
    assert first.notes != second.notes
    assert workers() == {int(second.notes[0])}


def test_workers_get_our_environment_the_parents_and_the_plans(
    engine_with: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FROM_THE_PARENT", "yes")
    cpu = min(os.sched_getaffinity(0))
    engine = engine_with(both_ways="tells_its_surroundings")
    said = engine.measure(plan("both_ways", variables=(("NCCL_P2P_DISABLE", "1"),), rank_cpus=((cpu,),))).notes
    assert said == ("CUDA_DEVICE_ORDER=PCI_BUS_ID", "NCCL_P2P_DISABLE=1", "FROM_THE_PARENT=yes", f"cpus={cpu}")


def test_a_plan_that_pins_its_worker_does_not_pin_the_next_one(engine_with: Make) -> None:
    engine = engine_with(both_ways="pins_itself")
    first, second = (engine.measure(plan("both_ways")).notes for _ in range(2))
    assert first == second == (str(len(os.sched_getaffinity(0))),)


def test_a_hanging_rank_costs_its_deadline_and_is_named(engine_with: Make) -> None:
    error = failure(engine_with(both_ways="hangs"), deadline_s=2, **PAIR)
    assert error.kind == "hang"
    assert str(error) == "no answer within 2 s: rank 1 is waiting"
    assert error.said == ("", "I am about to hang")


def test_a_case_that_gets_on_may_take_longer_than_its_deadline(engine_with: Make) -> None:
    samples = engine_with(both_ways="gets_on").measure(plan("both_ways", deadline_s=1.0))
    assert samples.verified


def test_a_rank_that_got_on_and_hangs_is_noticed_a_deadline_later(engine_with: Make) -> None:
    error = failure(engine_with(both_ways="gets_on_and_hangs"), deadline_s=1, **PAIR)
    assert str(error) == "no answer within 1 s of the last sign of life: rank 1 is waiting"


def test_a_busily_hanging_rank_is_said_to_be_running(engine_with: Make) -> None:
    error = failure(engine_with(both_ways="hangs_busily"), deadline_s=0.5)
    assert str(error) == "no answer within 0.5 s: rank 0 is running"


def test_a_stopped_rank_is_named_first(engine_with: Make) -> None:
    error = failure(engine_with(both_ways="stops"), deadline_s=2, **PAIR)
    assert error.kind == "hang"
    assert str(error) == "no answer within 2 s: rank 1 is stopped, rank 0 is waiting"


def test_a_rank_that_stops_within_its_answer_costs_its_deadline(engine_with: Make) -> None:
    error = failure(engine_with(both_ways="stops_within_its_answer"), deadline_s=2)
    assert str(error) == "no answer within 2 s: rank 0 is stopped"


def test_a_killed_rank_is_named_at_once(engine_with: Make) -> None:
    error = failure(engine_with(both_ways="is_killed"), **PAIR)
    assert error.kind == "crash"
    assert str(error) == "rank 1 was ended by SIGKILL"


def test_a_killed_rank_is_named_although_another_complains_first(engine_with: Make) -> None:
    error = failure(engine_with(both_ways="suffers_from_a_death"), **PAIR)
    assert error.kind == "crash"
    assert str(error) == "rank 1 was ended by SIGKILL"


def test_a_rank_that_exits_leaves_its_last_line(engine_with: Make) -> None:
    error = failure(engine_with(both_ways="exits"))
    assert (error.kind, str(error), error.said) == ("crash", "rank 0 exited with status 7", ("leaving",))


def test_a_raising_rank_is_an_error_in_one_sentence_with_the_traceback_in_its_log(
    engine_with: Make, tmp_path: Path
) -> None:
    error = failure(engine_with(both_ways="raises"), **PAIR)
    assert error.kind == "error"
    assert str(error) == "rank 1: RuntimeError: unhandled system error"
    assert "Traceback" in (tmp_path / "workers" / "01-copies-rank1.log").read_text()


def test_a_rank_that_never_starts_costs_the_start_limit(engine_with: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    never = [sys.executable, "-c", "import time; time.sleep(600)"]
    spawn = subprocess.Popen

    def start(command: list[str], **options: Any) -> subprocess.Popen[bytes]:
        return spawn(never if '"rank":1' in command[-1] else command, **options)

    engine = engine_with(start_s=3.0, both_ways="fine")
    monkeypatch.setattr(subprocess, "Popen", start)
    error = failure(engine, deadline_s=1.0, **PAIR)
    assert error.kind == "hang"
    assert str(error).startswith("not ready within 4 s (the deadline of 1 s and 3 s to start): ")
    assert "rank 1 is waiting" in str(error)


@pytest.mark.parametrize("fault", ["hangs", "stops", "is_killed", "raises", "exits", "stops_within_its_answer"])
def test_the_next_case_works_after_a_failure(engine_with: Make, fault: str) -> None:
    engine = engine_with(both_ways=fault, staging="fine")
    engine.measure(plan("staging", **PAIR))
    failure(engine, deadline_s=0.5, **PAIR)
    assert engine.measure(plan("staging", **PAIR)).verified is True


def test_what_is_unavailable_is_said_and_keeps_the_pool(engine_with: Make) -> None:
    engine = engine_with(both_ways="is_unavailable", staging="tells_its_pid")
    before = engine.measure(plan("staging")).notes
    with pytest.raises(Unavailable, match="there is no such thing here"):
        engine.measure(plan("both_ways"))
    assert engine.measure(plan("staging")).notes == before


def test_unavailable_on_one_rank_does_not_wait_for_the_others(engine_with: Make) -> None:
    engine = engine_with(both_ways="unavailable_on_one_rank", staging="fine")
    with pytest.raises(Unavailable, match="rank 1 has no device"):
        engine.measure(plan("both_ways", **PAIR))
    assert workers() == set()
    assert engine.measure(plan("staging", **PAIR)).verified is True


def test_a_handler_that_does_not_exist_is_an_error_and_no_dead_worker(engine_with: Make) -> None:
    error = failure(engine_with(both_ways="no_such_function"))
    assert error.kind == "error"
    assert "no_such_function" in str(error)


def test_a_worker_that_cannot_be_ended_loses_its_gpu(engine_with: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    engine = engine_with(both_ways="hangs", staging="fine")
    monkeypatch.setattr(processes, "kill", lambda _process: None)
    monkeypatch.setattr(pool_module, "KILL_GRACE_S", 0.1)
    with pytest.raises(MeasureError) as caught:
        engine.measure(plan("both_ways", gpus=(1,), deadline_s=0.5))
    monkeypatch.undo()
    for pid in workers():
        os.kill(pid, signal.SIGKILL)
    assert caught.value.lost_gpus == (1,)
    with pytest.raises(Unavailable, match="GPU1 was given up after test/both_ways"):
        engine.measure(plan("staging", gpus=(1,)))
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    assert engine.measure(plan("staging", gpus=(0,))).verified is True


def test_closing_twice_is_safe_and_leaves_nothing(engine_with: Make) -> None:
    engine = engine_with(both_ways="fine")
    engine.measure(plan("both_ways", **PAIR))
    engine.close()
    engine.close()
    assert workers() == set()


def test_quiet_workers_leave_no_log(engine_with: Make, tmp_path: Path) -> None:
    engine = engine_with(both_ways="fine")
    engine.measure(plan("both_ways", **PAIR))
    engine.close()
    assert list((tmp_path / "workers").iterdir()) == []


def test_workers_die_with_a_parent_that_is_killed(tmp_path: Path) -> None:
    """The parent is killed while one worker is busy and another one is stopped."""
    program = f"""
        from pathlib import Path
        from suite.measure.workers import WorkerEngine
        from tests.measure.conftest import plan
        handlers = {{"staging": "tests.measure.faults:tells_its_pid", "both_ways": "tests.measure.faults:stops"}}
        engine = WorkerEngine(None, Path({str(tmp_path)!r}), handlers=handlers)
        print(*engine.measure(plan("staging", world_size=2)).notes, flush=True)
        engine.measure(plan("both_ways", world_size=2))
    """
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "TMPDIR": str(tmp_path)}
    command = [sys.executable, "-c", textwrap.dedent(program)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, env=environment, text=True) as parent:
        assert parent.stdout is not None
        pids = [int(pid) for pid in parent.stdout.readline().split()]
        assert len(pids) == 2
        _until(lambda: processes.state(pids[1]) == "stopped")
        parent.kill()
    _until(lambda: all(processes.state(pid) in ("gone", "ended") for pid in pids))


def test_a_worker_that_was_orphaned_before_it_started_ends_itself() -> None:
    program = "from suite.measure.worker import die_with; die_with(1); print('still here')"
    ended = subprocess.run([sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, timeout=60)
    assert (ended.returncode, ended.stdout) == (1, "")


class FakeWatcher:
    """Says Gen1 before and Gen4 as soon as something runs."""

    def __init__(self) -> None:
        self.calls: list[Any] = []

    def start(self, addresses: Any) -> None:
        self.calls.append(tuple(addresses))
        self.began = time.monotonic()

    def stop(self) -> dict[str, tuple[LinkReading, ...]]:
        self.calls.append("stop")
        gpu = "0000:01:00.0"
        first = LinkReading(self.began, ((gpu, LinkState(2.5, 16)),))
        return {gpu: (first, LinkReading(time.monotonic(), ((gpu, LinkState(16.0, 16)),)))}


def test_a_watched_plan_is_watched_and_the_watch_ends_after_a_failure_too(engine_with: Make) -> None:
    watcher = FakeWatcher()
    engine = engine_with(watcher, link_under_load="fine", both_ways="raises")
    fields = {"watch": True, "gpus": (0,), "addresses": ("0000:01:00.0",)}
    samples = engine.measure(plan("link_under_load", **fields))
    assert samples.watch is not None
    assert samples.watch.idle == LinkState(2.5, 16)
    failure(engine, **fields)
    assert watcher.calls == [("0000:01:00.0",), "stop"] * 2


def test_nccls_log_is_read_in_an_untimed_pass_by_other_workers(engine_with: Make) -> None:
    engine = engine_with(allreduce="writes_a_log_as_nccl_does")
    samples = engine.measure(plan("allreduce", backend="nccl", gpus=(0, 1), **PAIR))
    assert samples.notes == ("log None",)
    assert samples.transport is not None
    assert samples.transport.algorithm == "Ring"
    assert samples.transport.edges == ("r0>r9 SHM/direct", "r1>r9 SHM/direct")


def test_a_hang_in_the_untimed_pass_is_the_cases_own(engine_with: Make) -> None:
    engine = engine_with(allreduce="hangs")
    for _ in range(2):
        error = failure_of(engine, plan("allreduce", backend="nccl", gpus=(0, 1), deadline_s=0.5, **PAIR))
        assert error.kind == "hang"


def test_an_nccl_error_is_what_nccl_itself_said(engine_with: Make) -> None:
    engine = engine_with(broadcast="fails_as_nccl_does")
    error = failure_of(engine, plan("broadcast", **GLOO))
    assert error.kind == "error"
    assert str(error) == (
        "rank 1: NCCL error in: ProcessGroupNCCL.cpp:1, unhandled cuda error, NCCL version 2.28.9: "
        "Cuda failure 'peer access is not supported'"
    )


def test_ranks_as_threads_are_one_worker(engine_with: Make) -> None:
    engine = engine_with(allreduce="writes_a_log_as_nccl_does")
    threads = plan("allreduce", backend="nccl", gpus=(0, 0), world_size=2, ranks_as="threads")
    samples = engine.measure(threads)
    assert samples.transport is not None
    assert samples.transport.algorithm == "Ring"
    assert len(workers()) == 1


def test_a_rank_that_is_killed_within_an_allreduce_is_named_and_the_next_case_works(engine_with: Make) -> None:
    engine = engine_with(broadcast="dies_within_an_allreduce")
    engine.measure(plan("allreduce", **GLOO))
    error = failure_of(engine, plan("broadcast", **GLOO))
    assert str(error).startswith("rank 1 was ended by SIGKILL")
    assert engine.measure(plan("allreduce", **GLOO)).verified is True


def test_a_rank_that_stops_within_an_allreduce_is_named(engine_with: Make) -> None:
    engine = engine_with(broadcast="stops_within_an_allreduce")
    engine.measure(plan("allreduce", **GLOO))
    error = failure_of(engine, plan("broadcast", **GLOO, deadline_s=2))
    assert str(error).startswith("no answer within 2 s: rank 1 is stopped, rank 0 is ")
    assert engine.measure(plan("allreduce", **GLOO)).verified is True


def _until(condition: Callable[[], bool]) -> None:
    end = time.monotonic() + BOUND_S
    while not condition():
        assert time.monotonic() < end, "it did not happen"
        time.sleep(0.01)


@pytest.mark.parametrize(
    ("number", "remedy"),
    [
        (errno.EACCES, "run it as a user who may execute"),
        (errno.ENOENT, "run it as a user who may execute"),
        (errno.EAGAIN, "free memory or processes"),
        (errno.ENOMEM, "free memory or processes"),
    ],
)
def test_a_worker_that_cannot_be_started_is_no_fault_of_the_machine(
    engine_with: Make, monkeypatch: pytest.MonkeyPatch, number: int, remedy: str
) -> None:
    def refused(*_arguments: object, **_fields: object) -> None:
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(subprocess, "Popen", refused)
    with pytest.raises(Unavailable, match=f"a worker process could not be started: .*; {remedy}"):
        engine_with(both_ways="fine").measure(plan("both_ways"))
