"""Runs of one made-up machine, with the numbers that a test wants."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from suite.records.case import LinkWatch
from suite.records.machine import Cpu, Environment, Gpu, LinkState, Machine, Software
from suite.records.run import Failure, Limits, Result, Run, Settings, Verdict

GEN1, GEN4 = LinkState(2.5, 16), LinkState(16.0, 16)
MACHINE = Machine(
    cpu=Cpu(model="Example CPU", packages=2),
    gpus=(Gpu(0, "Example GPU", "0000:17:00.0"), Gpu(1, "Example GPU", "0000:b1:00.0", link_max=GEN4)),
    software=Software(driver="580.95"),
    environment=Environment(board="Example Board", boot="aaaa"),
)
CASE = "host_copy/host_to_device/gpu1/node0/256MiB"
PASS, FAIL = Verdict("PASS", "healthy"), Verdict("FAIL", "slow_path")


def copy(rate: float, case: str = CASE, verdict: Verdict = PASS, **fields: Any) -> Result:
    """A host-to-device copy of GPU1 at some GB/s, five equal rounds."""
    given = {"operation": "host_to_device", "bytes": 256 << 20, "gpus": (1,), "verified": True, **fields}
    samples = given.pop("samples_s", (given["bytes"] / (rate * 1e9),) * 5)
    limits = given.pop("limits", Limits(now=29e9))
    return Result(case, samples_s=samples, bandwidth=rate * 1e9, limits=limits, verdict=verdict, **given)


def hang(case: str = CASE) -> Result:
    """The same copy without an answer."""
    error = Failure("hang", "no answer within 30 s")
    return Result(
        case, "host_to_device", 256 << 20, gpus=(1,), error=error, verdict=Verdict("FAIL", "hang", ("no answer",))
    )


def latency(seconds: float, case: str = "host_copy/latency/gpu1") -> Result:
    """A latency of GPU1."""
    return Result(
        case, "host_to_device_latency", 8, gpus=(1,), samples_s=(seconds,) * 5, latency_s=seconds, verdict=PASS
    )


def link(load: LinkState, rate: float) -> Result:
    """GPU1's link under load."""
    watch = LinkWatch(idle=GEN1, load=load, load_min=load, readings=20, seconds=0.6)
    return copy(rate, "link/under_load/gpu1", operation="link_under_load", link=watch)


def run(*results: Result, start: int = 0, boot: str | None = "aaaa", machine: Machine = MACHINE, **fields: Any) -> Run:
    """A complete run. start: tells runs apart."""
    placed = replace(machine, environment=replace(machine.environment, boot=boot))
    given: Mapping[str, Any] = {"settings": Settings(), "complete": True, "planned": len(results), **fields}
    started = f"2026-01-02T03:{start // 60:02}:{start % 60:02}+00:00"
    return Run(machine=placed, results=tuple(results), started=started, **given)


def runs(rates: Sequence[float], *, start: int = 0, boots: Sequence[str] | None = None) -> tuple[Run, ...]:
    """One run a rate, each in a boot of its own unless said otherwise."""
    boots = boots or [f"boot{start + number}" for number in range(len(rates))]
    pairs = zip(rates, boots, strict=True)
    return tuple(run(copy(rate), start=start + number, boot=boot) for number, (rate, boot) in enumerate(pairs))
