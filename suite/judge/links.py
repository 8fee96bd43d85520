"""What the link's state under load says of a case: theory of downtraining, and who is bound by it."""

from __future__ import annotations

from suite.judge import hops, levels
from suite.judge.hops import HopState
from suite.judge.pcie import line_rate
from suite.judge.view import View, gpu_words, say
from suite.records.case import LinkWatch
from suite.records.machine import Gpu, LinkState
from suite.records.run import Verdict
from suite.units import format_bandwidth, format_gigabytes, format_percent, format_seconds

# A ratio this near to 0.5 is called half: noise of two medians, 3 % each.
HALF = 0.03


def errors(view: View) -> Verdict | None:
    """Correctable errors and replays that rise during the transfer, at either end of any hop."""
    watch = view.result.link
    if watch is None or watch.seconds <= 0:
        return None
    correctable, replays, worse = watch.aer_correctable or 0, watch.replays or 0, watch.aer_uncorrectable or 0
    rate = max(correctable, replays) / watch.seconds
    if not worse and rate <= view.thresholds.errors_warn:
        return None
    cause = "signal_integrity" if worse or rate > view.thresholds.errors_fail else "link_errors"
    hop, ends = _worst_hop(view, watch)
    counted = f"{correctable} correctable errors, {replays} replays and {worse} uncorrectable errors"
    said = {"who": view.who, "errors": counted, "seconds": format_seconds(watch.seconds), "hop": hop}
    return say(cause, *ends, binding=hop, **said)


def _worst_hop(view: View, watch: LinkWatch) -> tuple[str, tuple[str, ...]]:
    """The hop that counted most, and what each of its ends counted."""
    counts = [(sum((a.correctable or 0) for a in (h.aer_lower, h.aer_upper) if a), h) for h in watch.hops]
    count, hop = max(counts, key=lambda c: c[0], default=(0, None))
    if not count or hop is None:
        return "its link", ()
    function = view.machine.function(hop.lower)
    upper = hop.upper or (function.parent if function else None)
    ends = ((hop.lower, hop.aer_lower), (upper, hop.aer_upper))
    name = f"{upper} – {hop.lower}" if upper else hop.lower
    return name, tuple(f"{end} counted {a.correctable} correctable errors" for end, a in ends if end and a)


def not_under_load(view: View) -> Verdict | None:
    """No state under load: idle readings never make a FAIL."""
    watch, gpu = view.result.link, view.gpu
    if gpu is None:
        return None
    if watch is not None and watch.readings and watch.load.known:
        return None
    if watch is not None and watch.readings and any(h.load.known for h in watch.hops):
        return None
    return _no_state(view, gpu, watch)


def _no_state(view: View, gpu: Gpu, watch: LinkWatch | None) -> Verdict:
    like = (levels.reached(view),) if view.result.bandwidth else ()
    vm = view.machine.environment.virtual_machine
    idle = watch.idle if watch and watch.idle.known else _as_found(view, gpu)
    if idle.known and not (watch and watch.readings):
        return say("link_idle_only", *like, who=view.who, idle=idle)
    return say("link_hidden", *like, who=view.who, vm=vm) if vm else say("link_unknown", *like, who=view.who)


def _as_found(view: View, gpu: Gpu) -> LinkState:
    function = view.machine.function(gpu.address)
    return function.link if function and function.link.known else gpu.link


def not_as_expected(view: View) -> Verdict | None:
    """The GPU's own link beside the manifest: below it is a fault, whatever the ends support."""
    gpu = view.gpu
    manifest = view.manifest(gpu) if gpu else None
    if gpu is None or manifest is None:
        return None
    own = next(iter(hops.hops(view.machine, gpu, view.watch(gpu.index))), None)
    return _below_manifest(view, gpu, own) if own is not None else None


def _below_manifest(view: View, gpu: Gpu, hop: HopState, *extra: str) -> Verdict | None:
    """The GPU's own link is less than the manifest says."""
    manifest = view.manifest(gpu)
    if manifest is None or not hop.own or not _less(hop.load, manifest.link):
        return None
    said = {"who": f"GPU{gpu.index}", "load": hop.load, "expected": manifest.link, "lower": hop.lower}
    return say("not_as_expected", *_idle_note(view, gpu), *extra, binding=hop.name, **said)


def _less(link: LinkState, other: LinkState) -> bool:
    """Slower or narrower, as far as both are known."""
    pairs = ((link.speed_gts, other.speed_gts), (link.width, other.width))
    return any(one is not None and two is not None and one < two for one, two in pairs)


