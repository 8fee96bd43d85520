"""Handlers that go wrong on purpose, for the tests of the worker pools. They run in the workers."""

from __future__ import annotations

import os
import signal
import stat
import time
from contextlib import suppress
from pathlib import Path

from suite.errors import Unavailable
from suite.measure import progress
from suite.measure.answer import Answer, Rank
from suite.records.case import Plan

BAD_RANK = 1


def fine(plan: Plan, rank: Rank) -> Answer:
    """Answers at once, a tenth of a second slower a rank."""
    return Answer(seconds=(0.1 * (rank.rank + 1),) * plan.rounds, engine="memcpy", verified=True)


def hangs(plan: Plan, rank: Rank) -> Answer:
    if is_bad(rank):
        print("I am about to hang")
        time.sleep(600)
    return fine(plan, rank)


def gets_on(plan: Plan, rank: Rank) -> Answer:
    """Takes several deadlines of half a second, and says now and then that it is still at it."""
    for _ in range(6):
        time.sleep(0.3)
        progress.step()
    return fine(plan, rank)


def gets_on_and_hangs(_plan: Plan, rank: Rank) -> Answer:
    progress.step()
    if is_bad(rank):
        time.sleep(600)
    return gets_on(_plan, rank)


def hangs_busily(_plan: Plan, _rank: Rank) -> Answer:
    while True:
        pass


def stops(plan: Plan, rank: Rank) -> Answer:
    """The bad rank is stopped; the others wait for it, as in a collective."""
    if is_bad(rank):
        os.kill(os.getpid(), signal.SIGSTOP)
    time.sleep(600)
    return fine(plan, rank)


def is_killed(plan: Plan, rank: Rank) -> Answer:
    if is_bad(rank):
        os.kill(os.getpid(), signal.SIGKILL)
    time.sleep(600)
    return fine(plan, rank)


def exits(_plan: Plan, _rank: Rank) -> Answer:
    print("leaving", flush=True)
    os._exit(7)


def raises(plan: Plan, rank: Rank) -> Answer:
    """The bad rank raises; the others wait for it, as in a collective."""
    if is_bad(rank):
        raise RuntimeError("unhandled system error\nwith more below")
    time.sleep(600)
    return fine(plan, rank)


def suffers_from_a_death(_plan: Plan, rank: Rank) -> Answer:
    """The bad rank is killed, and the others see a broken connection before the parent sees the death."""
    if is_bad(rank):
        time.sleep(0.1)
        os.kill(os.getpid(), signal.SIGKILL)
    raise ConnectionError("connection closed by peer")


def is_unavailable(_plan: Plan, _rank: Rank) -> Answer:
    raise Unavailable("there is no such thing here")


def unavailable_on_one_rank(plan: Plan, rank: Rank) -> Answer:
    if is_bad(rank):
        raise Unavailable("rank 1 has no device")
    time.sleep(600)
    return fine(plan, rank)


def sees_wrong_bytes(plan: Plan, rank: Rank) -> Answer:
    return Answer(
        seconds=(0.1,) * plan.rounds, verified=not is_bad(rank), wrong="byte 3 is 7, not 5" if is_bad(rank) else None
    )


def stops_within_its_answer(_plan: Plan, _rank: Rank) -> Answer:
    """Half an answer, then silence."""
    os.write(_channel(), b'{"seconds": [')
    os.kill(os.getpid(), signal.SIGSTOP)
    return Answer()


def tells_its_pid(_plan: Plan, _rank: Rank) -> Answer:
    return Answer(seconds=(1.0,), notes=(str(os.getpid()),))


def tells_its_surroundings(_plan: Plan, _rank: Rank) -> Answer:
    names = ("CUDA_DEVICE_ORDER", "NCCL_P2P_DISABLE", "FROM_THE_PARENT")
    cpus = ",".join(map(str, sorted(os.sched_getaffinity(0))))
    return Answer(seconds=(1.0,), notes=(*(f"{n}={os.environ.get(n)}" for n in names), f"cpus={cpus}"))


def pins_itself(_plan: Plan, _rank: Rank) -> Answer:
    """Tells on how many CPUs it was started, and leaves its thread on one of them."""
    cpus = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {min(cpus)})
    return Answer(seconds=(1.0,), notes=(str(len(cpus)),))


def dies_within_an_allreduce(plan: Plan, rank: Rank) -> Answer:
    """In a real process group: the others' connections break before the parent sees the death."""
    return _leaves_an_allreduce(plan, rank, signal.SIGKILL)


def stops_within_an_allreduce(plan: Plan, rank: Rank) -> Answer:
    return _leaves_an_allreduce(plan, rank, signal.SIGSTOP)


def _leaves_an_allreduce(plan: Plan, rank: Rank, how: signal.Signals) -> Answer:
    import torch
    import torch.distributed as dist

    if is_bad(rank):
        os.kill(os.getpid(), how)
    dist.all_reduce(torch.zeros(1 << 20))
    return fine(plan, rank)


def fails_as_nccl_does(plan: Plan, rank: Rank) -> Answer:
    """torch's text of an NCCL error: the reason is in a later line."""
    from suite.measure import collective

    if is_bad(rank):
        with collective._known_refusals():
            raise RuntimeError(
                "NCCL error in: ProcessGroupNCCL.cpp:1, unhandled cuda error, NCCL version 2.28.9\n"
                "ncclUnhandledCudaError: Call to CUDA function failed.\n"
                "Last error:\nCuda failure 'peer access is not supported'"
            )
    return fine(plan, rank)


def writes_a_log_as_nccl_does(plan: Plan, rank: Rank) -> Answer:
    """In the untimed pass (no rounds) into the file that NCCL's variables name; the timed workers must have none."""
    name = os.environ.get("NCCL_DEBUG_FILE")
    if plan.rounds:
        return Answer(seconds=(0.1,) * plan.rounds, engine="nccl", verified=True, notes=(f"log {name}",))
    assert name is not None
    choice = f"AllReduce: {plan.bytes} Bytes -> Algo RING proto LL"
    edge = f"Channel 00/0 : {rank.rank}[0] -> 9[1] via SHM/direct"
    Path(name.replace("%p", str(os.getpid()))).write_text(f"{choice}\n{edge}\n")
    return Answer()


def is_bad(rank: Rank) -> bool:
    """The last rank of a pool of two or more, and the only one of a pool of one."""
    return rank.rank == min(BAD_RANK, rank.world_size - 1)


def _channel() -> int:
    """The worker's socket to its parent: the only one that it has."""
    for descriptor in range(3, 64):
        with suppress(OSError):
            if stat.S_ISSOCK(os.fstat(descriptor).st_mode):
                return descriptor
    raise LookupError("no socket")
