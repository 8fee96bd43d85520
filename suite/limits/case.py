"""The limits of one case, whatever it measures: the entry to this room."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from suite.limits import ceilings, collective, gpus, healthy, host, links, memory, peer
from suite.limits.ceilings import Sources
from suite.records.case import COLLECTIVES, LATENCIES, Plan, Samples
from suite.records.flows import flows
from suite.records.machine import LinkState, Machine
from suite.records.run import Limits, Result

_LATENCY = "No least time is known for this path."
_GLOO = "gloo runs over loopback TCP, which has no honest ceiling: values are checked, no limit is given."


def of(machine: Machine, plan: Plan, samples: Samples | None, so_far: Sequence[Result]) -> Limits:
    """What this case could deliver, bytes per second, by the links as they were under load.

    Never raises for a machine's oddities: what is not known is None, and `why` says so.
    """
    load = links.under_load(machine, plan, samples, so_far)
    sources = Sources(load, links.possible(machine), links.device(machine, _parts(machine)), load.cases)
    if plan.backend == "nccl":
        return collective.limits(machine, plan, samples, sources, so_far)
    found = _limits(machine, plan, sources)
    if samples is None or found.now is None or plan.operation not in ("both_ways", "link_under_load"):
        return found
    return replace(found, utilisation=host.utilisation(machine, plan, samples, sources))


def as_recorded(machine: Machine, plan: Plan, so_far: Sequence[Result] = ()) -> Limits:
    """The limits if the link states in the machine's record were those under load; of collectives: as rings."""
    return _recorded(machine, plan, so_far)


def ideal_seconds(machine_under_load: Machine, plan: Plan, so_far: Sequence[Result] = ()) -> float | None:
    """Seconds of one operation at the hard ceiling of a machine whose record holds the links under load.

    None where no ceiling is known (host memory, gloo, latencies).
    """
    ceiling = _recorded(machine_under_load, plan, so_far, in_step=True).now
    return moved(plan) / ceiling if ceiling else None


def moved(plan: Plan) -> float:
    """Bytes of one operation as its bandwidth counts them: every direction and every GPU."""
    if plan.operation == "peer_pattern":
        return plan.bytes * len(flows(plan))
    ways = 2 if plan.operation.endswith("both_ways") or plan.operation == "link_under_load" else 1
    if plan.operation in COLLECTIVES:
        return plan.bytes * collective.bus_factor(plan.operation, plan.world_size)
    return plan.bytes * ways * (len(plan.gpus) if plan.operation.startswith("all_gpus") else 1)


def _recorded(machine: Machine, plan: Plan, so_far: Sequence[Result], in_step: bool = False) -> Limits:
    possible, device = links.possible(machine), links.device(machine, _parts(machine))
    sources = Sources(links.as_recorded, possible, device, in_step=in_step)
    if plan.backend == "nccl":
        return collective.limits(machine, plan, None, sources, so_far, "Ring")
    return _limits(machine, plan, sources)


def _parts(machine: Machine) -> dict[str, LinkState]:
    """The link of each GPU that is in the table, by address."""
    found = ((gpu.address, gpus.part(gpu)) for gpu in machine.gpus)
    return {address: part.link for address, part in found if address and part}


def _limits(machine: Machine, plan: Plan, sources: Sources) -> Limits:
    if plan.operation in LATENCIES:
        return ceilings.unknown(f"{_LATENCY} {healthy.latency(plan.operation, plan.engine, plan.p2p)}")
    if plan.operation == "host_memory_copy":
        return memory.host_copy(machine, plan)
    if plan.backend == "gloo":
        return ceilings.unknown(_GLOO, hard=False)
    if plan.operation == "staging":
        return host.staging(machine, plan, sources)
    if plan.operation in host.OPERATIONS:
        return host.copies(machine, plan, sources)
    if plan.operation in peer.OPERATIONS:
        return peer.copies(machine, plan, sources)
    return ceilings.unknown(f"No model of {plan.operation} yet.")
