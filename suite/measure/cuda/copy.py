"""Copies between host memory and one GPU: each way, both ways, latency, and load for the link watch.

`measure` and `prepare` are the worker's handlers; staging and several GPUs live in modules of their own.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib import import_module

from suite.errors import Unavailable
from suite.measure.answer import Answer, Rank
from suite.measure.cuda import kernels, timing
from suite.measure.cuda.buffers import Host, OnDevice
from suite.measure.cuda.device import Device
from suite.measure.cuda.runtime import DEVICE_TO_HOST, HOST_TO_DEVICE
from suite.measure.cuda.session import Placed, Session, current
from suite.measure.cuda.timing import Load, Sample, Work
from suite.measure.cuda.verify import Checker, Pattern, poison_host
from suite.records.case import NOT_AT_ONCE, ONE_COPY_ENGINE, Plan

TO_DEVICE, TO_HOST = "host_to_device", "device_to_host"
COUNTED = "bytes copied, once"

_ELSEWHERE = {
    "host_to_device_latency": "suite.measure.cuda.latency",
    "device_to_host_latency": "suite.measure.cuda.latency",
    "host_device_load_latency": "suite.measure.cuda.latency",
    "staging": "suite.measure.cuda.staging",
    "all_gpus_host_to_device": "suite.measure.cuda.together",
    "all_gpus_device_to_host": "suite.measure.cuda.together",
    "all_gpus_both_ways": "suite.measure.cuda.together",
}


def prepare(plan: Plan, _rank: Rank) -> None:
    """Opens the plan's GPUs and compiles the kernels, so that no case's time holds it."""
    current().begin(plan)


def measure(plan: Plan, _rank: Rank) -> Answer:
    """One case. Raises Unavailable with the reason, or CudaError."""
    return measured(current(), plan)


def measured(session: Session, plan: Plan) -> Answer:
    """One case in a session."""
    if plan.operation in _ELSEWHERE:
        handler: Callable[[Session, Plan], Answer] = import_module(_ELSEWHERE[plan.operation]).measured
        return handler(session, plan)
    return {TO_DEVICE: one_way, TO_HOST: one_way, "both_ways": both_ways, "link_under_load": under_load}[
        plan.operation
    ](session, plan)


@dataclass(frozen=True)
class Direction:
    """One direction's buffers and the pattern that travels through them."""

    name: str
    host: Host
    device: OnDevice
    pattern: Pattern

    def work(self, session: Session, plan: Plan, stream: int) -> Work:
        """Its copies on one of the GPU's streams, by the plan's engine."""
        copy = copier(session, plan, self, stream)
        return Work(self.device.device, stream, copy, gated=self.host.pinned)


def copier(session: Session, plan: Plan, way: Direction, stream: int) -> Callable[[], None]:
    """What queues one copy in a direction. Raises Unavailable where the engine cannot do it."""
    runtime = session.runtime
    host, device = way.host, way.device
    inward = way.name == TO_DEVICE
    if plan.engine == "sm":
        host_pointer = reachable_by_kernels(device.device, host, plan.bytes)
        target, source = (device.address, host_pointer) if inward else (host_pointer, device.address)
        blocks = device.device.multiprocessors
        return lambda: kernels.copy16(runtime, target, source, plan.bytes, blocks, stream)
    target, source = (device.address, host.address) if inward else (host.address, device.address)
    kind = HOST_TO_DEVICE if inward else DEVICE_TO_HOST
    return lambda: runtime.copy(target, source, plan.bytes, kind, stream)


def reachable_by_kernels(device: Device, host: Host, nbytes: int) -> int:
    """The host buffer's address for kernels. Raises Unavailable where there is none."""
    device.need_kernels()
    if host.device_address is None:
        raise Unavailable("kernels cannot reach pageable memory: SM copies need pinned memory")
    if nbytes % 16:
        raise Unavailable(f"SM copies move 16 bytes at a time and {nbytes} is no multiple of it")
    return host.device_address


