"""A bandwidth beside its ceiling: above it, in order, low or bad; and what to say of it."""

from __future__ import annotations

from typing import Any, Literal

from suite.judge.pcie import behaves_like
from suite.judge.view import View, say
from suite.records.machine import LinkState
from suite.records.run import Limits, Verdict
from suite.units import format_bandwidth, format_percent

Level = Literal["ok", "low", "bad", "unknown", "depends"]
_PCIE = ("host_to_device", "device_to_host")
WIDTH = 16
# Reasons for lower clocks that say nothing of a fault: idling, and limits that somebody set.
_HARMLESS = ("idle", "application clocks", "display clocks")


def floor(view: View, ceiling: float) -> float:
    """The least bandwidth (bytes/s) that passes under a ceiling: the expected range's lower end, less the margin."""
    limits, t = view.result.limits, view.thresholds
    healthy = t.healthy_fraction * ceiling
    if limits and limits.expected and limits.now:
        healthy = min(healthy, limits.expected[0] / limits.now * ceiling)
    return healthy * (1 - t.margin)


def level(view: View) -> Level:
    """Where the measured bandwidth stands. 'depends': the answer differs between the MPS values that are possible."""
    limits, bandwidth = view.result.limits, view.result.bandwidth
    if limits is None or limits.now is None or bandwidth is None:
        return "unknown"
    most, least = _range(limits, limits.now)
    answers = {_level(view, bandwidth, ceiling) for ceiling in (least, most)}
    return answers.pop() if len(answers) == 1 else _merged(answers)


def _merged(answers: set[Level]) -> Level:
    return "depends" if "ok" in answers else "low"


def _level(view: View, bandwidth: float, ceiling: float) -> Level:
    least = floor(view, ceiling)
    if bandwidth >= least:
        return "ok"
    return "bad" if bandwidth < least * view.thresholds.fail_fraction else "low"


def _range(limits: Limits, now: float) -> tuple[float, float]:
    """(most, least) ceiling that is possible: one value unless the MPS was assumed."""
    return limits.high or now, limits.low or now


def above_ceiling(view: View) -> Verdict | None:
    """More than the link can carry is never a pass."""
    limits, bandwidth, t = view.result.limits, view.result.bandwidth, view.thresholds
    if limits is None or limits.now is None or bandwidth is None or not limits.hard:
        return None
    if limits.utilisation is not None:
        above = limits.utilisation > t.utilisation
    else:
        above = bandwidth > t.above_ceiling * _range(limits, limits.now)[0]
    return say("above_ceiling", **words(view), binding=limits.binding) if above else None


def below_floor(view: View) -> Verdict | None:
    """Below the least that the manifest allows for this case, whatever the limit is."""
    floor_, bandwidth = view.expected.floor(view.result.case), view.result.bandwidth
    if floor_ is None or bandwidth is None or bandwidth >= floor_:
        return None
    return say("below_floor", *spread_note(view), who=view.who, measured=view.measured, floor=format_bandwidth(floor_))


def unknown_limit(view: View) -> Verdict | None:
    """Without a ceiling the measured value is shown, and the link that it would fit; nothing is invented."""
    limits = view.result.limits
    if limits is not None and limits.now is not None:
        return None
    why = f" ({limits.why.rstrip('.')})" if limits and limits.why else ""
    said = {"who": view.who, "measured": view.measured, "why": why, "like": _like(view), "hidden": _hidden(view)}
    if _no_link_case(view):
        return say("link_not_run", *spread_note(view), group=view.result.group, **said)
    return say("limit_unknown", *spread_note(view), **said)


def _hidden(view: View) -> str:
    """What would show the link, as far as it is hidden here; NVLink-C2C has no link state to be read."""
    environment = view.machine.environment
    if _coherent(view):
        return ""
    ways = [] if environment.root else ["as root"]
    ways += ["outside the virtual machine"] if environment.virtual_machine else []
    return f"Run {' and '.join(ways)} where possible. " if ways else ""


def _no_link_case(view: View) -> bool:
    """The link of one of the GPUs was not read because its link case did not run: more rights would not help."""
    gpus = set(view.result.gpus)
    if not gpus or _coherent(view):
        return False
    if any((pair := view.machine.pair(a, b)) is not None and pair.nvlinks for a in gpus for b in gpus if a < b):
        return False
    return not gpus <= {g for r in view.so_far if r.operation == "link_under_load" for g in r.gpus}


def _coherent(view: View) -> bool:
    """NVLink-C2C joins a GPU of the case to its processor."""
    return any((gpu := view.machine.gpu(g)) is not None and gpu.c2c for g in view.result.gpus)


