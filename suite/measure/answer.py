"""What one rank answers to one plan, and what a worker is told at its start: the messages of the worker pool."""

from __future__ import annotations

from dataclasses import dataclass, field

from suite.records.case import Clock, Engine, Placement, Transport


@dataclass(frozen=True)
class Answer:
    """One rank's measurement. seconds: one entry a round, seconds per operation. window: start and end of the timed
    transfer in time.monotonic() seconds, the same clock in every process of one host. unavailable: the reason, where
    this rank cannot measure the plan at all; error: what went wrong, where it tried and failed."""

    seconds: tuple[float, ...] = ()
    clock: Clock = "host-monotonic"
    engine: Engine | None = None
    verified: bool | None = None
    wrong: str | None = None
    directions: dict[str, tuple[float, ...]] | None = None
    placement: Placement | None = None
    window: tuple[float, float] | None = None
    transport: Transport | None = None
    iterations: int | None = None  # operations in one sample, where fewer than planned were made
    counted: str | None = None
    notes: tuple[str, ...] = ()
    threads: int | None = None  # that copied, where the plan left the number open
    on_device_s: float | None = None  # of a latency case: one operation from event to event
    unavailable: str | None = None
    error: str | None = None


@dataclass(frozen=True)
class Rank:
    """Who a worker is: its rank, how many there are, and where they meet: a file, or 'tcp://host:port/prefix'.

    local: which of its host's ranks it is, where a plan does not name GPUs."""

    rank: int
    world_size: int
    store: str
    local: int = 0

    @property
    def between_hosts(self) -> bool:
        """Whether its group reaches beyond this host."""
        return self.store.startswith("tcp://")


@dataclass(frozen=True)
class Setup:
    """What a worker is told on its command line. channel: its inherited socket. parent: the pid that it dies with.

    cpus: its CPU set, empty for all. handlers: 'module:function' by operation, beside the built-in ones.
    """

    channel: int
    parent: int
    rank: Rank
    cpus: tuple[int, ...] = ()
    handlers: dict[str, str] = field(default_factory=dict)
