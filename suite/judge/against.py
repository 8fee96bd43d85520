"""A verdict beside a baseline: what was better before is a FAIL, what the machine alone cannot tell may be settled."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from suite.judge.thresholds import DEFAULT, Thresholds
from suite.judge.view import View, say
from suite.records.comparison import Change, Reference
from suite.records.machine import Gpu, LinkState, Machine
from suite.records.run import Result, Verdict
from suite.units import format_bandwidth, format_percent, format_seconds

WORSE = "worse_than_baseline"
# What only a manifest, an equal machine or a baseline can settle.
_OPEN = ("limit_unknown", "link_not_run", "below_equal_gpu", "downtrained_width", "slower_than_card")
_NOT_MEASURED = ("UNAVAILABLE", "NOT_SAMPLED")


def decide(
    verdict: Verdict, result: Result, machine: Machine, reference: Reference, thresholds: Thresholds = DEFAULT
) -> Verdict:
    """The verdict once the baseline has been heard. A FAIL stays what it is, and says how the case was before."""
    if verdict.status in _NOT_MEASURED:
        return verdict
    view = View(result, machine, (), thresholds)
    if verdict.status == "FAIL":
        return _with(verdict, _before(reference))
    found = _link(view, reference) or _numbers(view, reference)
    if found is not None:
        return _with(found, verdict.evidence)
    if verdict.cause in _OPEN and _same(view, reference):
        return _with(say("as_baseline", **_words(view, reference)), verdict.evidence)
    return verdict if verdict.status == "PASS" else _with(verdict, _before(reference))


def is_worse(result: Result) -> bool:
    """The baseline alone makes this case fail: it is to be measured once more."""
    return result.verdict is not None and result.verdict.cause == WORSE


def _link(view: View, reference: Reference) -> Verdict | None:
    watch = view.result.link
    if watch is None or not watch.readings or reference.link is None or not _less(watch.load, reference.link):
        return None
    return say("link_below_baseline", who=view.who, load=watch.load, before=reference.link, name=reference.name)


def _numbers(view: View, reference: Reference) -> Verdict | None:
    change = reference.change
    if change is None or change.call != "worse":
        return None
    return say(WORSE, change.why, **_words(view, reference), hint=_busy(view))


def _same(view: View, reference: Reference) -> bool:
    """As before in every respect, and it did not fail then."""
    change, watch = reference.change, view.result.link
    if change is None or change.call != "same" or change.status_before == "FAIL":
        return False
    return watch is None or reference.link is None or watch.load == reference.link


def _busy(view: View) -> str:
    """Copies alone may not count as utilisation: a program that is there at all is named too."""
    gpus = [gpu for index in view.result.gpus if (gpu := view.machine.gpu(index))]
    used = [f"GPU{g.index} was {format_percent(g.utilization)} busy" for g in gpus if _is_busy(view, g)]
    if used:
        return f"; busy GPU: {', '.join(used)} with another program when the run began"
    shared = [f"GPU{g.index}" for g in gpus if g.processes]
    return f"; perhaps a busy GPU: another program was on {', '.join(shared)} when the run began" if shared else ""


def _is_busy(view: View, gpu: Gpu) -> bool:
    return (gpu.utilization or 0.0) > view.thresholds.busy


def _before(reference: Reference) -> tuple[str, ...]:
    change = reference.change
    if change is None or change.before is None:
        return ()
    return (f"the baseline {reference.name} has {_value(change, change.before)} ({change.why})",)


def _words(view: View, reference: Reference) -> dict[str, str]:
    change = reference.change
    runs = f"{reference.runs} run{'s' if reference.runs != 1 else ''}"
    found = {"who": view.who, "name": reference.name, "runs": runs, "measured": view.measured, "before": "no numbers"}
    if change is None:
        return found
    ratio = f"{(change.ratio - 1) * 100:+.0f} %".replace("-", "−") if change.ratio else "it failed now"
    now = _value(change, change.after)
    return {**found, "measured": now, "before": _value(change, change.before), "change": ratio}


def _value(change: Change, number: float | None) -> str:
    return format_bandwidth(number) if change.quantity == "bandwidth" else format_seconds(number)


def _less(link: LinkState, other: LinkState) -> bool:
    """Slower or narrower, as far as both are known."""
    pairs = ((link.speed_gts, other.speed_gts), (link.width, other.width))
    return any(one is not None and two is not None and one < two for one, two in pairs)


def _with(verdict: Verdict, evidence: Sequence[str]) -> Verdict:
    return replace(verdict, evidence=(*verdict.evidence, *evidence))
