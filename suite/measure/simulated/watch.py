"""What a link watch would see on a simulated machine."""

from __future__ import annotations

from suite.records.case import HopWatch, LinkWatch, Plan
from suite.records.machine import AerCounters, Hop, LinkState, Machine
from suite.records.path import path_to_root
from suite.records.scenario import Scenario

SECONDS = 0.6
READINGS = 20  # one in 30 ms


def watch(scenario: Scenario, loaded: Machine, plan: Plan) -> LinkWatch:
    """The watch of the plan's first GPU: idle as the machine was found, load as `loaded` has it."""
    found = scenario.machine
    gpu, busy = found.gpu(plan.gpus[0]), loaded.gpu(plan.gpus[0])
    address = (gpu.address if gpu else None) or ""
    pairs = zip(path_to_root(found, address).hops, path_to_root(loaded, address).hops, strict=True)
    hops = tuple(_hop(scenario, idle, load) for idle, load in pairs)
    visible = bool(gpu and (gpu.link.known or gpu.link_max.known))
    state = busy.link if busy and visible else LinkState()
    return LinkWatch(
        idle=gpu.link if gpu else LinkState(),
        load=state,
        load_min=state,
        after=gpu.link if gpu else LinkState(),
        readings=READINGS,
        seconds=max(SECONDS, plan.min_seconds),
        hops=hops,
        replays=gpu.replays if gpu else None,
        aer_correctable=_total(hops),
        aer_uncorrectable=0 if _total(hops) is not None else None,
        performance_state=0,
        source="simulated",
    )


def _hop(scenario: Scenario, idle: Hop, load: Hop) -> HopWatch:
    """One hop. Where the machine does not show a link, the watch does not either, whatever it really does."""
    state = load.now if idle.now.known or idle.possible.known else LinkState()
    return HopWatch(
        lower=idle.lower,
        upper=idle.upper,
        idle=idle.now,
        load=state,
        load_min=state,
        after=idle.now,
        aer_lower=_counted(scenario, idle.lower),
        aer_upper=_counted(scenario, idle.upper),
    )


def _counted(scenario: Scenario, address: str | None) -> AerCounters | None:
    """What one end counts over the watch: the faults' rates; None where the machine reports no counters."""
    function = scenario.machine.function(address)
    if function is None or function.aer is None:
        return None
    rates = (f.rate or 0.0 for f in scenario.faults if f.kind == "link_errors" and f.address == address)
    return AerCounters(correctable=round(sum(rates) * SECONDS), nonfatal=0, fatal=0)


def _total(hops: tuple[HopWatch, ...]) -> int | None:
    ends = [aer for hop in hops for aer in (hop.aer_lower, hop.aer_upper) if aer is not None]
    return sum(aer.correctable or 0 for aer in ends) if ends else None