def reduced_link(view: View) -> Verdict | None:
    """A hop that is slower or narrower under load than both of its ends support."""
    gpu = view.gpu
    if gpu is None:
        return None
    return _verdict(view, gpu, hops.reduced(hops.hops(view.machine, gpu, view.watch(gpu.index))))


def beyond_its_ends(view: View) -> Verdict | None:
    """A hop that is read faster or wider under load than its ends support; a virtual machine makes such ends up."""
    gpu = view.gpu
    if gpu is None or view.machine.environment.virtual_machine:
        return None
    states = hops.hops(view.machine, gpu, view.watch(gpu.index))
    hop = next((state for state in states if state.beyond and not state.hidden), None)
    if hop is None:
        return None
    who = f"GPU{gpu.index}" if hop.own else f"the hop above GPU{gpu.index}"
    said = {"who": who, "load": hop.load, "possible": hop.possible, "ends": hop.ends, "lower": hop.lower}
    return say("link_beyond_its_ends", levels.reached(view), binding=hop.name, **said)


def _verdict(view: View, gpu: Gpu, hop: HopState | None, *extra: str) -> Verdict | None:
    if hop is None or _allowed(view, gpu, hop):
        return None
    reason = _width_reason(view, gpu, hop)
    said = {
        "who": f"GPU{gpu.index}" if hop.own else f"the hop above GPU{gpu.index}",
        "load": hop.load, "possible": hop.possible, "ends": hop.ends, "hop": hop.name, "lower": hop.lower,
        "reason": reason,
        "loses": f"; it carries {format_percent(hop.share)} of what it could" if hop.share else "",
    }  # fmt: skip
    return say(_cause(hop, reason), *_idle_note(view, gpu), *extra, binding=hop.name, **said)


def _allowed(view: View, gpu: Gpu, hop: HopState) -> bool:
    """The manifest says that the GPU's own link is right as it is."""
    manifest = view.manifest(gpu)
    return hop.own and manifest is not None and manifest.link.known and not _less(hop.load, manifest.link)


def as_expected(view: View) -> Verdict | None:
    """A link below what both ends support that passes because the manifest says so."""
    gpu = view.gpu
    hop = _reduced(view, gpu) if gpu else None
    if gpu is None or hop is None or not _allowed(view, gpu, hop):
        return None
    said = {"load": hop.load, "ends": hop.ends, "possible": hop.possible}
    return say("as_expected", levels.reached(view), binding=hop.name, who=view.who, **said)


def _cause(hop: HopState, reason: str) -> str:
    if hop.slower and hop.hidden:
        return "slower_than_card"
    if hop.slower:
        return "configured_speed" if hop.target_gts == hop.load.speed_gts else "downtrained_speed"
    return "width_fault" if reason else "downtrained_width"


def _width_reason(view: View, gpu: Gpu, hop: HopState) -> str:
    """What decides a reduced width to be a fault: equal GPUs at full width, or errors on this hop."""
    watches = {g.index: w for g in view.machine.gpus if (w := view.watch(g.index)) is not None and w.readings}
    if hop.own:
        wider = [g.index for g in hops.wider_siblings(view.machine, gpu, hop, watches)]
        if wider:
            return (
                f"{gpu_words(wider)}, of the same model, runs wider"
                if len(wider) == 1
                else (f"{gpu_words(wider)}, of the same model, run wider")
            )
    counted = [a.correctable for a in (hop.watch.aer_lower, hop.watch.aer_upper) if a] if hop.watch else []
    return "it counts errors" if any(counted) else ""


def _idle_note(view: View, gpu: Gpu) -> tuple[str, ...]:
    watch = view.watch(gpu.index)
    if watch is None or not watch.readings:
        return ()
    return (f"{watch.readings} readings over {format_seconds(watch.seconds)} of transfer; {watch.idle} as found",)


def retrained(view: View) -> Verdict | None:
    """The state changed in the middle of the transfer."""
    watch = view.result.link
    if watch is None or not watch.changes:
        return None
    return say("retraining", who=view.who, changes=watch.changes, seconds=format_seconds(watch.seconds))


def bandwidth_of_own_copies(view: View) -> Verdict | None:
    """The copies that loaded the link, judged where their ceiling is known; both directions weak apart."""
    if view.result.limits is None or view.result.limits.now is None:
        return None
    return levels.depends_on_mps(view) or levels.doubtful(view) or levels.slow(view)


def limited_by_platform(view: View) -> Verdict | None:
    """The port or a hop further up supports less than the GPU: no fault, but said."""
    gpu = view.gpu
    if gpu is None:
        return None
    states = hops.hops(view.machine, gpu, view.watch(gpu.index))
    least = hops.narrowest_possible(states)
    if least is None:
        return None
    return _upstream(view, gpu, states[0], least) if not least.own else _own_port(view, gpu, least)


