"""Which state of each link counts: under load, at most on both ends, and what the device alone supports."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from suite.records.case import LinkWatch, Plan, Samples
from suite.records.machine import Gpu, Hop, LinkState, Machine
from suite.records.path import narrowest
from suite.records.run import Result

# The state of a hop that a ceiling takes; an unknown state where it is not known.
LinkOf = Callable[[Hop], LinkState]


@dataclass(frozen=True)
class UnderLoad:
    """Link states during transfers, by the address of the lower end, and the cases that they were read in."""

    states: Mapping[str, LinkState] = field(default_factory=dict)
    cases: tuple[str, ...] = ()

    def __call__(self, hop: Hop) -> LinkState:
        return self.states.get(hop.lower, LinkState())


def under_load(machine: Machine, plan: Plan, samples: Samples | None, so_far: Sequence[Result]) -> UnderLoad:
    """The links of the plan's GPUs under load: from its own watch, else from an earlier one of the same GPU."""
    states: dict[str, LinkState] = {}
    cases: list[str] = []
    for index in plan.gpus:
        gpu = machine.gpu(index)
        seen = _watch(plan, samples, so_far, index)
        if gpu is None or gpu.address is None or seen is None:
            continue
        cases.append(seen[0])
        states |= _states(seen[1], gpu.address)
    return UnderLoad(states, tuple(dict.fromkeys(cases)))


def possible(machine: Machine) -> LinkOf:
    """The most that both ends of a hop can negotiate. NVML's maximum counts too where it is a GPU's own link."""
    maxima = {gpu.address: gpu.link_max for gpu in machine.gpus if gpu.address}

    def link(hop: Hop) -> LinkState:
        return _least_known(hop.possible, maxima.get(hop.lower, LinkState()))

    return link


def device(machine: Machine, known: Mapping[str, LinkState]) -> LinkOf:
    """What the GPU itself supports on its own link: NVML, else sysfs, else the table of GPUs (`known`, by address).

    Links above the GPU's own are not the device's: unknown here.
    """
    gpus = {gpu.address: gpu for gpu in machine.gpus if gpu.address}

    def link(hop: Hop) -> LinkState:
        gpu = gpus.get(hop.lower)
        if gpu is None:
            return LinkState()
        candidates = (gpu.link_device, hop.lower_max, known.get(hop.lower, LinkState()))
        return next((state for state in candidates if state.known), LinkState())

    return link


def as_recorded(hop: Hop) -> LinkState:
    """The state that the record of the machine holds: for machines whose record is the state under load."""
    return hop.now


def device_width(gpu: Gpu, hops: Iterable[Hop]) -> int | None:
    """Lanes that the GPU has: NVML, else sysfs."""
    own = next((hop.lower_max.width for hop in hops if hop.lower == gpu.address), None)
    return gpu.link_device.width or own or gpu.link_max.width


def _watch(plan: Plan, samples: Samples | None, so_far: Sequence[Result], gpu: int) -> tuple[str, LinkWatch] | None:
    """(case, watch) of the newest transfer of this GPU in which its link was seen."""
    if samples is not None and samples.watch is not None and plan.gpus[:1] == (gpu,) and _tells(samples.watch):
        return plan.case, samples.watch
    for result in reversed(so_far):
        if result.gpus[:1] == (gpu,) and result.link is not None and _tells(result.link):
            return result.case, result.link
    return None


def _tells(watch: LinkWatch) -> bool:
    return watch.readings > 0 and (watch.load.known or any(hop.load.known for hop in watch.hops))


def _states(watch: LinkWatch, address: str) -> dict[str, LinkState]:
    """Hop by hop; for the GPU's own link NVML's answer, which also holds where a virtual machine fakes sysfs."""
    states = {hop.lower: hop.load for hop in watch.hops}
    if watch.load.known:
        states[address] = watch.load
    return states


def _least_known(link: LinkState, other: LinkState) -> LinkState:
    """The lower of both; where only one is known, that one."""
    least = narrowest(link, other)
    speed = least.speed_gts or link.speed_gts or other.speed_gts
    return LinkState(speed, least.width or link.width or other.width)
