"""Small results and link watches, as a measurement would give them."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from suite.judge.rules import judge
from suite.records.case import HopWatch, LinkWatch, Operation
from suite.records.machine import AerCounters, LinkState, Machine
from suite.records.run import Limits, Result, Verdict
from suite.units import MIB

GB = 1e9
GTS = {1: 2.5, 2: 5.0, 3: 8.0, 4: 16.0, 5: 32.0}


def link(gen: int, width: int) -> LinkState:
    """A link by generation and width."""
    return LinkState(GTS[gen], width)


def limits(now: float | None, platform: float | None = None, **fields: Any) -> Limits:
    """Ceilings in GB/s."""
    scaled = {k: v * GB for k, v in fields.items() if k in ("low", "high", "device")}
    rest = {k: v for k, v in fields.items() if k not in scaled}
    most = platform if platform is not None else now
    given = {"basis": "read", "binding": "the hop", **rest, **scaled}
    return Limits(now=now * GB if now else None, platform=most * GB if most else None, **given)


def result(operation: Operation, rate: float | None = None, *, case: str | None = None, **fields: Any) -> Result:
    """A result of five equal samples. rate: GB/s."""
    given: dict[str, Any] = {"bytes": 64 * MIB, "gpus": (0,), "verified": True, **fields}
    if rate and "samples_s" not in given:
        given["samples_s"] = (given["bytes"] / (rate * GB),) * 5
    return Result(
        case=case or f"host_copy/{operation}", operation=operation, bandwidth=rate * GB if rate else None, **given
    )


def watch(load: LinkState, idle: LinkState = LinkState(2.5, 16), **fields: Any) -> LinkWatch:
    """A watch with twenty readings in 0.6 s; none where nothing was seen under load."""
    given = {"load_min": load, "readings": 20 if load.known else 0, "seconds": 0.6, "aer_correctable": 0, "replays": 0}
    return LinkWatch(idle=idle, load=load, **{**given, **fields})


def errors(lower: str, upper: str, count: int) -> HopWatch:
    """A hop whose upper end counted correctable errors."""
    return HopWatch(lower, upper, aer_lower=AerCounters(0), aer_upper=AerCounters(count))


def under_load(load: LinkState, gpu: int = 0, rate: float | None = None, **fields: Any) -> Result:
    """A link case of a GPU."""
    seen = watch(load, **fields.pop("watched", {}))
    return result(
        "link_under_load",
        rate,
        case=f"link/under_load/gpu{gpu}",
        gpus=(gpu,),
        link=seen,
        samples_s=(1e-3,) * 5,
        **fields,
    )


def judged(machine: Machine, *results: Result) -> list[Result]:
    """Results with their verdicts, each judged with those before it."""
    done: list[Result] = []
    for one in results:
        done.append(replace(one, verdict=judge(one, machine, done)))
    return done


def last(machine: Machine, *results: Result) -> Verdict:
    """The verdict of the last result."""
    verdict = judged(machine, *results)[-1].verdict
    assert verdict is not None
    return verdict
