"""Latency between a GPU and host memory: one small copy from launch to completion, and one dependent load."""

from __future__ import annotations

import time
from collections.abc import Callable
from statistics import median

import numpy as np

from suite.errors import Unavailable
from suite.measure.answer import Answer
from suite.measure.cuda import copy, kernels, timing
from suite.measure.cuda.buffers import Bytes
from suite.measure.cuda.device import Device
from suite.measure.cuda.session import Placed, Session
from suite.records.case import Plan
from suite.units import MIB

# nvbandwidth's host_device_latency_sm: a 2 MiB buffer, each pointer 128 bytes after the one before, one thread a
# multiprocessor in turn (testcase.cpp, common.h; it makes 1,000,000 loads in all, about half a second's worth here).
CHASE_BYTES = 2 * MIB
CHASE_STRIDE = 128
CHASE_LOADS = 2000


def measured(session: Session, plan: Plan) -> Answer:
    """One latency case."""
    if plan.operation == "host_device_load_latency":
        return load_latency(session, plan)
    return copy_latency(session, plan)


def copy_latency(session: Session, plan: Plan) -> Answer:
    """plan.bytes each time, waited for each time; and one copy on the device, between two events."""
    (device, *_), notes = session.begin(plan)
    way = copy.direction(session, plan, device, plan.operation.removesuffix("_latency"))
    placed = Placed(plan, way.host)
    copy.fill(session, plan, way)
    work = way.work(session, plan, device.streams[0])
    timing.wake(session.devices, [work])
    seconds = tuple(launch_to_completion(session, plan, device, work.queue) for _ in range(plan.rounds))
    wrong = copy.difference(session, plan, way)
    return Answer(
        seconds=seconds,
        clock="host-monotonic",
        engine=plan.engine,
        verified=wrong is None,
        wrong=wrong,
        placement=placed.proof(),
        notes=notes,
        on_device_s=on_device(session, work),
    )


def launch_to_completion(session: Session, plan: Plan, device: Device, queue: Callable[[], None]) -> float:
    """Seconds of one operation from its launch until the host knows that it is done, mean of plan.iterations."""
    stream = device.streams[0]
    start = time.perf_counter()
    for _ in range(plan.iterations):
        queue()
        session.runtime.synchronize(stream)
    seconds = (time.perf_counter() - start) / plan.iterations
    device.last_used = time.monotonic()
    return seconds


def on_device(session: Session, work: timing.Work) -> float:
    """Seconds of one copy between two events behind the gate: what it takes without launch and wait."""
    one = timing.Load(1, 1)
    return median(timing.sample(session.devices, work, one).seconds for _ in range(21))


def load_latency(session: Session, plan: Plan) -> Answer:
    """One load from host memory by a GPU thread: a chain of pointers, each multiprocessor in its turn."""
    (device, *_), notes = session.begin(plan)
    device.need_kernels()
    if plan.memory == "pageable":
        raise Unavailable("kernels cannot reach pageable memory: load latency needs pinned memory")
    host = session.buffers.host("chase", CHASE_BYTES, plan.memory, plan.memory_node)
    placed = Placed(plan, host)
    start = host.device_address or host.address
    write_chain(host.view, start)
    result = session.buffers.device("chase_end", device, 8)
    seconds = chase_rounds(session, plan, device, start, result.address)
    return Answer(
        seconds=seconds,
        clock="cuda-event",
        engine="load-store",
        placement=placed.proof(),
        iterations=CHASE_LOADS * device.multiprocessors,
        notes=notes,
    )


def write_chain(view: Bytes, address: int, stride: int = CHASE_STRIDE) -> None:
    """Fills memory that kernels see at `address` with pointers, each to the word `stride` bytes on, round and round."""
    words = view.view(np.uint64)
    offsets = (np.arange(words.size, dtype=np.uint64) * 8 + stride) % np.uint64(view.nbytes)
    words[:] = offsets + np.uint64(address)


def chase_rounds(session: Session, plan: Plan, device: Device, start: int, last: int) -> tuple[float, ...]:
    """Seconds of one load, plan.rounds times: the mean over all multiprocessors. One round before, to wake up."""
    return tuple(_chase(session, device, start, last) for _ in range(plan.rounds + 1))[1:]


def _chase(session: Session, device: Device, start: int, last: int) -> float:
    runtime, stream, blocks = session.runtime, device.streams[0], device.multiprocessors
    total = 0.0
    with runtime.events([device.index] * 2) as (before, after):
        for chosen in range(blocks):
            runtime.record(before, stream)
            kernels.chase(runtime, start, CHASE_LOADS, chosen, blocks, last, stream)
            runtime.record(after, stream)
            runtime.synchronize(stream)
            total += runtime.elapsed(before, after)
    device.last_used = time.monotonic()
    return total / (CHASE_LOADS * blocks)
