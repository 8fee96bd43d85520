"""GPU → host → GPU through a staging buffer: chunk by chunk, in two slots or more. This runs where P2P does not."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass

from suite.measure.answer import Answer
from suite.measure.cuda import timing
from suite.measure.cuda.buffers import Host, OnDevice
from suite.measure.cuda.device import Device
from suite.measure.cuda.runtime import DEVICE_TO_HOST, HOST_TO_DEVICE
from suite.measure.cuda.session import Placed, Session
from suite.measure.cuda.timing import Load, Work
from suite.measure.cuda.verify import Checker, Pattern
from suite.records.case import Plan
from suite.units import MIB, format_bytes

CHUNK_BYTES = 4 * MIB
# Two slots keep both copies going; a slot that is handed over takes some microseconds until the other copy engine sees
# it, so small chunks get more slots to have some in hand.
FEWEST_SLOTS, MOST_SLOTS, SLOTTED_BYTES = 2, 8, 16 * MIB
_CALLS_PER_CHUNK = 3  # on each of the two streams: a wait, a copy, an event


@dataclass(frozen=True)
class Stage:
    """Two GPUs (or one twice) with their buffers, and the host buffer's slots between them.

    full, free: one event a slot; the slot holds a chunk for the target, or may be written by the source.
    """

    source: OnDevice
    target: OnDevice
    slots: Host
    chunk: int
    out: int  # stream of the source's device
    into: int  # stream of the target's device
    full: Sequence[int]
    free: Sequence[int]

    @property
    def chunks(self) -> int:
        """Chunks in one operation."""
        return -(-self.source.nbytes // self.chunk)


def measured(session: Session, plan: Plan) -> Answer:
    """One staging case: plan.gpus names source and target; with one GPU it is both."""
    devices, notes = session.begin(plan)
    source, target = devices[0], devices[-1]
    chunk = min(plan.chunk_bytes or CHUNK_BYTES, plan.bytes)
    count = slots_of(chunk)
    slots = session.buffers.host("slots", count * chunk, plan.memory, plan.memory_node)
    here = session.buffers.device("staging_source", source, plan.bytes)
    there = session.buffers.device("staging_target", target, plan.bytes)
    placed, pattern = Placed(plan, slots), Pattern(plan.bytes)
    checker = Checker(session.runtime, session.buffers, plan.bytes, plan.memory_node)
    checker.put(pattern, here)
    checker.poison(there)
    with session.runtime.events([source.index] * count + [target.index] * count) as events:
        into = target.streams[1]
        stage = Stage(here, there, slots, chunk, source.streams[0], into, events[:count], events[count:])
        samples, load = _rounds(session, plan, source, stage)
    wrong = checker.difference(pattern, there)
    gated = all(s.gated for s in samples)
    return Answer(
        seconds=tuple(s.seconds for s in samples),
        clock="cuda-event",
        engine=plan.engine,
        verified=wrong is None,
        wrong=f"staged through the host: {wrong}" if wrong else None,
        placement=placed.proof(),
        iterations=load.count,
        counted=f"bytes that reached the target, once; chunks of {format_bytes(chunk)} in {count} slots",
        notes=notes if gated else (*notes, "too many chunks to queue ahead: launches may be part of the time"),
    )


def slots_of(chunk: int) -> int:
    """How many chunks the staging buffer holds."""
    return max(FEWEST_SLOTS, min(MOST_SLOTS, SLOTTED_BYTES // chunk))


def _rounds(session: Session, plan: Plan, source: Device, stage: Stage) -> tuple[list[timing.Sample], Load]:
    work = Work(source, stage.out, lambda: queue(session, stage), operations=_CALLS_PER_CHUNK * stage.chunks + 1)
    target = stage.target.device
    # The target's link sleeps of its own; its copies are queued by the source's work.
    arriving = Work(target, stage.into, lambda: None, operations=0)
    seconds = timing.wake(session.devices, [work, arriving])
    load = timing.fitting(plan, seconds, work.operations)
    samples = timing.samples(session.devices, plan, work, load)
    target.last_used = time.monotonic()
    return samples, load


def queue(session: Session, stage: Stage) -> None:
    """Queues one operation on the two streams. The source's stream waits for the last chunk to arrive, so that its
    events (events of two GPUs do not compare) time the whole way."""
    runtime = session.runtime
    source, target, slots = stage.source.device, stage.target.device, len(stage.full)
    for number in range(stage.chunks):
        slot, offset = number % slots, number * stage.chunk
        size = min(stage.chunk, stage.source.nbytes - offset)
        between = stage.slots.address + slot * stage.chunk
        source.use()
        if number >= slots:
            runtime.wait_event(stage.out, stage.free[slot])
        runtime.copy(between, stage.source.address + offset, size, DEVICE_TO_HOST, stage.out)
        runtime.record(stage.full[slot], stage.out)
        target.use()
        runtime.wait_event(stage.into, stage.full[slot])
        runtime.copy(stage.target.address + offset, between, size, HOST_TO_DEVICE, stage.into)
        runtime.record(stage.free[slot], stage.into)
    source.use()
    runtime.wait_event(stage.out, stage.free[(stage.chunks - 1) % slots])
