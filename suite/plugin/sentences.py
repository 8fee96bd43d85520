"""What a person reads in pytest's own lines: why a case failed, what is measured, how much time is left."""

from __future__ import annotations

from collections import Counter

from suite.records.machine import Machine
from suite.records.run import Failure, Limits, Result
from suite.units import format_bandwidth, format_percent, format_seconds

REDUCED = 1.05  # a platform's ceiling this far above the link's own is worth telling; below it is rounding


def failure(result: Result) -> str:
    """Measured, limit, cause; the evidence; the next step. One line each, the first one alone is enough to act."""
    verdict = result.verdict
    cause = verdict.cause.replace("_", " ") if verdict else "no verdict"
    lines = [f"{measured(result)}: {cause}"]
    if verdict:
        lines += [f"  {sentence}" for sentence in verdict.evidence]
    if result.error:
        lines += _said(result.error, "\n".join(lines))
    if verdict and verdict.advice:
        lines.append(f"  next: {verdict.advice}")
    return "\n".join(lines)


def properties(result: Result) -> list[tuple[str, object]]:
    """What JUnit carries of a case, as names and values: for build servers, which read no sentences."""
    verdict, limits = result.verdict, result.limits
    advice = verdict.advice if verdict and verdict.status not in ("PASS", "NOT_SAMPLED") else None
    limit = format_bandwidth(limits.now) if limits and limits.now is not None else None
    found = {
        "verdict": verdict.status if verdict else None,
        "cause": verdict.cause if verdict else None,
        "measured": _value(result),
        "limit": limit,
        "advice": advice,
    }
    return [(name, value) for name, value in found.items() if value is not None]


def _value(result: Result) -> str | None:
    """Bandwidth, else the time of one operation; None where nothing was measured, or wrong bytes."""
    if result.bandwidth is not None:
        return format_bandwidth(result.bandwidth)
    return format_seconds(result.latency_s) if result.latency_s is not None else None


def measured(result: Result) -> str:
    """What came out beside what could: '3.31 GB/s of 26.3 GB/s (13 %)'."""
    if result.error:
        return result.error.message
    if result.verified is False:
        return f"wrong bytes ({result.wrong})" if result.wrong else "wrong bytes"
    if result.bandwidth is not None:
        return _of_limit(result.bandwidth, result.limits)
    if result.latency_s is not None:
        floor = result.limits.floor_s if result.limits else None
        return format_seconds(result.latency_s) + (f", floor {format_seconds(floor)}" if floor else "")
    return "nothing was measured"


def skip(result: Result) -> str:
    """Why a case was not measured."""
    if result.represented_by:
        return f"represented by {result.represented_by}"
    evidence = result.verdict.evidence if result.verdict else ()
    return evidence[0] if evidence else "it cannot be measured here"


def machine(found: Machine, *, simulated: bool) -> str:
    """A machine in a few words: '2 × NVIDIA RTX A6000, 2 NUMA nodes, Intel Xeon …'."""
    words = [f"{count} × {name}" for name, count in Counter(g.name for g in found.gpus).items()]
    words = words or [f"no GPU ({found.why_no_gpu.rstrip('.')})" if found.why_no_gpu else "no GPU"]
    words.append("1 NUMA node" if len(found.nodes) == 1 else f"{len(found.nodes)} NUMA nodes")
    words += [text for text in (found.cpu.model, found.environment.virtual_machine) if text]
    return ("SIMULATED " if simulated else "") + ", ".join(words)


def time_left(seconds: float) -> str:
    """'about 40 s left'."""
    if seconds < 1:
        return "almost done"
    return f"about {seconds:.0f} s left" if seconds < 100 else f"about {seconds / 60:.0f} min left"


def _of_limit(rate: float, limits: Limits | None) -> str:
    """Beside the platform's ceiling where the link runs below that: a slow link makes its own share look healthy."""
    if limits is None or limits.now is None:
        return f"{format_bandwidth(rate)}, limit not known"
    if limits.platform is not None and limits.platform > REDUCED * limits.now:
        return f"{_share(rate, limits.platform)}, {format_bandwidth(limits.now)} as the link runs"
    text = _share(rate, limits.now)
    if limits.expected:
        low, high = (format_bandwidth(rate) for rate in limits.expected)
        text += f", expected {low} to {high}"
    return text


def _share(rate: float, limit: float) -> str:
    return f"{format_bandwidth(rate)} of {format_bandwidth(limit)} ({format_percent(rate / limit)})"


def _said(error: Failure, told: str) -> list[str]:
    """The ranks' last words, as far as they were not told before."""
    return [f"  rank {rank} last said: {said}" for rank, said in enumerate(error.said) if said and said not in told]