def one_way(session: Session, plan: Plan) -> Answer:
    """Host to device or device to host, one at a time."""
    (device, *_), notes = session.begin(plan)
    way = direction(session, plan, device, plan.operation)
    placed = Placed(plan, way.host)
    fill(session, plan, way)
    samples, load = timing.rounds(session.devices, plan, way.work(session, plan, device.streams[0]))
    wrong = difference(session, plan, way)
    return Answer(
        seconds=tuple(s.seconds for s in samples),
        clock="cuda-event",
        engine=plan.engine,
        verified=wrong is None,
        wrong=wrong,
        placement=placed.proof(),
        iterations=load.count,
        counted=COUNTED,
        notes=notes + way.host.notes + gate_notes(samples, way.host),
    )


def both_ways(session: Session, plan: Plan) -> Answer:
    """Both directions at once: by copy engines each measured while the other one outlasts it, by SMs in one kernel."""
    (device, *_), notes = session.begin(plan)
    inward, outward = ways = _both(session, plan, device)
    placed = Placed(plan, inward.host, outward.host)
    for way in ways:
        fill(session, plan, way)
    timed = _in_one_kernel if plan.engine == "sm" else _by_two_engines
    down, up, load = timed(session, plan, device, ways)
    wrong = first_difference(session, plan, ways)
    how = (
        "one kernel, its even warps one way, its odd ones the other" if plan.engine == "sm" else "each beside the other"
    )
    return Answer(
        seconds=tuple(added(a.seconds, b.seconds) for a, b in zip(down, up, strict=False)),
        clock="cuda-event",
        engine=plan.engine,
        verified=wrong is None,
        wrong=wrong,
        directions={TO_DEVICE: tuple(s.seconds for s in down), TO_HOST: tuple(s.seconds for s in up)},
        placement=placed.proof(),
        iterations=load.count,
        counted=f"{COUNTED}; both directions added; {how}",
        notes=notes
        + inward.host.notes
        + gate_notes((*down, *up), inward.host)
        + both_ways_notes(device, plan, (*down, *up)),
    )


Ways = tuple[Direction, Direction]
Timed = tuple[Sequence[Sample], Sequence[Sample], Load]


def _by_two_engines(session: Session, plan: Plan, device: Device, ways: Ways) -> Timed:
    to_device, to_host = (w.work(session, plan, s) for w, s in zip(ways, device.streams, strict=True))
    down, load = timing.rounds(session.devices, plan, to_device, [to_host])
    up, _ = timing.rounds(session.devices, plan, to_host, [to_device])
    return down, up, load


def _in_one_kernel(session: Session, plan: Plan, device: Device, ways: Ways) -> Timed:
    """Each direction's time is the kernel's."""
    inward, outward = ways
    read, written = (reachable_by_kernels(device, way.host, plan.bytes) for way in ways)
    into, back = (inward.device.address, read), (written, outward.device.address)
    stream = device.streams[0]

    def queue() -> None:
        kernels.copy16_both(session.runtime, into, back, plan.bytes, stream)

    samples, load = timing.rounds(session.devices, plan, Work(device, stream, queue))
    return samples, samples, load


def under_load(session: Session, plan: Plan) -> Answer:
    """Both directions for plan.min_seconds without a pause, for the link watch: `window` is when it ran."""
    (device, *_), notes = session.begin(plan)
    ways = _both(session, plan, device)
    placed = Placed(plan, *(w.host for w in ways))
    for way in ways:
        fill(session, plan, way)
    works = [w.work(session, plan, s) for w, s in zip(ways, device.streams, strict=True)]
    seconds = timing.wake(session.devices, works)
    count = max(1, min(plan.iterations, int(0.05 / seconds)))
    start = time.monotonic()
    batches = _batches(session, device, works, count, start + plan.min_seconds)
    window = (start, time.monotonic())
    device.last_used = window[1]
    wrong = first_difference(session, plan, ways)
    return Answer(
        seconds=tuple(added(down, up) for down, up in batches),
        clock="cuda-event",
        engine=plan.engine,
        verified=wrong is None,
        wrong=wrong,
        directions={TO_DEVICE: tuple(d for d, _ in batches), TO_HOST: tuple(u for _, u in batches)},
        placement=placed.proof(),
        window=window,
        iterations=count,
        counted=f"{COUNTED}; both directions added",
        notes=notes + both_ways_notes(device, plan, ()),
    )


