"""What each link on a GPU's path does under load, beside what its two ends support."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from suite.judge.pcie import line_rate
from suite.records.case import HopWatch, LinkWatch
from suite.records.machine import Gpu, LinkState, Machine
from suite.records.path import narrowest, path_to_root


@dataclass(frozen=True)
class HopState:
    """One hop. hidden: the upper end, or what it supports, is not visible, so that `possible` is the lower end's alone.

    own: it is the GPU's own link. target_gts: LnkCtl2's target speed, of the port where it is known.
    """

    lower: str
    upper: str | None
    load: LinkState
    possible: LinkState
    lower_max: LinkState
    own: bool
    hidden: bool
    target_gts: float | None
    watch: HopWatch | None

    @property
    def name(self) -> str:
        """Both ends in words."""
        return f"{self.upper} – {self.lower}" if self.upper else self.lower

    @property
    def ends(self) -> str:
        """Whose support `possible` is, in words."""
        if self.upper and not self.hidden:
            return f"both ends of {self.name}"
        return f"{self.lower} itself" if self.hidden else f"{self.lower} and, as NVML has it, the system"

    @property
    def slower(self) -> bool:
        """Its speed under load is known to be below what is possible."""
        return _below(self.load.speed_gts, self.possible.speed_gts)

    @property
    def narrower(self) -> bool:
        """Its width under load is known to be below what is possible."""
        return _below(self.load.width, self.possible.width)

    @property
    def beyond(self) -> bool:
        """Its speed or width under load is above what is possible: one of the two readings is wrong."""
        faster = _below(self.possible.speed_gts, self.load.speed_gts)
        return faster or _below(self.possible.width, self.load.width)

    @property
    def share(self) -> float | None:
        """What it carries under load, as a fraction of what it could."""
        load, possible = line_rate(self.load), line_rate(self.possible)
        return load / possible if load and possible else None


def hops(machine: Machine, gpu: Gpu, watch: LinkWatch | None) -> Sequence[HopState]:
    """The hops of a GPU, nearest first; one hop from the watch alone where sysfs shows no path."""
    if gpu.address is None:
        return ()
    watched = {hop.lower: hop for hop in watch.hops} if watch and watch.readings else {}
    path = path_to_root(machine, gpu.address)
    states = []
    for place, hop in enumerate(path.hops):
        own = place == 0
        seen = watched.get(hop.lower)
        load = seen.load if seen else LinkState()
        if own and watch and watch.readings:
            # NVML answers for the GPU itself, also where a virtual machine shows a made-up sysfs.
            load = _filled(watch.load, load)
        possible = narrowest(hop.possible, gpu.link_max) if own and hop.upper and gpu.link_max.known else hop.possible
        hidden = hop.upper is None or not hop.upper_max.known
        if hidden:
            possible, hidden = (gpu.link_max, False) if own and gpu.link_max.known else (hop.lower_max, True)
        states.append(
            HopState(
                hop.lower,
                hop.upper,
                load,
                possible,
                hop.lower_max,
                own,
                hidden,
                _target(machine, hop.lower, hop.upper),
                seen,
            )
        )
    return states


def reduced(states: Sequence[HopState]) -> HopState | None:
    """The hop that lost most against what it could do; None where none did."""
    found = [s for s in states if s.slower or s.narrower]
    return min(found, key=lambda s: s.share if s.share is not None else 1.0, default=None)


def narrowest_possible(states: Sequence[HopState]) -> HopState | None:
    """The hop that could carry least; the nearest of equal ones; None where none is known."""
    known = [(rate, place, s) for place, s in enumerate(states) if (rate := line_rate(s.possible)) is not None]
    return min(known)[2] if known else None


def wider_siblings(machine: Machine, gpu: Gpu, hop: HopState, watches: dict[int, LinkWatch]) -> Iterator[Gpu]:
    """Equal GPUs whose own link is wider than this hop's: under load, or where that was not read yet, as found, as
    idling never widens a link."""
    for other in machine.gpus:
        if other.index == gpu.index or other.name != gpu.name:
            continue
        function = machine.function(other.address)
        watch = watches.get(other.index)
        found = [other.link.width, function.link.width if function else None]
        seen = [watch.load.width] if watch and watch.load.width is not None else found
        if any(_below(hop.load.width, width) for width in seen):
            yield other


def _target(machine: Machine, lower: str, upper: str | None) -> float | None:
    """The port's target speed, which the BIOS sets; the device's own, which drivers write, where that was not read."""
    for address in (upper, lower):
        function = machine.function(address)
        if function and function.config and function.config.target_speed_gts is not None:
            return function.config.target_speed_gts
    return None


def _filled(link: LinkState, other: LinkState) -> LinkState:
    return LinkState(
        link.speed_gts if link.speed_gts is not None else other.speed_gts,
        link.width if link.width is not None else other.width,
    )


def _below(one: float | None, other: float | None) -> bool:
    return one is not None and other is not None and one < other
