"""A manifest: what a fleet's owner says is right for this machine. It decides where the machine alone cannot."""

from __future__ import annotations

from dataclasses import dataclass, field

import msgspec

from suite.errors import PlanError
from suite.records.machine import LinkState, Machine


@dataclass(frozen=True)
class ExpectedGpu:
    """One GPU's own link under load and its NUMA node; what is None is not checked."""

    speed_gts: float | None = None
    width: int | None = None
    numa_node: int | None = None

    @property
    def link(self) -> LinkState:
        """The link that is expected."""
        return LinkState(self.speed_gts, self.width)


@dataclass(frozen=True)
class Expectations:
    """gpus: by PCI address. floors: the least bandwidth by case, bytes per second."""

    gpus: dict[str, ExpectedGpu] = field(default_factory=dict)
    floors: dict[str, float] = field(default_factory=dict)


NOTHING = Expectations()


def read(text: str) -> Expectations:
    """A manifest from its JSON text. Raises PlanError with one sentence that names the place."""
    try:
        return msgspec.json.decode(text, type=Expectations)
    except msgspec.MsgspecError as error:
        raise PlanError(f"the manifest cannot be read: {error}; `lanecheck probe --write-expect` drafts one") from error


def write(expectations: Expectations) -> str:
    """A manifest as JSON text that `read` reads back."""
    return msgspec.json.format(msgspec.json.encode(expectations), indent=2).decode() + "\n"


def draft(machine: Machine) -> Expectations:
    """What both ends of each GPU's link support, and the NUMA nodes as they are. Floors are left to the owner."""
    return Expectations(
        {
            gpu.address: ExpectedGpu(gpu.link_max.speed_gts, gpu.link_max.width, gpu.numa_node)
            for gpu in machine.gpus
            if gpu.address is not None
        }
    )