def _like(view: View) -> str:
    bandwidth, gpu = view.result.bandwidth, view.gpu
    if bandwidth is None or gpu is None or gpu.c2c or view.result.operation not in _PCIE:
        return ""
    width = gpu.link_device.width or gpu.link_max.width or WIDTH
    link = behaves_like(bandwidth, width)
    return f"; it behaves like {link}" if link and link != LinkState() else ""


def depends_on_mps(view: View) -> Verdict | None:
    """The MPS was assumed and decides between PASS and FAIL."""
    limits = view.result.limits
    if limits is None or level(view) != "depends":
        return None
    low, high = format_bandwidth(limits.low), format_bandwidth(limits.high)
    return say("mps_assumed", measured=view.measured, low=low, high=high, binding=limits.binding)


def doubtful(view: View) -> Verdict | None:
    """A slow case that rests on too few or too different samples, or on a GPU that others used."""
    limits = view.result.limits
    if level(view) not in ("low", "bad") or limits is None or limits.now is None:
        return None
    return doubts(view, floor(view, limits.now))


def doubts(view: View, enough: float) -> Verdict | None:
    """Why a slow case bears neither FAIL nor WARN; None where it does. enough: bytes per second that would pass."""
    return _few(view) or _spread(view, enough) or _busy(view)


def _few(view: View) -> Verdict | None:
    count = len(view.result.samples_s)
    if count >= view.thresholds.samples:
        return None
    return say("too_few_samples", samples=f"{count} sample" + "s" * (count != 1), **words(view))


def _spread(view: View, enough: float) -> Verdict | None:
    best = view.best
    if view.spread <= view.thresholds.spread or best is None or best < enough:
        return None
    return say("noisy", spread=format_percent(view.spread), best=format_bandwidth(best), **words(view))


def _busy(view: View) -> Verdict | None:
    busy = max((g.utilization or 0.0 for i in view.result.gpus if (g := view.machine.gpu(i))), default=0.0)
    if busy <= view.thresholds.busy:
        return None
    return say("busy_gpu", busy=format_percent(busy), **words(view))


def slow(view: View) -> Verdict | None:
    """Below what passes, and nothing that was seen says why."""
    return slow_because(view, "slow_path", "below_expected")


def slow_because(view: View, bad: str, low: str) -> Verdict | None:
    """The cause named `bad` far below the limit, `low` somewhat below it, None where the case is in order."""
    names = {"bad": bad, "low": low}
    where = level(view)
    limits = view.result.limits
    if where not in names or limits is None:
        return None
    return say(names[where], *spread_note(view), binding=limits.binding, **words(view), hint=hint(view))


def hint(view: View) -> str:
    """What the configuration says that would explain a slow path."""
    found = []
    for index in view.result.gpus:
        gpu = view.machine.gpu(index)
        function = view.machine.function(gpu.address) if gpu else None
        if function and function.config and function.config.extended_tags is False:
            found.append(f"extended tags are off on GPU{index}")
    link = view.watch(view.result.gpus[0]) if view.result.gpus else None
    throttle = [reason for reason in link.throttle or () if reason not in _HARMLESS] if link else []
    if throttle:
        found.append("clocks were held down by " + ", ".join(throttle))
    return "; " + "; ".join(found) if found else ""


def spread_note(view: View) -> tuple[str, ...]:
    """A sentence where the samples differ much."""
    if view.spread <= view.thresholds.spread:
        return ()
    return (f"the samples spread by {format_percent(view.spread)} (interquartile range over median)",)


def healthy(view: View) -> Verdict:
    """The case reaches what healthy machines reach; notes about doubt travel with it."""
    limits = view.result.limits
    binding = limits.binding if limits else None
    return say("healthy", *spread_note(view), *placement_note(view), binding=binding, sentence=reached(view))


def reached(view: View) -> str:
    limits = view.result.limits
    if limits is None or limits.now is None or view.result.bandwidth is None:
        return f"{view.measured} measured."
    said = words(view)
    assumed = ", MPS assumed" if limits.basis == "assumed" else ""
    return f"{said['measured']} is {said['percent']} of the {said['limit']} that {said['path']} can carry{assumed}."


def placement_note(view: View) -> tuple[str, ...]:
    placement = view.result.placement
    if placement is None or placement.proved is not None:
        return ()
    return ("placement not proved" + (f": {placement.detail}" if placement.detail else ""),)


def words(view: View) -> dict[str, Any]:
    """The words that most sentences need."""
    limits = view.result.limits or Limits()
    bandwidth = view.result.bandwidth
    percent = bandwidth / limits.now if bandwidth is not None and limits.now else None
    expected = [format_bandwidth(e) for e in limits.expected or ()]
    least = format_percent(view.thresholds.healthy_fraction)
    return {
        "who": view.who,
        "measured": view.measured,
        "limit": format_bandwidth(limits.now),
        "percent": format_percent(percent),
        "path": limits.binding or "the path",
        "expected": " to ".join(expected) if expected else f"{least} or more",
    }
