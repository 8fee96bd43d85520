"""A copy between two processes: rank 1 exports device memory, rank 0 maps it and copies out of it.

The ranks meet through files beside their store. On one GPU no link is crossed: functional-only.
"""

from __future__ import annotations

import os
import time
from pathlib import Path

import msgspec

from suite.errors import MeasureError, Unavailable
from suite.measure.answer import Answer, Rank
from suite.measure.cuda import peer, timing
from suite.measure.cuda.buffers import OnDevice
from suite.measure.cuda.copy import COUNTED
from suite.measure.cuda.device import Device
from suite.measure.cuda.session import Session
from suite.measure.cuda.verify import Checker, Pattern
from suite.records.case import Plan

_POLL_S = 0.002


class Offer(msgspec.Struct):
    """What rank 1 tells rank 0: the handle of its memory, and the seed of the pattern in it."""

    handle: bytes
    seed: int


def measured(session: Session, plan: Plan, rank: Rank) -> Answer:
    """One rank's part. plan.gpus: rank 0's GPU, which copies, and rank 1's (one GPU: both ranks share it)."""
    if rank.world_size != 2:
        raise Unavailable("a copy between processes needs two ranks")
    # Both ranks of a pool see the same cases in the same order, so the same number.
    place = Path(f"{rank.store}.ipc{session.number()}")
    devices, notes = session.begin(plan)
    if rank.rank == 1:
        return offering(session, plan, devices[-1], place)
    return fetching(session, plan, devices[0], place, (*notes, *_note(plan)))


def offering(session: Session, plan: Plan, device: Device, place: Path) -> Answer:
    """Rank 1: fills memory, offers it, and keeps it until rank 0 is done."""
    source = session.buffers.device("ipc source", device, plan.bytes)
    seed = int.from_bytes(os.urandom(8), "little")
    checker = Checker(session.runtime, session.buffers, plan.bytes, plan.memory_node)
    checker.put(Pattern(plan.bytes, seed), source)
    offer = Offer(session.runtime.export_memory(source.address), seed)
    _write(place.with_suffix(place.suffix + ".offer"), msgspec.json.encode(offer))
    _await(place.with_suffix(place.suffix + ".done"), plan.deadline_s / 2)
    return Answer(clock="cuda-event", engine=plan.engine)


def fetching(session: Session, plan: Plan, device: Device, place: Path, notes: tuple[str, ...]) -> Answer:
    """Rank 0: maps rank 1's memory, copies out of it, and looks at what came."""
    raw = _await(place.with_suffix(place.suffix + ".offer"), plan.deadline_s / 2)
    offer = msgspec.json.decode(raw, type=Offer)
    try:
        device.use()
        mapped = session.runtime.import_memory(offer.handle)
        try:
            return _fetched(session, plan, OnDevice(device, mapped, plan.bytes), Pattern(plan.bytes, offer.seed), notes)
        finally:
            device.use()
            session.runtime.close_memory(mapped)
    finally:
        _write(place.with_suffix(place.suffix + ".done"), b"")


def _fetched(session: Session, plan: Plan, source: OnDevice, pattern: Pattern, notes: tuple[str, ...]) -> Answer:
    target = session.buffers.device("ipc target", source.device, plan.bytes)
    checker = Checker(session.runtime, session.buffers, plan.bytes, plan.memory_node)
    checker.poison(target)
    flow = peer.Flow("ipc", source, target, source.device, pattern)
    work = flow.work(session, plan, source.device.streams[0])
    samples, load = timing.rounds(session.devices, plan, work)
    wrong = checker.difference(pattern, target)
    return Answer(
        seconds=tuple(s.seconds for s in samples),
        clock="cuda-event",
        engine=plan.engine,
        verified=wrong is None,
        wrong=wrong,
        iterations=load.count,
        counted=COUNTED,
        notes=notes,
    )


def _note(plan: Plan) -> tuple[str, ...]:
    return ("functional-only: both processes use one GPU, no link is crossed",) if len(set(plan.gpus)) == 1 else ()


def _write(path: Path, data: bytes) -> None:
    """Whole or not at all: the other rank may look at any time."""
    part = path.with_suffix(path.suffix + ".part")
    part.write_bytes(data)
    part.replace(path)


def _await(path: Path, deadline_s: float) -> bytes:
    """The file's bytes, as soon as it is there. Raises MeasureError when the other rank does not answer."""
    end = time.monotonic() + deadline_s
    while time.monotonic() < end:
        if path.exists():
            data = path.read_bytes()
            path.unlink()
            return data
        time.sleep(_POLL_S)
    raise MeasureError("error", f"the other process did not answer within {deadline_s:.0f} s")
