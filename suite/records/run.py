"""What came of it: limits, verdicts, results and whole runs. These are the run file's fields (schema 1)."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from suite.errors import FailureKind
from suite.records.case import Backend, Clock, Engine, LinkWatch, Operation, Placement, RanksAs, RanksPlaced, Transport
from suite.records.expect import NOTHING, Expectations
from suite.records.machine import Basis, Machine

SCHEMA = 1

Status = Literal["PASS", "WARN", "FAIL", "INDETERMINATE", "UNAVAILABLE", "NOT_SAMPLED"]
STATUSES: tuple[Status, ...] = ("FAIL", "WARN", "INDETERMINATE", "PASS", "NOT_SAMPLED", "UNAVAILABLE")


@dataclass(frozen=True)
class Limits:
    """What the path could deliver, bytes per second. now: the link as negotiated under load; platform: what both ends
    of every hop could negotiate; device: the GPU alone. expected: the range that healthy machines reach.

    low, high: `now` for the smallest and largest MPS where the MPS was not read (basis 'assumed').
    floor_s: least time, seconds, for latency cases. hard: exceeding `now` means that something is wrong.
    utilisation: fraction of the more loaded link direction, for both-ways cases (above 1.01: impossible).
    generations: what Gen1, Gen2, … links of the same width could deliver, in order; empty where no PCIe link binds.
    """

    now: float | None = None
    platform: float | None = None
    device: float | None = None
    expected: tuple[float, float] | None = None
    floor_s: float | None = None
    basis: Basis | None = None
    hard: bool = True
    low: float | None = None
    high: float | None = None
    utilisation: float | None = None
    binding: str | None = None
    why: str | None = None
    generations: tuple[float, ...] = ()


@dataclass(frozen=True)
class Failure:
    """Why there are no samples. said: the last line of each rank."""

    kind: FailureKind
    message: str
    said: tuple[str, ...] = ()


@dataclass(frozen=True)
class Verdict:
    """status, the catalogue's cause, the evidence in sentences, and what to do next."""

    status: Status
    cause: str
    evidence: tuple[str, ...] = ()
    advice: str | None = None
    binding: str | None = None


@dataclass(frozen=True)
class Result:
    """One case with all that is known of it. bandwidth: bytes/s, what the limit is compared with (busbw for
    collectives; the sum for both ways and several GPUs). dtype, in_place: of collectives. directions: bytes/s of each.
    on_device_s: of a latency case, the time on the device itself. represented_by: for NOT_SAMPLED, the case that stands
    for it. p2p: peer access on or off, None where it plays no part."""

    case: str
    operation: Operation
    bytes: int
    gpus: tuple[int, ...] = ()
    memory_node: int | None = None
    target_node: int | None = None
    cpu_node: int | None = None
    engine: Engine | None = None
    memory: str | None = None
    chunk_bytes: int | None = None
    backend: Backend | None = None
    world_size: int = 1
    transport: str | None = None
    graph: bool = False
    iterations: int = 1
    threads: int = 1
    clock: Clock | None = None
    samples_s: tuple[float, ...] = ()
    mean_samples_s: tuple[float, ...] = ()
    bandwidth: float | None = None
    algbw: float | None = None
    latency_s: float | None = None
    on_device_s: float | None = None
    directions: dict[str, float] | None = None
    limits: Limits | None = None
    fraction_of_limit: float | None = None
    transport_taken: Transport | None = None
    error: Failure | None = None
    placement: Placement | None = None
    verified: bool | None = None
    wrong: str | None = None
    counted: str | None = None
    link: LinkWatch | None = None
    represented_by: str | None = None
    p2p: bool | None = None
    dtype: str | None = None
    in_place: bool | None = None
    tuning: str | None = None
    ranks_placed: RanksPlaced | None = None
    ranks_as: RanksAs = "processes"
    notes: tuple[str, ...] = ()
    verdict: Verdict | None = None

    @property
    def group(self) -> str:
        """First part of the case's name: link, host_memory, host_copy, …"""
        return self.case.partition("/")[0]


@dataclass(frozen=True)
class Settings:
    """How the run was asked for; two runs compare only where these agree."""

    effort: Literal["quick", "full"] = "quick"
    sizes: tuple[int, ...] | None = None
    gpus: tuple[int, ...] | None = None
    nodes: tuple[int, ...] | None = None
    world_sizes: tuple[int, ...] | None = None
    deadline_s: float = 30.0
    ranks_per_gpu: int = 1
    several_hosts: bool = False  # collectives run elsewhere: with world sizes that this machine's GPUs do not limit


@dataclass(frozen=True)
class Finding:
    """One root cause over a run. cases: those that it explains, worst first."""

    status: Status
    cause: str
    subject: str
    sentence: str
    advice: str | None = None
    cases: tuple[str, ...] = ()


@dataclass(frozen=True)
class Run:
    """A run, whole or so far. started: UTC, ISO 8601. complete: every planned case ended. notes: what a reader of its
    files could not read, in sentences. expected, thresholds: the manifest that judged it, and the thresholds that
    were given, by name. gone: GPUs that the baseline it was judged by has and this machine lacks, in words."""

    machine: Machine
    settings: Settings
    results: tuple[Result, ...] = ()
    planned: int = 0
    complete: bool = False
    simulated: bool = False
    started: str | None = None
    lanecheck: str | None = None
    schema: int = SCHEMA
    notes: tuple[str, ...] = ()
    expected: Expectations = NOTHING
    thresholds: dict[str, float] = field(default_factory=dict)
    gone: tuple[str, ...] = ()
