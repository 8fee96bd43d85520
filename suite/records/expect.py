"""A manifest: what a fleet's owner says is right for a machine. It travels with the run that it judged."""

from __future__ import annotations

from dataclasses import dataclass, field
from fnmatch import fnmatchcase

from suite.records.machine import Gpu, LinkState, Machine


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
    """gpus: by PCI address, or by the name of the physical slot. floors: the least bandwidth, bytes per second, by
    case; `*` in a name stands for anything."""

    gpus: dict[str, ExpectedGpu] = field(default_factory=dict)
    floors: dict[str, float] = field(default_factory=dict)

    def of(self, machine: Machine, gpu: Gpu) -> ExpectedGpu | None:
        """What is expected of a GPU: by its address, else by the slot that it, or the riser above it, is in."""
        return self.gpus.get(gpu.address or "") or self.gpus.get(slot(machine, gpu) or "")

    def floor(self, case: str) -> float | None:
        """The floor of a case: its own, else the highest of the patterns that it fits."""
        fitting = [floor for pattern, floor in self.floors.items() if fnmatchcase(case, pattern)]
        return self.floors.get(case, max(fitting, default=None))


NOTHING = Expectations()


def slot(machine: Machine, gpu: Gpu) -> str | None:
    """The name of the physical slot of a GPU, or of the nearest port above it that has one."""
    return next((function.slot for function in machine.ancestors(gpu.address) if function.slot), None)
