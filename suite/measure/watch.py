"""The link watch's seam, and what its readings say about one transfer."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Literal, Protocol, TypeVar

from suite.records.case import HopWatch, LinkReading, LinkWatch
from suite.records.machine import AerCounters, LinkState

RAMP_S = 0.1  # a link that wakes needs some of the transfer to reach its speed: these readings are dropped
Value = TypeVar("Value")
Bits = Sequence[tuple[str, bool]]
Source = Literal["nvml", "sysfs", "nvml+sysfs", "simulated"]


class Watcher(Protocol):
    """Samples the links of GPUs, in a process of its own, while something else is measured."""

    def start(self, addresses: Sequence[str]) -> None:
        """Takes the first reading (as found) and goes on every 20 to 50 ms. addresses: PCI addresses of the GPUs."""
        ...

    def stop(self) -> dict[str, tuple[LinkReading, ...]]:
        """Takes the last reading; all readings by GPU address, in order of time."""
        ...


def summarise(
    readings: Sequence[LinkReading], window: tuple[float, float] | None, idle: LinkReading | None = None
) -> LinkWatch:
    """What one GPU's link did around a transfer from window[0] to window[1] (time.monotonic(), seconds).

    idle: the reading as found, the first one where none is given. Under load counts the mode and the least of the
    readings within the window, less its first 0.1 s. No window, or no reading in it: `readings` is 0, load unknown.
    """
    if not readings:
        return LinkWatch()
    found = idle or readings[0]
    during = _within(readings, window)
    last = readings[-1]
    states = [_gpu_link(r) for r in during]
    totals = _aer_total(found, last)
    return LinkWatch(
        idle=_gpu_link(found),
        load=_mode(states),
        load_min=_least(states),
        after=_gpu_link(last),
        readings=len(during),
        seconds=window[1] - window[0] if window else 0.0,
        changes=_changes(states),
        hops=tuple(_hop(lower, upper, found, during, last) for lower, upper in _ends(found)),
        replays=_grown(found.replays, last.replays),
        aer_correctable=totals.correctable,
        aer_uncorrectable=_sum([totals.nonfatal, totals.fatal]),
        throttle=_throttle(during),
        performance_state=_most_common([r.performance_state for r in during]),
        temperature_c=_highest([r.temperature_c for r in during]),
        power_w=_highest([r.power_w for r in during]),
        xids=last.xids,
        source=_source(readings),
    )


def _within(readings: Sequence[LinkReading], window: tuple[float, float] | None) -> list[LinkReading]:
    if window is None:
        return []
    start, end = window
    ramp = min(RAMP_S, (end - start) / 4)
    return [r for r in readings if start + ramp <= r.at <= end]


def _gpu_link(reading: LinkReading) -> LinkState:
    """NVML's live answer; sysfs' state of the hop at the GPU where NVML does not say."""
    endpoint = reading.hops[0][1] if reading.hops else LinkState()
    live = reading.nvml or LinkState()
    return LinkState(
        live.speed_gts if live.speed_gts is not None else endpoint.speed_gts,
        live.width if live.width is not None else endpoint.width,
    )


def _ends(reading: LinkReading) -> Iterator[tuple[str, str | None]]:
    """Both ends of every hop, nearest first. The upper one is told only where the functions on the path leave no doubt.

    The counters and bits name the functions of the path in order: lower and upper end of the first hop, of the next, …
    """
    lowers = [lower for lower, _ in reading.hops]
    named = [[address for address, _ in pairs] for pairs in (reading.aer, reading.link_bandwidth_changed)]
    path = max(named, key=len)
    for number, lower in enumerate(lowers):
        above = path[path.index(lower) + 1 :] if lower in path else []
        following = lowers[number + 1 : number + 2]
        yield lower, above[0] if above and above[1:2] == following else None


def _hop(
    lower: str, upper: str | None, found: LinkReading, during: Sequence[LinkReading], last: LinkReading
) -> HopWatch:
    states = [_hop_link(r, lower) for r in during]
    ends = [lower, *([upper] if upper else [])]
    before, after = dict(found.aer), dict(last.aer)
    return HopWatch(
        lower=lower,
        upper=upper,
        idle=_hop_link(found, lower),
        load=_mode(states),
        load_min=_least(states),
        after=_hop_link(last, lower),
        changes=_changes(states),
        link_bandwidth_changed=_newly_set(ends, found.link_bandwidth_changed, last.link_bandwidth_changed),
        autonomous_change=_newly_set(ends, found.autonomous_change, last.autonomous_change),
        aer_lower=_aer_grown(before.get(lower), after.get(lower)),
        aer_upper=_aer_grown(before.get(upper), after.get(upper)) if upper else None,
    )


def _hop_link(reading: LinkReading, lower: str) -> LinkState:
    return next((state for name, state in reading.hops if name == lower), LinkState())


def _mode(states: Sequence[LinkState]) -> LinkState:
    """The state seen most often; unknown where there is none."""
    return _most_common([s for s in states if s != LinkState()]) or LinkState()


def _least(states: Sequence[LinkState]) -> LinkState:
    speeds = [s.speed_gts for s in states if s.speed_gts is not None]
    widths = [s.width for s in states if s.width is not None]
    return LinkState(min(speeds, default=None), min(widths, default=None))


def _changes(states: Sequence[LinkState]) -> int:
    known = [s for s in states if s != LinkState()]
    return sum(one != other for one, other in pairwise(known))


def _newly_set(ends: Sequence[str], found: Bits, last: Bits) -> bool | None:
    """A bit that hardware sets and nobody here clears: set meanwhile at either end. None where it cannot be told.

    A bit that was set before tells nothing: another change would not show.
    """
    before, after = dict(found), dict(last)
    changed = [after[end] for end in ends if end in after and before.get(end) is False]
    return any(changed) if changed else None


def _aer_total(found: LinkReading, last: LinkReading) -> AerCounters:
    """What all functions of the path counted meanwhile, both ends of every hop."""
    before, after = dict(found.aer), dict(last.aer)
    grown = [_aer_grown(before.get(address), after.get(address)) for address in after]
    return AerCounters(
        _sum([g.correctable for g in grown if g]),
        _sum([g.nonfatal for g in grown if g]),
        _sum([g.fatal for g in grown if g]),
    )


def _aer_grown(before: AerCounters | None, after: AerCounters | None) -> AerCounters | None:
    if before is None or after is None:
        return None
    return AerCounters(
        _grown(before.correctable, after.correctable),
        _grown(before.nonfatal, after.nonfatal),
        _grown(before.fatal, after.fatal),
        _grown(before.replays, after.replays),
    )


def _grown(before: int | None, after: int | None) -> int | None:
    return None if before is None or after is None else max(0, after - before)


def _sum(counts: Sequence[int | None]) -> int | None:
    known = [c for c in counts if c is not None]
    return sum(known) if known else None


def _throttle(during: Sequence[LinkReading]) -> tuple[str, ...] | None:
    """Every reason that was seen; None where none of the readings could tell."""
    answered = [r.throttle for r in during if r.throttle is not None]
    return tuple(sorted({reason for reasons in answered for reason in reasons})) if answered else None


def _most_common(values: Sequence[Value | None]) -> Value | None:
    known = Counter(v for v in values if v is not None)
    return known.most_common(1)[0][0] if known else None


def _highest(values: Sequence[float | None]) -> float | None:
    return max((v for v in values if v is not None), default=None)


def _source(readings: Sequence[LinkReading]) -> Source | None:
    nvml = any(r.nvml is not None for r in readings)
    sysfs = any(r.hops for r in readings)
    if nvml and sysfs:
        return "nvml+sysfs"
    return "nvml" if nvml else "sysfs" if sysfs else None
