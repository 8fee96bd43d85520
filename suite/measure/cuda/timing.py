"""Timing of queued work as nvbandwidth does it: hold the streams, queue everything, let go, read CUDA events.

Without the gate the host's launches would be part of what is timed.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from suite.measure import progress
from suite.measure.cuda.device import Device, Devices, torch_sleep
from suite.records.case import Plan

# A stream takes about 1,000 operations before the host must wait for it; waiting behind a closed gate never ends.
MOST_QUEUED = 900
SHORTEST_SAMPLE_S = 100e-6  # events resolve about 0.5 µs (CUDA Runtime API reference, cudaEventElapsedTime)
WARM_UP_S = 0.3
FEWEST_ROUNDS = 2
SHARE_BESIDE = 1 / 8  # with copies beside it that last twice as long, and both directions measured in turn
NVBANDWIDTH_WARM_UP = 4  # copies before the timed ones, behind the same gate


@dataclass(frozen=True)
class Work:
    """Operations on one stream. queue: queues one. operations: how many queued calls one makes. gated: may wait behind
    the gate (pageable copies may not: the host takes part in them)."""

    device: Device
    stream: int
    queue: Callable[[], None]
    operations: int = 1
    gated: bool = True

    def repeat(self, count: int) -> None:
        """Queues count of them, on its device."""
        self.device.use()
        for _ in range(count):
            self.queue()


@dataclass(frozen=True)
class Load:
    """How much of each work a sample holds. warm_up, count: of the measured work; against: of the others (they run
    beside it and must outlast it)."""

    count: int
    warm_up: int = 1
    against: int = 0


@dataclass(frozen=True)
class Sample:
    """seconds: of one measured operation. outlasted: everything beside it was still running when it ended."""

    seconds: float
    outlasted: bool = True
    gated: bool = True


def sample(devices: Devices, measured: Work, load: Load, beside: Sequence[Work] = ()) -> Sample:
    """One sample of one work while others run beside it. All events belong to the measured work's device; work beside
    it on another device joins by waiting for events."""
    runtime = devices.runtime
    works = (measured, *beside)
    with runtime.events([measured.device.index] * 2 + [w.device.index for w in beside]) as (start, end, *ends):
        held = _hold(devices, works, load)
        try:
            _queue(devices, works, load, (start, end, *ends))
        finally:
            if held:
                devices.gate().open()
        runtime.synchronize(measured.stream)
        # Events of two devices do not compare: there, what is still running now has outlasted.
        running = [not runtime.passed(event) for event in ends]
        for work in beside:
            runtime.synchronize(work.stream)
        total = runtime.elapsed(start, end)
        outlasted = all(
            still or (w.device is measured.device and runtime.elapsed(start, e) >= total)
            for w, e, still in zip(beside, ends, running, strict=True)
        )
    for work in works:
        work.device.last_used = time.monotonic()
    return Sample(total / load.count, outlasted, held and not devices.gate().timed_out)


def _hold(devices: Devices, works: Sequence[Work], load: Load) -> bool:
    """Closes the gate in front of every stream; False where a work must not wait behind it or no kernel runs."""
    if not all(w.gated for w in works):
        return False
    queued = max(w.operations for w in works) * max(load.count + load.warm_up, load.against)
    if queued > MOST_QUEUED:
        return False
    if any(w.device.why_no_kernels for w in works):
        return all(torch_sleep(w.device, w.stream, queued * len(works)) for w in works)
    gate = devices.gate()
    gate.close()
    for work in works:
        work.device.use()
        gate.hold(work.stream)
    return True


def _queue(devices: Devices, works: Sequence[Work], load: Load, events: Sequence[int]) -> None:
    """Warm-up, start event, then all works at once, an event after each."""
    runtime = devices.runtime
    measured, *beside = works
    start, end, *ends = events
    measured.repeat(load.warm_up)
    runtime.record(start, measured.stream)
    for work in beside:
        work.device.use()
        runtime.wait_event(work.stream, start)
    # The works beside it first: queued last, one could start late when nothing holds the streams.
    for work, event in zip(beside, ends, strict=True):
        work.repeat(load.against)
        runtime.record(event, work.stream)
    measured.repeat(load.count)
    runtime.record(end, measured.stream)


def fitting(plan: Plan, seconds: float, operations: int = 1, share: float = 1.0) -> Load:
    """How many operations of this length make a sample: the plan's, more where they would be over in 100 µs, fewer
    where a slow path would outlast its share of the deadline."""
    most = max(1, MOST_QUEUED // operations)
    longest = share * plan.deadline_s / 3 / (plan.rounds + 1)
    warm_up = NVBANDWIDTH_WARM_UP if NVBANDWIDTH_WARM_UP * seconds < longest / 4 else plan.warmup
    warm_up = min(warm_up, most - 1, max(1, most // 4))
    count = max(plan.iterations, int(2 * SHORTEST_SAMPLE_S / seconds))
    return Load(max(1, min(count, int(longest / seconds), most - warm_up)), warm_up)


def wake(devices: Devices, works: Sequence[Work]) -> float:
    """Runs every work once with no gate (what the driver sets up at a first copy may have to wait for the device), and
    on until the link has had time to leave its power saving state, where nothing was copied for a while.

    Returns about how many seconds one operation of the first work takes.
    """
    end = time.monotonic() + (WARM_UP_S if any(w.device.asleep for w in works) else 0.0)
    while True:
        for work in works:
            work.repeat(1)
        for work in works:
            devices.runtime.synchronize(work.stream)
        if time.monotonic() >= end:
            return pilot(devices, works[0])


def pilot(devices: Devices, work: Work) -> float:
    """About how long one operation takes, seconds: the mean of a few."""
    one = sample(devices, work, Load(1, 1)).seconds
    few = max(1, min(8, int(0.05 / max(one, 1e-6))))
    return max(1e-9, sample(devices, work, Load(few, 0)).seconds) if few > 1 else one


def rounds(devices: Devices, plan: Plan, work: Work, beside: Sequence[Work] = ()) -> tuple[list[Sample], Load]:
    """plan.rounds samples of a work with others beside it, and how large they were. The others are given more to do
    until they outlast it."""
    operations = max(w.operations for w in (work, *beside))
    load = fitting(plan, wake(devices, (work, *beside)), operations, SHARE_BESIDE if beside else 1.0)
    if beside:
        load = outlasting(devices, work, load, beside)
    return samples(devices, plan, work, load, beside), load


def samples(devices: Devices, plan: Plan, work: Work, load: Load, beside: Sequence[Work] = ()) -> list[Sample]:
    """plan.rounds samples. On a path so slow that the deadline is near, fewer."""
    end = time.monotonic() + plan.deadline_s / (6 if beside else 3)
    taken: list[Sample] = []
    while len(taken) < plan.rounds and (len(taken) < FEWEST_ROUNDS or time.monotonic() < end):
        taken.append(sample(devices, work, load, beside))
        progress.step()
    return taken


def outlasting(devices: Devices, work: Work, load: Load, beside: Sequence[Work]) -> Load:
    """The load with enough beside it: twice the copies (as nvbandwidth), or up to eight times where that is not
    enough."""
    tried = load
    operations = max(w.operations for w in (work, *beside))
    for factor in (2, 4, 8):
        against = min(factor * load.count, max(1, MOST_QUEUED // operations))
        tried = replace(load, count=min(load.count, max(1, against // factor)), against=against)
        if sample(devices, work, tried, beside).outlasted:
            break
    return tried
