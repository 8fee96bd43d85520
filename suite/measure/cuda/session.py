"""What one worker process keeps between cases: its runtime, open GPUs, buffers, and the CPUs it was started on."""

from __future__ import annotations

import functools
import itertools
import os
from dataclasses import replace

from suite.errors import Unavailable
from suite.measure.cuda.buffers import Buffers, Host
from suite.measure.cuda.device import Device, Devices
from suite.measure.cuda.runtime import Runtime, load
from suite.measure.numa import together
from suite.records.case import Placement, Plan


class Session:
    """One process's CUDA state. Tests make their own with a fake runtime."""

    def __init__(self, runtime: Runtime) -> None:
        self.runtime = runtime
        self.devices = Devices(runtime)
        self.buffers = Buffers(self.devices)
        self._cpus = os.sched_getaffinity(0)
        self._numbers = itertools.count()

    def begin(self, plan: Plan) -> tuple[tuple[Device, ...], tuple[str, ...]]:
        """The plan's GPUs, the first one current, the thread on the plan's CPUs, and notes on what could not be had.

        Raises Unavailable with the reason where a GPU cannot be used.
        """
        if not plan.addresses or len(plan.addresses) != len(plan.gpus):
            raise Unavailable("the PCI address of the GPU is not known, so CUDA cannot be told which one is meant")
        notes = self._pin(plan.cpus)
        self.buffers.begin()
        found = tuple(self.devices.at(address) for address in plan.addresses)
        found[0].use()
        return found, notes

    def number(self) -> int:
        """0, 1, 2, … : another one at every call."""
        return next(self._numbers)

    def close(self) -> None:
        """Frees buffers and streams."""
        self.buffers.close()
        self.devices.close()

    def _pin(self, cpus: tuple[int, ...]) -> tuple[str, ...]:
        """The copying thread and what it starts run on these CPUs; on those of the process where none are named."""
        wanted = self._cpus & set(cpus) if cpus else self._cpus
        if not wanted:
            os.sched_setaffinity(0, self._cpus)
            return (f"not pinned: this process may not run on the CPUs {_ranges(cpus)}",)
        os.sched_setaffinity(0, wanted)
        return ()


@functools.cache
def current() -> Session:
    """This process's session. Raises Unavailable with the reason where there is no CUDA."""
    return Session(load())


class Placed:
    """Looks at host buffers after registering and again after timing."""

    def __init__(self, plan: Plan, *buffers: Host) -> None:
        self._plan = plan
        self._buffers = buffers
        self._looks = [b.prove() for b in buffers]

    def proof(self) -> Placement:
        """All looks as one: proved only where each of them says so."""
        looks = together([*self._looks, *(b.prove() for b in self._buffers)])
        return replace(looks, node=self._plan.memory_node, cpu_node=self._plan.cpu_node)


def _ranges(cpus: tuple[int, ...]) -> str:
    return f"{min(cpus)}–{max(cpus)}" if len(cpus) > 1 else str(cpus[0])
