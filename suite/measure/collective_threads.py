"""Ranks as threads of one process, on one GPU: NCCL called directly, as torch has one rank a process.

Functional-only: it exercises NCCL and no link.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass, replace
from threading import Barrier
from typing import Any

import torch

from suite.errors import Unavailable
from suite.measure import collective_data as data
from suite.measure.answer import Answer
from suite.measure.nccl import library as nccl
from suite.records.case import Plan

NOTE = "ranks are threads of one process that calls NCCL directly"


@dataclass(frozen=True)
class _Member:
    """One thread's rank."""

    rank: int
    communicator: Any
    stream: Any


_members: list[_Member] = []
_executors: list[ThreadPoolExecutor] = []  # one thread each: a rank stays with its thread
_calls = 0


def prepare(plan: Plan, device: Any) -> None:
    """Starts the threads and joins them into a communicator. Raises Unavailable for an NCCL that cannot."""
    nccl.require_shared_gpu()
    shared = nccl.unique_id()
    _executors[:] = [ThreadPoolExecutor(1) for _ in range(plan.world_size)]

    def join(rank: int) -> _Member:
        torch.cuda.set_device(device)
        return _Member(rank, nccl.communicator(plan.world_size, shared, rank), torch.cuda.Stream(device))

    _members[:] = _on_all(join, range(plan.world_size))


def measure(plan: Plan, device: Any) -> Answer:
    """Verifies, times, verifies again. seconds: the slowest rank's, a round."""
    if plan.operation != "allreduce" or plan.graph:
        raise Unavailable("ranks as threads are measured with eager allreduce only")
    global _calls
    _calls += 2
    start = time.monotonic()
    barrier = Barrier(plan.world_size, timeout=plan.deadline_s)
    found = _on_all(lambda member: _rank(plan, member, device, barrier, _calls), _members)
    end = time.monotonic()
    wrong = next((f"rank {rank}: {text}" for rank, (text, _) in enumerate(found) if text), None)
    return Answer(
        seconds=tuple(max(ranks) for ranks in zip(*(seconds for _, seconds in found), strict=True)),
        clock="cuda-event",
        engine="nccl",
        verified=wrong is None,
        wrong=wrong,
        window=(start, end),
        iterations=plan.iterations,
        counted="bytes of one rank's message, as nccl-tests counts them",
        notes=(NOTE,),
    )


def only_call(plan: Plan, device: Any, sizes: Sequence[int]) -> Answer:
    """One call of each size, for the log that NCCL writes meanwhile."""

    def call(member: _Member) -> None:
        with torch.cuda.stream(member.stream):
            for size in sizes:
                sent = data.message(replace(plan, bytes=size), member.rank, device)
                buffer = torch.zeros(sent.source, dtype=sent.dtype, device=device)
                nccl.allreduce(buffer, buffer, plan.dtype, member.communicator, member.stream)
            member.stream.synchronize()

    _on_all(call, _members)
    return Answer(engine="nccl")


def _on_all(function: Callable[[Any], Any], each: Any) -> list[Any]:
    """The function in every rank's own thread at once; the first error is raised."""
    futures = [executor.submit(function, one) for executor, one in zip(_executors, each, strict=True)]
    for future in as_completed(futures):  # a rank that failed leaves the others waiting: its error comes first
        future.result()
    return [future.result() for future in futures]


def _rank(plan: Plan, member: _Member, device: Any, barrier: Barrier, call: int) -> tuple[str | None, list[float]]:
    with torch.cuda.stream(member.stream):
        sent = data.message(plan, member.rank, device)
        source = torch.empty(sent.source, dtype=sent.dtype, device=device)
        target = source if plan.in_place else torch.empty_like(source)

        def run() -> None:
            nccl.allreduce(source, target, plan.dtype, member.communicator, member.stream)

        wrong = _verify(sent, source, target, run, member, call - 1)
        source.zero_()
        seconds = _rounds(plan, run, member, barrier)
        return wrong or _verify(sent, source, target, run, member, call), seconds


def _verify(
    sent: data.Message, source: Any, target: Any, run: Callable[[], None], member: _Member, call: int
) -> str | None:
    target.fill_(float("nan"))
    data.fill(source, sent, call)
    run()
    member.stream.synchronize()
    return data.difference(target, sent, call)


def _rounds(plan: Plan, run: Callable[[], None], member: _Member, barrier: Barrier) -> list[float]:
    """Seconds a call between two events; before each round the threads meet in an untimed call."""
    for _ in range(plan.warmup):
        run()
    member.stream.synchronize()
    start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
    seconds = []
    for _ in range(plan.rounds):
        barrier.wait()
        run()
        start.record(member.stream)
        for _ in range(plan.iterations):
            run()
        end.record(member.stream)
        end.synchronize()
        seconds.append(start.elapsed_time(end) / 1e3 / plan.iterations)  # milliseconds
    return seconds
