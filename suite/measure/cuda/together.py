"""All GPUs and the host at once: total bytes over the time from the shared start to the last end.

Events of two GPUs do not compare, and rates of copies that did not overlap do not add up: so the total is timed by the
host, from the opening of one gate to the end of the last stream, and long enough that both stamps hardly matter.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace

from suite.errors import Unavailable
from suite.measure import progress
from suite.measure.answer import Answer
from suite.measure.cuda import copy
from suite.measure.cuda.copy import TO_DEVICE, TO_HOST, Direction
from suite.measure.cuda.device import Device
from suite.measure.cuda.session import Placed, Session
from suite.measure.cuda.timing import MOST_QUEUED, WARM_UP_S, Work
from suite.records.case import Placement, Plan

# Opening the gate and seeing the last end each take some microseconds: below a thousandth of this.
SHORTEST_S = 0.02

_DIRECTIONS = {
    "all_gpus_host_to_device": (TO_DEVICE,),
    "all_gpus_device_to_host": (TO_HOST,),
    "all_gpus_both_ways": (TO_DEVICE, TO_HOST),
}


@dataclass(frozen=True)
class Lane:
    """One direction of one GPU. name: 'gpu0', or 'gpu0 host_to_device' where there are two."""

    name: str
    way: Direction
    work: Work


@dataclass(frozen=True)
class Together:
    """seconds: of one operation of all lanes. each: seconds of one copy by lane, on its GPU's own clock."""

    seconds: float
    each: tuple[float, ...]
    gated: bool


Taken = tuple[Sequence[Together], int]


def measured(session: Session, plan: Plan) -> Answer:
    """One case over all GPUs of the plan."""
    devices, notes = session.begin(plan)
    lanes = _lanes(session, plan, devices)
    placed = Placed(plan, *(lane.way.host for lane in lanes))
    for lane in lanes:
        copy.fill(session, plan, lane.way)
    taken = rounds(session, plan, [lane.work for lane in lanes])
    wrong = _first_wrong(session, plan, lanes)
    found = answer(plan, [lane.name for lane in lanes], taken, wrong)
    counted = "bytes copied, once, by all GPUs, until the last one ended"
    return replace(found, placement=proof(plan, placed), counted=counted, notes=notes + found.notes)


def answer(plan: Plan, names: Sequence[str], taken: Taken, wrong: str | None) -> Answer:
    """Works timed at once, by their names, as an answer. What was counted is the caller's to say."""
    samples, count = taken
    return Answer(
        seconds=tuple(s.seconds for s in samples),
        clock="host-monotonic",
        engine=plan.engine,
        verified=wrong is None,
        wrong=wrong,
        directions={name: tuple(s.each[i] for s in samples) for i, name in enumerate(names)},
        iterations=count,
        notes=_gate_notes(samples),
    )


def proof(plan: Plan, placed: Placed) -> Placement:
    """All GPUs' buffers as one: proved only where each lies on its own GPU's node. detail: which those are."""
    found = placed.proof()
    if not plan.gpu_nodes or found.proved is not True:
        return found
    nodes = ", ".join(f"gpu{gpu}'s on node {node}" for gpu, node in zip(plan.gpus, plan.gpu_nodes, strict=True))
    return replace(found, detail=f"every page of {nodes}")


def rounds(session: Session, plan: Plan, works: Sequence[Work]) -> Taken:
    """plan.rounds samples of all works at once, and how many operations of each a sample holds."""
    count = _count(session, plan, works)
    samples = []
    for _ in range(plan.rounds):
        samples.append(at_once(session, works, count))
        progress.step()
    return samples, count


def _gate_notes(samples: Sequence[Together]) -> tuple[str, ...]:
    """Says so where the works did not start together."""
    if all(s.gated for s in samples):
        return ()
    return ("started one after the other: no gate could hold all streams",)


def at_once(session: Session, works: Sequence[Work], count: int) -> Together:
    """count operations of every work, all let go by one gate."""
    runtime, gate = session.runtime, session.devices.gate()
    gated = all(w.gated and not w.device.why_no_kernels for w in works)
    with runtime.events([w.device.index for w in works for _ in range(2)]) as events:
        gate.close()
        start = time.perf_counter()
        try:
            for work, before, after in zip(works, events[::2], events[1::2], strict=True):
                _queue(session, work, count, (before, after), gated)
        finally:
            start = time.perf_counter() if gated else start
            gate.open()
        for work in works:
            runtime.synchronize(work.stream)
        seconds = time.perf_counter() - start
        each = tuple(runtime.elapsed(a, b) / count for a, b in zip(events[::2], events[1::2], strict=True))
    for work in works:
        work.device.last_used = time.monotonic()
    return Together(seconds / count, each, gated and not gate.timed_out)


def _queue(session: Session, work: Work, count: int, marks: tuple[int, int], gated: bool) -> None:
    work.device.use()
    if gated:
        session.devices.gate().hold(work.stream)
    session.runtime.record(marks[0], work.stream)
    work.repeat(count)
    session.runtime.record(marks[1], work.stream)


def _lanes(session: Session, plan: Plan, devices: Sequence[Device]) -> list[Lane]:
    names = _DIRECTIONS.get(plan.operation)
    if names is None:
        raise Unavailable(f"{plan.operation} is no operation of all GPUs")
    lanes = []
    nodes = plan.gpu_nodes or (plan.memory_node,) * len(plan.gpus)
    for gpu, node, device in zip(plan.gpus, nodes, devices, strict=True):
        device.use()
        for name, stream in zip(names, device.streams, strict=False):
            way = _way(session, plan, device, name, node)
            label = f"gpu{gpu}" if len(names) == 1 else f"gpu{gpu} {name}"
            lanes.append(Lane(label, way, way.work(session, plan, stream)))
    return lanes


def _way(session: Session, plan: Plan, device: Device, name: str, node: int | None) -> Direction:
    """Every GPU has host and device buffers of its own, on a node of its own."""
    host = session.buffers.host(f"{name} {device.address}", plan.bytes, plan.memory, node)
    return copy.direction(session, plan, device, name, host)


def _count(session: Session, plan: Plan, works: Sequence[Work]) -> int:
    """Operations in a sample: the plan's, more where they are over in 20 ms, fewer on a slow path. Wakes the links."""
    end = time.monotonic() + (WARM_UP_S if any(w.device.asleep for w in works) else 0)
    for work in works:  # once with no gate: what the driver sets up at a first copy may have to wait for the device
        work.repeat(1)
        session.runtime.synchronize(work.stream)
    seconds = at_once(session, works, 1).seconds
    while time.monotonic() < end:
        seconds = at_once(session, works, 1).seconds
    longest = plan.deadline_s / 3 / (plan.rounds + 1)
    wanted = max(plan.iterations, int(SHORTEST_S / seconds) + 1)
    return max(1, min(wanted, int(longest / seconds), MOST_QUEUED))


def _first_wrong(session: Session, plan: Plan, lanes: Sequence[Lane]) -> str | None:
    for lane in lanes:
        lane.work.device.use()
        wrong = copy.difference(session, plan, lane.way)
        if wrong:
            return f"{lane.name}: {wrong}"
    return None