def _own_port(view: View, gpu: Gpu, hop: HopState) -> Verdict | None:
    device = gpu.link_device if gpu.link_device.known else hop.lower_max
    rate, most = line_rate(hop.possible), line_rate(device)
    if rate is None or most is None or rate >= most:
        return None
    wider = _sibling_with_wider_path(view, gpu, hop)
    if wider is not None:
        return say("slot_uneven", levels.reached(view), binding=hop.name, **_beside(view, hop, wider))
    said = {"who": view.who, "load": hop.load, "hop": hop.name, "device": device}
    return say("platform_limited", levels.reached(view), binding=hop.name, **said)


def _upstream(view: View, gpu: Gpu, own: HopState, hop: HopState) -> Verdict | None:
    wider = _sibling_with_wider_path(view, gpu, hop)
    said: dict[str, object] = {"who": view.who, "hop": hop.name, "load": hop.possible}
    notes = (f"{own.name} itself supports {own.possible}", levels.reached(view))
    if wider is None:
        return say("upstream_hop_narrower", *notes, binding=hop.name, **said)
    return say("upstream_hop_uneven", *notes, binding=hop.name, **_beside(view, hop, wider))


def _beside(view: View, hop: HopState, wider: tuple[Gpu, LinkState]) -> dict[str, object]:
    """A GPU's narrower hop beside the wider path of an equal GPU, in words."""
    sibling, state = wider
    cost = _cost(view, sibling, hop.possible, state)
    said = {"who": view.who, "hop": hop.name, "load": hop.possible, "cost": cost}
    return said | {"sibling": f"GPU{sibling.index}", "wider": state}


def _cost(view: View, sibling: Gpu, mine: LinkState, wider: LinkState) -> str:
    """What a GPU gets of an equal one's bandwidth: as measured, else by what their narrowest hops could carry."""
    other = next((r for r in view.alike("gpus", "memory_node") if r.gpus == (sibling.index,) and r.bandwidth), None)
    rate, rates = view.result.bandwidth, (line_rate(mine), line_rate(wider))
    if other is not None and other.bandwidth and rate:
        measured = f"{format_gigabytes(rate)} of {format_bandwidth(other.bandwidth)}, both ways at once"
        return f"{_share(rate / other.bandwidth)} of GPU{sibling.index}'s bandwidth ({measured})"
    share = _share(rates[0] / rates[1]) if rates[0] and rates[1] else "less"
    return f"{share} of what GPU{sibling.index}'s path could carry"


def _share(ratio: float) -> str:
    return "half" if abs(ratio - 0.5) < HALF else format_percent(ratio)


def _sibling_with_wider_path(view: View, gpu: Gpu, hop: HopState) -> tuple[Gpu, LinkState] | None:
    for other in view.equal_gpus(gpu):
        least = hops.narrowest_possible(hops.hops(view.machine, other, None))
        mine, theirs = line_rate(hop.possible), line_rate(least.possible) if least else None
        if least and mine and theirs and theirs > mine:
            return other, least.possible
    return None


def bound_by_link(view: View) -> Verdict | None:
    """A copy or collective whose ceiling is lowered by a reduced hop of one of its GPUs: the link is the cause."""
    limits = view.result.limits
    if limits is None or limits.now is None or limits.platform is None:
        return None
    if limits.now >= view.thresholds.link_bound * limits.platform:
        return None
    found = [(hop, gpu) for gpu in _gpus(view) if (hop := _reduced(view, gpu)) is not None]
    if not found:
        return None
    hop, gpu = min(found, key=lambda f: line_rate(f[0].load) or 0.0)
    loss = _loss(view, limits.now, limits.platform)
    return _below_manifest(view, gpu, hop, loss) or _verdict(view, gpu, hop, loss)


def _loss(view: View, now: float, platform: float) -> str:
    name = view.result.operation
    carried = f"{format_bandwidth(now)} is all that this link carries, {format_bandwidth(platform)} what it should"
    return f"{name} reaches {view.measured}: {carried}"


def _gpus(view: View) -> list[Gpu]:
    return [gpu for index in view.result.gpus if (gpu := view.machine.gpu(index)) is not None]


def _reduced(view: View, gpu: Gpu) -> HopState | None:
    return hops.reduced(hops.hops(view.machine, gpu, view.watch(gpu.index)))


def is_reduced(view: View, gpu: Gpu) -> bool:
    """A hop of this GPU is known to run below what it could."""
    return _reduced(view, gpu) is not None
