"""What changed between two sets of runs: in the machine, exactly, and in the numbers, with the doubt they carry."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from suite.records.case import Operation
from suite.records.machine import LinkState
from suite.records.run import SCHEMA, Run

Quantity = Literal["bandwidth", "latency"]
# What is said of a case, and of two sides as a whole.
Call = Literal["worse", "inconclusive", "better", "same"]


@dataclass(frozen=True)
class Baseline:
    """Runs of one machine under a name, oldest first. saved: UTC, ISO 8601, when it was last written."""

    name: str
    runs: tuple[Run, ...]
    saved: str | None = None
    schema: int = SCHEMA


@dataclass(frozen=True)
class Side:
    """One side of a comparison. boots: how many different boots its runs were made in; None where a run does not say.
    incomplete: runs that were broken off."""

    name: str
    runs: int
    boots: int | None = None
    started: tuple[str, ...] = ()
    incomplete: int = 0
    simulated: bool = False


@dataclass(frozen=True)
class Difference:
    """One fact of the machine that differs. before, after: in words; None where that side has no such thing.
    gpu: the NVML index where the fact is of one GPU. whole: it is the GPU itself, which only one side has.
    below: of a hop further up, the GPUs whose paths it is on."""

    what: str
    before: str | None
    after: str | None
    gpu: int | None = None
    whole: bool = False
    below: tuple[int, ...] = ()

    def __str__(self) -> str:
        if self.whole:
            return f"{self.what} is {'gone' if self.after is None else 'there now, and was not before'}"
        return f"{self.what}: {self.before or 'none'} → {self.after or 'none'}"


@dataclass(frozen=True)
class Change:
    """One case on both sides. before, after: medians over runs of the per-run medians, bytes/s or seconds.

    ratio: after / before (Hodges–Lehmann), with low and high its 95 % interval; None where there are too few runs for
    one. gate: the least |ratio - 1| that is called. call: better or worse whichever way the quantity counts. why: the
    reason for the call. tail_*: the 10th percentile of the bandwidth (the 90th of the latency) within a run.
    repeated: whether a further set of runs showed the same; None without one. limit: the ceiling of the later run.
    status_*, cause_*: the last run's verdict on each side.
    """

    case: str
    operation: Operation
    bytes: int
    gpus: tuple[int, ...]
    quantity: Quantity
    call: Call
    why: str
    before: float | None = None
    after: float | None = None
    ratio: float | None = None
    low: float | None = None
    high: float | None = None
    gate: float | None = None
    tail_before: float | None = None
    tail_after: float | None = None
    runs_before: int = 0
    runs_after: int = 0
    limit: float | None = None
    limit_before: float | None = None
    status_before: str | None = None
    status_after: str | None = None
    cause_before: str | None = None
    cause_after: str | None = None
    repeated: bool | None = None

    @property
    def gain(self) -> float | None:
        """How many times better the later side is: after / before for a bandwidth, before / after for a latency."""
        if not self.ratio:
            return None
        return self.ratio if self.quantity == "bandwidth" else 1 / self.ratio


@dataclass(frozen=True)
class Missing:
    """A case that cannot be compared. measured: the side that has numbers. why: what is with it on the other one."""

    case: str
    measured: Literal["before", "after", "both"]
    why: str


@dataclass(frozen=True)
class Comparison:
    """Two sides. call: worst of what was called, a GPU that is gone among it; 'same' where nothing was. forced: why it
    should have been refused, where it was asked for all the same. busy: GPUs that others used, in sentences."""

    before: Side
    after: Side
    call: Call
    machine: tuple[Difference, ...] = ()
    changes: tuple[Change, ...] = ()
    missing: tuple[Missing, ...] = ()
    forced: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    busy: tuple[str, ...] = ()
    schema: int = SCHEMA

    @property
    def gpus(self) -> tuple[Difference, ...]:
        """GPUs that only one side has, those that are gone first."""
        return tuple(sorted((d for d in self.machine if d.whole), key=lambda d: d.after is not None))


@dataclass(frozen=True)
class Reference:
    """What a baseline says of the case that was just measured. link: its link under load there; None where not known.
    runs: how many runs it rests on."""

    name: str
    runs: int
    change: Change | None = None
    link: LinkState | None = None
