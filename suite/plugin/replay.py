"""Feeds measured durations into pytest-benchmark, so that its statistics, files and comparisons work on them."""

from __future__ import annotations

import math
from itertools import cycle
from typing import Any

from suite.records.run import Result


class ReplayError(Exception):
    """pytest-benchmark did not record what was measured: a bug of ours, never a machine's fault."""


class Clock:
    """A timer that stands still until a duration is fed to it."""

    __name__ = "device_clock"  # pytest-benchmark writes its timer's name into its files

    def __init__(self) -> None:
        self._now = 0.0

    def __call__(self) -> float:
        """Seconds fed since the last reset."""
        return self._now

    def reset(self) -> None:
        """Starts a round at 0, so that end - start is the fed duration to the bit."""
        self._now = 0.0

    def feed(self, seconds: float) -> None:
        """Lets the time go on."""
        self._now += seconds


def replay(benchmark: Any, clock: Clock, result: Result) -> None:
    """Gives a result's samples to the `benchmark` fixture and checks that they arrived. Raises ReplayError.

    The clock must be the fixture's timer already (its `benchmark` marker's `timer`).
    """
    samples = list(result.samples_s)
    _check_samples(benchmark, result.case, samples)
    # A cycle, since cProfile and --benchmark-disable call the target once more or once only.
    durations = cycle(samples)
    benchmark.extra_info.update(facts(result))
    benchmark.pedantic(lambda: clock.feed(next(durations)), setup=clock.reset, rounds=len(samples))
    if benchmark.enabled:
        _check_recorded(benchmark, clock, result.case, samples)
        benchmark.stats.iterations = result.iterations


def facts(result: Result) -> dict[str, str | int | float]:
    """What pytest-benchmark keeps beside the times: plain values in base units, without those that are not known."""
    verdict, limits = result.verdict, result.limits
    known: dict[str, str | int | float | None] = {
        "case": result.case,
        "operation": result.operation,
        "bytes": result.bytes,
        "engine": result.engine,
        "clock": result.clock,
        "status": verdict.status if verdict else None,
        "cause": verdict.cause if verdict else None,
        "bandwidth": result.bandwidth,
        "algbw": result.algbw,
        "latency_s": result.latency_s,
        "limit": limits.now if limits else None,
        "limit_platform": limits.platform if limits else None,
        "limit_device": limits.device if limits else None,
        "limit_basis": limits.basis if limits else None,
        "floor_s": limits.floor_s if limits else None,
        "fraction_of_limit": result.fraction_of_limit,
    }
    return {name: value for name, value in known.items() if value is not None}


def _check_samples(benchmark: Any, case: str, samples: list[float]) -> None:
    """Before the replay: a round that raises leaves statistics without data, which break the whole session's file."""
    if not samples or not all(0 < seconds < math.inf for seconds in samples):
        benchmark.has_error = True
        raise ReplayError(f"{case}: durations must be positive seconds, got {samples}")


def _check_recorded(benchmark: Any, clock: Clock, case: str, samples: list[float]) -> None:
    if benchmark.stats.options["timer"] is clock and benchmark.stats.stats.data == samples:
        return
    benchmark.has_error = True
    raise ReplayError(f"{case}: pytest-benchmark used another timer than the replay's clock")