def _batches(
    session: Session, device: Device, works: Sequence[Work], count: int, end: float
) -> list[tuple[float, float]]:
    """Seconds a copy of each direction, batch by batch, until `end` (monotonic). The next batch is queued while one
    runs, so that the link never rests."""
    runtime = session.runtime
    batches: list[tuple[float, float]] = []
    with runtime.events([device.index] * 6) as events:
        marks = [events[0:2], events[2:4], events[4:6]]
        for work, mark in zip(works, marks[0], strict=True):
            runtime.record(mark, work.stream)
        _queue_batch(session, works, marks[1], count)
        number = 1
        while True:
            last = time.monotonic() >= end
            if not last:
                _queue_batch(session, works, marks[(number + 1) % 3], count)
            before, after = marks[(number - 1) % 3], marks[number % 3]
            for mark in after:
                runtime.wait_for(mark)
            down, up = (runtime.elapsed(a, b) / count for a, b in zip(before, after, strict=True))
            batches.append((down, up))
            if last:
                return batches
            number += 1


def _queue_batch(session: Session, works: Sequence[Work], marks: Sequence[int], count: int) -> None:
    """The directions take turns, copy by copy: neither engine waits for the host."""
    for _ in range(count):
        for work in works:
            work.repeat(1)
    for work, mark in zip(works, marks, strict=True):
        session.runtime.record(mark, work.stream)


def direction(session: Session, plan: Plan, device: Device, name: str, host: Host | None = None) -> Direction:
    """Buffers for one direction; each direction has its own."""
    host = host or session.buffers.host(name, plan.bytes, plan.memory, plan.memory_node)
    return Direction(name, host, session.buffers.device(name, device, plan.bytes), Pattern(plan.bytes))


def _both(session: Session, plan: Plan, device: Device) -> tuple[Direction, Direction]:
    return direction(session, plan, device, TO_DEVICE), direction(session, plan, device, TO_HOST)


def fill(session: Session, plan: Plan, way: Direction) -> None:
    """A fresh pattern at the source, poison at the target."""
    checker = Checker(session.runtime, session.buffers, plan.bytes, plan.memory_node)
    if way.name == TO_DEVICE:
        way.pattern.write(way.host.view)
        checker.poison(way.device)
    else:
        checker.put(way.pattern, way.device)
        poison_host(way.host)


def difference(session: Session, plan: Plan, way: Direction) -> str | None:
    """What is wrong at the target; None where every byte is right."""
    if way.name == TO_HOST:
        wrong = way.pattern.difference(way.host.view)
        return f"device to host: {wrong}" if wrong else None
    checker = Checker(session.runtime, session.buffers, plan.bytes, plan.memory_node)
    wrong = checker.difference(way.pattern, way.device)
    return f"host to device (read back through another buffer): {wrong}" if wrong else None


def first_difference(session: Session, plan: Plan, ways: Sequence[Direction]) -> str | None:
    """What is wrong in the first direction that went wrong."""
    return next(filter(None, (difference(session, plan, way) for way in ways)), None)


def added(down: float, up: float) -> float:
    """Seconds in which both directions' bytes would pass at the sum of their rates."""
    return 2 / (1 / down + 1 / up)


def gate_notes(samples: Sequence[Sample], host: Host) -> tuple[str, ...]:
    """Why launches may be part of the time."""
    if all(s.gated for s in samples):
        return ()
    if not host.pinned:
        return ("pageable copies need the host while they run: its work is part of the time",)
    return ("timed without holding the stream first: launches may be part of the time of small copies",)


def both_ways_notes(device: Device, plan: Plan, samples: Sequence[Sample]) -> tuple[str, ...]:
    """What makes both ways less than both at once."""
    notes = []
    if device.copy_engines == 1 and plan.engine == "copy-engine":
        notes.append(ONE_COPY_ENGINE)
    if not all(s.outlasted for s in samples):
        notes.append(NOT_AT_ONCE)
    return tuple(notes)
