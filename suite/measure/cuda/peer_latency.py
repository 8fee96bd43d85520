"""Latency between GPUs: one small copy, one dependent load, and a flag that goes back and forth between kernels."""

from __future__ import annotations

import ctypes
import time
from collections.abc import Sequence
from dataclasses import dataclass

from suite.errors import MeasureError, Unavailable
from suite.measure.answer import Answer, Rank
from suite.measure.cuda import kernels, latency, peer, timing
from suite.measure.cuda.buffers import OnDevice
from suite.measure.cuda.device import Device
from suite.measure.cuda.runtime import HOST_TO_DEVICE
from suite.measure.cuda.session import Session
from suite.records.case import Plan

ROUND_TRIPS = 1000
PING_PONG_TIMEOUT_S = 2.0
_APART = 256  # bytes between two flags: more than a cache line on every side


def measured(session: Session, plan: Plan, _rank: Rank) -> Answer:
    """One latency case."""
    if plan.operation == "peer_flag_latency":
        return flag_latency(session, plan)
    return copy_latency(session, plan) if plan.engine == "copy-engine" else load_latency(session, plan)


def copy_latency(session: Session, plan: Plan) -> Answer:
    """plan.bytes from the first GPU to the second, waited for each time: from launch to completion."""
    devices, notes = session.begin(plan)
    flow = peer.Flow.between(session, plan, devices, (0, 1))
    with peer.peer_access(session, peer.access(plan, [flow]), plan.p2p):
        peer.fill(session, plan, [flow])
        work = flow.work(session, plan, flow.by.streams[0])
        timing.wake(session.devices, [work])
        flow.by.use()
        seconds = tuple(latency.launch_to_completion(session, plan, flow.by, work.queue) for _ in range(plan.rounds))
        on_device = latency.on_device(session, work)
        wrong = peer.first_difference(session, plan, [flow])
    return Answer(
        seconds=seconds,
        clock="host-monotonic",
        engine=plan.engine,
        verified=wrong is None,
        wrong=wrong,
        notes=notes,
        on_device_s=on_device,
    )


def load_latency(session: Session, plan: Plan) -> Answer:
    """One load by a thread of the first GPU from the second one's memory: a chain of pointers."""
    devices, notes = session.begin(plan)
    reader, owner = devices[0], devices[-1]
    reader.need_kernels()
    if plan.p2p is False:
        raise Unavailable("a kernel reaches another GPU's memory only with peer access, and this case runs without it")
    chain = session.buffers.device("chain", owner, latency.CHASE_BYTES)
    last = session.buffers.device("chase_end", reader, 8)
    _put_chain(session, chain)
    pairs = [] if reader is owner else [(reader, owner)]
    with peer.peer_access(session, pairs, True):
        reader.use()
        seconds = latency.chase_rounds(session, plan, reader, chain.address, last.address)
    return Answer(
        seconds=seconds,
        clock="cuda-event",
        engine="load-store",
        iterations=latency.CHASE_LOADS * reader.multiprocessors,
        notes=notes,
    )


def _put_chain(session: Session, chain: OnDevice) -> None:
    spare = session.buffers.host("spare", chain.nbytes)
    latency.write_chain(spare.view, chain.address)
    chain.device.use()
    stream = chain.device.streams[0]
    session.runtime.copy(chain.address, spare.address, chain.nbytes, HOST_TO_DEVICE, stream)
    session.runtime.synchronize(stream)


@dataclass(frozen=True)
class Side:
    """One end of the flag exchange. flag: where it waits; said: where it leaves its answer, by the host's address and
    by the device's. flag_on_host: the flag's address for the host, None where it lies in a GPU's memory."""

    device: Device
    stream: int
    flag: int
    flag_on_host: int | None
    said: int
    said_on_device: int


def flag_latency(session: Session, plan: Plan) -> Answer:
    """One way of a flag between kernels of two GPUs, through the memory of the one that waits (P2P), or through
    mapped host memory (plan.p2p False, or one GPU): what every small collective is made of."""
    devices, notes = session.begin(plan)
    for device in devices:
        device.need_kernels()
    one, other = devices[0], devices[-1]
    through_host = plan.p2p is False or one is other
    pairs = [] if through_host else [(one, other), (other, one)]
    with peer.peer_access(session, pairs, True):
        sides = _sides(session, plan, (one, other), through_host)
        trips = max(plan.iterations, ROUND_TRIPS)
        seconds = tuple(_exchange(session, sides, trips) for _ in range(plan.rounds + 1))[1:]
    way = "mapped host memory" if through_host else "peer memory"
    return Answer(
        seconds=seconds,
        clock="cuda-event",
        engine="load-store",
        iterations=2 * trips,
        notes=(*notes, f"one way of a flag through {way}"),
    )


def _sides(session: Session, plan: Plan, devices: tuple[Device, Device], through_host: bool) -> tuple[Side, Side]:
    words = session.buffers.host("flags", 4096, "pinned", plan.memory_node)
    words.view[:] = 0
    mapped = words.device_address or words.address
    sides = []
    for number, device in enumerate(devices):
        place, said = number * _APART, (2 + number) * _APART
        flag, on_host = mapped + place, (words.address + place if through_host else None)
        if not through_host:
            flag = session.buffers.device(f"flag {number}", device, _APART).address
        sides.append(Side(device, device.streams[number], flag, on_host, words.address + said, mapped + said))
    return sides[0], sides[1]


def _exchange(session: Session, sides: tuple[Side, Side], trips: int) -> float:
    """Seconds of one way. The side that answers is launched first, so that it waits when the other one serves."""
    runtime = session.runtime
    serving, answering = sides
    _clear(session, sides)
    with runtime.events([serving.device.index] * 2) as (start, end):
        answering.device.use()
        _launch(session, answering, serving, trips, first=False)
        serving.device.use()
        runtime.record(start, serving.stream)
        _launch(session, serving, answering, trips, first=True)
        runtime.record(end, serving.stream)
        for side in sides:
            runtime.synchronize(side.stream)
        seconds = runtime.elapsed(start, end)
    for side in sides:
        side.device.last_used = time.monotonic()
    if any(ctypes.c_uint32.from_address(side.said).value != 1 for side in sides):
        raise MeasureError(
            "error",
            f"a flag did not come back within {PING_PONG_TIMEOUT_S:.0f} s: writes of one GPU do not reach the other, "
            "or their kernels do not run at the same time",
        )
    return seconds / (2 * trips)


def _launch(session: Session, side: Side, other: Side, trips: int, *, first: bool) -> None:
    kernels.ping_pong(
        session.runtime, side.flag, other.flag, trips, first, PING_PONG_TIMEOUT_S, side.said_on_device, side.stream
    )


def _clear(session: Session, sides: Sequence[Side]) -> None:
    """Both flags and answers at 0."""
    for side in sides:
        ctypes.memset(side.said, 0, 4)
        if side.flag_on_host is not None:
            ctypes.memset(side.flag_on_host, 0, 4)
        else:
            side.device.use()
            session.runtime.fill(side.flag, 0, 4, side.stream)
            session.runtime.synchronize(side.stream)
