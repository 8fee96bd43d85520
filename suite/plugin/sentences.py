"""What a person reads in pytest's own lines: why a case failed, what is measured, how much time is left."""

from __future__ import annotations

from collections import Counter

from suite.records.machine import Machine
from suite.records.run import Limits, Result
from suite.units import format_bandwidth, format_percent, format_seconds


def failure(result: Result) -> str:
    """Measured, limit, cause; the evidence; the next step. One line each, the first one alone is enough to act."""
    verdict = result.verdict
    cause = verdict.cause.replace("_", " ") if verdict else "no verdict"
    lines = [f"{measured(result)}: {cause}"]
    if verdict:
        lines += [f"  {sentence}" for sentence in verdict.evidence]
    if result.error:
        lines += [f"  rank {rank} last said: {said}" for rank, said in enumerate(result.error.said) if said]
    if verdict and verdict.advice:
        lines.append(f"  next: {verdict.advice}")
    return "\n".join(lines)


def measured(result: Result) -> str:
    """What came out beside what could: '3.31 GB/s of 26.3 GB/s (13 %)'."""
    if result.error:
        return result.error.message
    if result.verified is False:
        return f"wrong bytes ({result.wrong})" if result.wrong else "wrong bytes"
    if result.bandwidth is not None:
        return _of_limit(format_bandwidth(result.bandwidth), result.limits, result.fraction_of_limit)
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
    words = words or [f"no GPU ({found.why_no_gpu})" if found.why_no_gpu else "no GPU"]
    words.append("1 NUMA node" if len(found.nodes) == 1 else f"{len(found.nodes)} NUMA nodes")
    words += [text for text in (found.cpu.model, found.environment.virtual_machine) if text]
    return ("SIMULATED " if simulated else "") + ", ".join(words)


def time_left(seconds: float) -> str:
    """'about 40 s left'."""
    if seconds < 1:
        return "almost done"
    return f"about {seconds:.0f} s left" if seconds < 100 else f"about {seconds / 60:.0f} min left"


def _of_limit(rate: str, limits: Limits | None, fraction: float | None) -> str:
    if limits is None or limits.now is None:
        return f"{rate}, limit not known"
    text = f"{rate} of {format_bandwidth(limits.now)} ({format_percent(fraction)})"
    if limits.expected:
        low, high = (format_bandwidth(rate) for rate in limits.expected)
        text += f", expected {low} to {high}"
    return text
